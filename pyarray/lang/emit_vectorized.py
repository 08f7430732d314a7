"""A grid's loop that fills one array: a thread takes several iterations at once.

It stores them together, so that many loads are on their way before the first store; aligned arrays are read
and written in vectors of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .emit_loop import declarations, frames
from .emit_statements import Code, cname, iteration
from .ir import (
    Atomic,
    Break,
    Const,
    Continue,
    For,
    Function,
    If,
    Invoke,
    Load,
    Local,
    Logic,
    Return,
    Select,
    Size,
    Store,
    While,
    assigned,
    children,
    walk,
)


def filled(code: Code, kernel: Function, loop: For, pure: set[str]) -> Store | None:
    """The store of a loop whose iterations each fill one element of a parameter, at their own place, as the
    last thing they do, and read no other element of it; else None. In debug mode the store must be known to
    be inside."""
    if any(reach.step is not None or not _zero(reach.start) for reach in loop.ranges):
        return None
    nodes = [n for s in loop.body for n in walk(s)]
    stores, last = [n for n in nodes if isinstance(n, Store)], loop.body[-1] if loop.body else None
    if not isinstance(last, Store) or stores != [last] or last.marks or not _sure(code, last.site):
        return None
    if any(isinstance(n, (Atomic, Break, Continue, Return, While)) for n in nodes):
        return None
    if any(isinstance(n, Invoke) and n.function not in pure for n in nodes):
        return None
    place, array = _places(last.index), last.array
    if not isinstance(array, Local) or array.name not in dict(kernel.params):
        return None
    if place is None or sorted(place) != sorted(loop.variables):
        return None
    own = sum(
        isinstance(n, Load) and _named(n.array) == array.name and _places(n.index) == place for n in nodes
    )
    sizes = sum(isinstance(n, Size) and _named(n.array) == array.name for n in nodes)
    seen = sum(_named(n) == array.name for n in nodes)
    return last if seen == 1 + own + sizes else None


def _named(node: Any) -> str | None:
    return node.name if isinstance(node, Local) else None


def _zero(start: Any) -> bool:
    return start is None or (isinstance(start, Const) and start.value == 0)


def _sure(code: Code, site: int | None) -> bool:
    return site is None or site in code.hoisted


def _places(index: tuple[Any, ...]) -> tuple[str, ...] | None:
    """The variables that an index consists of; None if it is anything more."""
    return tuple(i.name for i in index) if all(isinstance(i, Local) for i in index) else None


def own_loads(code: Code, kernel: Function, loop: For) -> dict[tuple[str, tuple[str, ...]], Any]:
    """(parameter, its index) → type, of elements that every iteration reads, come what may, at places made of
    the loop's variables alone."""
    kinds, found = dict(kernel.params), {}
    for n in (n for s in loop.body for n in always(s)):
        if (
            isinstance(n, Load)
            and isinstance(n.array, Local)
            and n.array.name in kinds
            and _sure(code, n.site)
        ):
            place = _places(n.index)
            if place and len(set(place)) == len(place) and set(place) <= set(loop.variables):
                found[n.array.name, place] = kinds[n.array.name]
    return found


def target(store: Store) -> tuple[str, tuple[str, ...]]:
    """The parameter that a loop fills, and the variables of its index."""
    place = _places(store.index)
    assert isinstance(store.array, Local)
    assert place is not None
    return store.array.name, place


