"""Generates the Python function of a graph: allocations, kernel launches and calls of torch's operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch.fx import GraphModule, Node

from ..driver.stream import Stream
from . import views
from .buffer_reuse import fits_memory, mutated_inputs, reads_only_stored_element, same_layout
from .codegen import write
from .concatenation import operands_in_result
from .fast_calls import DENSE, allocator, function_of
from .fused_kernel import FusedKernel, device_of
from .fusion import Fusion
from .fusion_group import FusionGroup, ProductGroup, is_gpu
from .kernel_writer import KernelText
from .product_epilogue import ProductText, product_text
from .product_kernel import ProductKernel
from .schedule import Schedule, Unit, is_size
from .sizes import expression, expressions, python
from .view_folding import call_text, fold_views, reinterpret_tensor


class Program:
    """`call` runs a graph; `text` is its text, `kernels` the fused kernels by their names in it."""

    def __init__(self, module: GraphModule, fusion: Fusion, check: Sequence[str] = ()):
        self.module, self.fusion = module, fusion
        fold_views(module, fusion)
        self._copies = mutated_inputs(module.graph, fusion)
        self._parts = operands_in_result(module.graph, fusion)
        self._whole = {result for result, _ in self._parts.values()}  # concatenations of these
        self._stored: set[Node] = set()  # nodes whose memory is an input's, and the copies that this saves
        self.schedule = Schedule(fusion).run()
        self.kernels: dict[str, FusedKernel] = {}
        self.groups: dict[str, FusionGroup] = {}
        self.eager: list[Node] = []
        self._scope: dict[str, Any] = {
            "math": math, "torch": torch,
            "reinterpret_tensor": reinterpret_tensor, "with_traced_strides": with_traced_strides,
        }  # fmt: skip
        self._bound: set[sympy.Symbol] = set()
        self._lines: list[str] = []
        self._constants: dict[int, str] = {}
        self._sizes: dict[str, str] = {}  # variables of the text by what they hold
        self._check = tuple(check)
        self._alias_roots: dict[Node, set[Node]] = {}
        self._reused: set[Node] = set()  # whose memory became another node's
        self._dead: set[Node] = set()
        self._free: dict[Any, list[str]] = {}
        self.devices: set[torch.device] = set()
        self.text = self._text()
        exec(compile(self.text, "<pyarray graph>", "exec"), self._scope)
        self.call = self._on_current_streams(self._scope["call"])

    # ---- text

    def _text(self) -> str:
        placeholders = [n for n in self.module.graph.nodes if n.op == "placeholder"]
        parameters = ", ".join(n.name for n in placeholders)
        if placeholders:
            self._lines += [f"{parameters}{',' if len(placeholders) == 1 else ''} = args", "args.clear()"]
        for node in placeholders:
            self._alias_roots[node] = {node}
            self._bind(node)
        for node in placeholders:
            if any(node.name.startswith(prefix) for prefix in self._check):
                self._check_signs(node)
                self._check_strides(node)
        output = next(n for n in self.module.graph.nodes if n.op == "output")
        returned = set(output.all_input_nodes)
        units = self.schedule.units
        last = self._last_uses(units, returned)
        for k, unit in enumerate(units):
            if isinstance(unit, FusionGroup):
                self._launch(unit, last.get(k, []))
            else:
                self._eager(unit)
            self._release(last.get(k, []))
        self._lines.append(f"return {self._argument(output.args[0])}")
        return "def call(args):\n" + "".join(f"    {line}\n" for line in self._lines)

    def _bind(self, node: Node) -> None:
        """Binds the size symbols that become known with a value."""
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            self._bind_one(expression(value), node.name)
        elif isinstance(value, torch.SymFloat):
            self._bind_one(value.node.expr, node.name)
        elif isinstance(value, torch.Tensor):
            for k, n in enumerate(value.shape):
                self._bind_one(expression(n), f"{node.name}.size({k})")
            if value.layout == torch.strided:
                for k, n in enumerate(value.stride()):
                    self._bind_one(expression(n), f"{node.name}.stride({k})")

    def _bind_one(self, x: sympy.Expr, text: str) -> None:
        if x.is_Symbol and x not in self._bound:
            self._bound.add(x)
            self._lines.append(f"{x} = {text}")

    def _check_signs(self, node: Node) -> None:
        """Copies a tensor whose elements are negated or conjugated when they are read: kernels read memory."""
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and not (value.is_neg() or value.is_conj()):
            lazy = f"{node.name}.is_neg() or {node.name}.is_conj()"
            self._lines.append(f"if {lazy}: {node.name} = {node.name}.resolve_conj().resolve_neg()")

    def _check_strides(self, node: Node) -> None:
        """Copies a tensor of torch's if it doesn't have the traced strides, which kernels are compiled for."""
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided or not value.dim():
            return
        strides = self._tuple(expressions(value.stride()))
        self._lines.append(
            f"if {node.name}.stride() != {strides}: {node.name} = with_traced_strides({node.name}, {strides})"
        )

    def _argument(self, x: Any) -> str:
        if isinstance(x, Node):
            value = x.meta.get("val")
            if is_size(x) and set(expression(value).free_symbols) <= self._bound:
                return python(expression(value))
            if x.op == "get_attr":
                return self._constant(_attribute(self.module, str(x.target)))
            return x.name
        if isinstance(x, (list, tuple)):
            inner = "".join(f"{self._argument(y)}, " for y in x)
            return f"[{inner}]" if isinstance(x, list) else f"({inner})"
        if x is None or isinstance(x, (bool, int, str)) or (isinstance(x, float) and math.isfinite(x)):
            return repr(x)
        if isinstance(x, dict):
            return "{" + "".join(f"{k!r}: {self._argument(v)}, " for k, v in x.items()) + "}"
        if isinstance(x, slice):
            return f"slice({self._argument(x.start)}, {self._argument(x.stop)}, {self._argument(x.step)})"
        return self._constant(x)

    def _tuple(self, sizes: Sequence[sympy.Expr]) -> str:
        """Text of a tuple of sizes or strides, which is computed once, where it is needed first."""
        texts = [str(x) if x.is_Symbol else self._hoist(python(x)) for x in sizes]
        return self._hoist(f"({''.join(f'{x}, ' for x in texts)})")

    def _hoist(self, text: str) -> str:
        if not any(map(str.isalpha, text)):
            return text
        if text not in self._sizes:
            self._sizes[text] = f"_n{len(self._sizes)}"
            self._lines.append(f"{self._sizes[text]} = {text}")
        return self._sizes[text]

    def _texts(self, node: Node) -> tuple[str, str]:
        """Sizes and strides of a node."""
        value: torch.Tensor = node.meta["val"]
        return self._tuple(expressions(value.shape)), self._tuple(expressions(value.stride()))

    def _constant(self, x: Any) -> str:
        name = f"c{len(self._constants)}"
        if id(x) not in self._constants:
            self._constants[id(x)] = name
            self._scope[name] = x
        return self._constants[id(x)]

    def _eager(self, node: Node) -> None:
        if node in self._stored:
            if node.users:  # returned
                self._lines.append(f"{node.name} = {self._argument(node.args[0])}")
            return
        if node in self._whole:
            return
        if node.target is reinterpret_tensor:
            base = node.all_input_nodes[0]
            self._lines.append(f"{node.name} = {call_text(node, self._argument(base), self._tuple)}")
            self._alias_roots[node] = self._aliased(node)
            return
        target = self._constant(function_of(node.target))
        args = [self._argument(x) for x in node.args]
        args += [f"{name}={self._argument(x)}" for name, x in node.kwargs.items()]
        self._lines.append(f"{node.name} = {target}({', '.join(args)})")
        self._alias_roots[node] = self._aliased(node)
        self._bind(node)  # strides may be written with a size that is known from here on
        is_new_tensor = isinstance(node.meta.get("val"), torch.Tensor) and not views.is_view(node)
        if is_new_tensor and node.target not in DENSE:
            self._check_strides(node)
        is_number = isinstance(node.meta.get("val"), (int, float, bool, torch.SymInt, torch.SymBool, torch.SymFloat))
        if node.target is not _getitem and not views.is_view(node) and not is_number:
            self.eager.append(node)

    def _aliased(self, node: Node) -> set[Node]:
        """The values whose memory a result may be part of."""
        target = node.target
        if isinstance(target, torch._ops.OpOverload) and not any(r.alias_info for r in target._schema.returns):
            return {node}
        return {node}.union(*(self._alias_roots.get(x, {x}) for x in node.all_input_nodes))

    def _launch(self, group: FusionGroup, dying: Sequence[Node]) -> None:
        realized = [n for n in group.nodes if n in self.schedule.realized]
        kernel: FusedKernel
        if isinstance(group, ProductGroup):
            kernel = ProductKernel(product_text(self.fusion, group), group.device)
        else:
            kernel = FusedKernel(write(self.fusion, group, realized, is_gpu(group.device)), group.device)
        text = kernel.text
        name = f"k{len(self.kernels)}"
        self.kernels[name], self.groups[name] = kernel, group
        self._scope[name] = kernel
        kernel.compile_ahead(self.fusion.hints)
        self.devices.add(group.device)
        for node in realized:
            copy = self._copies.get(node)
            if copy and reads_only_stored_element(text, node, copy.args[0]):  # pyright: ignore[reportArgumentType]
                self._lines.append(f"{node.name} = {copy.args[0]}")
                self._stored |= {node, copy}
                self._alias_roots[node] = {node, *copy.all_input_nodes[:1]}
            elif node in self._parts:
                self._allocate_part(node)
            elif (into := self._reusable_operand(text, node, dying)) is not None:
                self._lines.append(f"{node.name} = {self._view_as(into, node)}")
                self._reused.add(into)
                self._alias_roots[node] = {node}
            else:
                self._allocate(node)
        key = "".join(f"{s}, " for s in kernel.symbols)
        addresses = [f"{self._argument(a.node)}.data_ptr()" for a in (*text.outputs, *text.inputs)]
        self._lines.append(f"{name}(({key}), {', '.join(addresses)})")

    def _reusable_operand(self, text: KernelText, node: Node, dying: Sequence[Node]) -> Node | None:
        """An operand that nothing needs after the kernel, of the same layout, into which the node is stored:
        each iteration reads its own element of it alone."""
        if isinstance(text, ProductText):
            return None
        read = {a.node for a in text.inputs}
        for x in (x for x in dying if x in read):
            is_ours = x.op == "call_function" and x not in self._stored | self._reused
            fresh = x.target in (*DENSE, _convolution) or x in self.fusion.of
            shared = any(x in roots for n, roots in self._alias_roots.items() if n is not x)
            if is_ours and fresh and not shared and fits_memory(x, node) and reads_only_stored_element(text, node, x):
                return x
        return None

    def _view_as(self, x: Node, node: Node) -> str:
        """An array's memory with the sizes and strides of a node's."""
        if same_layout(x, node):
            return x.name
        return self._reinterpreted(x, node, "0")

    def _reinterpreted(self, x: Node, node: Node, offset: str) -> str:
        shape, strides = self._texts(node)
        return f"reinterpret_tensor({x.name}, {shape}, {strides}, {offset})"

    def _allocate_part(self, node: Node) -> None:
        concatenation, offset = self._parts[node]
        if concatenation not in self._alias_roots:
            self._allocate(concatenation)
        self._lines.append(f"{node.name} = {self._reinterpreted(concatenation, node, python(offset))}")
        self._alias_roots[node] = {node, concatenation}
        self._reused.add(node)

    def _allocate(self, node: Node) -> None:
        value: torch.Tensor = node.meta["val"]
        shape, strides = self._texts(node)
        self._alias_roots[node] = {node}
        kind = (shape, strides, value.dtype, value.device)
        if self._free.get(kind):
            self._lines.append(f"{node.name} = {self._free[kind].pop()}")
            return
        allocate = f"empty_{value.device.type}_{value.device.index or 0}"
        self._scope[allocate] = allocator(value.device)
        self._lines.append(f"{node.name} = {allocate}({shape}, {strides}, {self._constant(value.dtype)})")

    # ---- memory

    def _last_uses(self, units: Sequence[Unit], returned: set[Node]) -> dict[int, list[Node]]:
        """By a unit's number, the nodes whose last use it is."""
        uses: dict[Node, int] = {}
        for k, unit in enumerate(units):
            read = self.schedule.operands(unit) if isinstance(unit, FusionGroup) else unit.all_input_nodes
            made = [n for n in unit.nodes if n in self.schedule.realized] if isinstance(unit, FusionGroup) else [unit]
            for node in (*read, *made):
                uses[node] = k
        last_uses: dict[int, list[Node]] = {}
        for node, k in uses.items():
            has_memory = isinstance(node.meta.get("val"), (torch.Tensor, tuple, list)) and node.op != "get_attr"
            if node not in returned and has_memory:
                last_uses.setdefault(k, []).append(node)
        return last_uses

    def _release(self, nodes: Sequence[Node]) -> None:
        """Releases the nodes' memory, or keeps it for the next result of its size."""
        names = []
        for node in nodes:
            value = node.meta.get("val")
            self._dead.add(node)
            holders = [n for n, roots in self._alias_roots.items() if node in roots and n not in self._dead]
            in_kernel = self.fusion.of.get(node) is not None and node.op == "call_function"
            shared = any(node in self._alias_roots.get(n, ()) for n in self._alias_roots if n is not node)
            fresh = node not in self._stored
            is_owned = node not in self._reused
            if in_kernel and fresh and is_owned and not holders and not shared and isinstance(value, torch.Tensor):
                shape, strides = self._texts(node)
                self._free.setdefault((shape, strides, value.dtype, value.device), []).append(node.name)
            elif fresh or node in self._copies:
                names.append(node.name)
        if names:
            self._lines.append(f"del {', '.join(names)}")

    # ---- streams

    def _on_current_streams(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its kernels on torch's current streams."""
        gpus = [(d, device_of(d)) for d in self.devices if d.type == "cuda"]
        set_up_openmp = torch.get_num_threads  # of a new Python thread, which else has the default number

        def run(args: list[Any]) -> Any:
            set_up_openmp()
            return call(args)

        for name, device in gpus:
            run = _on_stream(run, name.index or 0, device)
        run._boxed_call = True  # type: ignore[attr-defined]
        return run


def _on_stream(run: Callable[..., Any], index: int, device: Any) -> Callable[..., Any]:
    current, driver = torch._C._cuda_getCurrentRawStream, device.driver

    def on_stream(args: list[Any]) -> Any:
        handle = current(index)
        if handle == driver.current_stream():
            return run(args)
        with Stream.of(handle, device):
            return run(args)

    return on_stream


def with_traced_strides(x: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """A tensor with the strides that the graph was traced with: itself where only axes of one element differ,
    else a copy."""
    if all(n == 1 or s == t for n, s, t in zip(x.shape, x.stride(), strides, strict=True)):
        return x
    made = torch.empty_strided(x.shape, strides, dtype=x.dtype, device=x.device)
    return made.copy_(x)


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


_getitem = views._getitem
_convolution = torch.ops.aten.convolution.default
