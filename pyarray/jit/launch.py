"""Launchers: they pack the live arguments of a variant into slots and launch, in C (csrc/core/launcher.c).

Nothing that depends on a value is kept between calls: pointers, sizes, strides and numbers are read from the arguments
of this very call.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from .._core import Launcher
from ..array import empty
from ..driver.base import Device, NativeLaunch, Operand
from ..lang import loop_extents
from ..lang.ir import ArrayType
from ..lang.loop_extents import LoopExtents
from ..lang.pipeline import Program
from ..lang.print_lowering import BUFFER, Line
from ..lang.reduction_lowering import CHUNKS, PARTIAL
from ..lang.write_mask import LOW, MASK
from .prints import PrintBuffer
from .variants import Variant
from .write_masks import Mask

_INTEGER = {1: "b7x", 2: "h6x", 4: "i4x", 8: "q"}  # the format itself refuses what is out of range
_ARRAY = -1  # in the place of a number's dtype code


def slot_format(kind: Any, debug: bool) -> str:
    """`struct` format of one parameter's slots."""
    if isinstance(kind, ArrayType):
        return "Q" + "q" * (debug + kind.ndim * (2 if kind.strided else 1))
    letter = kind.dtype.kind
    if letter == "c":
        return "dd"
    if letter == "f":
        return "d"
    if letter == "b":
        return "?7x"
    text = _INTEGER[kind.dtype.itemsize]
    return text.upper().replace("X", "x") if letter == "u" else text


def slot_count(kind: Any, debug: bool) -> int:
    """How many slots a parameter has."""
    if isinstance(kind, ArrayType):
        return 1 + debug + kind.ndim * (2 if kind.strided else 1)
    return 2 if kind.dtype.kind == "c" else 1


def operands(params: Sequence[tuple[str, Any]], directions: Mapping[str, str], debug: bool) -> tuple[Operand, ...]:
    """The slots of the arrays that a launch uses."""
    found, slot = list[Operand](), 0
    for name, kind in params:
        if isinstance(kind, ArrayType) and directions.get(name) != "UNUSED":
            first, writes = slot + 1 + debug, directions.get(name) != "IN"
            found.append(Operand(slot, first, kind.ndim, kind.strided, kind.dtype.itemsize, writes))
        slot += slot_count(kind, debug)
    return tuple(found)


