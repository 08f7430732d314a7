"""Draws programs of all that a kernel may have: arrays of constant shape, records and arrays of them, dataclasses
with operators, random numbers, control, functions inside the kernel, reductions, parallel loops over rows.

Every number is kept small by `% M`, so that no integer wraps, and the floats take steps that are exact in any order of
evaluation that the language allows."""

from __future__ import annotations

from random import Random
from typing import Any

from .names import local_functions

LANES = 5  # iterations of the parallel loop; each has a row of every array
ROWS = {"m": 4, "out": 8, "log": 2, "fo": 3, "a": 4}  # columns of the arrays

BEGIN = """
row = m[i]
o = out[i]
l = log[i]
r = a[i]
x = x0 + i
y = 1
z = i
f = 0.5
b = x0 % 2 == 0
v = np.array([x % M, i, 2])
w = np.array([1, 2, x % 5])
k = np.array([[1, x % M], [i, 2]])
g = np.array([0.5, 1.5], dtype=np.float32)
p = Body(x % M, np.array([1, i, 3]), Pose(4, 0.25))
q = Body(2, np.array([x % 7, 1, 0]), Pose(i), True)
rng = make_rng(x0, i)
"""


class Writer:
    """Writes the text of a program."""

    def __init__(self, draw: Random):
        self.draw, self.lines, self.loops = draw, list[str](), 0
        self.inside_call = 0  # of local functions, which must not set what these use

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def pick(self, *forms: Any) -> str:
        """One of these texts; those that are functions are called if they are chosen."""
        form = self.draw.choice(forms)
        return form() if callable(form) else form

    # ---- expressions

    def small(self) -> str:
        """Text of a small integer. An int16 is made an int64: beside a variable of Python's it would stay one in NumPy,
        and wrap, where a kernel's variable has 64 bits; and a vector of such ones is no `Body.v`."""
        return self.pick(
            "x", "y", "z", "i", str(self.draw.randint(0, 9)), "p.n", "q.pose.a", "v[0]", "w[2]", "k[1, 0]", "row[1]",
            "r[2].n", "r[0].v[1]", "len(v)", "len(r)", "int(f)", "r[1].pose.a", "int(r[3].small)",
        )  # fmt: skip

    def number(self, depth: int = 0) -> str:
        """Text of an integer; what it calls may leave traces."""
        if depth > 1:
            return self.small()
        n = lambda: self.number(depth + 1)  # noqa: E731
        forms = [
            self.small,
            self.small,
            lambda: f"note(l, {n()})",
            lambda: f"mix({', '.join(self.draw.sample([f'a={n()}', f'b={n()}', f'c={n()}'], 3))})",
            lambda: f"({n()} {self.pick('+', '-', '*')} {n()}) % M",
            lambda: f"({n()} if {self.condition(depth + 1)} else {n()})",
            lambda: f"{self.pick('min', 'max')}({n()}, {n()})",
            lambda: f"{self.pick('v', 'w')}[{n()} % 3]",
            lambda: f"k[{n()} % 2, {n()} % 2]",
            lambda: f"k[{n()} % 2][{n()} % 2]",
            lambda: f"row[{n()} % 4]",
            lambda: f"({self.vector()} @ {self.pick('v', 'w', 'q.v', 'r[1].v')}) % M",
            lambda: f"int({self.pick('np.sum', 'np.max', 'np.min', 'np.argmax')}({self.vector()})) % M",
            lambda: f"({self.pick('v', 'w', 'k')}.{self.pick('sum()', 'max()', 'min()')}) % M",
            lambda: f"int({self.matrix()}[{n()} % 2, 0]) % M",
            lambda: f"above({self.pick('v', 'w', 'row', 'p.v')}, {n()})",
            lambda: f"{self.stored()}.{self.pick('n', 'pose.a')}",
            lambda: f"{self.stored()}.v[{n()} % 3]",
            lambda: f"{self.stored()}.total({n()})",
            lambda: f"({self.record()} + {self.pick('p', 'q')})[{n()}]",
            lambda: f'r["n"][{n()} % 4]',
            lambda: f"int({self.stored()}.small)",
            lambda: f"rng.integers({n()} % 5, {n()} % 900 + 5)",
            lambda: "int(rng.uniform() * 8)",
            lambda: f"(atomic_add(l, 1, {n()} % 9) % M)",
            lambda: f"int({self.real()}) % M",
            lambda: f"ends({self.vector()}, {n()})[{self.draw.randint(0, 1)}] % M",
            lambda: f"({n()}, {n()}, {n()})[{self.draw.randint(0, 2)}]",
        ]
        if not self.inside_call:
            forms.append(lambda: f"({self.pick('x', 'y', 'z')} := int({n()}) % M)")  # an int16 would make it one
            forms += [lambda: self.call(depth)] * 2
        text: str = self.draw.choice(forms)()
        return text

    def call(self, depth: int) -> str:
        self.inside_call += 1
        inner = self.number(depth + 1)
        self.inside_call -= 1
        return self.pick(
            f"late({inner})", f"early({inner})", f"short(short({inner}) % M)", "spin(v)", f"late({inner}, 1)"
        )

    def condition(self, depth: int = 1) -> str:
        a, b = self.number(depth + 1), self.number(depth + 1)
        return self.pick(
            f"{a} < {b}", f"{a} <= {b} != {self.small()}", f"{a} % 2 == 0 and {b} > 3", f"{a} % 3 or not {b}", "p < q",
            f"{self.record()} < q", "b", "q.flag", "not r[1].flag", f"f > {self.small()}", "(v == w).any()",
            f"np.all({self.pick('v', 'w')} >= 0)",
        )  # fmt: skip

    def vector(self, depth: int = 0) -> str:
        """Text of three integers."""
        plain = ("v", "w", "p.v", "q.v", "r[1].v", "r[0].v")
        if depth > 1:
            return self.draw.choice(plain)
        v, n = (lambda: self.vector(depth + 1)), (lambda: self.number(1))
        return self.pick(
            *plain,
            lambda: f"np.array([{n()}, {n()}, {n()}])",
            lambda: f"(({v()} {self.pick('+', '-', '*')} {v()}) % M)",
            lambda: f"(({v()} * {n()}) % M)",
            lambda: f"(({n()} - {v()}) % M)",
            lambda: f"np.where({v()} {self.pick('<', '==')} {v()}, {v()}, {n()})",
            lambda: f"turned({v()}, {n()})",
            lambda: f"scaled({v()}, {n()})",
            lambda: f"scaled({v()})",
            lambda: f"(np.cross({v()}, {v()}) % M)",
            lambda: f"np.maximum({v()}, {n()})",
            lambda: f"{v()}[::-1].copy()",
            lambda: f"(-{v()} % M)",
            lambda: f"r[{n()} % 4].v.copy()",
        )

    def matrix(self) -> str:
        n = lambda: self.number(1)  # noqa: E731
        return self.pick(
            "k", "k.T.copy()", lambda: f"((k @ k.T + {n()}) % M)", lambda: f"((k * {n()}) % M)",
            lambda: f"np.array([[{n()}, 1], [2, {n()}]])", lambda: "((k + k[0]) % M)", "np.eye(2, dtype=np.int64)",
        )  # fmt: skip

    def real(self) -> str:
        """Text of a float of a few bits."""
        n = lambda: self.number(1)  # noqa: E731
        return self.pick(
            "f", lambda: f"(f * 0.5 + {n()}) % 64", lambda: f"(f + float({n()}) / 4) % 32", "float(g[1])",
            lambda: f"{self.stored()}.pose.b", lambda: f"abs(f - {n()})", lambda: f"float(g[{n()} % 2])",
        )  # fmt: skip

    def stored(self) -> str:
        """Text of a record of which parts are read."""
        n = lambda: self.number(2)  # noqa: E731
        return self.pick(
            "p", "q", lambda: f"r[{n()} % 4]", "r[ticket(l, 4)]", lambda: f"r[1:][{n()} % 3]",
            lambda: f"(p if {self.condition(2)} else q)",
        )  # fmt: skip

    def record(self) -> str:
        """Text of a record that is only read."""
        n = lambda: self.number(2)  # noqa: E731
        return self.pick(
            "p", "q", lambda: f"r[{n()} % 4]", lambda: "r[ticket(l, 4)]", lambda: f"r[1:][{n()} % 3]",
            lambda: f"(p + r[{n()} % 4])", lambda: f"moved(q, {n()})", lambda: f"({n()} * p)",
            lambda: f"(p if {self.condition(2)} else r[{n()} % 4])",
            lambda: f"(moved(p, {n()}) if {self.condition(2)} else q)",
        )  # fmt: skip

    def made(self) -> str:
        """Text of a record that nothing else holds."""
        n = lambda: self.number(1)  # noqa: E731
        return self.pick(
            lambda: f"Body({n()}, {self.vector()}.copy(), Pose({n()}, f))",
            lambda: f"Body(v=turned(w, {n()}), n={n()}, pose=Pose({n()}), small={self.draw.randint(0, 99)})",
            lambda: f"copied({self.stored()})",
            lambda: f"moved({self.stored()}, {n()})",
            lambda: f"({self.record()} + {self.pick('p', 'q')})",
            lambda: f"({n()} % 9 * {self.pick('p', 'q')})",
            lambda: f"replace(r[{n()} % 4], n={n()}, v=scaled(v, {n()}))",
        )

    # ---- statements

    def statement(self, depth: int, looped: bool) -> None:
        n, s = self.number, self.small
        at = lambda: f"r[{n(1)} % 4]"  # noqa: E731
        forms = {
            "number": lambda: [f"{self.pick('x', 'y', 'z')} = int({n()})"],
            "update": lambda: [f"x {self.pick('+=', '-=', '*=')} {n()}", "x %= M"],
            "several": lambda: [f"x, y = int({n()}), int({n()})"],
            "unpack": lambda: [f"x, y, z = {self.vector()}"],
            "ends": lambda: [f"y, z = ends({self.vector()}, {n()})", "y %= M"],
            "float": lambda: [f"f = {self.real()}"],
            "single": lambda: [f"g = (g * 0.5 + float({s()})) % 8"],
            "element of floats": lambda: [f"g[{n(1)} % 2] = {s()} % 8"],
            "bool": lambda: [f"b = {self.pick('b and ', 'not ', '')}{s()} < {s()}"],
            "vector": lambda: [f"{self.pick('v', 'w')} = {self.vector()}.copy()"],
            "element": lambda: [f"{self.pick('v', 'w')}[{n()} % 3] = {n()}"],
            "update of an element": lambda: [f"v[{n(1)} % 3] += {n(1)}", "v %= M"],
            "part": lambda: [f"v[1:] = {self.pick('w[:2]', 'k[0]', n())}"],
            "update in place": lambda: [f"w {self.pick('+=', '-=')} {self.vector()}", "w %= M"],
            "matrix": lambda: [f"k = {self.matrix()}"],
            "row of a matrix": lambda: [f"k[{n(1)} % 2] = {self.pick('v[:2]', n())}"],
            "element of a matrix": lambda: [f"k[{n(1)} % 2, {n(1)} % 2] = {n(1)}"],
            "column": lambda: [f"k[:, {self.draw.randint(0, 1)}] = {n(1)}"],
            "object": lambda: [f"{self.pick('p', 'q')} = {self.made()}"],
            "field": lambda: [f"{self.pick('p', 'q')}.{self.pick('n', 'pose.a')} = {n()}"],
            "update of a field": lambda: [f"p.n += {n()}", "p.n %= M"],
            "field of a vector": lambda: [f"q.v = {self.vector()}.copy()"],
            "element of a field": lambda: [f"p.v[{n(1)} % 3] = {n()}"],
            "inner object": lambda: [f"p.pose = Pose({n()}, f)"],
            "record": lambda: [f"{at()} = {self.made()}"],
            "record's field": lambda: [f"{at()}.{self.pick('n', 'pose.a')} = {n()}"],
            "record's small field": lambda: [f"{at()}.small = {n()} % 99"],
            "record's flag": lambda: [f"{at()}.flag = {self.condition()}"],
            "update of a record": lambda: [f"{at()}.n {self.pick('+=', '-=')} {n()}", *self.reduce_records()],
            "record's vector": lambda: [f"{at()}.v = {self.vector()}"],
            "update of a record's vector": lambda: [f"{at()}.v += {self.pick('v', 'w', n(1))}", *self.reduce_records()],
            "element of a record": lambda: [
                f"{at()}.v[{n(1)} % 3] {self.pick('=', '+=')} {n(1)}",
                *self.reduce_records(),
            ],
            "inner record": lambda: [f"{at()}.pose = Pose({n()}, f)"],
            "update of a whole record": lambda: [f"r[{self.draw.randint(0, 3)}] += {self.pick('p', 'q')}"],
            "record of a tuple": lambda: [f"{at()} = ({n()}, {self.vector()}, Pose({n()}), b, 7)"],
            "copy of a record": lambda: ["c = r[ticket(l, 4)]", "x = (c.n + c.v[1] * c.pose.a) % M"],
            "copies of records": lambda: [f"r[{self.draw.randint(0, 3)}] = r[{self.draw.randint(0, 3)}]"],
            "field of all": lambda: [f'fill(r["n"], {n()})', f"fill(r[{n(1)} % 4].v, {n(1)})"],
            "atomic of a field": lambda: [f'x = atomic_add(r["n"], {n(1)} % 4, {n(1)}) % M', *self.reduce_records()],
            "atomic maximum": lambda: [f'atomic_max(r["v"], ({n(1)} % 4, 2), {n(1)})'],
            "store": lambda: [f"o[{n()} % 8] {self.pick('=', '+=')} {n()}"],
            "store in order": lambda: [f"o[note(l, 1) % 8], z = {n()}, {n()}"],
            "store of a float": lambda: [f"fo[i, {n(1)} % 3] = {self.real()}"],
            "fill": lambda: [f"fill({self.pick('row', 'o', 'row[1:]', 'o[::2]')}, {n()})"],
            "leave": lambda: [f"if {self.condition()}: {self.pick('break', 'continue')}"] if looped else ["pass"],
        }
        for text in self.draw.choice(list(forms.values()))():
            self.line(depth, text)

    def reduce_records(self) -> list[str]:
        """Brings the numbers of all records back into the range."""
        return ["for c_ in range(4):", "    r[c_].n %= M", "    r[c_].v %= M"]

    def match(self, depth: int, looped: bool) -> None:
        n = self.number
        self.line(depth, f"match {self.pick(f'{n()} % 4', f'({n(1)} % 2, {n(1)} % 3)')}:")
        cases = ["0", "1 | 2", f"3 if {self.condition(1)}", "(0, y)", "(1, 2)", "(x, 1)", "(0, 0 | 1)"]
        for case in [*self.draw.sample(cases, self.draw.randint(1, 3)), "_"]:
            self.line(depth + 1, f"case {case}:")
            self.statement(depth + 2, looped)

    def block(self, depth: int, looped: bool = False, least: int = 2) -> None:
        for _ in range(self.draw.randint(least, least + 2)):
            kind = self.draw.choice("ssssfwim") if depth < 4 else "s"
            if kind == "s":
                self.statement(depth, looped)
            elif kind == "m":
                self.match(depth, looped)
            elif kind == "i":
                self.line(depth, f"if {self.condition()}:")
                self.block(depth + 1, looped)
                self.line(depth, f"elif {self.condition()}:" if self.draw.random() < 0.3 else "else:")
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
                self.loop(depth, looped)

    def loop_else(self, depth: int, looped: bool) -> None:
        if self.draw.random() < 0.3:
            self.line(depth, "else:")
            self.statement(depth + 1, looped)

    def loop(self, depth: int, looped: bool) -> None:
        self.loops += 1
        j, n = f"j{self.loops}", self.number
        if self.draw.random() < 0.2:  # no break leaves it
            self.line(depth, f"for {j}, y in ndrange({n(1)} % 3, ({n(1)} % 2, {n(1)} % 4)):")
            self.block(depth + 1, False)
            self.loop_else(depth, looped)
            return
        if self.draw.random() < 0.2:
            self.line(depth, f"for {j} in unordered(range({n(1)} % 9)):")
            self.line(
                depth + 1, self.pick(f"z = z + {j} * row[{j} % 4]", f"z = max(z, {j} ^ row[1])", f"z = z + {j} % 3")
            )
            self.line(depth, "z %= M")
            return
        first = ""
        header = self.pick(
            "for z in row:", "for x in o[::-2]:", "for z in v.copy():", "for x in w[:2].copy():",
            f"for {j} in range(len(r)):", f"for {j} in range({n(1)} % 3, {n(1)} % 5):",
            f"for {j} in range({n(1)} % 9, {n(1)} % 3, -({n(1)} % 3 + 1)):", f"for {j}, z in enumerate(row):",
            "for x, y in zip(row, o):", f"for {j}, (x, z) in enumerate(zip(row, range({n(1)} % 9))):",
            "for z in reversed(row):", f"for {j} in reversed(range({n(1)} % 3, {n(1)} % 5)):",
            f"for {j}, c in enumerate(r):", "for c in r:", "for c in reversed(r[1:]):", "for c, z in zip(r[::-1], o):",
        )  # fmt: skip
        if " c " in header or " c," in header:
            first = f"x = (c.n + c.v[{self.draw.randint(0, 2)}] + c.total({self.draw.randint(0, 5)})) % M"
        self.line(depth, header)
        if first:
            self.line(depth + 1, first)
        self.block(depth + 1, True)
        self.loop_else(depth, looped)


