"""Random kernels of products of tiles, each with what NumPy makes of it.

Of floats all values are small integers, so that float32 has all sums exactly, in any order. Integers are any of their
type, and sums of them wrap around."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np

HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
INTEGERS = ("int8", "uint8", "int16", "int32")
WIDE = ("float32", "float64")
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


def _dtype(kind: str) -> np.dtype[Any]:
    return HALVES.get(kind) or np.dtype(kind)


class Drawn:
    """A random kernel: `text`, its `arguments`, and the result that NumPy computes, `expected`."""

    def __init__(self, seed: int):
        self.random = choose = random.Random(seed)
        self.kind = choose.choice((*HALVES, *HALVES, *INTEGERS, *WIDE, *WIDE))
        self.of_integers = self.kind in INTEGERS
        self.other = choose.choice(INTEGERS) if self.of_integers and choose.random() < 0.3 else self.kind  # of b
        self.sums = "int32" if self.of_integers else "float64" if self.kind == "float64" else "float32"
        if self.kind == self.other == "uint8" and choose.random() < 0.5:
            self.sums = "uint32"
        self.result = self.sums if self.of_integers else choose.choice((self.sums, self.kind))
        self.sizes = choose.choice((1, 7, 64, 100, 128, 200)), choose.choice((1, 8, 50, 64, 136, 260))
        self.depth = choose.choice((0, 1, 8, 16, 33, 64, 100, 128, 200))
        self.tile = (
            choose.choice((64, 64, 128, 192)),
            choose.choice((16, 32, 48, 64, 64, 80, 96, 128, 256)),
            choose.choice((16, 32, 48, 64, 64, 96, 128)),
        )
        # what a block has room for: sums in registers, operands in shared memory, of numbers that are copied one by one
        # two stages of them, on the emulated device, too
        sizes = [_dtype(kind).itemsize for kind in (self.sums, self.kind, self.other)]
        most = (28 if max(sizes[1:]) > 2 else 56) << 10
        while True:
            rows, columns, deep = self.tile
            if rows * columns * sizes[0] <= 128 << 10 and deep * (rows * sizes[1] + columns * sizes[2]) <= most:
                break
            self.tile = (64, min(columns, 128), min(deep, 64 if max(sizes[1:]) <= 2 else 16))
        self.turned = choose.random() < 0.4, choose.random() < 0.4  # the depth is the array's other axis
        self.first = choose.choice((0, 0, 3))
        self.adds = choose.choice(("acc += {}", "acc += {}", "acc += {}", "acc = acc + {}", "acc += 2 * ({})"))
        if self.of_integers:
            self.adds = "acc += {}"  # by itself a product of integers has their type
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
            f"        acc = pa.full((i, j), {self.first}, pa.{self.sums})",
            "        seen = 0",
            f"        for k in pa.tiles({self.depth}, {depth}):",
            f"            {self.adds.format(f'{a} @ {b}')}",
        ]
        lines += [f"            {self.between}"] if self.between else []
        lines += [f"        c[{at}i, j] = {self.last} + seen"]
        return "\n".join(lines) + "\n"

    def arguments(self) -> list[np.ndarray[Any, Any]]:
        """The arrays: the result, both operands, and what the last statement adds."""
        rng = np.random.default_rng(self.random.randrange(1 << 30))
        (rows, columns), depth, n = self.sizes, self.depth, self.batch

        def drawn(shape: tuple[int, ...], kind: str) -> np.ndarray[Any, Any]:
            if kind in INTEGERS:
                return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, endpoint=True, dtype=kind)
            return rng.integers(-3, 4, shape).astype(_dtype(kind))

        def operand(shape: tuple[int, int], turned: bool, kind: str) -> np.ndarray[Any, Any]:
            made = [drawn(shape[::-1] if turned else shape, kind) for _ in range(max(n, 1))]
            return np.stack(made) if n else laid_out(made[0], self.random.choice(LAYOUTS))

        a = operand((rows, depth), self.turned[0], self.kind)
        b = operand((depth, columns), self.turned[1], self.other)
        result = np.zeros((n, rows, columns) if n else (rows, columns), _dtype(self.result))
        return [result, a, b, drawn((columns,), self.sums), drawn((rows, columns), self.kind)]

    def expected(self, arguments: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        result, a, b, e, f = (x.astype(np.int64 if self.of_integers else np.float64) for x in arguments)
        a, b = a.swapaxes(-1, -2) if self.turned[0] else a, b.swapaxes(-1, -2) if self.turned[1] else b
        b = b[list(MATRICES[self.matrix])] if self.batch else b
        acc, seen = np.full(result.shape, self.first, result.dtype), 0
        for k in range(0, self.depth, self.tile[2]):
            part = a[..., k : k + self.tile[2]] @ b[..., k : k + self.tile[2], :]
            acc = acc + (2 * part if "2 * (" in self.adds else part)
            acc, seen = acc * 2 if "* 2" in self.between else acc, seen + ("seen" in self.between)
        acc = acc.astype(_dtype(self.sums)).astype(result.dtype)  # wrapped around
        last = {"pa.maximum(acc, 0)": np.maximum(acc, 0), "acc + e[j]": acc + e, "acc * 2 + f[i, j]": acc * 2 + f}
        return (last.get(self.last, acc) + seen).astype(arguments[0].dtype)
