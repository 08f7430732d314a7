"""csrc/device/pa_gemm.h against NumPy: element types, drawn shapes and strides, tiny blocks, threads."""

import ctypes
import shutil
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from compile_cache import compile_cached
from gemm_cases import (
    DTYPES,
    EPS,
    FLAGS,
    INCLUDES,
    KINDS,
    LAYOUTS,
    OUTPUTS,
    arguments,
    check,
    text,
    view,
)
from hypothesis import given
from hypothesis import strategies as st
from pyarray._runtime import ffi, lib
from strategies import TIMES, examples
from variants_by_turn import TURN

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(CC is None, reason="needs a C compiler")

DAYS = 4  # within which each element type is optimised
# So small that a matrix of 40 has several blocks, tiles and slices, and that threads take part.
TINY = """
#define PA_KC 5
#define PA_MC 12
#define PA_NC 16
#define PA_BLOCK 24
#define PA_GEMM_PARALLEL_WORK 40.0
#define PA_GEMM_SPLIT_BATCH_WORK 3e4
"""
# acc + d + e
EPILOGUE = """
#define PA_EPILOGUE(args, n, acc, d, e, out) \\
    for (int64_t at = 0; at < (n); at++) out[at] = SUM(acc[at], d[at], e[at])
#undef SUM
#if PA_KIND == PA_GEMM_COMPLEX
#define SUM(x, y, z) pa_add_c64(x, pa_add_c64(y, z))
#elif defined(PA_HALF)
#define SUM(x, y, z) pa_f16_from_f32(x + pa_f32_from_f16(y) + pa_f32_from_f16(z))
#else
#define SUM(x, y, z) (x + y + z)
#endif
"""


class Library:
    """Shared objects of instantiations."""

    def __init__(self, *paths):
        self.objects = [ctypes.CDLL(str(path)) for path in paths]
        self.pools = [ffi.NULL, *(ffi.gc(lib.pa_pool_create(count), lib.pa_pool_destroy) for count in (3, 8))]

    def launch(self, name, args, threads=0, failure=ffi.NULL, entry="run"):
        symbol = f"{entry}_{name}"
        function = next(getattr(lib, symbol) for lib in self.objects if hasattr(lib, symbol))
        entry = ctypes.cast(function, ctypes.c_void_p).value
        return lib.pa_launch(entry, struct.pack("P", ctypes.addressof(args)), self.pools[threads], failure)

    def matmul(self, a, b, out, threads=0, failure=ffi.NULL, entry="run", blocks=(0, 0, 0)):
        args, keep = arguments(a, b, out)
        args.kc, args.mc, args.nc = blocks
        self.launch(DTYPES[str(a.dtype)], args, threads, failure, entry)
        del keep
        return out


def build(path, source):
    """Optimised or not, which takes a fourth of the time."""
    flags = FLAGS if path.stem == "optimised" else [*FLAGS, "-O0"]
    command = [CC, "-std=gnu11", "-Wall", "-Wextra", "-Werror", *flags, "-march=native", "-fPIC", *INCLUDES]
    return compile_cached([*command, "-shared"], source, path)


def optimised():
    """The element types that are optimised as for users: some each day, all in a long run."""
    return list(KINDS) if TIMES > 1 else list(KINDS)[TURN % DAYS :: DAYS]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gemm")
    some = ["f32", "f16", "c64", "u8", "u64", "bool"]
    sources = {
        "optimised": text(optimised()),
        "others": text([kind for kind in KINDS if kind not in optimised()]),
        "tiny": text(some, TINY),
        "debug": text(some, "#define PA_DEBUG_CHECKS 1\n" + TINY),
        "epilogue": text(["f32", "f16", "u8", "c64"], TINY, EPILOGUE),
        "epilogue, debug": text(["f32"], "#define PA_DEBUG_CHECKS 1\n" + TINY, EPILOGUE),
    }
    with ThreadPoolExecutor() as pool:
        paths = (folder / f"{name}.so" for name in sources)
        built = dict(zip(sources, pool.map(build, paths, sources.values()), strict=True))
    full = Library(built.pop("optimised"), built.pop("others"))
    return {"full": full} | {name: Library(path) for name, path in built.items()}


