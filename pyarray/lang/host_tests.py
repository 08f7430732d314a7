"""The test of a checked kernel's indices, for the host: where it holds no access of a launch can fail, so nobody waits
for its failure record. It is that of `hoisted_checks`, whose C text of sizes becomes Python's."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..dtypes import int64
from . import ir
from .emit_statements import cname

HostTest = Callable[[Any], bool]  # of the argument slots, as integers of 64 bits

_TOKEN = re.compile(r"INT64_C\((-?\d+)\)|(env->\w+(?:\.\w+)?)|(, &inside)|(&&)|([A-Za-z_]\w*)|(/)")
_SLOT = re.compile(r"\bv(\d+)\b")
_LINE = re.compile(r"const int64_t (\w+) = (.*);")
_INSIDE = "inside = inside && "


class _Untranslated(Exception):
    """A text that has no translation."""


class LoopTest(NamedTuple):
    """The C statements that test a loop's indices, or none, and the slots whose product bounds its iterations, where
    there are such."""

    loop: ir.For
    statements: list[str]
    sizes: tuple[int, ...] | None


def host_test(kernel: ir.Function, tests: Sequence[LoopTest], first_slots: Mapping[str, int]) -> HostTest | None:
    """The test of all loops. `first_slots` are those of parameters in debug mode. None if slots alone can't tell."""
    names = dict[str, str]()  # of the environment, as Python's
    for name, kind in kernel.params:
        slot = first_slots[name]
        if isinstance(kind, ir.ArrayType):
            names |= {f"env->{cname(name)}.n{axis}": f"v{slot + 2 + axis}" for axis in range(kind.ndim)}
        elif kind.dtype is int64:
            names[f"env->{cname(name)}"] = f"v{slot}"
    lines = list[str]()
    try:
        for s in kernel.body:
            if not isinstance(s, ir.For):
                lines.append(f"    {_assigned(s, names)}")
        for test in tests:
            lines += _loop_lines(test, names) if test.statements else ()
    except _Untranslated:
        return None
    used = sorted({int(slot) for line in lines for slot in _SLOT.findall(line)})
    head, scope = f"def inside({', '.join(f'v{k}' for k in used)}):", dict[str, Any](_FUNCTIONS)
    exec("\n".join([head, *lines, "    return True"]), scope)
    return _of_slots(scope["inside"], used)


def _of_slots(test: Callable[..., bool], used: Sequence[int]) -> HostTest:
    """A test of these slots as one of all of them."""

    # By all that the test reads, which are integers.
    @functools.lru_cache(maxsize=64)
    def fits(*values: int) -> bool:
        try:
            return test(*values)
        except ArithmeticError:  # of what the device computes with 64 bits
            return False

    return lambda values: fits(*[values[slot] for slot in used])


def _loop_lines(test: LoopTest, names: Mapping[str, str]) -> Iterator[str]:
    if test.sizes is None:
        raise _Untranslated
    fields = {f"env->size{test.loop.loop}_{axis}": f"v{slot}" for axis, slot in enumerate(test.sizes)}
    yield f"    begin, end = 0, {' * '.join(f'v{k}' for k in test.sizes) or '1'}"
    yield "    if end > 0:"
    for statement in test.statements[1:]:
        yield from (f"        {line}" for line in _translated(statement, {**names, **fields}))


def _assigned(s: Any, names: dict[str, str]) -> str:
    """The assignment of an integer of the environment, which is the only one."""
    name = f"env->{cname(s.name)}" if isinstance(s, ir.Assign) else ""
    if not name or name in names or getattr(s.value.type, "dtype", None) is not int64:
        raise _Untranslated
    text = _expression(s.value, names)
    names[name] = f"o{len(names)}"
    return f"{names[name]} = {text}"


def _expression(e: Any, names: Mapping[str, str]) -> str:
    if getattr(e.type, "dtype", None) is not int64:
        raise _Untranslated
    if isinstance(e, ir.Const):
        return str(e.value)
    if isinstance(e, ir.Local) and f"env->{cname(e.name)}" in names:
        return names[f"env->{cname(e.name)}"]
    if isinstance(e, ir.Size) and isinstance(e.array, ir.Local) and f"env->{cname(e.array.name)}.n{e.axis}" in names:
        return names[f"env->{cname(e.array.name)}.n{e.axis}"]
    if isinstance(e, ir.Binary) and e.op in _VALUES:
        return f"{_VALUES[e.op]}({_expression(e.a, names)}, {_expression(e.b, names)})"
    raise _Untranslated


def _translated(statement: str, names: Mapping[str, str]) -> list[str]:
    def token(match: re.Match[str]) -> str:
        number, field, inside, conjunction, name, division = match.groups()
        if number is not None:
            return str(number)
        if field is not None:
            if field not in names:
                raise _Untranslated
            return names[field]
        if inside is not None:
            return ""
        if conjunction is not None:
            return "and"
        if division is not None:
            return "//"
        if name not in _FUNCTIONS and not re.fullmatch(r"q\d+|begin|end", name):
            raise _Untranslated
        return str(name)

    if statement.startswith(_INSIDE):
        condition = statement.removeprefix(_INSIDE).removesuffix(";")
        return [f"if not ({_TOKEN.sub(token, condition)}):", "    return False"]
    match = _LINE.fullmatch(statement)
    if match is None:
        raise _Untranslated
    return [f"{match[1]} = {_TOKEN.sub(token, match[2])}"]


def _int64(x: int) -> int:
    if not -(1 << 63) <= x < 1 << 63:
        raise OverflowError
    return x


def _remainder(a: int, b: int) -> int:
    return a % b if b > 0 else _int64(1 << 63)


_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "pa_bound_add": lambda a, b: _int64(a + b),
    "pa_bound_sub": lambda a, b: _int64(a - b),
    "pa_bound_mul": lambda a, b: _int64(a * b),
    "pa_bound_floordiv": lambda a, b: a // b if b > 0 else _int64(1 << 63),
    "pa_bound_mod": lambda _, b: b - 1 if b > 0 else _int64(1 << 63),
    "pa_bound_min": min,
    "pa_bound_max": max,
    "remainder": _remainder,
}
# of a value, not of an interval's end: the bound of a remainder is that of any number
_VALUES = {op: f"pa_bound_{op}" for op in ("add", "sub", "mul", "floordiv")} | {"mod": "remainder"}
