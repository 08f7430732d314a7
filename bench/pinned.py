"""One artifact for every size against artifacts with the sizes compiled in: 10^3 to 10^7 elements, also
at odd offsets. After it, what pins are for: short inner loops.

Only the compiled code is timed, by the driver's own call on packed arguments.
`python -m bench.pinned [--json PATH]`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pyarray as pa
from pyarray.jit.launch import packer

from .timing import Figure, Row, race, table

ABOUT = """The one artifact that serves every size, next to artifacts of the same kernel with sizes and
strides compiled in: what generality costs. Compiled code only, without the launch."""
SIZES = (10**3, 10**5, 10**7)
OFFSETS = (0, 1, 3)
WITHIN = 0.95  # of the pinned artifact's speed


@pa.kernel
def scale(out, v, factor: pa.float32):
    for i in range(out.size):
        out[i] = v[i] * factor


@pa.kernel
def update(out, v, factor: pa.float32):
    for i in range(out.size):
        out[i] += v[i] * factor


@pa.kernel
def smooth(out, v, factor: pa.float32):
    for i in range(out.size):
        if i > 0 and i < out.size - 1:
            out[i] = factor * v[i] + v[i - 1] + v[i + 1]
        else:
            out[i] = v[i]


@pa.kernel
def weigh(out, v, factor: pa.float32):
    for i in range(v.shape[0]):
        total = pa.float32(0)
        for k in range(v.shape[1]):
            total += v[i, k] * factor
        out[i] = total


def artifact(kernel: Any, *args: Any) -> Callable[[], Any]:
    """The kernel's compiled code on these arguments, and nothing else."""
    variant = kernel.variant(args)
    slots = packer(variant.program.params)(*args)
    run = variant.device.driver.launcher(variant.artifact.function)
    return lambda held=args: run(slots)  # the slots hold addresses only


def flat(kernel: Any, size: int, offset: int) -> dict[str, Callable[[], Any]]:
    """The same memory for all candidates."""
    memory = [pa.asarray(np.ones(size + 8, np.float32)) for _ in range(2)]
    out, v = (x[offset : offset + size] for x in memory)
    calls = {
        "pyarray": artifact(kernel, out, v, 1.0),
        "pinned": artifact(kernel, out.mark_static(), v.mark_static(), 1.0),
    }
    if size % 8 == 0:
        calls["multiple of 8"] = artifact(kernel, out.assume(0, multiple_of=8), v.assume(0, multiple_of=8), 1.0)
    return calls


def rows_of(width: int, size: int) -> dict[str, Callable[[], Any]]:
    """Rows of `width` elements, reduced one by one."""
    v = pa.asarray(np.ones((size // width, width), np.float32))
    out = pa.asarray(np.zeros(size // width, np.float32))
    return {"pyarray": artifact(weigh, out, v, 1.0), "pinned": artifact(weigh, out, v.mark_static(1), 1.0)}


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes."""
    for size in SIZES:
        budget = (0.2 if size < 10**6 else 1.5) * (0.3 if quick else 1.0)
        group = [
            Row(
                f"{size} elements",
                f"{kernel.__name__}, offset {offset}",
                race(flat(kernel, size, offset), budget),
                WITHIN,
                n=size,
                against=("pinned",),
            )
            for kernel in (scale, update, smooth)
            for offset in OFFSETS
        ]
        print(f"float32, n = {size}: minimum (median)\n{table(group)}\n", flush=True)
        yield from group
    short = [
        Row("short rows", f"rows of {width}", race(rows_of(width, 10**5), 0.2), n=10**5, against=("pinned",))
        for width in (3, 4, 16)
    ]
    print(f"10^5 elements in short rows: minimum (median)\n{table(short)}\n", flush=True)
    yield from short


if __name__ == "__main__":
    from .part import alone

    alone("pinned")