def output(m, n, dtype, layout, batch=()):
    """An output inside a frame that must stay as it was, and the frame."""
    shape = {"steps": (2 * m + 2, 2 * n + 2), "columns": (n + 2, m + 2)}.get(layout, (m + 2, n + 2))
    frame = np.empty((*batch, *shape), dtype)
    frame[...] = 1
    if layout == "steps":
        return frame[..., 1:-1:2, 1:-1:2], frame
    inner = frame[..., 1:-1, 1:-1]
    if layout == "columns":
        return inner.swapaxes(-1, -2), frame
    return (inner[..., ::-1, ::-1] if layout == "negative" else inner), frame


SIZES = st.one_of(
    st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 15, 16, 17, 31, 32, 33, 47, 48, 49, 61]),
    st.integers(0, 70),
)
DEPTHS = st.one_of(SIZES, st.sampled_from([127, 128, 129, 255, 256, 257, 300, 513]))
RELAXED = examples(120, derandomize=True)


@RELAXED
@given(data=st.data(), dtype=st.sampled_from(sorted(DTYPES)), m=SIZES, n=SIZES, k=DEPTHS)
def test_drawn(libraries, data, dtype, m, n, k):
    drawn(libraries, "full", data, dtype, m, n, k)


@pytest.mark.slow
@RELAXED
@given(
    data=st.data(),
    dtype=st.sampled_from(["float32", "float16", "complex64", "int8", "int64", "bool"]),
    m=SIZES,
    n=SIZES,
    k=DEPTHS,
)
@pytest.mark.parametrize("build", ["tiny", "debug"])
def test_drawn_with_tiny_blocks(libraries, build, data, dtype, m, n, k):
    drawn(libraries, build, data, dtype, m, n, k)


def drawn(libraries, build, data, dtype, m, n, k):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = np.dtype(dtype)
    a = view(rng, m, k, dtype, data.draw(st.sampled_from(LAYOUTS)))
    b = view(rng, k, n, dtype, data.draw(st.sampled_from(LAYOUTS)))
    out, frame = output(m, n, dtype, data.draw(st.sampled_from(OUTPUTS)))
    failure = ffi.new("pa_failure *")
    threads, entry = data.draw(st.integers(0, 2)), data.draw(st.sampled_from(["run", "dry"]))
    blocks = data.draw(st.sampled_from([(0, 0, 0), (3, 7, 20), (17, 0, 5), (5000, 1, 1), (-1, 1000, 1000)]))
    libraries[build].matmul(a, b, out, threads, failure, entry, blocks)
    assert not failure.set
    check(out, a, b)
    # Only the depth of the blocks changes the order of sums; without memory it is the same whatever is asked for, but
    # not for blocks that need none.
    blocks = (blocks[0], 0, 0) if entry == "run" else blocks
    other = libraries[build].matmul(a, b, np.empty_like(out), 2 - threads, failure, entry, blocks)
    assert other.tobytes() == out.tobytes()
    out[...] = 1
    assert (frame == 1).all()


