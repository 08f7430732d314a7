"""GPU text of an elementwise loop in which a thread takes several iterations at once.

It stores them together, so that many loads are in flight before the first store. Aligned arrays are read and
written in vectors of 16 bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from . import ir
from .emit_loop import declarations, frames
from .emit_statements import Emitter, begin_iteration, cname
from .summaries import assigned_in, called_in, has_any


def elementwise_store(code: Emitter, loop: ir.For, even: set[str]) -> ir.Store | None:
    """The store of a loop whose iterations each fill one element of a parameter, of their own indices, as their
    last statement, and read no other element of it; else None. In debug mode the store must be known to be in
    range. `even` functions change nothing, and aren't `uneven_functions`."""
    if any(range_.step is not None or not _is_zero(range_.start) for range_ in loop.ranges):
        return None
    if has_any(loop.body, ir.Atomic, ir.Break, ir.Continue, ir.Return, ir.While) or called_in(*loop.body) - even:
        return None
    nodes = list(ir.walk(*loop.body))
    stores, last = [n for n in nodes if isinstance(n, ir.Store)], loop.body[-1] if loop.body else None
    if not isinstance(last, ir.Store) or stores != [last] or last.marks or not _in_bounds(code, last.site):
        return None
    ref, array = _index_variables(last.index), last.array
    if not isinstance(array, ir.Local) or array.name not in dict(code.kernel.params):
        return None
    if ref is None or sorted(ref) != sorted(loop.variables):
        return None
    loads = sum(
        isinstance(n, ir.Load) and _array_name(n.array) == array.name and _index_variables(n.index) == ref
        for n in nodes
    )
    sizes = sum(isinstance(n, ir.Size) and _array_name(n.array) == array.name for n in nodes)
    mentions = sum(_array_name(n) == array.name for n in nodes)
    return last if mentions == 1 + loads + sizes else None


def uneven_functions(functions: Iterable[ir.Function]) -> set[str]:
    """Those with a loop that each call may leave at another time, or that call one; callees come first. A thread has
    one such call at a time: the others of its iterations would wait, and few threads be left."""
    found = set[str]()
    for f in functions:
        loops = (n for n in ir.walk(*f.body) if isinstance(n, ir.For)) if has_any(f.body, ir.For) else ()
        if (
            has_any(f.body, ir.While)
            or called_in(*f.body) & found
            or any(has_any(loop.body, ir.Break, ir.Return) for loop in loops)
        ):
            found.add(f.symbol)
    return found


def _array_name(node: Any) -> str | None:
    return node.name if isinstance(node, ir.Local) else None


def _is_zero(start: Any) -> bool:
    return start is None or (isinstance(start, ir.Const) and start.value == 0)


def _in_bounds(code: Emitter, site: int | None) -> bool:
    return site is None or site in code.hoisted


def _index_variables(index: tuple[Any, ...]) -> tuple[str, ...] | None:
    """The variables that an index consists of; None if it is anything more."""
    return tuple(i.name for i in index) if all(isinstance(i, ir.Local) for i in index) else None


def unconditional_loads(code: Emitter, loop: ir.For) -> dict[tuple[str, tuple[str, ...]], Any]:
    """(parameter, its index) → type, of elements that every iteration reads unconditionally, whose indices are the
    loop's variables."""
    kinds, loads = dict(code.kernel.params), {}
    for n in (n for s in loop.body for n in always_evaluated(s)):
        name = _array_name(n.array) if isinstance(n, ir.Load) else None
        if name in kinds and _in_bounds(code, n.site):
            ref = _index_variables(n.index)
            if ref and len(set(ref)) == len(ref) and set(ref) <= set(loop.variables):
                loads[name, ref] = kinds[name]
    return loads


def stored_element(store: ir.Store) -> tuple[str, tuple[str, ...]]:
    """The parameter that a loop fills, and the variables of its index."""
    ref = _index_variables(store.index)
    assert isinstance(store.array, ir.Local)
    assert ref is not None
    return store.array.name, ref


