"""View operators as index maps: `source_index` from the view's index to its source's, `view_index` back."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from .index import Digits, Index, broadcast, reshaped
from .sizes import ZERO, expression, expressions, same_shape

aten = torch.ops.aten
_getitem = operator.getitem

_RESHAPES = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)
COPIES = {aten.reshape.default, aten.lift_fresh_copy.default}  # which may have memory of their own
_SAME = (aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default)


def source_of(node: Node) -> Node:
    """What a view is a view of: of a part of a split, what was split."""
    source = node.args[0]
    assert isinstance(source, Node)
    return source.args[0] if node.target is _getitem and isinstance(source.args[0], Node) else source


def is_split(node: Node) -> bool:
    """Whether a node's parts are views of what it splits."""
    return node.target is aten.split_with_sizes.default


def shape_of(node: Node) -> Index:
    """The sizes of a node's tensor."""
    return expressions(node.meta["val"].shape)


def _shapes(node: Node) -> tuple[Index, Index]:
    """Those of a view and its source."""
    return shape_of(node), shape_of(source_of(node))


def is_view(node: Node) -> bool:
    """Whether a node only renames elements, in a way that is known here."""
    if node.op != "call_function" or node.meta.get("unbacked_bindings"):  # sizes that only torch's call tells
        return False
    if node.target is _getitem:
        return isinstance(node.args[0], Node) and is_split(node.args[0])
    if node.target is aten.slice.Tensor:
        return slice_start(node) is not None
    if node.target is aten.select.int:
        return _selected(node) is not None
    return node.target in _SOURCE_INDEX


def source_index(node: Node, digits: Digits, index: Index) -> Index:
    """The index into the source of the element that `index` means in the view. Splits digits."""
    return digits.current(_SOURCE_INDEX[node.target](node, digits, index))


def view_index(node: Node, digits: Digits, index: Index) -> Index | None:
    """The index into the view of the element that `index` means in the source; None where the view lacks
    elements or repeats them. Splits digits."""
    rule = _VIEW_INDEX.get(node.target)
    result = rule(node, digits, index) if rule is not None else None
    return None if result is None else digits.current(result)


def _source_getitem(node: Node, digits: Digits, index: Index) -> Index:
    split, part = node.args
    assert isinstance(split, Node)
    assert isinstance(part, int)
    axis = _axis(split, 2, len(index))
    before = sum((expression(n) for n in _sizes(split.args[1])[:part]), ZERO)
    return tuple(x + before if k == axis else x for k, x in enumerate(index))


def _sizes(items: Any) -> list[Any]:
    return [x.meta["val"] if isinstance(x, Node) else x for x in items]


def _argument(node: Node, position: int, name: str, default: Any) -> Any:
    value = node.args[position] if len(node.args) > position else node.kwargs.get(name, default)
    return value.meta["val"] if isinstance(value, Node) else value


def _axis(node: Node, position: int, rank: int, name: str = "dim") -> int:
    axis = _argument(node, position, name, 0)
    return axis + rank if axis < 0 else axis


def _order(node: Node) -> list[int]:
    rank = len(shape_of(node))
    if node.target is aten.permute.default:
        return [k + rank if k < 0 else k for k in node.args[1]]  # pyright: ignore[reportGeneralTypeIssues, reportOptionalIterable]
    order = list(range(rank))
    if rank >= 2:
        a, b = (0, 1) if node.target is aten.t.default else (_axis(node, 1, rank), _axis(node, 2, rank, "dim1"))
        order[a], order[b] = order[b], order[a]
    return order


def _source_permute(node: Node, digits: Digits, index: Index) -> Index:
    order = _order(node)
    return tuple(index[order.index(k)] for k in range(len(order)))


def _squeezed(node: Node) -> list[int]:
    shape = shape_of(source_of(node))
    if node.target is aten.squeeze.default:
        return [k for k, n in enumerate(shape) if n == 1]
    axes: Any = node.args[1]
    axes = [axes] if isinstance(axes, int) else axes
    axes = [k + len(shape) if k < 0 else k for k in axes]
    return [k for k in axes if shape and shape[k] == 1]


def _source_squeeze(node: Node, digits: Digits, index: Index) -> Index:
    remaining, squeezed = iter(index), _squeezed(node)
    return tuple(ZERO if k in squeezed else next(remaining) for k in range(len(shape_of(source_of(node)))))