def reduction(writer: Writer) -> None:
    """A parallel loop that reduces into variables, with a record of the best, and into an element."""
    draw = writer.draw
    terms = ["m[i % 5, i % 4]", "i * i", "x0 - i", "(i % 7 + x0) % 11", "-i", "a[i % 5, i % 4].n", "a[1, 2].v[i % 3]"]
    writer.line(1, f"s, count, best, where = {draw.randint(-3, 3)}, 0, {draw.choice([0, 9, 99])}, -1")
    ranges = ["range(700)", "range(x0)", "range(x0, -3, -2)", "range(2, 40)", "reversed(range(x0))"]
    writer.line(1, f"for i in {draw.choice(ranges)}:")
    if draw.random() < 0.3:
        writer.line(2, f"if i % {draw.randint(2, 5)} == 1: continue")
    update = draw.choice(["s += {}", "s -= {}", "s = max(s, {})", "s = min({}, s)", "s ^= {}"])
    writer.line(2, update.format(draw.choice(terms)))
    writer.line(2, f"if {draw.choice(terms)} > 3: count += 1")
    if draw.random() < 0.6:
        writer.line(2, f"new = {draw.choice(terms)}")
        writer.line(2, f"if new {draw.choice(['<', '<=', '>', '>='])} best: best, where = new, i")
    if draw.random() < 0.5:
        writer.line(2, f"out[{draw.randint(0, 4)}, 1] {draw.choice(['+=', '-='])} {draw.choice(terms)} % 5")
    for number, name in enumerate(("s", "count", "best", "where")):
        writer.line(1, f"out[0, {number}] += {name} % M")


