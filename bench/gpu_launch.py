"""Host time of launches on a GPU: a kernel with a fresh view, `a + b`; next to the bare call and to peers.

`python -m bench.gpu_launch [--json PATH]`; nothing is measured where there is no NVIDIA GPU. The bare call is
cuLaunchKernel through cuda-bindings, of the very same kernel with arguments that are packed already.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pyarray as pa
from pyarray.driver.base import devices

from . import peers
from .timing import Figure, Row, race, table

ABOUT = """Host time of launches on a GPU, next to the bare call of the driver through cuda-bindings, with
arguments that are packed already."""
N = 32
GOAL = 0.8  # of the bare call's time over ours: 1.25 times as long at most
RAW = """extern "C" __global__ void scale(float *v, int n, float f)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) v[i] *= f; }"""


@pa.kernel
def scale(v: pa.BufferView[pa.float32], factor: pa.float32):
    for i in range(v.size):
        v[i] = v[i] * factor


def bare(data: Any) -> Callable[[], Any]:
    """cuLaunchKernel of `scale`, whose arguments are packed once."""
    from cuda.bindings import driver

    scale(data, 1.0)
    device = data.device.driver
    module = next(reversed(device._modules.values()))
    _, function = driver.cuModuleGetFunction(module, b"kernel_scale_0")
    slots = ctypes.create_string_buffer(struct.pack("Qqd", data._ptr, N, 1.0))
    size = ctypes.c_size_t(24)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(slots), 2, ctypes.addressof(size), 0)
    driver.cuCtxSetCurrent(device._context)
    launch, arguments = driver.cuLaunchKernel, ctypes.addressof(extra)
    kept = slots, size, extra
    return lambda: launch(function, 1, 1, 1, 256, 1, 1, 0, 0, 0, arguments) if kept else None


def cases(name: str) -> list[tuple[str, dict[str, Callable[[], Any] | None], float | None]]:
    """(name, candidates, ratio to reach)."""
    data = pa.ones(2 * N, dtype="float32", device=name)
    out, view = pa.empty_like(data), data[:N]
    fresh: dict[str, Any] = {"pyarray": lambda: scale(data[8 : 8 + N], 1.0), "bare": bare(view)}
    held: dict[str, Any] = {"pyarray": lambda: scale(view, 1.0), "bare": fresh["bare"]}
    add: dict[str, Any] = {"pyarray": lambda: data + data, "bare": fresh["bare"]}
    kept: dict[str, Any] = {"pyarray": lambda: pa.add(data, data, out=out), "bare": fresh["bare"]}
    torch, cupy = peers.peer("torch"), peers.peer("cupy")
    if torch is not None and torch.cuda.is_available():
        t = torch.ones(2 * N, device="cuda")
        u = torch.empty_like(t)
        fresh["torch"] = lambda: t[8 : 8 + N].mul_(1.0)
        add["torch"], kept["torch"] = lambda: t + t, lambda: torch.add(t, t, out=u)
    if cupy is not None:
        c, raw = cupy.ones(2 * N, dtype="float32"), cupy.RawKernel(RAW, "scale")
        d, factor = cupy.empty_like(c), cupy.float32(1)
        fresh["cupy"] = lambda: raw((1,), (256,), (c[8 : 8 + N], N, factor))
        add["cupy"], kept["cupy"] = lambda: c + c, lambda: cupy.add(c, c, out=d)
    return [
        ("kernel, fresh view", fresh, GOAL),
        ("kernel, held view", held, GOAL),
        ("a + b", add, None),
        ("a + b, out=", kept, GOAL),
    ]


SMALL = 10  # kernels of a block


def graph_cases(name: str) -> list[tuple[str, dict[str, Callable[[], Any] | None], float | None]]:
    """Small kernels as one graph next to one by one; with another array in the place of one."""
    data, other = (pa.ones(N, dtype="float32", device=name) for _ in range(2))

    def block() -> None:
        for _ in range(SMALL):
            scale(data, 1.0)

    block()
    with pa.capture(data=data) as g:
        block()
    same: dict[str, Any] = {"pyarray": g.launch, "one by one": block}
    turns = itertools.cycle((data, other))
    updated: dict[str, Any] = {"pyarray": lambda: g.launch(data=next(turns)), "one by one": block}
    torch = peers.peer("torch")
    if torch is not None and torch.cuda.is_available():
        t = torch.ones(N, device="cuda")
        t.mul_(1.0)
        torch.cuda.synchronize()
        theirs = torch.cuda.CUDAGraph()
        with torch.cuda.graph(theirs):
            for _ in range(SMALL):
                t.mul_(1.0)
        same["torch"] = theirs.replay
    return [(f"graph of {SMALL} kernels", same, None), (f"graph of {SMALL} kernels, other array", updated, None)]


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes."""
    available = devices("cuda")
    if not available:
        print("no NVIDIA GPU: nothing to measure")
        yield Figure("device", "none: nothing was measured")
        return
    rows = []
    for name, calls, goal in (*cases(str(available[0])), *graph_cases(str(available[0]))):
        times = race(calls, 0.1 if quick else 0.5)
        rows.append(Row("gpu_launch", name, times, goal, n=N, against=("bare",) if "bare" in calls else None))
        pa.synchronize(available[0])
    print(f"{available[0].driver.name()}, host time, n = {N}: minimum (median)\n{table(rows)}\n", flush=True)
    yield Figure("device", available[0].driver.name())
    yield from rows


if __name__ == "__main__":
    from .part import alone

    alone("gpu_launch")
