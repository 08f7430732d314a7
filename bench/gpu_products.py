"""Matrix products on a GPU: of matrices, of stacks, with an epilogue, with a row or a column, next to torch's.

Part of `python -m bench.gpu`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarray as pa

from .gpu_timing import in_turns
from .timing import Row, aligned

# (dtype, m, k, n)
PRODUCTS = (
    *(("float32", n, n, n) for n in (1024, 1536, 2048, 4096, 8192)),
    ("float32", 1024, 1024, 8192), ("float32", 4095, 4097, 4099),
    *(("float64", n, n, n) for n in (1024, 2048, 4096)), ("float64", 4095, 4097, 4099),
    *(("tf32", n, n, n) for n in (1024, 2048, 4096, 8192)), ("tf32", 4095, 4097, 4099),
    *((dtype, n, n, n) for dtype in ("int8", "float8_e4m3fn", "float16") for n in (2048, 4096, 8192)),
    *(("bfloat16", n, n, n) for n in (1024, 2048, 4096, 8192)), ("bfloat16", 4095, 4097, 4099),
    ("float32", 10**6, 64, 4), ("float32", 10**5, 1024, 2), ("float32", 10**6, 33, 3), ("float64", 10**6, 33, 3),
    ("bfloat16", 10**6, 32, 3), ("float32", 200_000, 128, 10), ("float32", 60_000, 784, 10), ("bfloat16", 10**6, 64, 8),
)  # fmt: skip
# (dtype, m, k, n) of x.T @ y, as a weight's gradient is
DEEP = (
    ("float32", 10, 200_000, 128), ("float32", 3, 10**7, 3), ("float32", 64, 10**6, 64), ("float32", 784, 60_000, 10),
    ("float64", 3, 10**7, 3), ("float64", 64, 10**6, 64), ("bfloat16", 3, 10**7, 3), ("bfloat16", 64, 10**6, 64),
    ("bfloat16", 512, 16384, 512), ("bfloat16", 1024, 16384, 1024),
)  # fmt: skip
# (dtype, matrices of a stack, their side)
STACKS = (
    *((dtype, n, side) for dtype in ("float32", "bfloat16") for n, side in ((8192, 64), (2048, 128), (512, 256))),
    *(("float32", 2**26 // side**2, side) for side in (4, 16, 32)), ("float64", 2**17, 8), ("complex64", 2**17, 8),
)  # fmt: skip

# (dtype, rows of all groups, depth, columns, groups)
GROUPS = (
    ("bfloat16", 8192, 4096, 4096, 8), ("bfloat16", 16384, 4096, 14336, 8), ("bfloat16", 32768, 2048, 1408, 64),
    ("bfloat16", 512, 4096, 4096, 8), ("float16", 8192, 2048, 2816, 64), ("float32", 4096, 2048, 2048, 8),
)  # fmt: skip


def products(torch: Any, quick: bool) -> list[Row]:
    """Prints TFLOP/s of matrix products, and the ratio to torch's library, in turns. tf32 is float32 with that
    precision, results of int8 are int32 and of float8 bfloat16, summed in float32, with b along the depth as cuBLASLt
    takes it."""
    rows, lines = list[Row](), [["matrix product", "TFLOP/s", "torch", "ratio"]]
    cases = [(dtype, f"{m}x{k}x{n}", (m, k), (k, n)) for dtype, m, k, n in PRODUCTS]
    cases += [(dtype, f"{count} of {n}^3", (count, n, n), (count, n, n)) for dtype, count, n in STACKS]
    cases += [(dtype, f"{m}x{k}x{n} of x.T", (k, m), (k, n)) for dtype, m, k, n in DEEP]
    for dtype, sizes, left, right in cases[:2] if quick else cases:
        name, work = f"{dtype} {sizes}", 2.0 * math.prod(left) * right[-1]
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        ours, theirs = _product(torch, dtype, left, right)
        calls = round(min(max(4e12 / work, 3), 50))  # long enough that what a host does isn't measured
        times = in_turns(torch, quick, calls, {"pyarray": ours, "torch": theirs})
        torch.backends.cuda.matmul.allow_tf32 = False
        rates = [f"{work / t.median / 1e12:.1f}" for t in times.values()]
        lines.append([name, *rates, f"{times['torch'].median / times['pyarray'].median:.3f}"])
        rows.append(Row("matrix products", name, times, None, work))
    print(aligned(lines) + "\n", flush=True)
    return rows


def _product(
    torch: Any, dtype: str, left: tuple[int, ...], right: tuple[int, ...]
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Our call and torch's."""
    if dtype == "int8":
        x, y = (torch.randint(-128, 128, s, device="cuda", dtype=torch.int8) for s in (left, right))
        a, b = (pa.from_dlpack(t) for t in (x, y))
        return lambda: pa.gemm(a, b, dtype="int32"), lambda: torch._int_mm(x, y)
    if dtype == "float8_e4m3fn":
        x, y = (torch.randn(s, device="cuda").to(torch.float8_e4m3fn) for s in (left, right[::-1]))
        a, b, one = pa.from_dlpack(x), pa.from_dlpack(y).T, torch.ones((), device="cuda")
        return (
            lambda: pa.gemm(a, b, dtype="bfloat16"),
            lambda: torch._scaled_mm(x, y.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=False),
        )
    kind = torch.float32 if dtype == "tf32" else getattr(torch, dtype)
    x, y = (torch.randn(s, device="cuda").to(kind) for s in (left, right))
    x = x if left[-1] == right[-2] else x.T
    a, b = (pa.from_dlpack(t) for t in (x, y))
    precision = "tf32" if dtype == "tf32" else None
    return lambda: pa.matmul(a, b, precision=precision), lambda: torch.matmul(x, y)