def draw_program(draw: Random) -> str:
    """Text of a kernel `drawn(m, out, log, fo, a, x0)` of arrays of `LANES` rows, `a` of records, and a number."""
    writer = Writer(draw)
    writer.line(0, "def drawn(m, out, log, fo, a, x0):")
    if draw.random() < 0.2:
        writer.line(1, f"if x0 {draw.choice(['> 400', '== 1', '< 1'])}: return")
    if draw.random() < 0.3:
        reduction(writer)
    writer.line(1, f"for i in range({LANES}):")
    for text in (*BEGIN.strip().splitlines(), *local_functions("l"), "spin = lambda u: (u[0] * 3 + u[2]) % M"):
        writer.line(2, text)
    writer.block(2, least=3)
    results = ("x", "y", "z", "np.sum(v)", "w[2] + v[0]", "np.sum(k)", "p.n + p.v[0]", "q.pose.a + len(v)")
    for number, value in enumerate(results):
        writer.line(2, f"out[i, {number}] += {value}")
    for number, value in enumerate(("f", "float(g[0] + g[1])", "p.pose.b + float(b)")):
        writer.line(2, f"fo[i, {number}] += {value}")
    if draw.random() < 0.3:
        reduction(writer)
    return "\n".join(writer.lines) + "\n"
