"""Dispatchers and launchers: generated code that finds a variant, packs the arguments and calls the driver.

Per kernel a *dispatcher* looks up the variant by the types of its arguments; per variant a *launcher* packs
pointers, sizes, strides and scalars, read from the arguments of this very call. Nothing that depends on a
value is kept between calls.
"""

from __future__ import annotations

import math
import os
import struct
import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..annotations import ArrayAnnotation
from ..array import WATCHED
from ..driver.base import Device, Operand
from ..lang import loop_extents
from ..lang.ir import ArrayType
from ..lang.loop_extents import LoopExtents
from ..lang.parse import Capture
from ..lang.pipeline import Program
from ..lang.print_lowering import BUFFER
from ..lang.write_mask import LOW, MASK
from .argument_errors import MISSING, compile_function, signature, unused_prefix
from .prints import PrintBuffer
from .pytree import Pytree, Struct, constant_class
from .signature import Constant, Parameter, Unread, sizes_key
from .variants import Variant
from .write_masks import Mask

_INTEGER = {1: "b7x", 2: "h6x", 4: "i4x", 8: "q"}  # the format itself refuses what is out of range


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


def operands(params: Sequence[tuple[str, Any]], directions: Mapping[str, str], debug: bool) -> tuple[Operand, ...]:
    """The slots of the arrays that a launch uses."""
    found, slot = list[Operand](), 0
    for name, kind in params:
        if isinstance(kind, ArrayType) and directions.get(name) != "UNUSED":
            first, writes = slot + 1 + debug, directions.get(name) != "IN"
            found.append(Operand(slot, first, kind.ndim, kind.strided, kind.dtype.itemsize, writes))
        slot += struct.calcsize("@" + slot_format(kind, debug)) // 8
    return tuple(found)


def slot_values(name: str, kind: Any, debug: bool, p: str) -> str:
    """Python expressions of one parameter's slots, in the order of `slot_format`; `p` begins our own
    names."""
    if isinstance(kind, ArrayType):
        values = [f"{name}._ptr"]
        if debug:
            values.append(f"{p}offset({name})")
        if kind.ndim == 1:
            values.append(f"{name}._size")
        elif kind.ndim:
            values.append(f"*{name}._shape")
        if kind.strided:
            values.append(f"*{name}._strides")
        return ", ".join(values)
    letter = kind.dtype.kind
    if letter == "c":
        return f"{p}complex({name}).real, {p}complex({name}).imag"
    if letter == "b":
        return f"{name} if {name}.__class__ is {p}bool else {p}flag({name})"
    return name


def _flag(value: Any) -> bool:
    """Anything has a truth value, and `struct` takes that: only bools are meant."""
    if not isinstance(value, np.bool_):
        raise TypeError(f"expected a bool, got {type(value).__name__}")
    return bool(value)


def _complex(value: Any) -> complex:
    if isinstance(value, (str, bytes)):
        raise TypeError("expected a number, got text")
    return complex(value)


