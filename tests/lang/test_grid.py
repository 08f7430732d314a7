"""Grid programs: NVRTC takes the text of kernels of every kind, and the launch list says what there is to do.

NVRTC needs no GPU. What the kernels compute is tested by the device suite, where there is one.
"""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

import pyarray as pa
from pyarray.api.standard.elementwise import UFUNCS
from pyarray.driver.kernel_step import KernelStep
from pyarray.driver.nvrtc import Nvrtc
from pyarray.driver.text_units import unpacked
from pyarray.jit import bound_launch
from pyarray.jit import kernel as jit
from pyarray.jit.kernel import func, kernel
from pyarray.kernels.elementwise import elementwise as maps
from pyarray.kernels.matmul import gemm_mma, gemm_text
from pyarray.kernels.matmul.gemm_key import ProductKey
from pyarray.kernels.reduce import reduce
from pyarray.kernels.sort import sort_gpu
from pyarray.kernels.sort.sort_keys import key_transform
from pyarray.lang import pipeline
from pyarray.lang.markers import unordered


@pytest.fixture
def compiled(monkeypatch):
    """Compiles for sm_90 whatever the CPU's front end lowers; the launch lists by kernel."""
    if importlib.util.find_spec("cuda") is None:
        pytest.skip("cuda-bindings is not installed: pip install 'pyarray-kernels[cuda]'")
    nvrtc, done = Nvrtc("sm_90"), {}
    lower = pipeline.lower

    def both(source, types, target, debug=False, *more):
        for checked in (False, True):
            program = lower(source, types, "cuda", checked, *more)
            assert all(unit.startswith(b"\x7fELF") for unit in unpacked(nvrtc.compile(program.text)))
            done[source.name, checked] = program.steps
        return lower(source, types, target, debug, *more)

    monkeypatch.setattr(jit, "lower", both)
    return done


def fresh(*makers):
    for maker in makers:
        maker.cache_clear()


@func
def damp(v, i, factor):
    return v[i] * factor


@kernel
def mixed(v, out, n, factor: float):
    part = v.subview(1, n)
    half = part.size // 2
    for i in range(half):
        out[i] = damp(part, i, factor) + pa.sin(v[i])
    for i in range(1, n):
        pa.atomic_add(out, 0, v[i])


@kernel
def framed(v, index):
    n = index[0]
    for i in range(n):
        v[i] = 1
    index[0] = n + 1


@kernel
def rows(m, out):
    for i in range(m.shape[0]):
        total = pa.float64(0)
        for j in unordered(range(m.shape[1])):
            total = total + m[i, j]
        out[i] = total


# of m and out, each a pointer, rows, columns and strides: aligned rows, of which a block keeps one
CONTIGUOUS = [(0, 15, 0, 0), (2, -1, 2048, 4096), (2, 1, 0, 0), (3, 15, 0, 0), (5, 1, 0, 0)]
STRIDED = [(0, 15, 0, 0), (2, -1, 2048, 4096), (2, 1, 0, 0), (3, 15, 0, 0), (4, -1, 8, 8), (5, 15, 0, 0)]
STRIDED += [(8, 15, 0, 0), (9, -1, 8, 8)]


@kernel
def kept(m, out):
    for i in range(m.shape[0]):
        total = pa.float64(0)
        for j in unordered(range(m.shape[1])):
            total = total + m[i, j]
        for j in unordered(range(m.shape[1])):
            out[i, j] = m[i, j] / total


@pytest.mark.slow
def test_user_kernels(compiled):
    v, out = pa.ones(16, dtype="float32"), pa.zeros(16, dtype="float32")
    mixed(v, out, 8, 2.0)
    # the first count is computed on the device; the second is at most `n`
    first = KernelStep("kernel_mixed_0", None, per_thread=4)
    assert compiled["mixed", False] == (first, KernelStep("kernel_mixed_1", (4,)))
    framed(v, pa.asarray([3]))
    assert [step.single for step in compiled["framed", True]] == [True, False, False, True]
    # the loop where all indices are inside, and with its checks
    assert [step.size_slots for step in compiled["framed", True]] == [(), None, None, ()]
    assert compiled["framed", True][1].per_thread == 4
    rows(pa.ones((4, 8)), pa.zeros(4))
    (step,) = compiled["rows", False]
    assert (step.size_slots, step.team, step.row_slot) == ((1,), True, None)
    kept(pa.ones((4, 8)), pa.zeros((4, 8)))
    for checked, slots in ((False, (1, 2)), (True, (2, 3))):  # m's sizes: rows, and the length of one
        *blocks, step = compiled["kept", checked][: 1 if checked else 7]
        assert (*step.size_slots, step.row_slot, step.row_elements) == (*slots, 4096)
        wanted = []
        # each thread has 16 elements of a row in registers at most, 8 at least, or more of the largest rows elsewhere
        for threads, least, most, shared in (
            *((threads, 8, 16, 0) for threads in (() if checked else (64, 128, 256, 512, 1024))),
            *(() if checked else ((1024, 16, 42, 208 << 10),)),
        ):
            guards = (CONTIGUOUS[0], (2, -1, least * threads + bool(shared), most * threads), *CONTIGUOUS[2:])
            symbol = f"kernel_kept_block0_{threads}{'_shared' * bool(shared)}"
            shape = {"threads": threads, "shared": shared}
            wanted.append(replace(step, symbol=symbol, guards=guards, row_bytes=16, **shape))
        assert blocks == wanted
    kept(pa.ones((4, 8))[:, 1:], pa.zeros((4, 8))[:, 1:])
    assert compiled["kept", False][2].guards == tuple(STRIDED)


