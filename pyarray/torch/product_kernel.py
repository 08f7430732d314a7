"""Launches a matrix product of a graph, with its epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..array import ndarray, type_key, unchecked_array
from ..dtypes import DType
from ..kernels.matmul.gemm import bound_gemm_launch, gemm
from ..memory.buffer import Buffer
from .fused_kernel import FusedKernel, Run
from .operators import tensor
from .product_epilogue import ProductText


class ProductKernel(FusedKernel):
    """Launches the product of `text` with its epilogue."""

    text: ProductText

    def _load(self) -> None:
        """The product's kernel has no text of its own: the library's is for all sizes."""

    def _prepared(self, key: tuple[int, ...]) -> Run | None:
        layouts, _, _, empty = self._layout(key)
        if empty:
            return None
        (out, a, b, *more), (at_out, at_a, at_b, *at_more) = [x[:2] for x in layouts], [x[2] for x in layouts]
        epilogue, offsets = self.text.epilogue, (at_a, at_b, at_out, *at_more)
        bound_launch = bound_gemm_launch(self._rows[0], epilogue, (a, b, out, *more), offsets, self.device)
        return self._observed(key) if bound_launch is None else bound_launch

    def _call(self, windows: Sequence[ndarray], numbers: tuple[Any, ...]) -> None:
        """A launch with arrays: with bounds checks, under observers, and if the algorithm depends on the operands."""
        out, a, b, *addends = windows
        gemm(out, a, b, self.text.epilogue, addends, sums=lambda kind: self._sums(out, kind))

    def _sums(self, out: ndarray, kind: DType) -> ndarray:
        """An array like `out`, of that type, in memory of torch."""
        node = self.text.outputs[0].node
        assert node is not None
        dtype = tensor(node).dtype if kind is out._dtype else torch.float32
        sums = torch.empty(out._shape, dtype=dtype, device=self.torch_device)
        strides = tuple(s * sums.itemsize for s in sums.stride())
        buffer = Buffer.wrap(self.device, sums.data_ptr(), sums.nbytes, sums)
        key = type_key(kind, out.ndim, False, True, self.device)
        return unchecked_array(buffer, out._shape, strides, out._size, kind, key)
