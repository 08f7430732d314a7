"""Random kernels of products of tiles of halves, each with what NumPy makes of it.

All values are small integers, so that float32 has all sums exactly, in any order."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np

HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
MATRICES = {"n.start": (0, 1), "0": (0, 0), "-1": (1, 1), "1 - n.start": (1, 0)}  # of two, for each n
LAYOUTS = ("rows", "columns", "padded", "odd", "apart", "backwards", "repeated")


def laid_out(values: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
    """The matrix, or one of its rows throughout, in memory with this layout."""
    rows, columns = values.shape
    if layout == "columns":
        return np.asfortranarray(values)
    if layout == "repeated":
        return np.broadcast_to(values[:1], values.shape) if rows else values
    wide = np.zeros((rows, 2 * columns + 24), values.dtype)
    view = {
        "padded": wide[:, 8 : 8 + columns],
        "odd": wide[:, 3 : 3 + columns],
        "apart": wide[:, : 2 * columns : 2],
        "backwards": wide[::-1, 8 : 8 + columns],
    }.get(layout)
    if view is None:
        return values
    view[...] = values
    return view


class Drawn:
    """A random kernel: `text`, its `arguments`, and the result that NumPy computes, `expected`."""

    def __init__(self, seed: int):
        self.random = choose = random.Random(seed)
        self.kind = choose.choice(list(HALVES))
        self.result = choose.choice(("float32", self.kind))
        self.sizes = choose.choice((1, 7, 64, 100, 128, 200)), choose.choice((1, 8, 50, 64, 136, 260))
        self.depth = choose.choice((0, 1, 8, 16, 33, 64, 100, 128, 200))
        self.tile = (
            choose.choice((64, 64, 128, 192)),
            choose.choice((16, 32, 48, 64, 64, 80, 96, 128, 256)),
            choose.choice((16, 32, 48, 64, 64, 96, 128)),
        )
        # what a block has room for: sums in registers, operands in shared memory
        while self.tile[0] * self.tile[1] > 32 << 10 or self.tile[2] * (self.tile[0] + self.tile[1]) * 2 > 56 << 10:
            self.tile = (64, min(self.tile[1], 128), min(self.tile[2], 64))
        self.turned = choose.random() < 0.4, choose.random() < 0.4  # the depth is the array's other axis
        self.first = choose.choice((0, 0, 3))
        self.adds = choose.choice(("acc += {}", "acc += {}", "acc += {}", "acc = acc + {}", "acc += 2 * ({})"))
        self.between = choose.choice(("", "", "", "acc = acc * 2", "seen += 1"))
        self.last = choose.choice(("acc", "acc", "pa.maximum(acc, 0)", "acc + e[j]", "acc * 2 + f[i, j]"))
        self.batch, self.matrix = choose.choice((0, 0, 0, 2)), choose.choice(list(MATRICES))
        self.text = self._text()

    def _text(self) -> str:
        rows, columns, depth = self.tile
        at = "n.start, " if self.batch else ""
        a = f"a[{at}k, i].T" if self.turned[0] else f"a[{at}i, k]"
        of_b = f"{self.matrix}, " if self.batch else ""
        b = f"b[{of_b}j, k].T" if self.turned[1] else f"b[{of_b}k, j]"
        lines = ["def drawn(c, a, b, e, f):"]
        axes, sizes = ("n, i, j", f"(1, {rows}, {columns})") if self.batch else ("i, j", f"({rows}, {columns})")
        lines += [
            f"    for {axes} in pa.tiles(c, {sizes}):",
            f"        acc = pa.full((i, j), {self.first}, pa.float32)",
            "        seen = 0",
            f"        for k in pa.tiles({self.depth}, {depth}):",
            f"            {self.adds.format(f'{a} @ {b}')}",
        ]
        lines += [f"            {self.between}"] if self.between else []
        lines += [f"        c[{at}i, j] = {self.last} + seen"]
        return "\n".join(lines) + "\n"

    def arguments(self) -> list[np.ndarray[Any, Any]]:
        """The arrays: the result, both operands, and what the last statement adds."""
        rng, half = np.random.default_rng(self.random.randrange(1 << 30)), HALVES[self.kind]
        (rows, columns), depth, n = self.sizes, self.depth, self.batch

        def operand(shape: tuple[int, int], turned: bool) -> np.ndarray[Any, Any]:
            made = [rng.integers(-3, 4, shape[::-1] if turned else shape).astype(half) for _ in range(max(n, 1))]
            return np.stack(made) if n else laid_out(made[0], self.random.choice(LAYOUTS))

        a, b = operand((rows, depth), self.turned[0]), operand((depth, columns), self.turned[1])
        result = np.zeros((n, rows, columns) if n else (rows, columns), np.dtype(HALVES.get(self.result, np.float32)))
        e, f = rng.integers(-3, 4, columns).astype(np.float32), rng.integers(-3, 4, (rows, columns)).astype(half)
        return [result, a, b, e, f]

    def expected(self, arguments: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        result, a, b, e, f = (x.astype(np.float64) for x in arguments)
        a, b = a.swapaxes(-1, -2) if self.turned[0] else a, b.swapaxes(-1, -2) if self.turned[1] else b
        b = b[list(MATRICES[self.matrix])] if self.batch else b
        acc, seen = np.full(result.shape, float(self.first)), 0
        for k in range(0, self.depth, self.tile[2]):
            part = a[..., k : k + self.tile[2]] @ b[..., k : k + self.tile[2], :]
            acc = acc + (2 * part if "2 * (" in self.adds else part)
            acc, seen = acc * 2 if "* 2" in self.between else acc, seen + ("seen" in self.between)
        last = {"pa.maximum(acc, 0)": np.maximum(acc, 0), "acc + e[j]": acc + e, "acc * 2 + f[i, j]": acc * 2 + f}
        return (last.get(self.last, acc) + seen).astype(arguments[0].dtype)
