"""Reductions and softmax of float32 on a GPU next to PyTorch: short rows, odd rows, few rows, and along other axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarray as pa

from .gpu_timing import in_turns
from .timing import Row, aligned

Call = Callable[[], Any]
# shapes of about 2^25 elements, and the axes that are reduced
CASES: tuple[tuple[tuple[int, ...], int | tuple[int, ...]], ...] = (
    ((10_000_000, 3), -1),
    ((2_000_000, 17), -1),
    ((500_000, 64), -1),
    ((300_000, 100), -1),
    ((32_000, 1000), -1),
    ((32_000, 1001), -1),
    ((1024, 32_000), -1),
    ((640, 50_257), -1),
    ((3, 10_000_000), -1),
    ((10_000_000, 3), 0),
    ((3, 10_000_000), 0),
    ((8192, 4096), 0),
    ((64, 3, 256, 256), 1),
    ((64, 3, 256, 256), (0, 2, 3)),
)
QUICK = 4  # cases


def _calls(torch: Any, shape: tuple[int, ...], axis: Any) -> Iterator[tuple[str, Call, Call]]:
    t = torch.randn(shape, device="cuda")
    x = pa.from_dlpack(t)
    yield "sum", lambda: pa.sum(x, axis=axis), lambda: t.sum(axis)
    yield "max", lambda: pa.max(x, axis=axis), lambda: t.amax(axis)
    yield "variance", lambda: pa.var(x, axis=axis), lambda: t.var(axis, correction=0)
    if isinstance(axis, int):
        yield "argmax", lambda: pa.argmax(x, axis=axis), lambda: t.argmax(axis)
    if axis == -1:
        yield "softmax", lambda: pa.special.softmax(x, axis=-1), lambda: torch.softmax(t, -1)
        yield "logsumexp", lambda: pa.special.logsumexp(x, axis=-1), lambda: torch.logsumexp(t, -1)


def reductions(torch: Any, quick: bool) -> Iterator[Row]:
    """Prints microseconds, PyTorch's, and the ratio to it, in turns."""
    lines = [["reductions of float32", "axis", "function", "us", "torch", "ratio"]]
    for shape, axis in CASES[:QUICK] if quick else CASES:
        sizes = " x ".join(map(str, shape))
        for name, ours, theirs in _calls(torch, shape, axis):
            times = in_turns(torch, quick, 5, {"pyarray": ours, "torch": theirs})
            own, other = (times[who].median * 1e6 for who in ("pyarray", "torch"))
            lines.append([sizes, str(axis), name, f"{own:.0f}", f"{other:.0f}", f"{other / own:.2f}"])
            yield Row("reductions", f"{name} of {sizes} along {axis}", times)
        torch.cuda.empty_cache()
    print(aligned(lines) + "\n", flush=True)


if __name__ == "__main__":
    from . import peers

    for _ in reductions(peers.peer("torch"), False):
        pass
