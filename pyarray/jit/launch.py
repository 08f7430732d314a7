"""The one launch: generated straight-line code that writes live arguments into slots and calls the driver.

Per kernel a *dispatcher* looks up the variant by the types of its arguments; per variant a *launcher* packs pointers, sizes, strides
and scalars, read from the arguments of this very call. Nothing that depends on a value is kept between calls.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ..lang.ir import ArrayType
from .signature import Parameter

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


def slot_values(name: str, kind: Any, debug: bool) -> str:
    """Python expressions of one parameter's slots, in the order of `slot_format`."""
    if isinstance(kind, ArrayType):
        values = [f"{name}._ptr"]
        if debug:
            values.append(f"offset_of({name})")
        if kind.ndim == 1:
            values.append(f"{name}._size")
        elif kind.ndim:
            values.append(f"*{name}._shape")
        if kind.strided:
            values.append(f"*{name}._strides")
        return ", ".join(values)
    if kind.dtype.kind == "c":
        return f"complex({name}).real, complex({name}).imag"
    return name


def offset_of(array: Any) -> int:
    """Elements between the base's first element and the array's, for reports."""
    base = array._base
    return 0 if base is None else int((array._ptr - base._ptr) // array._dtype.itemsize)


def make_launcher(
    params: tuple[tuple[str, Any], ...], names: tuple[str, ...], run: Callable[[bytes], Any], debug: bool
) -> Callable[..., Any]:
    """Function of all the kernel's arguments that packs the live ones and runs; a checked run's failure record is its value."""
    pack = struct.Struct("@" + "".join(slot_format(kind, debug) for _, kind in params)).pack
    values = ", ".join(slot_values(name, kind, debug) for name, kind in params)
    text = f"def launch({', '.join(names)}):\n    return run(pack({values}))\n"
    return _define(text, "launch", {"run": run, "pack": pack, "offset_of": offset_of})


def make_dispatcher(
    name: str, params: tuple[Parameter, ...], debug: bool | None, scope: dict[str, Any]
) -> Callable[..., Any]:
    """The kernel's call: `scope` provides variants, mode, tick, miss, refused, type_key and the defaults.

    Arguments of annotated scalars aren't part of the key: they are only values.
    """
    keys = ["mode.debug" if debug is None else repr(debug)]
    signature = []
    for p in params:
        if p.default is not p.__class__.__dataclass_fields__["default"].default:
            scope[f"default_{p.name}"] = p.default
            signature.append(f"{p.name}=default_{p.name}")
        else:
            signature.append(p.name)
        keys.append(_key_expression(p))
    args = ", ".join(p.name for p in params)
    text = (
        f"def {name}({', '.join(signature)}):\n"
        "    try:\n"
        f"        launch = variants[{', '.join(k for k in keys if k)},]\n"
        "    except (KeyError, AttributeError, TypeError):\n"
        f"        return miss(({args}{',' if args else ''}))\n"
        "    tick()\n"
        "    try:\n"
        f"        failure = launch({args})\n"
        "    except (struct_error, TypeError, OverflowError):\n"
        f"        return refused(({args}{',' if args else ''}))\n"
        "    if failure:\n"
        f"        report(failure, launch, ({args}{',' if args else ''}))\n"
    )
    return _define(text, name, scope | {"struct_error": struct.error})


def _key_expression(p: Parameter) -> str:
    from ..annotations import ArrayAnnotation
    from .signature import constexpr

    if isinstance(p.annotation, ArrayAnnotation):
        return f"{p.name}._key"
    if p.annotation is constexpr:
        return f"(type({p.name}), {p.name})"
    return f"type_key({p.name})" if p.annotation is None else ""


def _define(text: str, name: str, scope: dict[str, Any]) -> Callable[..., Any]:
    exec(compile(text, f"<pyarray {name}>", "exec"), scope)
    made: Callable[..., Any] = scope[name]
    return made