def offset_of(array: Any) -> int:
    """Elements between the base's first element and the array's, for reports."""
    base = array._base
    return 0 if base is None else int((array._ptr - base._ptr) // array._dtype.itemsize)


def is_hidden(parameter: str) -> bool:
    """Whether a parameter is one that launchers add."""
    return parameter.endswith((LOW, MASK)) or parameter.startswith(PARTIAL) or parameter == BUFFER


def written_by(program: Program) -> list[str]:
    """The arrays that a program writes."""
    return [name for name, how in program.directions.items() if how in ("OUT", "INOUT")]


def make_launcher(
    params: tuple[tuple[str, Any], ...],
    names: tuple[str, ...],
    launch: NativeLaunch,
    debug: bool,
    kernel: str = "kernel",
    written: Sequence[str] = (),
    extents: Sequence[LoopExtents] = (),
    device: Device | None = None,
    lines: tuple[Line, ...] = (),
) -> Launcher | ExtendingLauncher:
    """Function of all the kernel's arguments that packs the live ones and launches; a checked launch's failure
    record is its value. Masks of what was declared Out (`lang.write_mask`) are made, and checked behind. Of
    `written` arguments the owners' `before_write` is called, where they have such an owner. Loops of `extents` with
    more than 2**63 - 1 iterations are a `ValueError`. On `device` there are arrays of partial
    results made, and the buffer of what the launch prints: numbers for `lines`."""
    outs = [name.removesuffix(MASK) for name, _ in params if name.endswith(MASK) and name not in names]
    partials = {name: kind.dtype for name, kind in params if name.startswith(PARTIAL)}
    prints = any(name == BUFFER for name, _ in params)
    every = [*names, *(name + end for name in outs for end in (LOW, MASK)), *partials, *[BUFFER] * prints]
    numbers = {name: k for k, name in enumerate(every)}
    fields, slots, slot = list[tuple[Any, ...]](), dict[str, tuple[int, int]](), 0
    for name, kind in params:
        if isinstance(kind, ArrayType):
            sizes = [tuple(-1 if n is None else n for n in kind.sizes)] if kind.sizes else []
            fields.append((numbers[name], _ARRAY, kind.ndim, kind.strided, name in written, *sizes))
            slots[name] = slot + 1 + debug, _ARRAY
        else:
            fields.append((numbers[name], kind.dtype.code, 0, False, False))
            slots[name] = slot, kind.dtype.code
        slot += slot_count(kind, debug)

    def check_extents(*arguments: Any) -> None:
        named = dict(zip(every, arguments, strict=True))
        for found in extents:
            sizes = loop_extents.sizes_of(found, named)
            if loop_extents.are_too_many(sizes):
                _refuse_extents(kernel, found, sizes)

    program = loop_extents.encoded(extents, slots)
    launcher = Launcher(launch, len(every), tuple(fields), debug, program, check_extents if extents else None)
    if len(every) == len(names):
        return launcher
    makers = [partial(empty, CHUNKS + 1, dtype, device) for dtype in partials.values()]
    lines_of_launch = partial(PrintBuffer, device, lines) if prints else None
    return ExtendingLauncher(kernel, launcher, {name: numbers[name] for name in outs}, makers, lines_of_launch)


class ExtendingLauncher:
    """A launcher that makes further arguments for each launch: the masks of `outs`, names with the numbers of their
    arguments, which it checks behind, arrays of partial results, and the buffer of what is printed, which it shows."""

    def __init__(
        self,
        kernel: str,
        launcher: Launcher,
        outs: Mapping[str, int],
        partials: Sequence[Callable[[], Any]],
        prints: Callable[[], PrintBuffer] | None,
    ):
        self.sites: Any = ()
        self._kernel, self._launcher, self._outs = kernel, launcher, outs
        self._partials, self._prints = partials, prints

    def __call__(self, *arguments: Any) -> Any:
        masks = {name: Mask(arguments[k]) for name, k in self._outs.items()}
        further = [part for mask in masks.values() for part in (mask.low, mask.mask)]
        further += [make() for make in self._partials]
        lines = self._prints() if self._prints else None
        if lines is not None:
            further.append(lines.array)
        failure = self._launcher(*arguments, *further)
        if lines is not None:
            lines.show(self._kernel)
        if failure is None:
            for name, mask in masks.items():
                mask.check(self._kernel, name)
        return failure


def launcher_of(
    program: Program, function: int, device: Device, names: tuple[str, ...], checked: bool, **further: Any
) -> Any:
    """`make_launcher` for the driver's handle of a program's kernel."""
    checked = checked or program.checked
    launch = start_of(device, function, checked, operands(program.params, program.directions, checked), program.inside)
    further |= {"written": written_by(program), "device": device, "lines": program.lines}
    return make_launcher(program.params, names, launch, checked, **further)


def start_of(
    device: Device, function: int, checked: bool, arrays: Sequence[Operand] = (), inside: Any = None
) -> NativeLaunch:
    """How C starts the driver's `function` on packed arguments, with a failure record where it is checked, for which
    nobody waits if `inside` says so."""
    if checked:
        return 0, 0, device.driver.checked_launcher(function, arrays, inside), function
    return device.driver.native_launch(function, arrays)


def packer(params: tuple[tuple[str, Any], ...], debug: bool = False) -> Callable[..., bytes]:
    """Function of the arguments of these parameters that gives their slots."""
    return make_launcher(params, tuple(name for name, _ in params), (0, 0, bytes, None), debug)


def _refuse_extents(kernel: str, found: LoopExtents, sizes: tuple[int, ...]) -> NoReturn:
    """Refuses a loop of these sizes."""
    loc, product = found.loc, " * ".join(map(str, sizes))
    where = f"{os.path.basename(loc.path)}:{loc.line}"
    raise ValueError(
        f"kernel {kernel!r}: the parallel loop at {where} would have {product} = {math.prod(sizes)} "
        "iterations, and 2**63 - 1 is the most; nothing was run: check the sizes that are passed"
    )


def native_launch(variant: Variant) -> NativeLaunch:
    """How C launches a variant, which checks no bounds, on packed arguments; the variant keeps the code loaded."""
    program = variant.program
    arrays = operands(program.params, program.directions, False)
    entry, pool, function, held = variant.device.driver.native_launch(variant.artifact.function, arrays)
    return entry, pool, function, (variant, held)