def offset_of(array: Any) -> int:
    """Elements between the base's first element and the array's, for reports."""
    base = array._base
    return 0 if base is None else int((array._ptr - base._ptr) // array._dtype.itemsize)


def written_by(program: Program) -> list[str]:
    """The arrays that a program writes."""
    return [name for name, how in program.directions.items() if how in ("OUT", "INOUT")]


def make_launcher(
    params: tuple[tuple[str, Any], ...],
    names: tuple[str, ...],
    run: Callable[[bytes], Any],
    debug: bool,
    kernel: str = "kernel",
    watched: Sequence[str] = (),
    maybe_watched: Sequence[str] = (),
    extents: Sequence[LoopExtents] = (),
    prints: Callable[[], Any] | None = None,
) -> Callable[..., Any]:
    """Function of all the kernel's arguments that packs the live ones and runs; a checked run's failure
    record is its value. Masks of what was declared Out (`lang.write_mask`) are made, and checked behind. Of
    `watched` arguments the owners' `before_write` is called; of `maybe_watched` ones, where
    they have such an owner. Loops of `extents` with more than 2**63 - 1 iterations are a `ValueError`.
    `prints` makes the buffer of what the launch prints."""
    p = unused_prefix(names)  # the path of a field is no name
    variables = {name: name if name.isidentifier() else f"{p}{k}" for k, name in enumerate(names)}
    parameters = ", ".join(variables.values())
    outs = [name.removesuffix(MASK) for name, _ in params if name.endswith(MASK) and name not in variables]
    masks = {name: f"{p}mask{k}" for k, name in enumerate(outs)}
    for name, mask in masks.items():
        variables |= {name + LOW: f"{mask}.low", name + MASK: f"{mask}.mask"}
    if prints is not None:
        variables[BUFFER] = f"{p}lines.array"
    pack = struct.Struct("@" + "".join(slot_format(kind, debug) for _, kind in params)).pack
    values = ", ".join(slot_values(variables[name], kind, debug, p) for name, kind in params)
    scope: dict[str, Any] = {"run": run, "pack": pack, "offset": offset_of, "flag": _flag}
    scope |= {"complex": _complex, "bool": bool}
    text = f"def {p}f({parameters}):\n"
    text += f"    {p}lines = {p}prints()\n" if prints is not None else ""
    text += "".join(f"    {mask} = {p}Mask({variables[name]})\n" for name, mask in masks.items())
    text += "".join(f"    {variables[name]}._buffer.before_write()\n" for name in watched)
    live = {name for name, _ in params}
    for name in (n for n in names if n not in live):  # nothing else looks at it
        scope["missing"] = MISSING
        text += f"    if {variables[name]} is {p}missing: raise TypeError({name!r})\n"
    for v in map(variables.get, maybe_watched):
        text += f"    if {v}._key & {WATCHED}: {v}._buffer.before_write()\n"
    call = f"{p}run({p}pack({values}))"
    if extents:
        scope.update(int=int, refuse_extents=partial(_refuse_extents, kernel, extents))
        text += f"    {p}slots = {p}pack({values})\n"  # which refuses numbers that are no integers
        for number, found in enumerate(extents):
            condition, sizes = loop_extents.overflow_test(found, variables)
            text += f"    if {condition}: {p}refuse_extents({number}, {sizes})\n"
        call = f"{p}run({p}slots)"
    if masks:
        scope.update(Mask=Mask, kernel=kernel)
        checks = " or ".join(f"{mask}.check({p}kernel, {name!r})" for name, mask in masks.items())
        call = f"{call} or {checks}"
    if prints is None:
        text += f"    return {call}\n"
    else:
        scope.update(prints=prints, kernel=kernel)
        text += f"    {p}result = {call}\n"
        text += f"    {p}lines.show({p}kernel)\n    return {p}result\n"
    return compile_function(text, p, scope, "launch")


def launcher_of(
    program: Program, function: int, device: Device, names: tuple[str, ...], checked: bool, **further: Any
) -> Callable[..., Any]:
    """`make_launcher` for the driver's handle of a program's kernel."""
    checked = checked or program.checked
    if program.lines:
        further["prints"] = partial(PrintBuffer, device, program.lines)
    start = device.driver.checked_launcher if checked else device.driver.launcher
    run = start(function, operands(program.params, program.directions, checked))
    return make_launcher(program.params, names, run, checked, **further)


def _refuse_extents(kernel: str, extents: Sequence[LoopExtents], number: int, sizes: tuple[int, ...]) -> NoReturn:
    """Refuses loop `number` of `extents`, of these sizes."""
    loc, product = extents[number].loc, " * ".join(map(str, sizes))
    where = f"{os.path.basename(loc.path)}:{loc.line}"
    raise ValueError(
        f"kernel {kernel!r}: the parallel loop at {where} would have {product} = {math.prod(sizes)} "
        "iterations, and 2**63 - 1 is the most; nothing was run: check the sizes that are passed"
    )


def native_launch(variant: Variant) -> tuple[int, int, Any, Any]:
    """How a Map launches a variant, which checks no bounds: the address of its code and of the pool that runs it on the
    CPU, or 0, 0 and a function of the packed arguments; and what keeps the code loaded."""
    program, driver = variant.program, variant.device.driver
    arrays = operands(program.params, program.directions, False)
    entry, pool = driver.native_entry(variant.artifact.function)
    return entry, pool, None if entry else driver.launcher(variant.artifact.function, arrays), variant


def make_bound_launch(
    variant: Variant, layouts: Sequence[tuple[tuple[int, ...], tuple[int, ...]] | None]
) -> Callable[..., Any]:
    """A launcher of `variant`, which checks no bounds, for arrays whose shapes and strides are known: it
    takes addresses in their place."""
    assert not variant.checked, "checked code has other slots"
    params = variant.program.params
    arrays = operands(params, variant.program.directions, False)
    run = variant.device.driver.launcher(variant.artifact.function, arrays)
    p = unused_prefix(names := tuple(f"a{k}" for k in range(len(params))))
    pack = struct.Struct("@" + "".join(slot_format(kind, False) for _, kind in params)).pack
    values = []
    for name, (_, kind), layout in zip(names, params, layouts, strict=True):
        if layout is None:
            values.append(slot_values(name, kind, False, p))
            continue
        shape, strides = layout
        values += [name, *map(str, shape), *(map(str, strides) if kind.strided else ())]
    scope = {"run": run, "pack": pack, "flag": _flag, "complex": _complex, "bool": bool}
    text = f"def {p}f({', '.join(names)}):\n    return {p}run({p}pack({', '.join(values)}))\n"
    return compile_function(text, p, scope, "walk")


def make_dispatcher(
    name: str,
    params: tuple[Parameter, ...],
    pytree: Pytree,
    debug: bool | None,
    captures: tuple[Capture, ...],
    scope: dict[str, Any],
    otherwise: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """The kernel's call for arguments of one pytree: `scope` provides variants, launch_state, observed, tick, miss,
    refused, wrong, report, type_key, static_key. What it doesn't find goes to `otherwise`, the dispatcher of
    another pytree, and in the end to `miss`.

    Each field of a structure is read once, so that what is looked up is what is launched. Arguments of
    annotated scalars aren't part of the key: they are only values. Captured values are compared by identity,
    which is quick; that something equal came is for `miss` to see.
    """
    names = tuple(p.name for p in params)
    p = unused_prefix(names)
    scope = scope | {"struct_error": struct.error, "pytree": pytree, "otherwise": otherwise}
    checked = f"{p}launch_state.key"  # under which nothing is found while launches are observed
    if debug is not None:
        checked = f"({debug} if {checked} is not {p}observed else {checked})"
    args = "(" + "".join(f"{n}, " for n in names) + ")"
    if otherwise is None:
        slow = f"{p}miss({args})"
    else:
        arguments = (f"{q.name}={q.name}" if q.keyword_only else q.name for q in params)
        slow = f"{p}otherwise({', '.join(arguments)})"
    reader = _LeafReader(pytree, p, scope)
    tests = list(reader.tests)
    if captures:
        guards = [capture_guard(capture, k, p, scope) for k, capture in enumerate(captures)]
        tests.insert(0, f"not ({' or '.join(guards)})")
    lines = [*reader.loads, f"{p}launch = {p}variants[{key_expression(pytree, reader.names, checked, p)}]"]
    if tests:
        lines = [f"if {' and '.join(tests)}:", *(f"    {line}" for line in lines)]
    text = (
        f"def {p}f({signature(params, p, scope, f'{p}extra', missing=True)}, **{p}unknown):\n"
        f"    if {p}extra or {p}unknown:\n"
        f"        {p}wrong({args}, {p}extra, {p}unknown)\n"
        f"    {p}launch = None\n"
        "    try:\n"
        + "".join(f"        {line}\n" for line in lines)
        + "    except (LookupError, AttributeError, TypeError, ValueError):\n"
        "        pass\n"  # and not the call of miss: its errors would drag this one along
        f"    if {p}launch is None:\n"
        f"        return {slow}\n"
        f"    {p}tick()\n"
        "    try:\n"
        f"        {p}failure = {p}launch({', '.join(reader.names)})\n"
        f"    except ({p}struct_error, TypeError, OverflowError):\n"
        f"        return {p}refused({args})\n"
        f"    if {p}failure:\n"
        f"        {p}report({p}failure, {p}launch)\n"
    )
    return compile_function(text, p, scope, name)


class _LeafReader:
    """How a dispatcher reads arguments of a pytree: `tests` that they have it, `loads` of leaves into variables
    of their own, `names` of all leaves' variables. Each field is read once."""

    def __init__(self, pytree: Pytree, p: str, scope: dict[str, Any]):
        self.tests: list[str] = []
        self.loads: list[str] = []
        self.names: list[str] = []
        self._p, self._scope, self._count = p, scope, 0
        for item in pytree.items:
            if isinstance(item, Struct):
                self._struct(item, item.name)
                continue
            if (kind := constant_class(item)) is not None:
                self._new_variable()
                self.tests.append(self._class_test(item.name, kind))
            self.names.append(item.name)

    def _new_variable(self) -> str:
        self._count += 1
        return f"{self._p}{self._count}"

    def _class_test(self, expression: str, kind: type) -> str:
        self._scope[f"kind{self._count}"] = kind
        return f"{expression}.__class__ is {self._p}kind{self._count}"

    def _struct(self, item: Struct, expression: str) -> None:
        variable = self._new_variable()
        self.tests.append(self._class_test(f"({variable} := {expression})", item.kind))
        if item.kind is tuple:
            self.tests.append(f"len({variable}) == {len(item.items)}")
        for k, part in enumerate(item.items):
            inner = f"{variable}[{k}]" if item.kind is tuple else f"{variable}.{item.names[k]}"
            if isinstance(part, Struct):
                self._struct(part, inner)
                continue
            self.names.append(name := self._new_variable())
            if isinstance(part.annotation, (Constant, Unread)):
                self.tests.append(self._class_test(f"({name} := {inner})", part.annotation.kind))
            else:
                self.loads.append(f"{name} = {inner}")


def make_key(pytree: Pytree, scope: dict[str, Any]) -> Callable[..., Any]:
    """Function of `checked` and the leaves that gives their key, as the dispatcher looks it up."""
    p = unused_prefix(names := tuple(f"a{k}" for k in range(len(pytree.leaves))))
    text = f"def {p}f({p}checked, {', '.join(names)}):\n"
    text += f"    return {key_expression(pytree, names, f'{p}checked', p)}\n"
    return compile_function(text, p, scope | {"pytree": pytree}, "key")


def key_expression(pytree: Pytree, names: Sequence[str], checked: str, p: str) -> str:
    """Of the leaves in the variables `names`. A pytree stands for the classes of the structures."""
    keys = [checked] if pytree.plain else [checked, f"{p}pytree"]
    for leaf, name in zip(pytree.leaves, names, strict=True):
        annotation = leaf.annotation
        if isinstance(annotation, ArrayAnnotation):
            keys.append(f"{name}._key")
            if annotation.sizes is not None:
                keys.append(sizes_key(annotation, name))
        elif leaf.constant:
            keys.append(f"{p}static_key({name})")
        elif annotation is None or leaf.structure:  # a structure is never a leaf, so none is found
            keys.append(f"{p}type_key({name})")
    return "".join(f"{key}, " for key in keys)


def capture_guard(capture: Capture, number: int, p: str, scope: dict[str, Any]) -> str:
    """A condition: the captured value is no longer the one compiled in."""
    scope[f"owner{number}"], scope[f"value{number}"] = capture.owner, capture.value
    if isinstance(capture.owner, (dict, list)):
        now = f"[{capture.name!r}]"
    else:
        now = ".cell_contents" if isinstance(capture.owner, types.CellType) else f".{capture.name}"
    return f"{p}owner{number}{now} is not {p}value{number}"
