"""C text of delinearized loops (`delinearization.py`): rows in which the last digit counts, the digits before it
like an odometer.

Any bounds will do: the first and the last row are cut. A GPU thread has one iteration, and divides once for
each digit, in 32 bits where the number fits. A cut point that isn't positive, a product of more than 64 bits
and a negative start take the loop as it was written; so do rows of one iteration."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import ir
from .delinearization import Product, Split, find_split
from .emit_expressions import ExprEmitter, cname
from .printer import Printer

_SHORT = 2  # iterations of a row that are cheaper than their division


class CountedLoop(NamedTuple):
    """A C loop of `k` over [first, past), with the lines `declared` at the beginning of its body."""

    k: str
    first: str
    past: str
    declared: str = ""
    number: str = ""  # of its first iteration in the loop that it is a row of

    def block(self, out: Printer) -> Printer:
        """Opens it."""
        out.open(f"for (int64_t {self.k} = {self.first}; {self.k} < {self.past}; ++{self.k})")
        if self.declared:
            out.line(self.declared)
        return out


Body = Callable[[CountedLoop], None]  # prints the loop with its body


def find_rows(code: ExprEmitter, loop: ir.For) -> Split | None:
    """How a loop is split; None of one that isn't."""
    split = _find(code, loop)
    return split if isinstance(split, Split) else None


def delinearized_loop(code: ExprEmitter, loop: ir.For, split: Split, first: str, last: str, body: Body) -> None:
    """Prints iterations [first, last) of a loop's last variable, both C names."""
    code.counters += 1
    rows = _RowLoop(code, split, loop.variables[-1], first, last, body)
    code.remarks[loop.loc.line, f"loop over {rows.summary()}: rows, in which the digits are counted"] = None
    rows.write()


def thread_digits(code: ExprEmitter, loop: ir.For) -> tuple[list[str], str, dict[Any, str]] | None:
    """Of a loop whose iterations are shared out among the threads of a GPU: the lines before the loop, what
    stands behind the variable in each iteration, and what stands for its divisions."""
    split = find_split(loop, rows=False)
    if not isinstance(split, Split):
        return None
    code.counters += 1
    thread = _ThreadDigits(code, split, loop.variables[-1])
    code.remarks[loop.loc.line, f"loop over {thread.summary()}: one division a digit in each thread"] = None
    return thread.text()


def missed(code: ExprEmitter, loop: ir.For) -> bool:
    """Prints a comment that says why a loop is not split whose variable is divided; whether there is one."""
    reason = _find(code, loop)
    if not isinstance(reason, str):
        return False
    name = loop.variables[-1]
    code.remarks[loop.loc.line, f"loop over {name}: its divisions stay: {reason}"] = None
    code.out.line(f"/* not split: {_comment(name)}: {reason} */")
    return True


def _find(code: ExprEmitter, loop: ir.For) -> Split | str | None:
    return None if code.debug else find_split(loop, _has_rows(code, loop))


def _has_rows(code: ExprEmitter, loop: ir.For) -> bool:
    """Each thread of a GPU has iterations of its own of a parallel loop, and no rows."""
    return code.dialect.blocks or loop.loop is None


class _Chain:
    """The names of one chain's digits, numbered from 1, the fastest; `q` are the quotients above them."""

    def __init__(self, points: tuple[Product, ...], tag: str):
        self.tag, self.last_digit = tag, f"r{tag}1"
        self.sizes: list[Product] = []
        for low, high in itertools.pairwise(points):
            size = high.divided_by(low)
            assert size is not None
            self.sizes.append(size)
        self.numbers = range(1, len(self.sizes) + 1)

    def n(self, k: int) -> str:
        return f"n{self.tag}{k}"

    def r(self, k: int) -> str:
        return f"r{self.tag}{k}"

    def q(self, k: int) -> str:
        return f"q{self.tag}{k}"

    def value(self, low: int, high: int | None, variable: str) -> str:
        """`(i % point high) // point low`."""
        if high is None:
            return self.q(low) if low else variable
        digit = [self.last_digit, *(self.r(k) for k in range(2, high + 1))]
        if low == high:
            return "0"
        text = digit[high - 1]
        for k in range(high - 1, low, -1):
            text = f"({text} * {self.n(k)} + {digit[k - 1]})"
        return text