def _view_squeeze(node: Node, digits: Digits, index: Index) -> Index:
    squeezed = _squeezed(node)
    return tuple(x for k, x in enumerate(index) if k not in squeezed)


def _source_unsqueeze(node: Node, digits: Digits, index: Index) -> Index:
    axis = _axis(node, 1, len(index))
    return tuple(x for k, x in enumerate(index) if k != axis)


def _view_unsqueeze(node: Node, digits: Digits, index: Index) -> Index:
    axis = _axis(node, 1, len(index) + 1)
    return (*index[:axis], ZERO, *index[axis:])


def _view_of_all(node: Node, digits: Digits, index: Index) -> Index | None:
    return index if same_shape(*_shapes(node)) else None


def _source_select(node: Node, digits: Digits, index: Index) -> Index:
    source = shape_of(source_of(node))
    axis = _axis(node, 1, len(source))
    return (*index[:axis], _selected(node), *index[axis:])


def _selected(node: Node) -> Any:
    source: torch.Tensor = source_of(node).meta["val"]
    return _from_front(_argument(node, 2, "index", 0), source.shape[_axis(node, 1, source.dim())])


def slice_start(node: Node) -> Any:
    """The first index of a slice as an expression; None where its bounds aren't plain."""
    axis = _axis(node, 1, len(shape_of(node)))
    start = _argument(node, 2, "start", None)
    start = 0 if start is None else start
    # what torch clamps is a start beyond the end, which leaves nothing
    is_plain = shape_of(node)[axis] != 0 and expression(_argument(node, 4, "step", 1)).is_Integer
    if expression(start) != 0 and not is_plain:
        return None
    return _from_front(start, source_of(node).meta["val"].shape[axis])


def _from_front(position: Any, n: Any) -> Any:
    """An index that may count from the end of an axis, from its front; None where that isn't known."""
    if statically_known_true(position >= 0):
        return expression(position)
    if statically_known_true(position < 0) and statically_known_true(n + position >= 0):
        return expression(n) + expression(position)
    return None


def _source_slice(node: Node, digits: Digits, index: Index) -> Index:
    axis = _axis(node, 1, len(index))
    start, step = slice_start(node), expression(_argument(node, 4, "step", 1))
    return tuple(start + step * x if k == axis else x for k, x in enumerate(index))


def _source_unfold(node: Node, digits: Digits, index: Index) -> Index:
    """The windows' number along the axis, and the position in one, which is the last axis."""
    axis, step = _axis(node, 1, len(index) - 1, "dimension"), expression(_argument(node, 3, "step", None))
    return tuple(x * step + index[-1] if k == axis else x for k, x in enumerate(index[:-1]))


Map = Callable[[Node, Digits, Index], Any]
_PERMUTATIONS = (aten.permute.default, aten.transpose.int, aten.t.default)
_SQUEEZES = (aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims)
_SOURCE_INDEX: dict[Any, Map] = {
    **dict.fromkeys(_RESHAPES, lambda node, digits, index: reshaped(digits, index, *_shapes(node))),
    **dict.fromkeys(_SAME, lambda _node, _digits, index: index),
    **dict.fromkeys(_PERMUTATIONS, _source_permute),
    **dict.fromkeys(_SQUEEZES, _source_squeeze),
    aten.unsqueeze.default: _source_unsqueeze,
    aten.expand.default: lambda node, _digits, index: broadcast(index, *_shapes(node)),
    aten.select.int: _source_select,
    aten.slice.Tensor: _source_slice,
    aten.unfold.default: _source_unfold,
    _getitem: _source_getitem,
}
_VIEW_INDEX: dict[Any, Map] = {
    **dict.fromkeys(_RESHAPES, lambda node, digits, index: reshaped(digits, index, *_shapes(node)[::-1])),
    **dict.fromkeys(_SAME, lambda _node, _digits, index: index),
    **dict.fromkeys(_PERMUTATIONS, lambda node, _digits, index: tuple(index[k] for k in _order(node))),
    **dict.fromkeys(_SQUEEZES, _view_squeeze),
    aten.unsqueeze.default: _view_unsqueeze,
    aten.expand.default: _view_of_all,
    aten.slice.Tensor: _view_of_all,
}
