"""Random programs of the kernel language whose meaning depends on the order in which Python does things:
functions that leave traces in an array, called by keyword and within tuples, views that are rebound while a
loop runs over them, `break`, `continue`, `else` of loops, `match`, assignments in expressions, functions inside the
kernel, structures with operators of their own, random numbers, reductions of parallel loops."""

from __future__ import annotations

from typing import NamedTuple

import pyarray as pa

from .names import MODULUS, local_functions, mix, note


@pa.func
def both(log, x):
    return note(log, x + 1), note(log, x)


@pa.func
def halves(log, view):
    """The view, once the log knows."""
    note(log, len(view))
    return view[len(view) // 2 :] if len(view) > 1 else view[0:]


@pa.func
def apply(f, a):
    return f(a)


class Two(NamedTuple):
    x: int
    y: int


class Pair(NamedTuple):
    x: int
    y: int = 4

    @pa.func
    def __add__(self, other):
        return Pair((self.x + 2 * other.x) % MODULUS, (self.y - other.y) % MODULUS)

    @pa.func
    def __radd__(self, other):
        return Pair(self.y, other % MODULUS)

    @pa.func
    def __getitem__(self, k):
        return (self.x * k + self.y) % MODULUS

    @pa.func
    def __len__(self):
        return self.x % 5

    @pa.func
    def __lt__(self, other):
        return self.y < other.x


NAMES = {
    "note": note, "mix": mix, "both": both, "halves": halves, "Pair": Pair, "Two": Two, "M": MODULUS,
    "ndrange": pa.ndrange, "atomic_add": pa.atomic_add, "apply": apply, "make_rng": pa.rng,
}  # fmt: skip


class _Writer:
    def __init__(self, draw):
        self.draw, self.lines, self.loops = draw, [], 0
        self.calls = 0  # of local functions around, which must not set what these use

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def number(self, depth=0):
        """Text of an integer."""
        draw, inner = self.draw, lambda: self.number(depth + 1)
        simple = ["x", "y", "z", str(draw.randint(0, 9)), "p.x", "q.y", "len(w)", "t[0]", "t[1]"]
        if depth > 1:
            return draw.choice(simple)
        kind = draw.choice("vvvnnnmmwwupettgalkibhrfFFy" + ("" if self.calls else "zZ"))
        if kind in "fFy":
            self.calls += 1
            inner_text = self.number(depth + 1)
            self.calls -= 1
        forms = {
            "v": lambda: draw.choice(simple),
            "n": lambda: f"note(log, {inner()})",
            "m": lambda: f"mix({', '.join(draw.sample([f'a={inner()}', f'b={inner()}', f'c={inner()}'], 3))})",
            "w": lambda: f"{draw.choice('wu')}[{inner()} % len(w) % len(u)]",
            "u": lambda: f"({inner()} {draw.choice(['+', '-', '*'])} {inner()}) % M",
            "p": lambda: f"Pair(y={inner()}, x={inner()}).{draw.choice('xy')}",
            "t": lambda: f"({inner()}, {inner()}, {inner()})[{draw.randint(0, 2)}]",
            "e": lambda: f"Two(y={inner()}, x={inner()})._replace({draw.choice('xy')}={inner()}).{draw.choice('xy')}",
            "g": lambda: f"({draw.choice('pq')} + {draw.choice('pq')})[{inner()}]",
            "a": lambda: f"(atomic_add(log, 1, {inner()}) % M)",
            "l": lambda: f"len({draw.choice('pq')})",
            "k": lambda: f"({inner()} if {self.condition(depth + 1)} else {inner()})",
            "i": lambda: f"{draw.choice(['min', 'max'])}({inner()}, {inner()}, {inner()})",
            "b": lambda: f"both(log, {inner()})[{draw.randint(0, 1)}]",
            "h": lambda: f"halves(log, {draw.choice('wu')})[-1]",
            "z": lambda: f"({draw.choice('xyz')} := {inner()})",
            "Z": lambda: f"({inner()} + (x := {inner()} % M) * x) % M",
            "f": lambda: f"{draw.choice(['late', 'early'])}({inner_text})",
            "F": lambda: f"apply({draw.choice(['late', 'early', 'short', 'lambda a: (a * x + y) % M'])}, {inner_text})",
            "y": lambda: f"short(short({inner_text}) % M)",
            "r": lambda: f"rng.integers({inner()} % 5, {inner()} % 900)",
        }
        return forms[kind]()

    def condition(self, depth=1):
        a, b, c = (self.number(depth + 1) for _ in range(3))
        forms = [
            f"{a} < {b}",
            f"{a} <= {b} != {c}",
            f"{a} % 2 == 0 and {b} > {c}",
            f"{a} % 3 or not {b}",
            "p < q",
        ]
        return self.draw.choice(forms)

    def view(self):
        n = self.number(1)
        return self.draw.choice(
            [
                f"m[{n} % 3]",
                f"m[:, {n} % 5]",
                f"m[{n} % 3][1:4]",
                f"m[{n} % 3, ::-2]",
                "w",
                "u",
                "halves(log, w)",
            ]
        )

    def statement(self, depth, looped):
        draw, number = self.draw, self.number
        name = draw.choice("xyz")
        forms = {
            "a": lambda: [f"{name} = {number()}"],
            "A": lambda: [f"{name} {draw.choice(['+=', '-='])} {number()}", f"{name} %= M"],
            "t": lambda: [f"x, y = {number()}, {number()}"],
            "s": lambda: [f"out[{number()} % 6] {draw.choice(['=', '+='])} {number()}"],
            "S": lambda: [f"out[note(log, 1) % 6], z = {number()}, {number()}"],
            "v": lambda: [f"{draw.choice('wu')} = {self.view()}"],
            "V": lambda: ["w, u = u, w"],
            "p": lambda: [f"{draw.choice('pq')} = Pair({number(1)}, {number(1)}) + q"],
            "P": lambda: [f"p += Pair(y={number(1)}, x={number(1)})"],
            "r": lambda: [f"q = {draw.randint(0, 9)} + p"],
            "T": lambda: [f"t = {draw.choice(['both(log, x)', '(t[1], t[0])', '(y, note(log, z))'])}"],
            "b": lambda: [f"if {self.condition()}: {draw.choice(['break', 'continue'])}"] if looped else ["pass"],
        }
        for text in forms[draw.choice("aaaAtsssSvvVpPrTb")]():
            self.line(depth, text)

    def match(self, depth, looped):
        number = self.number
        self.line(depth, f"match {self.draw.choice([f'{number()} % 4', f'({number(1)} % 2, {number(1)} % 3)'])}:")
        cases = ["0", "1 | 2", f"3 if {self.condition(1)}", "(0, y)", "(1, 2)", "(x, 1)", "(0, 0 | 1)"]
        chosen = self.draw.sample(cases, self.draw.randint(1, 3))
        for case in [*chosen, "_"]:
            self.line(depth + 1, f"case {case}:")
            self.statement(depth + 2, looped)

    def block(self, depth, looped=False):
        for _ in range(self.draw.randint(2, 4)):
            kind = self.draw.choice("sssfwim") if depth < 4 else "s"
            if kind == "s":
                self.statement(depth, looped)
            elif kind == "m":
                self.match(depth, looped)
            elif kind == "i":
                self.line(depth, f"if {self.condition()}:")
                self.block(depth + 1, looped)
                self.line(depth, "else:")
                self.statement(depth + 1, looped)
            elif kind == "w":
                self.loops += 1
                counter = f"n{self.loops}"
                self.line(depth, f"{counter} = 0")
                self.line(depth, f"while {counter} < {self.number(2)} % 4:")
                self.line(depth + 1, f"{counter} += 1")
                self.block(depth + 1, True)
                self.loop_else(depth, looped)
            else:
                self.loop(depth)
                self.loop_else(depth, looped)

    def loop_else(self, depth, looped):
        if self.draw.random() < 0.3:
            self.line(depth, "else:")
            self.statement(depth + 1, looped)

    def loop(self, depth):
        self.loops += 1
        i, number = f"i{self.loops}", self.number
        nested = self.draw.random() < 0.25
        headers = [
            "for z in w:", "for x in u:", "for z in (w, u)[1]:",
            f"for {i} in range(len(w)):", f"for {i} in range({number(1)} % 3, {number(1)} % 5):",
            f"for {i} in range({number(1)} % 9, {number(1)} % 3, -({number(1)} % 3 + 1)):",
            f"for {i}, z in enumerate(w):", f"for {i}, x in enumerate(u, {self.draw.randint(0, 3)}):",
            "for x, y in zip(w, u):", f"for {i}, (x, z) in enumerate(zip(u, range({number(1)} % 9))):",
            "for z in reversed(u):", f"for {i} in reversed(range({number(1)} % 3, {number(1)} % 5)):",
            f"for {i} in reversed(range({number(1)} % 7, {number(1)} % 3, -2)):",
        ]  # fmt: skip
        if nested:  # no break leaves it
            self.line(depth, f"for {i}, y in ndrange({number(1)} % 3, ({number(1)} % 2, {number(1)} % 4)):")
        else:
            self.line(depth, self.draw.choice(headers))
        self.block(depth + 1, not nested)


def reduction(writer):
    """A parallel loop that reduces into `r`, `c` and a record, and into an element."""
    draw = writer.draw
    terms = ["m[i % 3, i % 5]", "i * i", "x0 - i", "(i % 7 + x0) % 11", "-i"]
    writer.line(1, f"r, c, best, where = {draw.randint(-3, 3)}, 0, {draw.choice([0, 9, 99])}, -1")
    ranges = ["range(700)", "range(x0)", "range(x0, -3, -2)", "range(2, 40)", "reversed(range(x0))"]
    writer.line(1, f"for i in {draw.choice(ranges)}:")
    if draw.random() < 0.3:
        writer.line(2, f"if i % {draw.randint(2, 5)} == 1: continue")
    writer.line(
        2, draw.choice(["r += {}", "r -= {}", "r = max(r, {})", "r = min({}, r)", "r ^= {}"]).format(draw.choice(terms))
    )
    writer.line(2, f"if {draw.choice(terms)} > 3: c += 1")
    if draw.random() < 0.6:
        writer.line(2, f"new = {draw.choice(terms)}")
        writer.line(2, f"if new {draw.choice(['<', '<=', '>', '>='])} best: best, where = new, i")
    if draw.random() < 0.5:
        writer.line(2, f"out[{draw.randint(0, 5)}] {draw.choice(['+=', '-='])} {draw.choice(terms)} % 5")
    for k, name in enumerate(("r", "c", "best", "where")):
        writer.line(1, f"out[{k}] += {name} % M")


def random_program(draw):
    """Text of a kernel `drawn(m, out, log, x0)` of int64: a 3 x 5 matrix, 6 results, 2 traces, a number."""
    writer = _Writer(draw)
    writer.line(0, "def drawn(m, out, log, x0):")
    if draw.random() < 0.2:
        writer.line(1, f"if x0 {draw.choice(['> 400', '== 1', '< 1'])}: return")
    if draw.random() < 0.5:
        reduction(writer)
    writer.line(1, "for once in range(1):")
    for text in (
        "x = x0",
        "y = 1",
        "z = 2",
        "w = m[0]",
        "u = m[:, 1]",
        "p = Pair(x0, 3)",
        "q = Pair(2)",
        "t = (x, y)",
        "rng = make_rng(x0, 3)",
        *local_functions("log"),
    ):
        writer.line(2, text)
    writer.block(2)
    for k, value in enumerate(("x", "y", "z", "p.x + q.y", "len(w) + len(u)", "t[0] + t[1]")):
        writer.line(2, f"out[{k}] += {value}")
    return "\n".join(writer.lines) + "\n"
