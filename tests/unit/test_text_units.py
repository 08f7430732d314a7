"""The kernels of one GPU text as translation units: compiled at the same time, packed as one binary, loaded as one
module."""

import importlib.util
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyarray as pa
from pyarray.driver import nvrtc, text_units
from pyarray.driver.base import devices, get_device
from pyarray.driver.kernel_step import KernelStep
from pyarray.driver.text_units import packed, unit_sets, unpacked
from pyarray.errors import CompileError, DeviceError
from pyarray.lang.emit_units import kernels_in_units
from pyarray.lang.markers import unordered

TEXT = """#include <pa_base.h>
__device__ static int twice(int x) { return 2 * x; }
extern "C" __global__ void first(int *x) { *x = twice(*x); }

extern "C" __global__ void second(int *x) { *x = twice(*x) + 1; }

extern "C" __global__ void third(int *x) { *x = 3; }
"""
KERNELS = ("first", "second", "third")

needs_nvrtc = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None,
    reason="cuda-bindings is not installed: pip install 'pyarray-kernels[cuda]'",
)


@pytest.fixture
def three(monkeypatch):
    """A text of three units."""
    monkeypatch.setattr(text_units, "MIN_WEIGHT", 1)
    monkeypatch.setattr(text_units, "cores", lambda: 16)
    return kernels_in_units(TEXT)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5))
def test_what_was_packed_is_unpacked(binaries):
    assert unpacked(packed(binaries)) == binaries


def test_a_binary_by_itself():
    assert unpacked(b"\x7fELF ...") == [b"\x7fELF ..."]


@pytest.mark.parametrize("damaged", [b"12x\nabc", b"\n", b"", b"2 2\nabc", b"2\nabc", b"-1 4\nabc"])
def test_damaged_binaries(damaged):
    with pytest.raises(DeviceError, match="damaged"):
        unpacked(b"pyarray units " + damaged)


def test_kernels_beyond_the_bits_are_in_one_unit(three):
    kernel = 'extern "C" __global__ void k{}(int *x) {{ *x = 1; }}\n\n'
    text = kernels_in_units("".join(kernel.format(number) for number in range(70)))
    sets = unit_sets(text, 8)
    assert len(sets) == 8
    assert sum(sets) == (1 << 63) - 1


def test_each_kernel_is_in_one_unit(three):
    assert sorted(unit_sets(three, 8)) == [1, 2, 4]
    assert kernels_in_units(TEXT[: TEXT.index("\n\n")]) == TEXT[: TEXT.index("\n\n")]


@needs_nvrtc
def test_units_of_nvrtc(three):
    units = unpacked(nvrtc.Nvrtc("sm_90").compile(three))
    assert sorted([name for name in KERNELS if name.encode() in unit] for unit in units) == [[n] for n in KERNELS]


def centred(out, x):
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for r in unordered(range(x.shape[1])):
            total = total + x[i, r]
        for r in unordered(range(x.shape[1])):
            out[i, r] = x[i, r] - total


@needs_nvrtc
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_units_of_rows(dtype, monkeypatch):
    """NVRTC's own `--split-compile` refused them."""
    monkeypatch.setattr(text_units, "cores", lambda: 2)
    kernel, x = pa.kernel(centred), pa.zeros((4, 300), dtype=dtype)
    program = kernel._lowered(kernel.bind((x, x)), False, "cuda")
    units = unpacked(nvrtc.Nvrtc("sm_90").compile(program.text))
    assert len(units) == 2
    for step in program.steps:
        assert sum(f".text.{step.symbol}\0".encode() in unit for unit in units) == 1


@needs_nvrtc
def test_the_words_of_a_refused_unit(three):
    with pytest.raises(CompileError, match=r'kernel\.cu\(\d+\): error: identifier "absent" is undefined'):
        nvrtc.Nvrtc("sm_90").compile(three.replace("twice(*x) + 1", "absent"))


@needs_nvrtc
def test_as_the_interpreter_ends():
    """No thread starts then."""
    script = """
import atexit, sys
from pyarray.driver import nvrtc, text_units
text_units.MIN_WEIGHT, text_units.cores = 1, lambda: 16
atexit.register(lambda: print(nvrtc.Nvrtc("sm_90").compile(sys.argv[1])[1:4]))
"""
    run = subprocess.run([sys.executable, "-c", script, kernels_in_units(TEXT)], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("b'ELF'\n", "")


def unit_text(text, bits):
    """What a unit compiles, for the emulated compiler: that makes an entry of each kernel, in whatever `#if`."""
    block = re.compile(r"^#if PA_IN_UNIT\((\d+), \d+\)\n(.*?)^#endif\n", re.MULTILINE | re.DOTALL)
    return block.sub(lambda found: found[2] if bits >> int(found[1]) & 1 else "", text)


def test_units_are_one_module(three):
    """Kernels of all units are found in it, as are those of a text by itself."""
    if not devices("hip"):
        pytest.skip("no HIP device, not even an emulated one")
    driver = get_device("hip:0").driver
    compiler = driver.compiler()
    units = [compiler.compile(unit_text(three, bits)) for bits in (3, 4)]
    module = driver.load(packed(units))
    try:
        addresses = {driver.symbol(module, name) for name in KERNELS}
        assert len(addresses) == 3
        with pytest.raises(DeviceError, match="absent"):
            driver.symbol(module, "absent")
        assert driver.function(module, [KernelStep(name) for name in KERNELS])
    finally:
        driver.unload(module)
    with pytest.raises(DeviceError):
        driver.load(packed([units[0], b"no binary"]))


def test_rows_by_units(monkeypatch):
    """What the kernels compute, loaded as units."""
    if not devices("hip"):
        pytest.skip("no HIP device, not even an emulated one")
    compiler = type(get_device("hip:0").driver.compiler())
    compile_text, made = compiler.compile, list[int]()

    def by_units(self, text, extra_flags=()):
        sets = unit_sets(text, 8, at_once=3)
        made.append(len(sets))
        return packed([compile_text(self, unit_text(text, bits), extra_flags) for bits in sets])

    monkeypatch.setattr(compiler, "compile", by_units)
    monkeypatch.setenv("PYARRAY_CACHE", "0")
    x = np.random.default_rng(0).integers(-3, 4, (70, 300)).astype("int8")
    out, kernel = pa.zeros_like(pa.asarray(x, device="hip:0")), pa.kernel(centred, flags=("-DTEST_UNITS",))
    kernel(out, pa.asarray(x, device="hip:0"))
    np.testing.assert_array_equal(pa.asnumpy(out), x - x.sum(axis=1, dtype="int8")[:, None])
    assert max(made) == 3
