"""`print` as stores into a buffer, a further parameter of the kernel and of each function that prints.

A line is a run of words: its number in the table of texts, the phase of the kernel, the iteration, the numbers. Its
place comes from an atomic addition, so that lines of one iteration are in their order; the host sorts all by phase and
iteration. The phase of parallel loop k is 2 k + 1, that of statements before it 2 k. What doesn't fit is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..dtypes import float32, float64, int64
from . import ir
from .messages import Template
from .promotion import binary, cast, constant
from .summaries import has_any

BUFFER = ".prints"  # the parameter
HEADER = 2  # words before the lines: where the next one goes, how many were lost
_KIND = ir.ArrayType(int64, 1, False)
_WORD = ir.ScalarType(int64)
_FLOATS = (float32, float64)
_PHASE, _ITERATION = ".phase", ".iteration"


@dataclass(frozen=True)
class Line:
    """What a `print` says, and how many words its numbers take."""

    template: Template
    words: int


def lower_prints(tree: ir.Tree) -> tuple[ir.Tree, tuple[Line, ...]]:
    """The tree without `Print`, and the lines that its stores name by number."""
    if not any(has_any(f.body, ir.Print) for f in (tree.kernel, *tree.functions)):
        return tree, ()
    lowering = _Lowering(tree)
    functions = tuple(map(lowering.function, tree.functions))
    return ir.Tree(lowering.kernel(tree.kernel), functions), tuple(lowering.lines)


class _Lowering:
    def __init__(self, tree: ir.Tree):
        self.lines: list[Line] = []
        self.printing: set[str] = set()  # functions, callees first
        for f in tree.functions:
            if any(self._prints(n) for n in ir.walk(*f.body)):
                self.printing.add(f.symbol)
        self.added: list[tuple[str, Any]] = []

    def _prints(self, node: Any) -> bool:
        return isinstance(node, ir.Print) or (isinstance(node, ir.Invoke) and node.function in self.printing)

    def function(self, function: ir.Function) -> ir.Function:
        if function.symbol not in self.printing:
            return function
        hidden = ((BUFFER, _KIND), (_PHASE, _WORD), (_ITERATION, _WORD))
        body = self.body(function.body, ir.Local(function.loc, _WORD, _PHASE))
        made = replace(function, params=(*function.params, *hidden), body=body)
        return replace(made, variables=(*made.variables, *self._take()))

    def _take(self) -> list[tuple[str, Any]]:
        added, self.added = self.added, []
        return added

    def kernel(self, kernel: ir.Function) -> ir.Function:
        body: list[ir.Stmt] = []
        phase = 0
        for s in kernel.body:
            if not any(self._prints(n) for n in ir.walk(s)):
                body.append(s)
            elif isinstance(s, ir.For) and s.loop is not None:
                body += self.parallel(s)
            else:
                once = ir.Assign(s.loc, _ITERATION, _word(s.loc, -1))
                body += (once, *self.body((s,), _word(s.loc, phase)))
            if isinstance(s, ir.For) and s.loop is not None:
                phase = 2 * s.loop + 2
        variables = (*kernel.variables, (_ITERATION, _WORD), *self._take())
        return replace(kernel, params=(*kernel.params, (BUFFER, _KIND)), body=tuple(body), variables=variables)

    def parallel(self, loop: ir.For) -> Iterator[ir.Stmt]:
        """The loop, and before it the sizes from which an iteration's number is made."""
        loc, ranges = loop.loc, list(loop.ranges)
        counters = [cast(ir.Local(loc, ir.INDEX, name), int64) for name in loop.variables]
        for k in range(1, len(ranges)):  # they begin at 0
            name, size = self.variable(_WORD), ranges[k].stop
            assert size is not None
            yield ir.Assign(loc, name, cast(size, int64))
            ranges[k] = replace(ranges[k], stop=cast(ir.Local(loc, _WORD, name), int64, True))
        number = counters[0]
        for k in range(1, len(ranges)):
            size = cast(ranges[k].stop, int64)  # type: ignore[arg-type]
            number = binary(loc, "add", binary(loc, "mul", number, size), counters[k])
        if ranges[0].step is not None and not (isinstance(ranges[0].step, ir.Const) and ranges[0].step.value > 0):
            negative = ir.Compare(
                loc, ir.BOOL, "lt", ranges[0].step, replace(constant(loc, 0), type=ranges[0].step.type)
            )
            number = ir.Select(loc, _WORD, negative, ir.Unary(loc, _WORD, "neg", number), number)
        body = self.body(loop.body, _word(loc, 2 * loop.loop + 1))  # type: ignore[operator]
        first = ir.Assign(loc, _ITERATION, number)
        yield replace(loop, ranges=tuple(ranges), body=(first, *body))

    def variable(self, kind: Any) -> str:
        """A new variable."""
        name = f".p{len(self.added)}"
        self.added.append((name, kind))
        return name

    def body(self, statements: tuple[ir.Stmt, ...], phase: ir.Expr) -> tuple[ir.Stmt, ...]:
        result: list[ir.Stmt] = []
        for s in statements:
            s = self.statement(s, phase)
            if isinstance(s, ir.Evaluate) and isinstance(s.value, ir.Print):
                result += self.line(s.value, phase)
            else:
                result.append(s)
        return tuple(result)

    def statement(self, s: Any, phase: ir.Expr) -> Any:
        """A statement whose calls pass the buffer on, and whose blocks are lowered."""
        blocks = {n: self.body(getattr(s, n), phase) for n in ("body", "then", "orelse") if hasattr(s, n)}
        bare = replace(s, **dict.fromkeys(blocks, ())) if blocks else s
        loc = s.loc
        hidden = (ir.Local(loc, _KIND, BUFFER), phase, ir.Local(loc, _WORD, _ITERATION))

        def change(node: Any) -> Any:
            passes = isinstance(node, ir.Invoke) and node.function in self.printing
            return replace(node, args=(*node.args, *hidden)) if passes else node

        bare = ir.rewrite(bare, change)
        return replace(bare, **blocks) if blocks else bare

    def line(self, s: ir.Print, phase: ir.Expr) -> Iterator[ir.Stmt]:
        loc, words = s.loc, list[ir.Expr]()
        buffer = ir.Local(loc, _KIND, BUFFER)
        for x in s.args:  # evaluated before the line has its place
            name = self.variable(x.type)
            yield ir.Assign(loc, name, x)
            words += _words(ir.Local(loc, x.type, name))
        self.lines.append(Line(s.text, len(words)))
        words = [_word(loc, len(self.lines) - 1), phase, ir.Local(loc, _WORD, _ITERATION), *words]
        place, count = self.variable(_WORD), _word(loc, len(words))
        at = ir.Local(loc, _WORD, place)
        yield ir.Assign(loc, place, ir.Atomic(loc, _WORD, "add", buffer, (_word(loc, 0),), count))
        stores = [
            ir.Store(loc, buffer, (at if not k else binary(loc, "add", at, _word(loc, k)),), word)
            for k, word in enumerate(words)
        ]
        size = cast(ir.Size(loc, ir.INDEX, buffer, 0), int64)
        fits = ir.Compare(loc, ir.BOOL, "le", at, binary(loc, "sub", size, count))
        lost = ir.Atomic(loc, _WORD, "add", buffer, (_word(loc, 1),), _word(loc, 1))
        yield ir.If(loc, fits, tuple(stores), (ir.Evaluate(loc, lost),))


