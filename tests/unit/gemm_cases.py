"""What tests of csrc/device/pa_gemm.h share: its element types, texts that instantiate it, operands, and the
comparison with NumPy."""

import ctypes
import pathlib

import ml_dtypes  # noqa: F401  (it makes NumPy know bfloat16)
import numpy as np

from pyarray.kernels.matmul.gemm_types import BLOCKS

CSRC = pathlib.Path(__file__).parents[2] / "csrc"
FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-ffp-contract=fast"]
INCLUDES = [f"-I{CSRC / 'device'}", f"-I{CSRC / 'runtime'}"]
LAYOUTS = ["rows", "columns", "offset", "steps", "negative", "one row", "one column"]
OUTPUTS = ["rows", "columns", "steps", "negative"]

# name: PA_T, PA_ACC, PA_KIND, load, store
KINDS = {
    "f32": ("float", "float", "REAL", "", ""),
    "f64": ("double", "double", "REAL", "", ""),
    "c64": ("pa_c64", "float", "COMPLEX", "", ""),
    "c128": ("pa_c128", "double", "COMPLEX", "", ""),
    "u8": ("uint8_t", "uint16_t", "INT", "(uint16_t)(x)", "(uint8_t)(x)"),
    "u16": ("uint16_t", "uint16_t", "INT", "", ""),
    "u32": ("uint32_t", "uint32_t", "INT", "", ""),
    "u64": ("uint64_t", "uint64_t", "INT", "", ""),
    "bool": ("uint8_t", "uint8_t", "BOOL", "(uint8_t)((x) != 0)", "(x)"),
    "f16": ("pa_f16", "float", "REAL", "pa_f32_from_f16(x)", "pa_f16_from_f32(x)"),
    "bf16": ("pa_bf16", "float", "REAL", "pa_f32_from_bf16(x)", "pa_bf16_from_f32(x)"),
}
DTYPES = {
    "float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128", "bool": "bool",
    "float16": "f16", "bfloat16": "bf16", "int8": "u8", "uint8": "u8", "int16": "u16", "uint16": "u16",
    "int32": "u32", "uint32": "u32", "int64": "u64", "uint64": "u64",
}  # fmt: skip
EPS = {
    "float32": 1e-6,
    "complex64": 2e-6,
    "float64": 2e-15,
    "complex128": 4e-15,
    "float16": 1e-3,
    "bfloat16": 8e-3,
}
# A runtime that has no scratch memory.
DRY = """
static void *nothing(pa_runtime *rt, size_t n) { (void)rt, (void)n; return 0; }
static inline pa_runtime dried(const pa_runtime *rt) { pa_runtime d = *rt; d.scratch = nothing; return d; }
"""


def text(names, before="", after=""):
    """The C text that instantiates the header for each name, and one entry point each."""
    out = [before, *(f'#include "pa_{part}.h"' for part in ("gemm", "half", "complex")), DRY]
    for name in names:
        element, acc, kind, load, store = KINDS[name]
        out += [f"#define PA_NAME gemm_{name}", f"#define PA_T {element}", f"#define PA_ACC {acc}"]
        out += [
            f"#define PA_KIND PA_GEMM_{kind}",
            "#undef PA_HALF",
            "#define PA_HALF" * (name == "f16"),
            after,
        ]
        out += ["#define PA_INT64"] * (acc == "uint64_t") + ["#define PA_BFLOAT16"] * (name == "bf16")
        if load:
            out += [f"#define PA_LOAD(x) {load}", f"#define PA_STORE(x) {store}"]
        out += ['#include "pa_gemm.h"']
        call = f"gemm_{name}(*(const pa_gemm_args *const *)s, rt); }}"
        out += [f"void run_{name}(const void *s, pa_runtime *rt) {{ {call}"]
        out += [
            f"void dry_{name}(const void *s, pa_runtime *own) {{",
            f"pa_runtime dry = dried(own), *rt = &dry; {call}",
        ]
    return "\n".join(out) + "\n"


class Args(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("m", "n", "k")),
        *((name, ctypes.c_void_p) for name in ("a", "b", "c")),
        *((name, ctypes.c_int64) for name in ("ras", "cas", "rbs", "cbs", "rcs", "ccs", "nb")),
        *((name, ctypes.c_void_p) for name in ("batch", "batch_a", "batch_b", "batch_c")),
        ("range", ctypes.c_void_p * 10),
        ("d", ctypes.c_void_p * 2),
        ("rds", ctypes.c_int64 * 2),
        ("cds", ctypes.c_int64 * 2),
        ("batch_d", ctypes.c_void_p * 2),
        ("more", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in BLOCKS),
    ]


def arguments(a, b, out):
    batch = out.shape[:-2]
    a, b = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    args = Args(out.shape[-2], out.shape[-1], a.shape[-1], a.ctypes.data, b.ctypes.data, out.ctypes.data)
    (args.ras, args.cas), (args.rbs, args.cbs), (args.rcs, args.ccs) = (
        a.strides[-2:],
        b.strides[-2:],
        out.strides[-2:],
    )
    vectors = [np.array(v, np.int64) for v in (batch, a.strides[:-2], b.strides[:-2], out.strides[:-2])]
    args.nb = len(batch)
    args.batch, args.batch_a, args.batch_b, args.batch_c = (v.ctypes.data for v in vectors)
    return args, vectors


def fill(rng, shape, dtype):
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.15
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if info.bits < 64 or rng.random() < 0.3:
            return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        # All of them fit 32 bits, which are multiplied in another way, or all but one do.
        low, high = max(info.min, -(2**31)), 2**31 - 1
        values = rng.integers(low, high, shape, dtype, endpoint=True)
        if values.size and rng.random() < 0.5:
            values.flat[rng.integers(values.size)] = rng.choice([high + 1, max(info.min, low - 1)])
        return values
    return rng.standard_normal(shape).astype(dtype)


def view(rng, rows, cols, dtype, layout, batch=()):
    """A (rows, cols) matrix in a layout: what is around it would spoil the result."""
    if layout == "rows":
        return fill(rng, (*batch, rows, cols), dtype)
    if layout == "columns":
        return fill(rng, (*batch, cols, rows), dtype).swapaxes(-1, -2)
    if layout == "offset":
        return fill(rng, (*batch, rows + 3, cols + 2), dtype)[..., 2 : rows + 2, 1 : cols + 1]
    if layout == "steps":
        return fill(rng, (*batch, 2 * rows, 3 * cols), dtype)[..., ::2, ::3]
    if layout == "negative":
        return fill(rng, (*batch, rows, cols), dtype)[..., ::-1, ::-1]
    if layout == "one row":
        return np.broadcast_to(fill(rng, (*batch, 1, cols), dtype), (*batch, rows, cols))
    return np.broadcast_to(fill(rng, (*batch, rows, 1), dtype), (*batch, rows, cols))


def check(got, a, b):
    dtype = got.dtype
    if dtype.kind in "iub":
        np.testing.assert_array_equal(got, np.matmul(a, b))
        return
    wide = np.complex128 if dtype.kind == "c" else np.float64
    if str(dtype) in ("float64", "complex128"):
        wide = np.clongdouble if dtype.kind == "c" else np.longdouble
    a, b = a.astype(wide), b.astype(wide)
    eps, sums = EPS[str(dtype)], np.abs(a) @ np.abs(b)
    want = a @ b
    # Rounding once to the dtype, and the sums in PA_ACC (float32 for the halves).
    inner = min(eps, 1e-6)
    assert np.all(
        np.abs(got.astype(wide) - want) <= eps * np.abs(want) + inner * sums + 1e-7 * (str(dtype) == "float16")
    )
