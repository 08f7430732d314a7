"""The order in which causal attention takes blocks (csrc/device/pa_attention_wgmma.h), on the CPU."""

import ctypes
import re
import shutil

import numpy as np
import pytest
from compile_cache import compile_cached
from device_headers import CC, INCLUDE, ROOT

ORDER = """
#include "pa_base.h"
typedef struct {{ int x, y; }} int2;
static int2 make_int2(int x, int y) {{ return (int2){{x, y}}; }}
{function}
void order(int blocks, int heads, int64_t bytes_of_head, int *places)
{{
    for (int k = 0; k < blocks * heads; ++k) {{
        const int2 place = pa_causal_order(k, blocks, heads, bytes_of_head);
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

    def places(blocks, heads, bytes_of_head):
        out = np.zeros((blocks * heads, 2), np.int32)
        loaded.order(blocks, heads, ctypes.c_int64(bytes_of_head), ctypes.c_void_p(out.ctypes.data))
        return out

    return places


# the last ones: of few keys many heads would fit, times the blocks more than an int has
@pytest.mark.parametrize(
    ("blocks", "heads", "bytes_of_head"),
    [(3, 5, 12 << 20), (4, 7, 8 << 20), (2, 3, 1 << 30), (1, 1, 256), (30000, 3, 256), (43691, 2, 256)],
)
def test_every_block_of_every_head_once(order, blocks, heads, bytes_of_head):
    found = order(blocks, heads, bytes_of_head)
    assert sorted(map(tuple, found.tolist())) == [(h, b) for h in range(heads) for b in range(blocks)]
    together = min(max((24 << 20) // bytes_of_head, 1), heads)
    assert set(found[:together, 0]) == set(range(together))
    assert not found[:together, 1].any()