def _word(loc: ir.Loc, value: int) -> ir.Const:
    return ir.Const(loc, _WORD, value)


def _words(value: ir.Expr) -> list[ir.Expr]:
    """A number as int64 words."""
    loc, dtype = value.loc, value.type.dtype
    if dtype.kind == "c":
        kind = next(k for k in (ir.ScalarType(d) for d in _FLOATS) if k.dtype.itemsize * 2 == dtype.itemsize)
        parts = [ir.Builtin(loc, kind, name, dtype, (value,)) for name in ("real", "imag")]
        return [w for part in parts for w in _words(part)]
    if dtype.kind == "f":
        return [ir.Convert(loc, _WORD, value, "bitcast")]
    return [cast(value, int64)]


def lines_of(buffer: Any, lines: tuple[Line, ...]) -> list[tuple[Line, list[int]]]:
    """The lines in a buffer's words, in order, with the words of their numbers."""
    end, found, at = min(int(buffer[0]), len(buffer)), list[tuple[tuple[int, int, int], Line, list[int]]](), HEADER
    while at < end:
        line = lines[int(buffer[at])]
        stop = at + 3 + line.words
        if stop > len(buffer):
            break
        found.append(((int(buffer[at + 1]), int(buffer[at + 2]), at), line, [int(w) for w in buffer[at + 3 : stop]]))
        at = stop
    return [(line, words) for _, line, words in sorted(found, key=lambda row: row[0])]