def grouped(torch: Any, quick: bool) -> list[Row]:
    """Prints TFLOP/s of products of groups of rows with matrices of their own, and of the gradients of both, next to
    torch's, in turns. Groups end at random multiples of 8 rows."""
    rows, lines = list[Row](), [["groups of rows", "TFLOP/s", "torch", "ratio"]]
    for dtype, count, depth, columns, groups in GROUPS[:1] if quick else GROUPS:
        x = torch.randn(count, depth, device="cuda").to(getattr(torch, dtype))
        y = torch.randn(groups, depth, columns, device="cuda").to(x.dtype)
        cuts = torch.randint(0, count // 8 + 1, (groups - 1,), device="cuda") * 8
        ends = torch.cat([cuts, torch.full((1,), count, device="cuda")]).sort().values.to(torch.int32)
        a, b, e = (pa.from_dlpack(t) for t in (x, y, ends))
        named = {
            "pyarray": lambda a=a, b=b, e=e: pa.nn.grouped_matmul(a, b, e),
            "torch": lambda x=x, y=y, ends=ends: torch._grouped_mm(x, y, offs=ends),
        }
        change = torch.randn(count, columns, device="cuda").to(x.dtype)
        grad = pa.from_dlpack(change)
        backward = {
            "pyarray": lambda d=grad, a=a, b=b, e=e: pa.nn.grouped_matmul_backward(d, a, b, e),
            "torch": lambda d=change, x=x, y=y, ends=ends: (
                torch._grouped_mm(d, y.mT, offs=ends), torch._grouped_mm(x.T, d, offs=ends)
            ),
        }  # fmt: skip
        case, forward = f"{dtype} {count}x{depth}x{columns}, {groups} groups", 2.0 * count * depth * columns
        for what, calls, work in ((case, named, forward), (f"{case}, backward", backward, 2 * forward)):
            times = in_turns(torch, quick, 10, calls)
            rates = [f"{work / t.median / 1e12:.1f}" for t in times.values()]
            lines.append([what, *rates, f"{times['torch'].median / times['pyarray'].median:.3f}"])
            rows.append(Row("products of groups", what, times, None, work))
    print(aligned(lines) + "\n", flush=True)
    return rows


def epilogues(torch: Any, quick: bool) -> list[Row]:
    """Prints microseconds of `activation(a @ b + bias)` of bfloat16, next to `torch.compile` of the same and to our
    product alone, in turns."""
    rows, lines = list[Row](), [["a @ b + bias", "pyarray", "product alone", "torch", "torch.compile", "of compiled"]]
    functions = torch.nn.functional
    for size in (4096,) if quick else (2048, 4096, 8192):
        x, y = (torch.randn(size, size, device="cuda").to(torch.bfloat16) for _ in "xy")
        bias = torch.randn(size, device="cuda").to(torch.bfloat16)
        a, b, e = (pa.from_dlpack(t) for t in (x, y, bias))
        for name in ("relu", "gelu", "silu"):

            def theirs(x=x, y=y, bias=bias, name=name):
                return getattr(functions, name)(torch.addmm(bias, x, y))

            torch.compiler.reset()
            calls = {
                "pyarray": lambda a=a, b=b, e=e, name=name: pa.gemm(a, b, bias=e, activation=name),
                "product alone": lambda a=a, b=b: pa.matmul(a, b),
                "torch": theirs,
                "torch.compile": torch.compile(theirs, dynamic=False),
            }
            for call in calls.values():
                call()
            times = in_turns(torch, quick, 5, calls)
            spent = [f"{t.median * 1e6:.0f}" for t in times.values()]
            case, ratio = f"{name} {size}^3", times["torch.compile"].median / times["pyarray"].median
            lines.append([case, *spent, f"{ratio:.2f}"])
            peers_times = {who: times[who] for who in ("pyarray", "torch", "torch.compile")}
            rows.append(
                Row("products with an epilogue", case, peers_times, 1.05, 2.0 * size**3, None, ("torch.compile",))
            )
    print(aligned(lines) + "\n", flush=True)
    return rows


def vectors(torch: Any, quick: bool) -> list[Row]:
    """Prints GB/s of the matrix in products with a row and with a column, and the ratios to torch and to a copy of the
    matrix, of which both the bytes read and those written count, in turns."""
    rows, lines = list[Row](), [["8192 x 8192", "GB/s", "torch", "copy", "of torch", "of copy"]]
    for dtype in ("float32",) if quick else ("float32", "float64", "bfloat16", "float16"):
        x, v = (torch.randn(s, device="cuda").to(getattr(torch, dtype)) for s in ((8192, 8192), (1, 8192)))
        w = v.T.contiguous()
        a, r, c = (pa.from_dlpack(t) for t in (x, v, w))
        target = torch.empty_like(x)
        cases: tuple[tuple[str, Callable[[], Any], Callable[[], Any]], ...] = (
            ("row times matrix", lambda a=a, r=r: r @ a, lambda x=x, v=v: v @ x),
            ("matrix times column", lambda a=a, c=c: a @ c, lambda x=x, w=w: x @ w),
            ("row times a.T", lambda a=a, r=r: r @ a.T, lambda x=x, v=v: v @ x.T),
        )
        for case, ours, theirs in cases:
            calls = {"pyarray": ours, "torch": theirs, "copy": lambda x=x, target=target: target.copy_(x)}
            times = in_turns(torch, quick, 20, calls)
            own, other, copy = times["pyarray"].median, times["torch"].median, times.pop("copy").median / 2
            rates = [f"{x.nbytes / t / 1e9:.0f}" for t in (own, other, copy)]
            ratios = f"{other / own:.3f}", f"{copy / own:.3f}"
            lines.append([f"{dtype} {case}", *rates, *ratios])
            facts = {"of_copy": copy / own}
            group = "a row or a column times a matrix"
            rows.append(Row(group, f"{dtype} {case}", times, None, 2.0 * 8192**2, facts=facts))
    print(aligned(lines) + "\n", flush=True)
    return rows
