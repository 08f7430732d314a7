"""`Printer`: generated text line by line, each line indented by the blocks that it stands in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

PAD = "    "


class Printer:
    """Text of C.

    >>> out = Printer()
    >>> with out.block("while (x)"):
    ...     out.line("--x;")
    >>> print(out, end="")
    while (x) {
        --x;
    }
    """

    def __init__(self, depth: int = 0) -> None:
        self._parts: list[str] = []
        self._pad = PAD * depth

    def line(self, text: str) -> None:
        self._parts.append(f"{self._pad}{text}\n")

    def lines(self, lines: Iterable[str]) -> None:
        pad = self._pad
        self._parts += [f"{pad}{text}\n" for text in lines]

    def text(self, text: str) -> None:
        """Whole lines, which get the indentation of this place besides their own."""
        if self._pad:
            self.lines(text.splitlines())
        else:
            self._parts.append(text)

    def open(self, header: str = "", comment: str = "") -> None:
        """Begins a block; where the number of blocks is known only at run time, `close` ends it."""
        self._parts.append(f"{self._pad}{header and header + ' '}{{{comment and ' ' + comment}\n")
        self._pad += PAD

    def close(self, tail: str = "") -> None:
        self._pad = pad = self._pad[: -len(PAD)]
        self._parts.append(f"{pad}}}{tail}\n")

    def block(self, header: str = "", comment: str = "") -> Printer:
        """`with out.block("if (x)"):` prints what is inside between braces."""
        self.open(header, comment)
        return self

    def orelse(self, condition: str = "") -> Printer:
        """The `else` of the block that has just ended, on the line of its brace."""
        self._parts[-1] = f"{self._pad}}} else {condition and f'if ({condition}) '}{{\n"
        self._pad += PAD
        return self

    def function(self, head: str) -> Printer:
        """A block whose brace has a line of its own."""
        self.line(head)
        return self.block()

    def inside(self) -> Printer:
        """A block whose head and brace are printed already."""
        self._pad += PAD
        return self

    def __enter__(self) -> Printer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __str__(self) -> str:
        return "".join(self._parts)


class PythonPrinter(Printer):
    """Text of Python, whose blocks end with their indentation.

    >>> out = PythonPrinter()
    >>> with out.nest(["for i in range(n)", "for j in range(m)"]):
    ...     out.line("x[i, j] = 0")
    >>> print(out, end="")
    for i in range(n):
        for j in range(m):
            x[i, j] = 0
    """

    def open(self, header: str = "", comment: str = "") -> None:
        self.line(f"{header}:{comment and '  # ' + comment}")
        self._pad += PAD

    def close(self, tail: str = "") -> None:
        self._pad = self._pad[: -len(PAD)]

    @contextmanager
    def nest(self, headers: Sequence[str]) -> Iterator[None]:
        """Blocks in each other."""
        outer = self._pad
        for header in headers:
            self.open(header)
        yield
        self._pad = outer


def struct_text(name: str, fields: Iterable[str]) -> str:
    """A struct of these fields, which isn't empty: C has no empty ones."""
    out = Printer()
    out.open("typedef struct")
    out.lines(list(fields) or ["int64_t unused;"])
    out.close(f" {name};")
    return str(out)


def function_text(head: str, lines: Iterable[str]) -> str:
    """A function of these statements."""
    out = Printer()
    with out.function(head):
        out.lines(lines)
    return str(out)


def conjunction(head: str, tests: Iterable[str], tail: str) -> list[str]:
    """Lines of `head`, the tests' conjunction, one a line, and `tail`."""
    first, *more = tests
    lines = [f"{head}{first}", *(f"{PAD}&& {test}" for test in more)]
    return [*lines[:-1], lines[-1] + tail]
