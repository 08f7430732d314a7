"""Macros of the element types for the headers of matrix products, and the precision of float32 ones: exact, or with
operands rounded to tf32 where a device multiplies these."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ... import config, lang
from ..._core import clear_plans
from ...dtypes import DType

BLOCKS = ("kc", "mc", "nc")  # parameters of the text with block sizes
# Of an operand of float32, and of two: csrc/device/pa_gemm_bf16x6.h
BF16X6_PARTS, BF16X6_PRODUCTS = 3, 6
PRECISION = "PYARRAY_FLOAT32_MATMUL_PRECISION"  # the setting

# element type -> (in memory, while computing, kind, load, store); the table is explained in pa_gemm.h
_TYPES = {
    "bool": ("uint8_t", "uint8_t", "BOOL", "(uint8_t)((x) != 0)", "(x)"),
    "int8": ("uint8_t", "uint16_t", "INT", "(uint16_t)(x)", "(uint8_t)(x)"),
    "float16": ("pa_f16", "float", "REAL", "pa_f32_from_f16(x)", "pa_f16_from_f32(x)"),
    "bfloat16": ("pa_bf16", "float", "REAL", "pa_f32_from_bf16(x)", "pa_bf16_from_f32(x)"),
    "float8_e4m3fn": ("pa_e4m3", "float", "REAL", "pa_f32_from_e4m3(x)", "pa_e4m3_from_f32(x)"),
    "float8_e5m2": ("pa_e5m2", "float", "REAL", "pa_f32_from_e5m2(x)", "pa_e5m2_from_f32(x)"),
    "float32": ("float", "float", "REAL", None, None),
    "float64": ("double", "double", "REAL", None, None),
    "complex64": ("pa_c64", "float", "COMPLEX", None, None),
    "complex128": ("pa_c128", "double", "COMPLEX", None, None),
}
_TYPES["uint8"] = _TYPES["int8"]
for _bits in (16, 32, 64):
    _TYPES[f"int{_bits}"] = _TYPES[f"uint{_bits}"] = (f"uint{_bits}_t", f"uint{_bits}_t", "INT", None, None)


def macros(dtype: DType, out: DType) -> str:
    """The macros of the element types."""
    memory, acc, family, load, store = _TYPES[dtype.name]
    if out is not dtype and family == "INT":
        acc, twin = f"uint{8 * out.itemsize}_t", f"int{8 * dtype.itemsize}_t"
        load = f"({acc}){f'({twin})' if dtype.kind == 'i' else ''}(x)"
        store = "(x)"
    elif out is not dtype:
        store = f"pa_{out.suffix}_from_f32(x)" if out.is_narrow else "(x)"
    hint = "#define PA_INT64\n" if acc == "uint64_t" else ""
    hint = "#define PA_BFLOAT16\n" if memory == "pa_bf16" else hint
    defines = hint + f"#define PA_NAME pa_gemm\n#define PA_T {memory}\n#define PA_ACC {acc}\n"
    defines += f"#define PA_KIND PA_GEMM_{family}\n#define PA_BYTES {dtype.itemsize}\n"
    if load is not None:
        defines += f"#define PA_LOAD(x) {load}\n#define PA_STORE(x) {store}\n"
    return defines + (f"#define PA_C {_TYPES[out.name][0]}\n" if out is not dtype else "")


def headers(*dtypes: DType) -> str:
    """The headers of narrow types among these."""
    names = {"pa_half.h" if dtype.itemsize == 2 else "pa_float8.h" for dtype in dtypes if dtype.is_narrow}
    return "".join(f"#include <{name}>\n" for name in sorted(names))


def gemm_operations(epilogue: bool, values: Mapping[str, Any], times: int = 1) -> lang.operation_counts.OperationCounts:
    """The operations of a product by the shapes of a, b and c: a multiplication and an addition each, `times` as many
    where each is done so often. An `epilogue` isn't counted."""
    results = math.prod(values["c"])
    loads = {name: math.prod(values[name]) if results else 0 for name in "ab"}
    notes = ("what is done to each result is not counted",) if epilogue else ()
    operations = 2 * values["a"][-1] * results * times
    return lang.operation_counts.OperationCounts(operations, loads, {"c": results}, results, notes)


def grouped_depth_operations(values: Mapping[str, Any]) -> lang.operation_counts.OperationCounts:
    """Those of a product whose depth is in groups, each of which gives a matrix of c: every row is in one of them."""
    one = {name: values[name][1:] for name in "abc"}
    results = math.prod(values["c"])
    loads = {name: math.prod(one[name]) if results else 0 for name in "ab"}
    operations = 2 * one["a"][-1] * math.prod(one["c"])
    return lang.operation_counts.OperationCounts(operations, loads, {"c": results}, results, ())


def count_nothing(values: Mapping[str, Any]) -> lang.operation_counts.OperationCounts:
    """What the kernel of float32 does behind the product by parts."""
    note = "all numbers are in the range of products by parts of bfloat16; else this launch computes the product"
    return lang.operation_counts.OperationCounts(0, {}, {}, 0, (note,))


def check_precision(function: str, precision: str) -> None:
    """Raises `ValueError` for an argument of a public function that is no precision."""
    if precision not in config.PRECISIONS:
        raise ValueError(
            f"{function}(): expected precision to be 'float32', 'tf32' or None, got {precision!r}; with None it is "
            f"what the setting {PRECISION} says"
        )


def is_tf32(precision: str | None) -> bool:
    """Whether operands may be rounded to tf32: by a call's argument, or by the setting."""
    return (config.get(PRECISION) if precision is None else precision) == "tf32"


def _forget(setting: str) -> None:
    """Calls that are repeated were planned with the old value."""
    if setting == PRECISION:
        clear_plans()


config.watchers.append(_forget)
