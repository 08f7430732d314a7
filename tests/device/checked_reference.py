"""Random kernels, and the bounds that plain Python would report for them."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class OutOfRange(Exception):
    """Iteration and index of the first failure."""

    tid: int
    index: int


class _Outside(Exception):
    pass


class Checked:
    """A NumPy array as debug mode sees it: no index counts from the end."""

    def __init__(self, array):
        self.array, self.size, self.shape = array, array.size, array.shape

    def __len__(self):
        return len(self.array)

    def _check(self, key):
        for part, extent in zip(key if isinstance(key, tuple) else (key,), self.shape, strict=False):
            if isinstance(part, slice):
                if part.step == 0:
                    raise _Outside(0)
            elif not 0 <= part < extent:
                raise _Outside(int(part))

    def __getitem__(self, key):
        self._check(key)
        found = self.array[key]
        return Checked(found) if found.ndim else int(found)

    def __setitem__(self, key, value):
        self._check(key)
        self.array[key] = value

    def subview(self, offset, size):
        if offset < 0 or size < 0 or offset + size > self.size:
            raise _Outside(offset)
        return Checked(self.array[offset : offset + size])


def run_checked(text, functions, arrays, n, k):
    """The failure of the first iteration that has one, or None."""
    lines = text.splitlines()
    before, _, ranges = lines[1].strip().removesuffix(":").partition(" in ")
    lines[1] = f"    for tid[0], ({before.removeprefix('for ')}) in enumerate({ranges}):"
    exec("\n".join(lines), space := {**functions, "tid": (tid := [0])})
    try:
        space["drawn"](*map(Checked, arrays), n, k)
    except _Outside as failure:
        return OutOfRange(tid[0], *failure.args)
    return None


class _Writer:
    def __init__(self, draw):
        self.draw, self.lines, self.numbers = draw, [], itertools.count()
        self.parallel = ("i",)  # where these don't enter an index, a store would be a race

    def index(self, names):
        form = self.draw.choice("nnnncccckkmr%/fs0")
        inner = self.draw.choice(names) if self.draw.random() < 0.6 else f"({self.sum(names)})"
        pick = self.draw.choice
        return {
            "n": lambda: pick(names),
            "c": lambda: self.sum(names),
            "k": lambda: f"{inner} + n",
            "m": lambda: f"{inner} * {pick([2, -1, 'k'])}",
            "r": lambda: f"{pick(['min', 'max'])}({inner}, {pick(['n', '0', 'a.size - 1', 'b.shape[0] - 1'])})",
            "%": lambda: f"{inner} % {pick(['a.size', '3', 'k'])}",
            "/": lambda: f"{inner} // {pick(['2', 'k'])}",
            "f": lambda: f"ident({inner}, n)",
            "s": lambda: f"({inner} if {pick(names)} > {pick(['n', '2'])} else {self.sum(names)})",
            "0": lambda: str(self.draw.randint(0, 7)),
        }[form]()

    def sum(self, names):
        return f"{self.draw.choice(names)} {self.draw.choice('+-')} {self.draw.randint(0, 3)}"

    def load(self, names):
        one, two = self.index(names), self.index(names)
        views = ["a", "b", "a[1:]", "a[::2]", "b[k:]", "b[::k]", "a[:n]", "m[0]", "m[:, 1]", f"m[{two}]"]
        view = self.draw.choice([*views, "a.subview(n, 4)", "b.subview(1, k)"])
        return self.draw.choice([f"a[{one}]", f"b[{one}]", f"m[{one}, {two}]", f"get({view}, {one})", f"{view}[{one}]"])

    def condition(self, names):
        forms = (
            "{} > 0", "{} + 1 < a.size", "{} < n", "0 < {} < b.size - 1", "{} != 0", "{} == 0 or {} == n",
            "not {} >= 3", "{} - 1 >= 0 and a[{} - 1] == 0", "0 <= a[0] < n",
        )  # fmt: skip
        return self.draw.choice(forms).replace("{}", self.draw.choice(names))

    def range(self, names):
        forms = (
            "n", "a.size", "1, a.size - 1", "b.shape[0]", "k, n", "n, 0, -1", "0, b.size, k", "len(m)",
            "2, 7, 2", "a.size + 1", "6, -1, -3", self.draw.choice(names),
        )  # fmt: skip
        return f"range({self.draw.choice(forms)})"

    def block(self, names, depth):
        pad = "    " * (depth + 1)
        for _ in range(self.draw.randint(1, 3)):
            form = self.draw.choice("sssslllifxcw")
            if form in "lf" and depth < 3:
                inner = f"j{next(self.numbers)}"
                self.lines.append(f"{pad}for {inner} in {self.range(names)}:")
                self.block([*names, inner], depth + 1)
            elif form == "i" and depth < 4:
                self.lines.append(f"{pad}if {self.condition(names)}:")
                self.block(names, depth + 1)
                self.lines.append(f"{pad}else:")
                self.block(names, depth + 1)
            elif form == "x":
                name = f"x{next(self.numbers)}"
                value = self.draw.choice([self.index(names), self.index(names), self.load(names)])
                self.lines.append(f"{pad}{name} = {value}")
                names = [*names, name]
            elif form == "c":
                self.lines.append(f"{pad}if {self.condition(names)}: continue")
            elif form == "w":
                name = f"w{next(self.numbers)}"
                self.lines.append(f"{pad}{name} = {self.draw.choice(['a[1:]', 'b[n:]', 'm[1]', 'a'])}")
                self.lines.append(f"{pad}for {name}i in range({name}.size):")
                self.lines.append(f"{pad}    atomic_exchange(out, 0, {name}[{name}i] + {self.load(names)})")
            else:
                array, index = self.draw.choice([("out", "0"), ("a", self.index(names)), ("b", self.index(names))])
                value = f"{self.load(names)} + {self.load(names)}"
                apart = all(re.search(rf"\b{name}\b", index) for name in self.parallel)
                store = f"{array}[{index}] = {value}" if apart else f"atomic_exchange({array}, {index}, {value})"
                self.lines.append(f"{pad}{store}")


def random_kernel(draw):
    """Text of a kernel `drawn(a, b, m, out, n, k)`: arrays of ranks 1, 1, 2, 1 and two numbers."""
    writer = _Writer(draw)
    writer.lines.append("def drawn(a, b, m, out, n: int, k: int):")
    if draw.random() < 0.3:
        writer.lines.append(f"    for i, h in ndrange(b.shape[0], {draw.choice(['m.shape[1]', 'n', '2'])}):")
        writer.parallel = ("i", "h")
        writer.block(["i", "h"], 1)
    else:
        writer.lines.append(f"    for i in {writer.range(['k'])}:")
        writer.block(["i"], 1)
    return "\n".join(writer.lines) + "\n"
