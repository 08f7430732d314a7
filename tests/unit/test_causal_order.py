"""The order in which causal attention takes blocks (csrc/device/pa_attention_wgmma.h), on the CPU."""

import ctypes
import re
import shutil

import numpy as np
import pytest
from compile_cache import compile_cached
from device_headers import CC, INCLUDE, ROOT

from pyarray.kernels.attention.wgmma import _order

ORDER = """
#include "pa_base.h"
typedef struct {{ int x, y; }} int2;
static int2 make_int2(int x, int y) {{ return (int2){{x, y}}; }}
{function}
void order(int blocks, int heads, int group, int *places)
{{
    for (int k = 0; k < blocks * heads; ++k) {{
        const int2 place = pa_causal_order(k, blocks, heads, group);
        places[2 * k] = place.x, places[2 * k + 1] = place.y;
    }}
}}
"""


@pytest.fixture(scope="module")
def order(tmp_path_factory):
    if CC is None:
        pytest.skip("no C compiler")
    header = (ROOT / "csrc" / "device" / "pa_attention_wgmma.h").read_text()
    (function,) = re.findall(r"^PA_FN int2 pa_causal_order\(.*?^}$", header, re.MULTILINE | re.DOTALL)
    path = tmp_path_factory.mktemp("order") / "order.so"
    command = [CC, "-std=c11", "-O1", "-fwrapv", *INCLUDE, "-shared", "-fPIC"]
    compile_cached(command, ORDER.format(function=function), path)
    loaded = ctypes.CDLL(str(path))
    shutil.rmtree(path.parent)

    def places(blocks, heads, group):
        out = np.zeros((blocks * heads, 2), np.int32)
        loaded.order(blocks, heads, group, ctypes.c_void_p(out.ctypes.data))
        return out

    return places


@pytest.mark.parametrize(("blocks", "heads", "group"), [(3, 5, 2), (4, 7, 3), (2, 3, 1), (1, 1, 1), (43691, 2, 2)])
def test_every_block_of_every_head_once(order, blocks, heads, group):
    found = order(blocks, heads, group)
    assert sorted(map(tuple, found.tolist())) == [(h, b) for h in range(heads) for b in range(blocks)]
    assert set(found[:group, 0]) == set(range(group))
    assert not found[:group, 1].any()


# the last one: of few keys many heads would fit, times the blocks more than an int has
@pytest.mark.parametrize(
    ("heads", "tiles", "bytes_of_head", "group", "blocks"),
    [(512, 8, 1 << 18, 66, 132), (256, 8, 1 << 19, 33, 132), (32, 16, 1 << 20, 32, 132), (128, 32, 1 << 20, 33, 132),
     (64, 32, 1 << 21, 12, 64 * 32), (256, 7, 1 << 19, 48, 132), (9, 4, 1 << 30, 1, 36), (2, 43691, 256, 2, 132)],
)  # fmt: skip
def test_work_of_blocks(order, heads, tiles, bytes_of_head, group, blocks):
    """All blocks that take tiles forth and back have about the same work, where whole turns fit the cache."""
    assert _order(132, True, heads, heads * tiles, bytes_of_head) == (group, blocks)
    if blocks == 132 and tiles in (8, 16, 32):
        work = tiles - order(tiles, heads, group)[:, 1]
        turns = np.pad(work, (0, -len(work) % 132)).reshape(-1, 132)
        turns[1::2] = turns[1::2, ::-1]
        assert turns.sum(0).max() <= 1.04 * turns.sum(0).mean()