def share(kernel: Function, store: Store, wide: list[str]) -> int:
    """Iterations of a thread: a vector of 16 bytes of the smallest element, four at least."""
    kinds: dict[str, Any] = dict(kernel.params)
    return max(16 // min(kinds[n].dtype.itemsize for n in (target(store)[0], *wide)), 4)


def wide_arrays(code: Code, kernel: Function, loop: For) -> list[str]:
    """Contiguous parameters of which every iteration reads the element of its own number."""
    loads = own_loads(code, kernel, loop)
    return [name for (name, place), kind in loads.items() if len(place) == 1 and not kind.strided]


def wide_loop(code: Code, kernel: Function, loop: For, store: Store) -> str:
    """Text of a loop with one variable."""
    types = {n: str(k.dtype.ctype) for n, k in kernel.params if hasattr(k, "ndim")}
    name, wide = target(store)[0], wide_arrays(code, kernel, loop)
    element, size = types[name], share(kernel, store, wide)
    plain, place = body(code, kernel, loop, "t + k * pa_block", {}), code.place(store)
    text = "    const int64_t pa_block = blockDim.x;\n    int64_t done = 0;\n"
    if not store.array.type.strided:
        text += _vectors(code, kernel, loop, name, wide, size, types)
    at = f"const int64_t {cname(loop.variables[0])} = t + k * pa_block;"
    return (
        text
        + f"""\
    for (int64_t t = done + pa_chunk({size}); t < count; t += pa_threads() * {size}) {{
        {element} value[{size}];
        if (t + {size - 1} * pa_block < count) {{ /* no test stands between the loads */
            #pragma unroll
            for (int k = 0; k < {size}; ++k) {{
{plain}            }}
            #pragma unroll
            for (int k = 0; k < {size}; ++k) {{ {at} {place} = value[k]; }}
        }} else {{
            for (int k = 0; t + k * pa_block < count; ++k) {{
{plain}                {place} = value[k];
            }}
        }}
    }}
"""
    )


def _vectors(
    code: Code, kernel: Function, loop: For, name: str, wide: list[str], size: int, types: dict[str, str]
) -> str:
    """The way for aligned operands, up to `done`."""
    held = {(n, (loop.variables[0],)): f"wide_{cname(n)}.v[k]" for n in wide}
    vector, out = body(code, kernel, loop, "t + k", held), cname(name)
    operands = list(dict.fromkeys((name, *wide)))
    aligned = [f"pa_aligned({cname(n)}.data, sizeof({types[n]}) * {size})" for n in operands]
    loads = "".join(
        f"            const pa_vector<{types[n]}, {size}> wide_{cname(n)} ="
        f" *(const pa_vector<{types[n]}, {size}> *)({cname(n)}.data + t);\n"
        for n in wide
    )
    return f"""\
    if ({" && ".join(aligned)}) {{
        done = count / {size} * {size};
        for (int64_t t = pa_thread() * {size}; t < done; t += pa_threads() * {size}) {{
{loads}            pa_vector<{types[name]}, {size}> result;
            {types[name]} *value = result.v;
            #pragma unroll
            for (int k = 0; k < {size}; ++k) {{
{vector}            }}
            *(pa_vector<{types[name]}, {size}> *)({out}.data + t) = result;
        }}
    }}
"""


def body(code: Code, kernel: Function, loop: For, place: str | None, held: dict[Any, str]) -> str:
    """One iteration into `value[k]`; `place` is the variable of a loop that has one."""
    pad, last = "                ", loop.body[-1]
    assert isinstance(last, Store)
    inner = assigned(*loop.body)
    text = ""
    if place is not None:
        text += f"{pad}{iteration(place)}\n" if code.debug else ""
        text += f"{pad}const int64_t {cname(loop.variables[0])} = {place};\n"
    text += f"{pad}{code.taken}\n" if code.taken else ""
    text += frames(code, loop.body, "0").replace("    ", pad)
    text += declarations(((n, k) for n, k in kernel.variables if n in inner), pad)
    before, code.at = code.at, held
    text += "".join(code.statement(s, len(pad) // 4) for s in loop.body[:-1])
    text += f"{pad}value[k] = {code.expr(last.value)};\n"
    code.at = before
    return text


def always(node: Any) -> Iterator[Any]:
    """`node` and what is evaluated whenever it is."""
    yield node
    below: list[Any]
    if isinstance(node, (Select, If, While)):
        below = [node.condition]
    elif isinstance(node, Logic):
        below = [node.a]
    else:
        below = list(node.ranges if isinstance(node, For) else children(node))
    for child in below:
        yield from always(child)
