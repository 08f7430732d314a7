"""Random kernels of tiles, each with the same program of NumPy's on slices.

All values are small integers, in integer and in floating types, so that every order of summation gives the same."""

from __future__ import annotations

import random

import numpy as np

import pyarray as pa

AXES = {"i": 0, "j": 1, "k": 2}
# arrays: name → axes; dtypes are drawn
ARRAYS = {"a": "ij", "b": "ji", "c": "ik", "d": "kj", "u": "i", "v": "j", "w": "k"}
STACKS = {"s": "ij", "t": "kj"}  # of three matrices
PLACES = ("0", "2", "-1", "s.shape[0] - 2", "i.start % 3", "j.start // 2 % 3")
DTYPES = ("float32", "float64", "int64", "int32", "int8", "float16")


class Drawn:
    """A random kernel: `text`, the `reference`, and what both are called with."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.rows = self.random.random() < 0.5  # whole rows: j is one tile
        self.sizes = [self.random.choice((0, 1, 2, 5, 8, 9, 17, 33)) for _ in AXES]
        self.tiles = [self.random.choice((1, 2, 3, 4, 8, 16)) for _ in AXES]
        if self.rows:
            self.sizes[1] = self.sizes[1] or 3  # Python's unpacking takes one tile, and of nothing there is none
            self.tiles[1] = self.sizes[1] + self.random.choice((1, 2, 7))
        self.dtypes = {name: self.random.choice(DTYPES) for name in (*ARRAYS, *STACKS)}
        self.out = self.random.choice(("float64", "int64"))
        self.known: list[tuple[str, str]] = []  # variables and their axes
        self.count = 0
        self.text, self.reference = self._program()

    # ---- expressions: pairs of texts, for the kernel and for NumPy

    def expression(self, axes: str, depth: int, inner: bool) -> tuple[str, str]:
        """Of a tile of these axes; `inner`: the tile index k has a value."""
        choices = ["load"] * 3 + ["variable", "number"]
        if depth:
            choices += ["binary"] * 4 + ["where", "clip", "reduced", "reduced"]
            choices += ["product"] * 2 if axes == "ij" and inner else []
            choices += ["scan"] if axes in ("ij", "i") else []
            choices += ["whole"]
        return getattr(self, f"_{self.random.choice(choices)}")(axes, depth, inner)

    def _load(self, axes: str, depth: int, inner: bool) -> tuple[str, str]:
        fitting = [n for n, own in (ARRAYS | STACKS).items() if set(own) <= set(axes)]
        if not fitting or self.random.random() < 0.15:
            return self._index(axes)
        name = self.random.choice(fitting)
        own = (ARRAYS | STACKS)[name]
        place = [self.random.choice((*PLACES, "k.start % 3") if inner else PLACES)] if name in STACKS else []
        text = f"{name}[{', '.join([*place, *own])}]"
        if own == axes[::-1] and own != axes:
            return f"{text}.T", f"{text}.T"
        text += _broadcast(own, axes)
        return text, text

    def _index(self, axes: str) -> tuple[str, str]:
        axis = self.random.choice(axes)
        lift = _broadcast(axis, axes)
        return f"({axis}{lift} % 5)", f"(np.arange({axis}.start, {axis}.stop){lift} % 5)"

    def _variable(self, axes: str, depth: int, inner: bool) -> tuple[str, str]:
        fitting = [name for name, own in self.known if own == axes]
        if not fitting:
            return self._load(axes, depth, inner)
        name = self.random.choice(fitting)
        return name, name

    def _number(self, axes: str, depth: int, inner: bool) -> tuple[str, str]:
        if depth:
            return self._load(axes, depth, inner)
        text = str(self.random.randint(-3, 3))
        return text, text

    def _binary(self, axes: str, depth: int, inner: bool) -> tuple[str, str]:
        op = self.random.choice(("+", "-", "*"))
        (a, x), (b, y) = (self.expression(axes, depth - 1, inner) for _ in range(2))
        return f"({a} {op} {b})", f"({x} {op} {y})"

    def _clip(self, axes: str, depth: int, inner: bool) -> tuple[str, str]:
        a, x = self.expression(axes, depth - 1, inner)
        return clipped(a, "pa"), clipped(x, "np")

    def _where(self, axes: str, depth: int, inner: bool) -> tuple[str, str]:
        parts = [self._load(axes, 0, inner), *(self.expression(axes, depth - 1, inner) for _ in range(2))]
        (c, z), (a, x), (b, y) = parts
        return f"pa.where({c} > 0, {a}, {b})", f"np.where({z} > 0, {x}, {y})"

    def _reduced(self, axes: str, depth: int, inner: bool) -> tuple[str, str]:
        """A sum or an extreme along an axis that the tile hasn't, or one that it keeps with size 1."""
        more = [x for x in ("ijk" if inner else "ij") if x not in axes]
        if len(axes) == 2 or not more:
            if len(axes) < 2:
                return self._load(axes, depth, inner)
            a, x = self.expression(axes, depth - 1, inner)
            call = f".{self.random.choice(('max', 'min'))}(axis={self.random.choice((0, 1, -1))}, keepdims=True)"
            other = whole(axes)
            return f"({clipped(a, 'pa')} + {other}){call} + {other}", f"({clipped(x, 'np')} + {other}){call} + {other}"
        axis = self.random.choice(more)
        wide = "".join(sorted({*axes, axis}))
        a, x = self.expression(wide, depth - 1, inner)
        call = f".sum(axis={wide.index(axis)})"
        return clipped(f"({a} + {whole(wide)}){call}", "pa"), clipped(f"({x} + {whole(wide)}){call}", "np")

    def _whole(self, axes: str, depth: int, inner: bool) -> tuple[str, str]:
        """A number: the sum of a tile."""
        own, there = self._load(axes, 0, inner)
        a, x = self._load("ij", 0, inner)
        return f"({own} + {clipped(f'({a}).sum()', 'pa')})", f"({there} + {clipped(f'({x}).sum()', 'np')})"

    def _scan(self, axes: str, depth: int, inner: bool) -> tuple[str, str]:
        a, x = self.expression(axes, depth - 1, inner)
        call = f".cumsum(axis={self.random.randrange(len(axes))})"
        return clipped(f"({clipped(a, 'pa')} + {whole(axes)}){call}", "pa"), (
            clipped(f"({clipped(x, 'np')} + {whole(axes)}){call}", "np")
        )

    def _product(self, axes: str, depth: int, inner: bool) -> tuple[str, str]:
        (a, x), (b, y) = self.expression("ik", depth - 1, inner), self.expression("kj", depth - 1, inner)
        left, there = "c[i, k] * 0", "d[k, j] * 0"
        kernel = f"(({clipped(a, 'pa')} + {left}) @ ({clipped(b, 'pa')} + {there}))"
        numpy = f"(({clipped(x, 'np')} + {left}) @ ({clipped(y, 'np')} + {there}))"
        return clipped(kernel, "pa"), clipped(numpy, "np")

    # ---- statements

    def _assign(self, lines: list[tuple[str, str]], axes: str, inner: bool) -> None:
        a, x = self.expression(axes, 2, inner)
        name = f"t{self.count}"
        self.count += 1
        lines.append((f"{name} = {clipped(a, 'pa')} + {whole(axes)}", f"{name} = {clipped(x, 'np')} + {whole(axes)}"))
        self.known.append((name, axes))

    def _program(self) -> tuple[str, str]:
        body: list[tuple[str, str]] = []
        for _ in range(self.random.randint(1, 3)):
            self._assign(body, self.random.choice(("ij", "i", "j", "ji")), False)
        body.append(("acc = pa.zeros((i, j), pa.float64)", "acc = np.zeros((i.stop - i.start, j.stop - j.start))"))
        inner: list[tuple[str, str]] = []
        before = list(self.known)
        for _ in range(self.random.randint(0, 2)):
            self._assign(inner, self.random.choice(("ik", "kj", "ij", "k")), True)
        a, x = self.expression("ij", 2, True)
        inner.append((f"acc += {clipped(a, 'pa')}", f"acc += {clipped(x, 'np')}"))
        if self.random.random() < 0.7:
            inner.append(("acc += c[i, k] @ d[k, j]", "acc += c[i, k] @ d[k, j]"))
        self.known = [*before, ("acc", "ij")]
        tail: list[tuple[str, str]] = []
        a, x = self.expression("ij", 2, False)
        tail.append((f"out[i, j] = {a} + acc", f"out[i, j] = {x} + acc"))
        if self.rows:
            a, x = self.expression("i", 2, False)
            tail.append((f"row[i] = {a}", f"row[i] = {x}"))
        head = f"def drawn(out, row, {', '.join((*ARRAYS, *STACKS))}):\n"
        return head + self._loops(body, inner, tail, 0), head + self._loops(body, inner, tail, 1)

    def _loops(self, body: list, inner: list, tail: list, which: int) -> str:
        bi, bj, bk = self.tiles
        if self.rows:
            text = f"    for i in pa.tiles(out.shape[0], {bi}):\n        (j,) = pa.tiles(out.shape[1], {bj})\n"
        else:
            text = f"    for i, j in pa.tiles(out, ({bi}, {bj})):\n"
        text += "".join(f"        {line[which]}\n" for line in body)
        text += f"        for k in pa.tiles(w.shape[0], {bk}):\n"
        text += "".join(f"            {line[which]}\n" for line in inner)
        return text + "".join(f"        {line[which]}\n" for line in tail)

    # ---- arguments

    def arguments(self) -> list[np.ndarray]:
        numbers = np.random.default_rng(self.random.randrange(1 << 30))
        found = [np.zeros(self.sizes[:2], self.out), np.zeros(self.sizes[0], self.out)]
        for name, axes in (ARRAYS | STACKS).items():
            shape = [3] * (name in STACKS) + [self.sizes[AXES[x]] for x in axes]
            array = numbers.integers(-3, 4, shape).astype(self.dtypes[name])
            layout = numbers.integers(3)
            if layout == 1:
                last = array.ndim - 1
                array = np.ascontiguousarray(array.swapaxes(last, max(last - 1, 0))).swapaxes(last, max(last - 1, 0))
            elif layout == 2:
                array = np.repeat(array, 2, axis=-1)[..., ::2]
            found.append(array)
        return found


def _broadcast(own: str, axes: str) -> str:
    """The index that gives a tile of some axes those of another one."""
    if own == axes:
        return ""
    if own == axes[-1]:
        return ""
    return "[:, None]" if len(axes) == 2 else ""


def whole(axes: str) -> str:
    """A tile of zeros with all of these axes."""
    vectors = {"i": "u", "j": "v", "k": "w"}
    return " + ".join(f"{vectors[x]}[{x}]{_broadcast(x, axes)} * 0" for x in axes)


def clipped(text: str, module: str) -> str:
    return f"{module}.minimum({module}.maximum({text}, -4), 4)"


def expected(drawn: Drawn, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """The arrays after the program of NumPy's."""
    space = {"np": np, "pa": pa}
    exec(drawn.reference, space)
    copies = [array.copy() for array in arguments]
    with np.errstate(all="ignore"):
        space["drawn"](*copies)
    return copies[:2]