@RELAXED
@given(
    data=st.data(),
    dtype=st.sampled_from(["float32", "float16", "complex64", "int8"]),
    m=SIZES,
    n=SIZES,
    k=SIZES,
)
@pytest.mark.parametrize("build", ["full", "tiny"])
def test_batches(libraries, build, data, dtype, m, n, k):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = np.dtype(dtype)
    batch = data.draw(st.sampled_from([(1,), (3,), (5, 2), (0,), (2, 1, 3), (0, 4)]))
    shapes = [data.draw(st.sampled_from([batch, (1,) * len(batch), batch[1:], (*batch[:-1], 1), ()])) for _ in range(2)]
    a = view(rng, m, k, dtype, data.draw(st.sampled_from(LAYOUTS)), shapes[0])
    b = view(rng, k, n, dtype, data.draw(st.sampled_from(LAYOUTS)), shapes[1])
    if data.draw(st.booleans()):  # lying one below the other: one tall matrix
        out = frame = np.ones((*batch, m, n), dtype)
    else:
        out, frame = output(m, n, dtype, data.draw(st.sampled_from(OUTPUTS)), batch)
    libraries[build].matmul(a, b, out, data.draw(st.integers(0, 2)))
    check(out, np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:]))
    out[...] = 1
    assert (frame == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", {kind: dtype for dtype, kind in DTYPES.items()}.values())
@pytest.mark.parametrize(
    "shape",
    [
        (150, 300, 520),
        (400, 300, 520),
        (1, 700, 900),
        (700, 3, 900),
        (2, 2, 70000),
        (2, 1, 70000),
        (40, 30, 9000),
        (2100, 20, 30),
        (7, 2100, 16),
    ],
)
def test_large(libraries, dtype, shape):
    """Real block sizes, threads, and the same bits whatever the number of threads."""
    (m, n, k), dtype, rng = shape, np.dtype(dtype), np.random.default_rng(3)
    for layouts in (("rows", "rows"), ("columns", "columns")):
        a, b = view(rng, m, k, dtype, layouts[0]), view(rng, k, n, dtype, layouts[1])
        out = [libraries["full"].matmul(a, b, np.empty((m, n), dtype), threads) for threads in (0, 1, 2)]
        check(out[0], a, b)
        assert out[0].tobytes() == out[1].tobytes() == out[2].tobytes()


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize(("m", "n", "k", "step"), [(17, 19, 13, 1), (75, 90, 70, 61), (9, 700, 300, 997)])
def test_one_element_beyond_32_bits(libraries, dtype, layout, m, n, k, step):
    """Integers that fit 32 bits are multiplied in another way: one that doesn't is found wherever it is."""
    out = np.empty((m, n), dtype)
    a, b = np.ones((m, k), dtype), np.ones((k, n), dtype)
    if layout == "columns":
        a, b = np.asfortranarray(a), np.asfortranarray(b)
    for x in (a, b):
        for at in range(0, x.size, step):
            x.flat[at] = large = 2**31 + 5
            libraries["full"].matmul(a, b, out, at % 3)
            (i, j), want = divmod(at, x.shape[1]), np.full((m, n), k, dtype)
            want[(i, slice(None)) if x is a else (slice(None), j)] += large - 1
            np.testing.assert_array_equal(out, want)
            x.flat[at] = 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (8, 16, 1),
        (9, 33, 3),
        (3, 5, 31),
        (17, 40, 65),
        (30, 7, 200),
        (64, 64, 64),
        (1, 70, 301),
        (300, 1, 65),
        (5, 530, 129),
        (531, 3, 131),
    ],
)
def test_what_lies_around_is_not_read(libraries, dtype, m, n, k):
    """Nor is what is beyond an edge of vectors, panels and pairs multiplied by 0."""
    rng, dtype = np.random.default_rng(0), np.dtype(dtype)
    inside = []
    for shape in ((m, k), (k, n)):
        around = np.full((shape[0] + 2, shape[1] + 35), np.inf, dtype)
        inside.append(around[1:-1, 1:-34])
        inside[-1][...] = rng.standard_normal(shape)
    for a in (inside[0], inside[0].T.copy().T):
        for b in (inside[1], inside[1].T.copy().T):
            check(libraries["full"].matmul(a, b, np.empty((m, n), dtype)), a, b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_rounded_once(libraries, dtype):
    """4096 ones and 4096 halves: a running half stops at 2048 (or 256), where 1 more rounds to nothing."""
    a, b = np.ones((5, 8192), dtype), np.ones((8192, 20), dtype)
    a[:, 4096:] = 0.5
    assert (libraries["full"].matmul(a, b, np.empty((5, 20), dtype)).astype(float) == 6144).all()


@RELAXED
@given(
    data=st.data(),
    dtype=st.sampled_from(["float32", "float16", "int8", "complex64"]),
    m=SIZES,
    n=SIZES,
    k=DEPTHS,
)
def test_epilogue(libraries, data, dtype, m, n, k):
    """Once on each element, with what belongs to it, however the product is cut or transposed."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = np.dtype(dtype)
    checked = dtype == np.float32 and data.draw(st.booleans())
    batch = data.draw(st.sampled_from([(), (3,)]))
    a, b = (view(rng, *shape, dtype, data.draw(st.sampled_from(LAYOUTS)), batch) for shape in ((m, k), (k, n)))
    small = (rng.integers(-3, 4, size).astype(dtype) for size in ((*batch, m, n), (n,)))
    more = [np.broadcast_to(x, (*batch, m, n)) for x in small]
    if data.draw(st.booleans()):
        more[0] = more[0].swapaxes(-1, -2).copy().swapaxes(-1, -2)
    out, frame = output(m, n, dtype, data.draw(st.sampled_from(OUTPUTS)), batch)
    args, keep = arguments(a, b, out)
    for i, x in enumerate(more):
        args.d[i], args.rds[i], args.cds[i] = x.ctypes.data, *x.strides[-2:]
        keep.append(np.array(x.strides[:-2], np.int64))
        args.batch_d[i] = keep[-1].ctypes.data
    name = "epilogue, debug" if checked else "epilogue"
    failure = ffi.new("pa_failure *")
    libraries[name].launch(
        DTYPES[str(dtype)],
        args,
        data.draw(st.integers(0, 2)),
        failure,
        data.draw(st.sampled_from(["run", "dry"])),
    )
    assert not failure.set
    wide = {"f": np.float64, "c": np.complex128}.get(dtype.kind, dtype)
    x, y = a.astype(wide), b.astype(wide)
    want = x @ y + more[0] + more[1]
    eps = 0 if dtype.kind == "i" else EPS[str(dtype)]
    assert np.all(np.abs(out - want) <= eps * np.abs(want) + (eps and 1e-6) * (np.abs(x) @ np.abs(y) + 6))
    out[...] = 1
    assert (frame == 1).all()


@pytest.mark.parametrize("site", [0, 1, 2])
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_debug_finds_a_wrong_stride(libraries, site, layout):
    """A row stride that leaves the memory is reported with its place, and memory outside is not touched."""
    a, b = np.ones((20, 30), np.float32), np.ones((30, 25), np.float32)
    frame = np.zeros(20 * 25 * 2, np.float32)
    out = frame[: 20 * 25].reshape((20, 25), order="C" if layout == "rows" else "F")
    arrays = (a, b, out)
    args, _keep = arguments(*arrays)
    for i, array in enumerate(arrays):
        args.range[2 * i], args.range[2 * i + 1] = array.ctypes.data, array.ctypes.data + array.nbytes
    failure = ffi.new("pa_failure *")
    assert libraries["debug"].launch("f32", args, 1, failure) == 0
    name = ["ras", "rbs", "rcs"][site]
    setattr(args, name, getattr(args, name) + 4)
    assert libraries["debug"].launch("f32", args, 1, failure) == 1
    assert (failure.kind, failure.site, failure.extent) == (1, site, arrays[site].nbytes)
    assert failure.index >= failure.extent - 3
    assert not frame[20 * 25 :].any()


def test_header_is_cpp_too(tmp_path):
    cxx = shutil.which("g++") or shutil.which("clang++")
    if cxx is None:
        pytest.skip("no C++ compiler")
    for before in ("", "#define PA_DEBUG_CHECKS 1\n"):
        (tmp_path / "t.cpp").write_text(text(KINDS, before))
        done = subprocess.run(
            [cxx, "-std=gnu++17", "-fsyntax-only", "-x", "c++", *FLAGS, *INCLUDES, "t.cpp"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr


def test_release_text_has_no_checks(tmp_path):
    (tmp_path / "t.c").write_text(text(["f32"]))
    done = subprocess.run([CC, "-E", *INCLUDES, "t.c"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "pa_gemm_at" not in done.stdout
    assert "pa_gemm_fail" not in done.stdout