@pytest.mark.slow
def test_library_kernels(compiled, monkeypatch):
    fresh(maps._map_kernel, reduce._kernel)
    monkeypatch.setattr(reduce, "on_grid", lambda x: True)
    a = pa.asarray(np.ones((70, 60), np.float32))
    maps.launch_map(UFUNCS["add"].op, a._dtype, pa.empty((70, 60), dtype="float32"), (a, a))
    for op in (reduce.SUM, reduce.MAX):
        reduce.reduce_into(op, pa.empty(60, dtype="float32"), a, (0,), a._dtype)
    z = a.astype("complex64")
    reduce.reduce_into(reduce.SUM, pa.empty(70, dtype="complex64"), z, (1,), z._dtype)
    (step,) = compiled["add", False]
    assert (step.size_slots, step.per_thread) == ((1,), 4)
    copy = maps._map_kernel(maps.COPY, a._dtype.code, 2, ((0, 1),), True, True)
    copy(pa.empty((70, 60), dtype="bfloat16"), a)
    fresh(maps._map_kernel, reduce._kernel)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int8"])
@pytest.mark.slow
def test_matmul(compiled, dtype):
    for batches, checked in ((0, False), (2, True)):
        program = gemm_text.program(ProductKey(dtype, batches, checked), "cuda", checked)
        assert Nvrtc("sm_90").compile(program.text).startswith(b"\x7fELF")
        (step,) = program.steps
        *_, blocks = bound_launch.first_slots(program.params)
        assert step == KernelStep("kernel_matmul", (blocks,), team=True, dependent_launch=True)


@pytest.mark.parametrize(
    ("target", "units", "dtype", "tiles"),
    [
        ("sm_80", "mma", "float16", slice(0, 1)),
        ("sm_80", "mma", "float64", slice(0, 1)),
        ("sm_90", "mma", "float16", slice(2, 3)),
        ("sm_90", "wgmma", "bfloat16", slice(0, 3, 2)),
        ("sm_90", "wgmma", "float32", slice(0, 3, 2)),
        ("sm_90", "wgmma", "int8", slice(0, 1)),
        ("sm_90", "wgmma", "uint8", slice(2, 3)),
        ("sm_90", "wgmma", "float64", slice(1, 2)),
    ],
)
@pytest.mark.slow
def test_matmul_on_tensor_cores(target, units, dtype, tiles):
    for tile, _ in gemm_mma.TILES[units, np.dtype(dtype if dtype != "bfloat16" else "float16").itemsize][tiles]:
        program = gemm_text.program(ProductKey(dtype, 1, tile), "cuda", False)
        assert Nvrtc(target).compile(program.text).startswith(b"\x7fELF")
        limit = (99 if units == "mma" else 227) << 10  # of a block; the driver's own KiB is left out
        assert 0 < program.steps[0].shared <= limit


@pytest.mark.parametrize(("dtype", "positions"), [("int8", True), ("float32", True), ("float32", False)])
@pytest.mark.slow
def test_sorts_of_rows_whose_counts_need_64_bits(dtype, positions):
    """A block of a GPU before Hopper has 48 KiB of shared memory that the text declares."""
    kind = pa.empty(0, dtype=dtype)._dtype
    order = key_transform(kind, False)
    config = sort_gpu._Config(kind.itemsize, order, 16 if positions else 28, positions, False, False, True)
    program = sort_gpu._program(config, "cuda", False)
    assert Nvrtc("sm_80").compile(program.text).startswith(b"\x7fELF")