class _SplitLoop:
    """One split loop."""

    def __init__(self, code: ExprEmitter, split: Split, variable: str):
        self.code, self.split, self.variable, self.tag = code, split, variable, f"{code.counters}_"
        self.ok, self.name = f"digits{self.tag}", cname(variable)
        self.chains = [_Chain(c, f"{self.tag}{k}_" if k else self.tag) for k, c in enumerate(split.chains)]

    def summary(self) -> str:
        multiple = ", of which the range is a multiple" if self.split.is_multiple else ""
        rest = f"; a division stays: {self.split.remaining}" if self.split.remaining else ""
        cuts = ", and at ".join(" | ".join(str(p) for p in c) for c in self.split.chains)
        return f"{self.variable} at {cuts}{multiple}{rest}"

    def comment(self) -> str:
        return f"/* split: {_comment(self.summary())} */"

    def head(self, tests: list[str]) -> list[str]:
        """The sizes of the digits, and whether the loop can run over them: further `tests`."""
        symbols = sorted({s for c in self.chains for size in c.sizes for s in size.symbols})
        names = {symbol: f"x{self.tag}{k}" for k, symbol in enumerate(symbols)}
        values = ((name, self.split.symbols[symbol.name]) for symbol, name in names.items())
        lines = [f"const int64_t {name} = {self.code.expr(value)};" for name, value in values]
        tests = [*tests, *(f"{name} > 0" for name in names.values())]
        lines.append(f"bool {self.ok} = {' && '.join(tests) or 'true'};")
        for c in self.chains:
            for k, size in enumerate(c.sizes, 1):
                parts = [names[s] for s in size.symbols]
                size_text = self.product(parts if parts and size.number == 1 else [*parts, str(size.number)])
                lines.append(f"const int64_t {c.n(k)} = {size_text};")
            if len(c.sizes) > 1:
                lines.append(f"(void){self.product([c.n(k) for k in c.numbers])};")
        return lines

    def product(self, parts: list[str]) -> str:
        """Which clears `ok` where 64 bits don't hold it."""
        size_text = parts[0]
        for part in parts[1:]:
            size_text = f"pa_bound_mul({size_text}, {part}, &{self.ok})"
        return size_text

    def terms(self) -> dict[Any, str]:
        """What stands for each division."""
        pairs = self.split.terms.items()
        return {e: self.chains[c].value(low, high, self.name) for e, (c, low, high) in pairs}


class _ThreadDigits(_SplitLoop):
    """Prints how a thread delinearizes the number of its iteration."""

    def text(self) -> tuple[list[str], str, dict[Any, str]]:
        """The lines before the loop, behind the variable in each iteration, and for its divisions."""
        code, in_range, name = self.code, f"own{self.tag}", self.name
        head = [self.comment(), *self.head([])]
        lines = f"const bool {in_range} = {self.ok} && {name} >= 0;"
        for c in self.chains:
            for k in c.numbers:
                rest, q, r, n = c.q(k - 1) if k > 1 else name, c.q(k), c.r(k), c.n(k)
                lines += f" const int64_t {q} = {in_range} ? pa_shape_over({rest}, {n}) : 0, "
                lines += f"{r} = {rest} - {q} * {n}; (void){r};"
        terms = {e: f"({in_range} ? {digit} : {code.expr(e)})" for e, digit in self.terms().items()}
        return head, lines, terms


class _RowLoop(_SplitLoop):
    """A loop over rows."""

    def __init__(self, code: ExprEmitter, split: Split, variable: str, first: str, last: str, body: Body):
        super().__init__(code, split, variable)
        self.first, self.last, self.body = first, last, body
        for k, c in enumerate(self.chains):  # others are as far from the first one in all of a row
            c.last_digit = f"(d{self.tag} + by{c.tag})" if k else f"d{self.tag}"

    def write(self) -> None:
        code, out, ok = self.code, self.code.out, self.ok
        with out.block(comment=self.comment()):
            out.lines(self.head([f"{self.first} >= 0"]))
            long = " && ".join(f"{c.n(1)} >= {_SHORT}" for c in self.chains)
            out.line(f"{ok} = {ok} && {long};")
            with out.block(f"if ({ok})"):
                outer = code.digits
                code.digits = outer | self.terms()
                out.lines(self.start())
                self.rows(out)
                code.digits = outer
            with out.orelse():
                self.body(CountedLoop(self.name, self.first, self.last))

    def start(self) -> Iterator[str]:
        """The digits of the first iteration."""
        for c in self.chains:
            for k in c.numbers:
                rest, n = c.q(k - 1) if k > 1 else self.first, c.n(k)
                yield f"int64_t {c.r(k)} = {rest} % {n}, {c.q(k)} = {rest} / {n};"

    def rows(self, out: Printer) -> None:
        """A row ends where the first of the last digits does."""
        tag, last = self.tag, self.last
        t, row, first = f"at{tag}", f"row{tag}", self.chains[0].r(1)
        with out.block(f"for (int64_t {t} = {self.first}; {t} < {last};)"):
            out.line(f"int64_t {row} = {last} - {t};")
            for c in self.chains:
                out.line(f"if ({c.n(1)} - {c.r(1)} < {row}) {row} = {c.n(1)} - {c.r(1)};")
            out.line(f"const int64_t base{tag} = {t} - {first}, end{tag} = {first} + {row};")
            for c in self.chains[1:]:
                out.line(f"const int64_t by{c.tag} = {c.r(1)} - {first};")
            declared = f"const int64_t {self.name} = base{tag} + d{tag};"
            self.body(CountedLoop(f"d{tag}", first, f"end{tag}", declared, f"{t} - {self.first}"))
            out.line(f"{t} += {row};")
            for c in self.chains:
                self.step(c, out)

    def step(self, c: _Chain, out: Printer) -> None:
        """The digits of the next row."""
        out.line(f"{c.r(1)} += row{self.tag};")
        for k in c.numbers:
            out.open(f"if ({c.r(k)} == {c.n(k)})")
            out.lines([f"{c.r(k)} = 0;", f"++{c.q(k)};"])
            if k < len(c.sizes):
                out.line(f"++{c.r(k + 1)};")
        for _ in c.numbers:
            out.close()


def _comment(text: str) -> str:
    return text if text.isascii() else ascii(text)
