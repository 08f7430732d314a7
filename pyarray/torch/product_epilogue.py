"""The epilogue of a matrix product: the pointwise nodes behind it, as text."""

from __future__ import annotations

from dataclasses import dataclass

from torch.fx import Node

from ..kernels.matmul.gemm_epilogue import StatementsEpilogue
from . import views
from .fusion import Fusion
from .fusion_group import ProductGroup
from .index import Index, broadcast
from .kernel_writer import Array, KernelText, KernelWriter
from .loop_collapse import ArrayLayout, Axis, collapse_loops, stride_of
from .operators import argument, dtype_of, opmath_dtype_of, tensor
from .sizes import expression, expressions

MAX_ADDENDS = 2  # arrays that an epilogue reads


@dataclass(eq=False)
class ProductText(KernelText):
    """The text of a product. `inputs` are both operands and what the epilogue reads, of one type and with all axes
    of the product, whose sizes are `loops`."""

    epilogue: StatementsEpilogue | None = None


class NotAnEpilogue(Exception):
    """Nodes can't be an epilogue; the message says why."""


class _EpilogueWriter(KernelWriter):
    """Writes the text of an epilogue, in which `acc` are the product's sums."""

    def inlines(self, node: Node) -> bool:
        """False: an epilogue reads what it needs of other nodes from memory, whatever they are."""
        return False

    def _loaded(self, node: Node, index: Index) -> str:
        key = node, index
        if key not in self.loads:
            if len(self.inputs) == MAX_ADDENDS:
                raise NotAnEpilogue(f"it reads more than {MAX_ADDENDS} arrays")
            self.loads[key] = self._array("de"[len(self.inputs)], node, index)
            self.inputs.append(self.loads[key])
        return f"{self.loads[key].name}[{{0}}]"

    def _computed(self, node: Node, index: Index) -> str:
        if node is not self.group.nodes[0]:
            return super()._computed(node, index)
        cast = self._type(opmath_dtype_of(node).name)
        text = f"{cast}(acc[{{0}}])"
        if (alpha := argument(node, 4, "alpha", 1)) != 1:
            text = f"{cast}({alpha!r}) * {text}"
        beta = argument(node, 3, "beta", 1)
        if len(operands_of(node)) < len(node.args) and beta != 0:
            bias = node.args[0]
            assert isinstance(bias, Node)
            addend, _ = self.value(bias, broadcast(index, views.shape_of(node), views.shape_of(bias)))
            text += f" + {cast}({addend})" if beta == 1 else f" + {cast}({beta!r}) * {cast}({addend})"
        return f"{self._type(dtype_of(node).name)}({text})"


def operands_of(node: Node) -> tuple[Node, Node]:
    """The two matrices of a product's node."""
    a, b = [x for x in node.args if isinstance(x, Node)][-2:]
    return a, b


def source_of(x: Node) -> Node:
    """The node that owns an operand's memory; views that may be copies own theirs."""
    while views.is_view(x) and x.target not in views.COPIES:
        x = views.source_of(x)
    return x


def product_text(fusion: Fusion, product: ProductGroup) -> ProductText:
    """What a product is launched with. Raises `NotAnEpilogue` where its nodes can't be one."""
    first, end = product.nodes[0], product.nodes[-1]
    w = _EpilogueWriter(fusion, product, [end], False)
    result, _ = w.value(end, product.index[end])
    w.compute_addresses()
    if w.numbers or w.computed_indices:
        raise NotAnEpilogue("it needs sizes or places")
    kind = w.outputs[0].kind
    if any(a.kind != kind for a in w.inputs):
        raise NotAnEpilogue("it reads another type")
    arrays = [w.outputs[0], *w.inputs]
    _windows(product, arrays)
    operands = [Array(name, source_of(x), kind, layout=_matrix(x))
             for name, x in zip("ab", operands_of(first), strict=True)]  # fmt: skip
    body = (*w.row.lines, f"out[{{0}}] = {result}")
    used = tuple((name, x) for name, x in w.scope.items() if any(name in line for line in body))
    plain = len(product.nodes) == 1 and not w.inputs and argument(first, 4, "alpha", 1) == 1
    epilogue = None if plain else StatementsEpilogue(kind, body=body, count=len(w.inputs), names=used)
    name = w.name().replace("fused_", "product_", 1)
    loops = views.shape_of(first)
    text, inputs = "\n".join(body), [*operands, *w.inputs]
    return ProductText(name, text, w.scope, arrays[:1], [], inputs, [], loops, "product", epilogue=epilogue)


def _windows(product: ProductGroup, arrays: list[Array]) -> None:
    """The arrays along the product's axes. Raises `NotAnEpilogue` where one isn't, since a reshape cut them."""
    if any(a.flat is not None for a in arrays):
        raise NotAnEpilogue("its axes don't divide each other")
    digits, axes = product.digits, list[Axis]()
    product.current()
    for x in product.canonical:
        order = [d for d in digits.sizes if d in x.free_symbols]
        parts = collapse_loops(digits, order, [a.factors for a in arrays], set())
        if len(parts) != 1:
            raise NotAnEpilogue("an axis is cut")
        axes += parts
    for array in arrays:
        steps = tuple(stride_of(array.factors, axis, digits) for axis in axes)
        array.layout = ArrayLayout(array.offset, tuple(range(len(axes))), views.shape_of(product.nodes[0]), steps)


def _matrix(x: Node) -> ArrayLayout:
    value, base = tensor(x), tensor(source_of(x))
    offset = expression(value.storage_offset()) - expression(base.storage_offset())
    axes = tuple(range(value.dim()))
    return ArrayLayout(offset, axes, expressions(value.shape), expressions(value.stride()))
