"""What the tests of csrc/device share: the functions as loops in one shared object, and comparisons.

The loops are compiled with the flags of a generated kernel, so the vectorised code is what is tested.
"""

import ctypes
import functools
import itertools
import math
import pathlib
import shutil
import tempfile

import ml_dtypes
import numpy as np
from compile_cache import compile_cached

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = pathlib.Path(__file__).with_name("device_headers.c")
INCLUDE = [f"-I{ROOT / 'csrc' / 'device'}", f"-I{ROOT / 'csrc' / 'runtime'}", "-Wall", "-Wextra", "-Werror"]
FLAGS = [
    "-O2",  # kernels are compiled with -O3, which takes twice as long here
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
]
CC, CXX = shutil.which("cc"), shutil.which("c++")

INTS = {f"{k}{n}": np.dtype(f"{'int' if k == 'i' else 'uint'}{n}") for k in "iu" for n in (8, 16, 32, 64)}
REALS = {"f32": np.dtype("float32"), "f64": np.dtype("float64")}
COMPLEX = {"c64": np.dtype("complex64"), "c128": np.dtype("complex128")}
NARROW = {
    "f16": np.dtype("float16"), "bf16": np.dtype(ml_dtypes.bfloat16), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}  # fmt: skip
SUFFIX = {v: k for k, v in {**INTS, **REALS, **COMPLEX, **NARROW, "b": np.dtype(bool)}.items()}
I64 = (1 << 63) - 1
inf, nan, pi = math.inf, math.nan, math.pi


@functools.cache
def library(*flags):
    """One build serves every test module; flags come after the kernel's."""
    path = pathlib.Path(tempfile.mkdtemp()) / "headers.so"
    compile_cached([CC, "-std=c11", *FLAGS, *INCLUDE, *flags, "-shared", "-fPIC"], SOURCE.read_text(), path)
    loaded = ctypes.CDLL(str(path))
    shutil.rmtree(path.parent)
    return loaded


def pointer(a):
    return ctypes.c_void_p(a.ctypes.data)


def call(lib, name, a, b=None, out=None):
    """pa_<name>_<suffix of a> over arrays, or the exact name where it starts with pa_."""
    a = np.ascontiguousarray(a).ravel()
    b = a if b is None else np.ascontiguousarray(b, dtype=a.dtype).ravel()
    o = np.empty(a.shape, out or a.dtype)
    symbol = f"v_{name}" if name.startswith("pa_") else f"v_pa_{name}_{SUFFIX[a.dtype]}"
    getattr(lib, symbol)(pointer(o), pointer(a), pointer(b), ctypes.c_int64(a.size))
    return o


def pairs(values):
    grid = list(itertools.product(values, repeat=2))
    return np.array([g[0] for g in grid], values.dtype), np.array([g[1] for g in grid], values.dtype)


def same(got, want):
    """Equal, NaN equal to NaN, zeros by sign."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind == "c":
        same(got.real, want.real)
        same(got.imag, want.imag)
        return
    np.testing.assert_array_equal(got, want)
    if got.dtype.kind == "f":
        zero = (got == 0) & ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[zero], np.signbit(want)[zero])


SPECIAL = [
    0,
    1e-5,
    0.1,
    0.5,
    1,
    1.5,
    2,
    2.5,
    3,
    math.pi / 2,
    math.pi,
    10,
    88,
    88.8,
    89.5,
    103.9,
    104.5,
    127.5,
    128,
    149,
    709.7,
    710.4,
    745.2,
    1023.5,
    1e5,
    1e7,
    2**24 + 2,
    1e10,
    1e15,
    1e22,
    1e30,
    math.inf,
    math.nan,
]


def special(dtype):
    f = np.finfo(dtype)
    v = np.array(SPECIAL + [f.smallest_subnormal, f.tiny, f.eps, 1 - f.epsneg, 1 + f.eps, f.max / 2, f.max], dtype)
    return np.concatenate([v, -v])


def drawn(dtype, n, seed=0):
    r = np.random.default_rng(seed)
    bits = r.integers(0, np.iinfo(f"u{dtype.itemsize}").max, n, f"u{dtype.itemsize}", endpoint=True).view(dtype)
    rest = [(r.standard_normal(n) * s).astype(dtype) for s in (0.01, 1, 30, 700)]
    return np.concatenate([bits, 1 + r.standard_normal(n).astype(dtype) / 10, *rest])


def close(got, want, ulps):
    """got against a reference of more precision; special values and the signs of zeros exactly."""
    dtype = got.dtype
    with np.errstate(all="ignore"):
        rounded = want.astype(dtype)
        unit = np.spacing(np.where(np.isfinite(rounded), np.abs(rounded), np.finfo(dtype).max)).astype(want.dtype)
        error = np.abs(got.astype(want.dtype) - want) / unit
    equal = (got == rounded) | (np.isnan(got) & np.isnan(want))
    assert np.all(equal | (error <= ulps)), (
        np.nanmax(np.where(equal, 0, error)),
        got[~equal & ~(error <= ulps)][:5],
    )
    np.testing.assert_array_equal(np.signbit(got)[rounded == 0], np.signbit(rounded)[rounded == 0])