def per_thread(code: Emitter, store: ir.Store, vector: list[str], most: int | None) -> int:
    """Iterations that a thread takes at once: a vector of 16 bytes of the smallest element, four at least; of the
    largest power of two that is at most `most`, if that is less."""
    kinds: dict[str, Any] = dict(code.kernel.params)
    size = max(16 // min(kinds[n].dtype.itemsize for n in (stored_element(store)[0], *vector)), 4)
    return size if most is None or most >= size else 1 << (most.bit_length() - 1)


def vector_arrays(code: Emitter, loop: ir.For) -> list[str]:
    """Contiguous parameters of which every iteration reads the element of its own number."""
    loads = unconditional_loads(code, loop)
    return [name for (name, ref), kind in loads.items() if len(ref) == 1 and not kind.strided]


def vector_loop(code: Emitter, loop: ir.For, store: ir.Store, size: int) -> None:
    """Prints a loop with one variable, of which a thread takes `size` iterations at once."""
    types, out = {n: str(k.dtype.ctype) for n, k in code.kernel.params if hasattr(k, "ndim")}, code.out
    name, vector = stored_element(store)[0], vector_arrays(code, loop)
    element = types[name]
    out.lines(["const int64_t pa_block = blockDim.x;", "int64_t done = 0;"])
    variable = cname(loop.variables[0])
    general = code.printed(write_body, code, loop, "t + k * pa_block", {})
    lvalue = code.lvalue(store)
    if not store.array.type.strided:
        _vector_part(code, loop, name, vector, size, types)
    step = f"t += pa_threads() * {size}"
    with out.block(f"for (int64_t t = done + pa_chunk({size}); t < count; {step})"):
        out.line(f"{element} value[{size}];")
        full_vector = f"if (t + {size - 1} * pa_block < count)"
        with out.block(full_vector, "/* no test stands between the loads */"):
            out.line("#pragma unroll")
            with out.block(f"for (int k = 0; k < {size}; ++k)"):
                out.text(general)
            out.line("#pragma unroll")
            at = f"const int64_t {variable} = t + k * pa_block;"
            out.line(f"for (int k = 0; k < {size}; ++k) {{ {at} {lvalue} = value[k]; }}")
        with out.orelse(), out.block("for (int k = 0; t + k * pa_block < count; ++k)"):
            out.text(general)
            out.line(f"{lvalue} = value[k];")


def _vector_part(code: Emitter, loop: ir.For, name: str, vector: list[str], size: int, types: dict[str, str]) -> None:
    """Prints the vectorized loop for aligned operands, which ends at `done`."""
    registers = {(n, (loop.variables[0],)): f"wide_{cname(n)}.v[k]" for n in vector}
    operands, out = list(dict.fromkeys((name, *vector))), code.out
    aligned = [f"pa_aligned({cname(n)}.data, sizeof({types[n]}) * {size})" for n in operands]
    kinds = {n: f"pa_vector<{types[n]}, {size}>" for n in operands}
    with out.block(f"if ({' && '.join(aligned)})"):
        out.line(f"done = count / {size} * {size};")
        step = f"t += pa_threads() * {size}"
        with out.block(f"for (int64_t t = pa_thread() * {size}; t < done; {step})"):
            for n in vector:
                load = f"*(const {kinds[n]} *)({cname(n)}.data + t)"
                out.line(f"const {kinds[n]} wide_{cname(n)} = {load};")
            out.line(f"{kinds[name]} result;")
            out.line(f"{types[name]} *value = result.v;")
            out.line("#pragma unroll")
            with out.block(f"for (int k = 0; k < {size}; ++k)"):
                write_body(code, loop, "t + k", registers)
            out.line(f"*({kinds[name]} *)({cname(name)}.data + t) = result;")


def write_body(code: Emitter, loop: ir.For, variable: str | None, registers: dict[Any, str]) -> None:
    """Prints an iteration whose result goes to `value[k]`; `variable` is the loop's, if it has a single one."""
    last, out, inner = loop.body[-1], code.out, assigned_in(*loop.body)
    assert isinstance(last, ir.Store)
    if variable is not None:
        if code.debug:
            out.line(begin_iteration(variable))
        out.line(f"const int64_t {cname(loop.variables[0])} = {variable};")
    if code.digit_lines:
        out.line(code.digit_lines)
    out.lines(frames(code, loop.body, "0"))
    out.lines(declarations((n, k) for n, k in code.kernel.variables if n in inner))
    before, code.registers = code.registers, registers
    code.write(loop.body[:-1])
    out.line(f"value[k] = {code.expr(last.value)};")
    code.registers = before


def always_evaluated(node: Any) -> Iterator[Any]:
    """`node` and what is evaluated whenever it is."""
    yield node
    if isinstance(node, (ir.Select, ir.If, ir.While)):
        below: Any = [node.condition]
    elif isinstance(node, ir.Logic):
        below = [node.a]
    else:
        below = node.ranges if isinstance(node, ir.For) else ir.children(node)
    for child in below:
        yield from always_evaluated(child)
