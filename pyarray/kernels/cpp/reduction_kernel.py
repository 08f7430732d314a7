"""`ReductionKernel`: CuPy's reductions from C++ expressions."""

from __future__ import annotations

import math
import re
from typing import Any

from ... import shapes
from ...array import empty, ndarray
from ...driver.base import Device
from ...dtypes import DType
from ...lang.dialect import DIALECTS
from ...lang.pipeline import Program
from . import text_frame as tf
from . import text_params as tp
from .reduction_frame import BLOCK, Expressions, ReductionLayout, program

PIECE = 1 << 12  # elements of a piece, at least, on a grid
PIECES = 1 << 9


class ReductionKernel(tp.CppKernel):
    """A kernel that reduces arrays over axes, from expressions in C++.

    `in_params` and `out_params` are lists as `ElementwiseKernel` takes them. `map_expr` is an expression of
    the inputs' elements, `reduce_expr` one of two such values `a` and `b`, in any order and grouping, and
    `post_map_expr` assigns to the outputs from the result `a`. `identity` is what a reduction starts from;
    with None it starts from `reduce_type()` and there must be an element. `reduce_type` is the C++ type of
    `a` and `b`, by default that of the first output. Expressions may name `_in_ind.size()`,
    `_out_ind.size()`, `_i`, the number of the output, and `_J`, that of the element among those it is made
    from. `preamble` stands before the kernel; of `options`, compilers of CPUs get `-D`, `-U` and `-I`.

    >>> import pyarray as pa
    >>> norm = pa.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    >>> norm(pa.asarray([[3.0, 4.0], [5.0, 12.0]]), axis=1).tolist()
    [5.0, 13.0]
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: tuple[str, ...] = (),
    ):
        self._declare(name, in_params, out_params, options)
        if not self.nout or any(p.raw for p in self.out_params):
            raise ValueError(f"{name}: a reduction has at least one output, and none is raw: {out_params!r}")
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity = "" if identity is None else str(identity)
        self.reduce_type, self.reduce_dims, self.preamble = reduce_type, reduce_dims, preamble
        self._ordered = bool(re.search(r"\b(_J|_j|_in_ind)\b", " ".join((map_expr, post_map_expr, preamble))))

    def __repr__(self) -> str:
        return f"<ReductionKernel {self.name!r}>"

    def __call__(self, *args: Any, axis: Any = None, keepdims: bool = False, out: ndarray | None = None) -> Any:
        """Reduce what the inputs broadcast to over `axis`: an int, a tuple of them, None for all.

        The outputs follow the inputs, or the only one is `out`; what isn't given is new. Its shape is that of
        the other axes, with 1 for those reduced if `keepdims`. Returns the first output, as CuPy does. Raises
        `TypeError` for a wrong number of arguments or dtype, `AxisError` for an axis that isn't there,
        `ValueError` for shapes that don't fit and for no elements without an identity.
        """
        if out is not None:
            if len(args) != self.nin or self.nout != 1:
                raise TypeError(
                    f"{self.name}(): out= is for the only output, after {self.nin} inputs; got {len(args)} "
                    f"arguments, and there are {self.nout} outputs"
                )
            args = (*args, out)
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(
                f"{self.name}() takes {self.nin} arguments, or {self.nargs} with the outputs, got {len(args)}"
            )
        values = tp.arguments_of(self.name, self.params[: len(args)], args)
        device = tp.device_of(self.name, self.params[: len(args)], values)
        arrays = [
            (p, a._shape) for p, a in zip(self.in_params, values, strict=False) if isinstance(a, ndarray) and not p.raw
        ]
        if not arrays:
            raise ValueError(f"{self.name}(): no array that isn't raw says what is reduced")
        shape = tp.broadcast(self.name, arrays)
        axes = shapes.normalize_axes(axis, len(shape))
        types = tp.bind_letters(self.name, self.params, values)
        outs = self._outputs(values[self.nin :], shape, axes, keepdims, types, device)
        if outs[0].size:
            if not self.identity and 0 in shape:
                raise ValueError(f"{self.name}() of no elements needs an identity: shape {shape}")
            self._launch(values[: self.nin], outs, shape, axes, types, device)
        return outs[0]

    def _outputs(
        self,
        outputs: list[Any],
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        keepdims: bool,
        types: dict[str, DType],
        device: Device,
    ) -> list[Any]:
        reduced_shape, full = shapes.reduced(shape, axes)
        sizes = full if keepdims else reduced_shape
        for p, a in zip(self.out_params, outputs, strict=False):
            if a._shape != sizes:
                raise ValueError(f"{self.name}(): the output {p.name!r} has shape {a._shape}, the result has {sizes}")
        return outputs or [empty(sizes, p.kind(types), device) for p in self.out_params]

    def _launch(
        self,
        ins: list[Any],
        outs: list[Any],
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        types: dict[str, DType],
        device: Device,
    ) -> None:
        ins = [tp.copy_if_unsafe(x, p, outs) for x, p in zip(ins, self.in_params, strict=True)]
        layout, passed = self._layout(ins, outs, shape, axes, types)
        count, length = math.prod(layout.outer), math.prod(layout.inner)
        grid = device.driver.grid
        stride = _outputs_of_block(count, length, layout.columns) if grid else 1
        dtype = self._reduced_dtype(types)
        blocks = -(-count // stride)
        pieces = max(min(length // PIECE, PIECES // blocks), 1) if grid and dtype is not None else 1
        sizes = [*layout.outer, *layout.inner, stride, pieces, blocks * pieces * BLOCK, count * BLOCK]
        part = [empty((pieces * count,), dtype, device)] if pieces > 1 else []
        named = tuple(sorted((letter, d.name) for letter, d in types.items()))
        key = (named, layout.layouts, len(layout.outer), len(layout.inner), layout.columns, pieces > 1)
        self._kernel.launch(key, device, *passed, *sizes, *part)

    def _layout(
        self,
        ins: list[Any],
        outs: list[Any],
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        types: dict[str, DType],
    ) -> tuple[ReductionLayout, list[Any]]:
        """The arguments' layouts along the kept and the reduced axes, and the arguments to launch with."""
        kept = tuple(k for k in range(len(shape)) if k not in axes)
        reduced, values, merge = tuple(sorted(axes)), [*ins, *outs], bool(self.reduce_dims)
        outer: list[tf.Column] = []
        inner: list[tf.Column] = []
        for p, a in zip(self.params, values, strict=True):
            if not isinstance(a, ndarray) or p.raw:
                outer.append(None)
                inner.append(None)
                continue
            strides = a._strides if p.out else shapes.broadcast_strides(a._shape, a._strides, shape)
            keeps_dims = len(strides) == len(shape)  # an output has axes of size 1 or none for those reduced
            outer.append((tuple(strides[k] for k in kept) if keeps_dims else strides, a.itemsize))
            inner.append((tuple(0 if p.out else strides[k] for k in reduced), a.itemsize))
        order = None
        if not self._ordered and merge:
            order = next(k for k, c in enumerate(inner) if c is not None)
        outer_sizes, outer_rows = tf.merged_axes(tuple(shape[k] for k in kept), tuple(outer), merge, None)
        inner_sizes, inner_rows = tf.merged_axes(tuple(shape[k] for k in reduced), tuple(inner), merge, order)
        pairs = list(zip(outer_rows, inner_rows, strict=True))
        rows = [_concatenated_rows(first, second, len(outer_sizes)) for first, second in pairs]
        layouts, passed = tf.argument_layouts(self.name, self.params, values, rows, types)
        columns = next(first[3] and not second[3] for first, second in pairs if first is not None)
        return ReductionLayout(outer_sizes, inner_sizes, tuple(layouts), columns), passed

    def _reduced_dtype(self, types: dict[str, DType]) -> DType | None:
        """The dtype of the values that are reduced, if it is one."""
        name = self.reduce_type
        if name is None:
            return self.out_params[0].kind(types)
        by_ctype = {ctype: tf.BY_NAME[d] for d, ctype in tp.CTYPES.items()}
        return types.get(name) or by_ctype.get(name)

    # ---- the program

    def _program(self, key: Any, target: str, debug: bool) -> Program:
        named, layouts, outer, inner, columns, pieces = key
        types = tf.types_of(named)
        kind = self.reduce_type or self.out_params[0].ctype(types)
        texts = Expressions(self.map_expr, self.reduce_expr, self.post_map_expr, self.identity, kind, self.preamble)
        rows = list(zip(self.params, layouts, strict=True))
        part = self._reduced_dtype(types) if pieces else None
        structure = (outer, inner, columns, part)
        return program(self.name, texts, rows, types, structure, DIALECTS[target], debug, self._location)


def _concatenated_rows(outer: Any, inner: Any, ndim: int) -> Any:
    """The rows of kept and reduced axes as one, the kept axes first."""
    if outer is None:
        return None
    axes = outer[0] + tuple(ndim + k for k in inner[0])
    return axes, outer[1] + inner[1], outer[2] + inner[2], inner[3] if inner[0] else False


def _outputs_of_block(count: int, length: int, columns: bool) -> int:
    """A power of two: neighbours in memory together, and short reductions side by side."""
    wide = BLOCK >> min((max(length, 1) - 1).bit_length(), 8)
    most = 1 << (count - 1).bit_length()
    return max(1, min(max(wide, 32 if columns else 1), most, BLOCK))
