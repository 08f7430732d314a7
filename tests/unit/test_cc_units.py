"""One C text compiled by several compilers at once."""

import ctypes
import uuid

import numpy as np
import pytest

import pyarray as pa
from pyarray.driver import cc, cc_units, text_units
from pyarray.errors import CompileError

TEXT = """#include <pa_base.h>
static inline int twice(int x) { return 2 * x; }
#if PA_IN_UNIT(0, 5000)
PA_SHARED int first(int x) { return twice(x) + 1; }
#else
PA_SHARED int first(int x);
#endif
#if PA_IN_UNIT(1, 5000)
PA_SHARED int second(int x) { return first(x) * twice(x); }
#else
PA_SHARED int second(int x);
#endif
#if PA_IN_UNIT(2, 100)
int both(int x) { return first(x) + second(x); }
#endif
"""

OPTIMISED = ("-O2",)

pytestmark = pytest.mark.skipif(not cc.toolchain().link, reason="only gcc, without flags of the user, is called so")


@pytest.fixture
def units(monkeypatch):
    """The sets of functions of each text that was compiled by units, of all that have two functions."""
    made, compile_units = [], cc_units.compile_units

    def compiled(command, link, text, sets, output):
        made.append(sets)
        return compile_units(command, link, text, sets, output)

    monkeypatch.setattr(text_units, "MIN_WEIGHT", 50)
    monkeypatch.setattr(cc, "unit_sets", lambda text, most: text_units.unit_sets(text, most, at_once=3))
    monkeypatch.setattr(cc, "compile_units", compiled)
    return made


def load(binary, tmp_path):
    path = tmp_path / "made.so"
    path.write_bytes(binary)
    return ctypes.CDLL(str(path))


def test_the_units_are_linked(units, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    binary = cc.toolchain().compile(TEXT, OPTIMISED)
    assert units == [[2, 1, 4]]
    assert list(tmp_path.iterdir()) == []
    library = load(binary, tmp_path)
    assert library.both(5) == 11 + 110
    assert not hasattr(library, "first")


def test_without_a_second_processor_it_is_one_unit(monkeypatch, tmp_path):
    assert text_units.unit_sets(TEXT, 4, at_once=1) == [7]
    monkeypatch.setattr(cc, "unit_sets", lambda text, most: [7])
    library = load(cc.toolchain().compile(TEXT, OPTIMISED), tmp_path)
    assert library.both(5) == 121
    assert not hasattr(library, "first")


@pytest.mark.parametrize("count", [1, 2, 5, 90])
def test_each_function_is_in_one_unit(count):
    text = "".join(f"#if PA_IN_UNIT({k}, {(k * 7919) % 5000})\n" for k in range(min(count, 63)))
    sets = text_units.unit_sets(text, cc_units.MAX_UNITS, at_once=16)
    assert sum(sets) == (1 << min(count, 63)) - 1
    assert len(sets) <= cc_units.MAX_UNITS


def test_the_words_of_a_failure_are_those_of_the_whole_text(units):
    with pytest.raises(CompileError, match="absent") as caught:
        cc.toolchain().compile(TEXT.replace("twice(x) + 1", "absent"), OPTIMISED)
    assert len(units) == 1
    assert "PA_SHARED int first(int x) { return absent; }" in str(caught.value)


@pa.kernel
def several_loops(a: pa.ndarray, b: pa.ndarray, out: pa.ndarray, counts: pa.ndarray):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            b[i, j] = a[i, j - 1] * 0.5 + b[i, j - 1]
        total += b[i, a.shape[1] - 1]
    for i in range(a.shape[0]):
        pa.atomic_add(counts, i % counts.shape[0], 1)
    for i, j in pa.ndrange(a.shape[0], a.shape[1]):
        out[i, j] = b[i, j] / (total + i)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("columns", [slice(None), slice(None, None, 2)])
@pytest.mark.parametrize("overlap", [False, True])
def test_kernels_give_the_same_bits(units, debug, columns, overlap, monkeypatch):
    def results(how):
        # a flag of its own: it is compiled, whatever the tests before have, of this run and of others
        flag = f"-DTEST_{how}_{uuid.uuid4().hex}"
        kernel = pa.kernel(several_loops.__wrapped__, debug=debug, flags=(*OPTIMISED, flag))
        a = pa.asarray(np.random.default_rng(3).standard_normal((40, 70)))[:, columns]
        b = a if overlap else pa.zeros_like(a)
        out, counts = pa.empty_like(a), pa.zeros(3, dtype=pa.int64)
        kernel(a, b, out, counts)
        return [pa.asnumpy(x) for x in (a, b, out, counts)], kernel.counts["compiles"]

    monkeypatch.setenv("PYARRAY_CACHE", "0")
    by_units, compiled = results("units")
    assert compiled == 1
    assert [len(sets) for sets in units] == [3]
    monkeypatch.setattr(cc, "unit_sets", lambda text, most: [1])
    whole, compiled = results("whole")
    assert compiled == 1
    assert len(units) == 1
    for found, wanted in zip(by_units, whole, strict=True):
        np.testing.assert_array_equal(found, wanted)
