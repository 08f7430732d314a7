"""Code generation: from a fusion group to the text of one kernel."""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import Node

from ..kernels.elementwise.elementwise import loop_nest
from . import reduction_codegen
from .fusion import Fusion
from .fusion_group import FusionGroup
from .kernel_writer import Array, KernelText, KernelWriter
from .loop_collapse import by_stride


def write(fusion: Fusion, group: FusionGroup, realized: Sequence[Node], grid: bool) -> KernelText:
    """The kernel of a group, of which others need the nodes `realized`; `grid`: for a GPU."""
    writer = KernelWriter(fusion, group, realized, grid)
    return reduction_codegen.write(writer) if group.reductions() else _elementwise(writer)


def _elementwise(w: KernelWriter) -> KernelText:
    group = w.group
    stores = w.stores(False)
    w.compute_addresses()
    order = by_stride(list(group.digits.sizes), w.outputs[0].factors, w.fusion.hints)
    w._collapse_axes([order])
    ndim = len(w.axes)
    tiled = ndim >= 2 and any(_is_transposed(a, ndim) for a in w.inputs)
    if tiled:
        fast = next(k for a in w.inputs if _is_transposed(a, ndim) for k in _unit(a))
        w.arrange([*(x for k, x in enumerate(w.axes[:-1]) if k != fast), w.axes[fast], w.axes[-1]])
    raw = [*w.row.lines, *stores]
    (w.axes,), tiled = w.reuse_loop_nest([w.axes], tiled, raw)
    ndim = len(w.axes)
    lines = w._named([*w.row.lines, *stores], [f"i{k}" for k in range(ndim)])
    name = w.name()
    loops = loop_nest(ndim, tiled, w.grid, lines)
    for k in range(ndim):
        loops = loops.replace(f"out.shape[{k}]", w.size(k))
    return w.kernel_text(name, loops, w.axes, "elementwise")


def _unit(array: Array) -> list[int]:
    assert array.layout is not None
    pairs = zip(array.layout.axes, array.layout.strides, strict=False)
    return [k for k, s in pairs if s == 1] if array.flat is None else []


def _is_transposed(array: Array, ndim: int) -> bool:
    """Whether the unit stride of an operand is along another loop than the innermost."""
    unit_axes = _unit(array)
    return bool(unit_axes) and unit_axes[-1] != ndim - 1 and array.layout is not None and ndim - 1 in array.layout.axes
