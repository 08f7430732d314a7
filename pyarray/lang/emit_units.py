"""Functions of a text that several compilers may share: each compiles some of them, a unit.

A shared function stands between `#if PA_IN_UNIT(number, weight)` and `#endif`, with its declaration for the units that
leave it to another one. The weight says how long it takes to compile beside the others; `driver/text_units.py` decides
by it. By default the text is one unit, and the functions of C are static."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from .emit_statements import Emitter
from .printer import Printer

MAX_NUMBER = 62  # the numbers are bits of a preprocessor's integer
COLD = 0.5  # what a cold function takes to compile, of another one
ENTRY = 0.3  # and what one without loops does
_KERNEL = re.compile(r'^(?=extern "C" __global__ )', re.MULTILINE)


@contextmanager
def shared_function(code: Emitter, qualifiers: str, head: str, weight: float) -> Iterator[Printer]:
    """Prints a function; its statements are printed inside of `with`."""
    out = code.out
    if not code.shares_functions:
        with out.function(f"{qualifiers}static {head}"):
            yield out
        return
    number = min(code.shared, MAX_NUMBER)
    code.shared += 1
    out.line(f"#if PA_IN_UNIT({number}, {weight:.0f})")
    with out.function(f"{qualifiers}PA_SHARED {head}"):
        yield out
    out.lines(["#else", f"{qualifiers}PA_SHARED {head};", "#endif"])


def shared_entry(code: Emitter, text: str) -> str:
    """The text of the kernel's entry, as a function of one of the units."""
    if not code.shares_functions:
        return text
    return f"#if PA_IN_UNIT({min(code.shared, MAX_NUMBER)}, {ENTRY * len(text):.0f})\n{text}#endif\n"


def kernels_in_units(text: str) -> str:
    """The kernels of a GPU's text, each in one of the units. They share nothing but what stands before them."""
    head, *kernels = _KERNEL.split(text)
    if len(kernels) < 2:
        return text
    shared = (
        f"#if PA_IN_UNIT({min(number, MAX_NUMBER)}, {len(kernel)})\n{kernel.rstrip()}\n#endif\n\n"
        for number, kernel in enumerate(kernels)
    )
    return head + "".join(shared)
