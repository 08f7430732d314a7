"""A grid's loop that fills one array: a thread takes several iterations at once.

It stores them together, so that many loads are on their way before the first store; aligned arrays are read
and written in vectors of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .emit_code import Code, cname
from .emit_loop import declarations
from .ir import For, Function, If, Load, Local, Logic, Select, Store, While, assigned, children


def wide_loop(code: Code, kernel: Function, loop: For, name: str) -> str:
    """Text of the loop, which fills the parameter `name` (lang/streaming.py says which loops do)."""
    types = {n: str(k.dtype.ctype) for n, k in kernel.params if hasattr(k, "ndim")}
    sizes = {n: k.dtype.itemsize for n, k in kernel.params if hasattr(k, "ndim")}
    out, element, wide = cname(name), types[name], _read(kernel, loop)
    size = max(16 // min(sizes[n] for n in (name, *wide)), 4)
    plain = _body(code, kernel, loop, "t + k * pa_block", {})
    held = {(n, loop.variables[0]): f"wide_{cname(n)}.v[k]" for n in wide}
    vector = _body(code, kernel, loop, "t + k", held)
    aligned = [f"pa_aligned({cname(n)}.data, sizeof({types[n]}) * {size})" for n in (name, *wide)]
    loads = "".join(
        f"            const pa_vector<{types[n]}, {size}> wide_{cname(n)} ="
        f" *(const pa_vector<{types[n]}, {size}> *)({cname(n)}.data + t);\n"
        for n in wide
    )
    return f"""\
    const int64_t pa_block = blockDim.x;
    int64_t done = 0;
    if ({" && ".join(aligned)}) {{
        done = count / {size} * {size};
        for (int64_t t = pa_thread() * {size}; t < done; t += pa_threads() * {size}) {{
{loads}            pa_vector<{element}, {size}> result;
            {element} *value = result.v;
            #pragma unroll
            for (int k = 0; k < {size}; ++k) {{
{vector}            }}
            *(pa_vector<{element}, {size}> *)({out}.data + t) = result;
        }}
    }}
    for (int64_t t = done + pa_chunk() + threadIdx.x; t < count; t += pa_threads() * 4) {{
        {element} value[4];
        if (t + 3 * pa_block < count) {{ /* no test stands between the loads */
            #pragma unroll
            for (int k = 0; k < 4; ++k) {{
{plain}            }}
            #pragma unroll
            for (int k = 0; k < 4; ++k) {out}.data[t + k * pa_block] = value[k];
        }} else {{
            for (int k = 0; t + k * pa_block < count; ++k) {{
{plain}                {out}.data[t + k * pa_block] = value[k];
            }}
        }}
    }}
"""


def _body(code: Code, kernel: Function, loop: For, place: str, held: dict[tuple[str, str], str]) -> str:
    """One iteration into `value[k]`."""
    pad, last = "                ", loop.body[-1]
    assert isinstance(last, Store)
    inner = assigned(*loop.body)
    text = f"{pad}const int64_t {cname(loop.variables[0])} = {place};\n"
    text += declarations(((n, k) for n, k in kernel.variables if n in inner), pad)
    before, code.at = code.at, held
    text += "".join(code.statement(s, len(pad) // 4) for s in loop.body[:-1])
    text += f"{pad}value[k] = {code.expr(last.value)};\n"
    code.at = before
    return text


def _read(kernel: Function, loop: For) -> list[str]:
    """Contiguous 1-D parameters of which every iteration reads the element of its own number, come what
    may."""
    names, found = {n for n, _ in kernel.params}, list[str]()
    for n in (n for s in loop.body for n in _always(s)):
        if isinstance(n, Load) and isinstance(n.array, Local) and n.array.name in names:
            own = len(n.index) == 1 and isinstance(n.index[0], Local) and n.index[0].name == loop.variables[0]
            if own and not n.array.type.strided and n.array.name not in found:
                found.append(n.array.name)
    return found


def _always(node: Any) -> Iterator[Any]:
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
        yield from _always(child)
