"""Launches a fused kernel: one artifact for all values of the size symbols."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sympy
import torch

from .. import shapes
from .._core import BoundLaunch
from ..array import ndarray, type_key, unchecked_array
from ..driver.base import Device, cores, get_device
from ..dtypes import BY_NAME
from ..jit.bound_launch import bind_launch
from ..jit.bounded_cache import BoundedCache
from ..jit.kernel import Kernel, from_text
from ..jit.launch_state import launch_state
from ..kernels.reduce.reduce import piece_count
from ..lang.emit_noalias import NO_ALIAS
from ..locks import new_lock
from ..memory.buffer import Buffer
from .fast_calls import allocator
from .fusion_group import is_gpu
from .kernel_writer import COLUMNS, Array, KernelText
from .sizes import python
from .threads import share_threads

MAX_CACHED = 1024  # kernels and launches that are kept
MIN_COLUMN = 16  # elements of a GPU's thread, in a column that is cut
MIN_RUN = 64  # elements of a column that a CPU adds one by one; more in a long one: rounding errors grow with them
THREADS = 1 << 18  # as many as a large GPU runs at once
Run = Callable[..., None]

# Compilers are processes, or run without Python's lock: tracing goes on beside them.
_compile_pool = ThreadPoolExecutor(cores(), thread_name_prefix="pyarray-torch")

# By text, which has all but the arrays' types; those are the kernel's own variants. Graphs share kernels.
_kernels: BoundedCache[tuple[str, bool], Kernel] = BoundedCache(MAX_CACHED)
_lock = new_lock()


def kernel_of(text: KernelText, grid: bool) -> Kernel:
    """The kernel of a text, the same for equal texts."""
    with _lock:
        kernel = _kernels.get((text.text, grid))
        if kernel is None:
            flags = () if grid else (NO_ALIAS,)  # results have memory of their own
            kernel = _kernels.add((text.text, grid), from_text(text.name, text.text, dict(text.scope), flags))
        return kernel


def compiles() -> int:
    """How often a compiler has run for kernels of graphs, in this process."""
    return sum(kernel.counts["compiles"] for kernel in _kernels.values())


def device_of(device: torch.device) -> Device:
    """The library's device for a torch device."""
    if device.type == "cpu":
        return get_device("cpu")
    kind = "cuda" if torch.version.hip is None else "hip"
    return get_device(f"{kind}:{device.index or 0}")


class FusedKernel:
    """Launches the kernel of `text`. `symbols` are the size symbols that it depends on; `key` has their values in
    this order. Layouts are cached per key; a launch passes addresses."""

    def __init__(self, text: KernelText, device: torch.device):
        self.text, self.torch_device = text, device
        self.device = device_of(device)
        self.grid = is_gpu(device)
        if not self.grid:
            share_threads()
        arrays = [*text.outputs, *text.partials, *text.inputs]
        self._arrays = arrays
        self._rows = [BY_NAME[a.kind] for a in arrays]
        expressions = [x for a in (*text.outputs, *text.inputs) for x in _parts(a)]
        expressions += [
            *text.numbers,
            *text.loops,
            *([text.pieces, text.row] if text.pieces is not None else []),
        ]
        names = set[Any]().union(*(x.free_symbols for x in expressions))
        self.symbols: tuple[sympy.Symbol, ...] = tuple(sorted(names, key=str))
        self._layouts_of = self._make_layouts_of()
        self._load()
        # By the values of all symbols that shapes, strides, offsets and numbers are computed from.
        self._runs: BoundedCache[Any, Run | None] = BoundedCache(MAX_CACHED)

    def compile_ahead(self, hints: Mapping[sympy.Symbol, int]) -> None:
        """Starts to compile the variant for the traced sizes in the background. The launch waits for it and raises
        its errors."""
        if launch_state.key is False and all(s in hints for s in self.symbols):
            _compile_pool.submit(self._prepared, tuple(hints[s] for s in self.symbols))

    def _load(self) -> None:
        self.kernel = kernel_of(self.text, self.grid)

    def _make_layouts_of(self) -> Callable[..., Any]:
        """Function of the symbols' values: (shape, strides and offset in bytes) per array, numbers, loops,
        and what a reduction is cut by."""
        text = self.text
        parts = []
        for array in (*text.outputs, *text.inputs):
            assert array.layout is not None
            size = BY_NAME[array.kind].itemsize
            shape = "".join(f"{python(n)}, " for n in array.layout.sizes)
            strides = "".join(f"({python(s)}) * {size}, " for s in array.layout.strides)
            parts.append(f"(({shape}), ({strides}), ({python(array.layout.offset)}) * {size})")
        numbers, loops = ("".join(f"{python(x)}, " for x in xs) for xs in (text.numbers, text.loops))
        cut = (
            f"({python(text.pieces)}, {python(text.row)})"
            if text.pieces is not None and text.row is not None
            else "None"
        )
        symbols = ", ".join(map(str, self.symbols))
        source = f"lambda {symbols}: ([{', '.join(parts)}], ({numbers}), ({loops}), {cut})"
        layouts_of: Callable[..., Any] = eval(source, {"math": math, "torch": torch})
        return layouts_of

    def __call__(self, key: tuple[int, ...], *addresses: int) -> None:
        """Launches the kernel on the current stream."""
        checked = launch_state.key
        cache_key = (checked, key)
        if cache_key in self._runs:
            run = self._runs[cache_key]
        else:
            run = self._prepared(key) if checked is False else self._observed(key)
            self._runs.add(cache_key, run)
        if run is not None:
            run(*addresses)

    def _layout(self, key: tuple[int, ...]) -> tuple[list[Any], tuple[Any, ...], int, bool]:
        """Shape, strides and offset of every array, the numbers, bytes of partial results, and whether there
        is nothing to do."""
        arrays, numbers, loops, cut = self._layouts_of(*key)
        outputs, nbytes = len(self.text.outputs), 0
        partials: list[Any] = []  # with their offsets in the workspace
        if cut is not None:
            columns = self.text.schedule == "columns"
            pieces = self._pieces(loops, max(cut[0], 1), max(cut[1], 1), columns)
            shape = (*loops[:-1], pieces, loops[-1]) if columns else (*loops, pieces)
            for row in self._rows[outputs : outputs + len(self.text.partials)]:
                partials.append((shape, shapes.contiguous_strides(shape, row.itemsize), nbytes))
                nbytes += -(-shapes.size(shape) * row.itemsize // 256) * 256
        return [*arrays[:outputs], *partials, *arrays[outputs:]], numbers, nbytes, 0 in loops

    def _pieces(self, loops: tuple[int, ...], count: int, row: int, columns: bool) -> int:
        """The number of pieces into which reductions of `row` elements are cut, along an axis of `count` elements."""
        outputs = max(shapes.size(loops), 1)
        if not columns:
            return piece_count(count, outputs, outputs * row, self.grid)
        if self.grid:  # a thread for each column of a piece
            pieces = max(min(count // MIN_COLUMN, THREADS // outputs), 1)
        else:  # neighbouring columns are a block's of a loop
            together = max(shapes.size(loops[:-1]), 1) * -(-loops[-1] // COLUMNS)
            pieces = min(piece_count(count, max(together, 1), outputs * row, False), max(count // 8, 1))
            pieces = max(pieces, count // max(math.isqrt(count) // 8, MIN_RUN))
        return -(-count // -(-count // pieces))

    def _window(self, number: int, shape: Any, strides: Any, buffer: Buffer) -> ndarray:
        array, row = self._arrays[number], self._rows[number]
        strided = array.strided
        if strided is None:
            strided = array.layout is not None and not array.layout.contiguous
        key = type_key(row, len(shape), strided, True, self.device)
        return unchecked_array(buffer, shape, strides, shapes.size(shape), row, key)

    def _prepared(self, key: tuple[int, ...]) -> Run | None:
        layouts, numbers, nbytes, empty = self._layout(key)
        if empty:
            return None
        buffer = Buffer.allocate(self.device, 1)  # only types are read
        windows = [self._window(k, s, t, buffer) for k, (s, t, _) in enumerate(layouts)]
        variant = self.kernel.variant((*windows, *numbers), checked=False)
        arrays, offsets = [x[:2] for x in layouts], [x[2] for x in layouts]
        bound_launch = bind_launch(variant, [*arrays, *(None for _ in numbers)], numbers, offsets)
        return self._with_workspace(bound_launch, nbytes) if self.text.partials else bound_launch

    def _with_workspace(self, bound_launch: BoundLaunch, nbytes: int) -> Run:
        """The launch as a function of the addresses of outputs and inputs, which allocates the partial results."""
        outputs, partials = len(self.text.outputs), len(self.text.partials)
        empty = allocator(self.torch_device)

        def run(*addresses: int) -> None:
            block = empty((nbytes,), (1,), torch.uint8)
            bound_launch(*addresses[:outputs], *([block.data_ptr()] * partials), *addresses[outputs:])

        return run

    def _observed(self, key: tuple[int, ...]) -> Run | None:
        """A launch with bounds checks or observers, by the kernel's general call."""
        layouts, numbers, nbytes, empty = self._layout(key)
        if empty:
            return None
        outputs, partials = len(self.text.outputs), len(self.text.partials)

        def run(*addresses: int) -> None:
            remaining, windows = iter(addresses), list[ndarray]()
            block = torch.empty(nbytes, dtype=torch.uint8, device=self.torch_device) if partials else None
            for k, (shape, strides, offset) in enumerate(layouts):
                extent = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + self._rows[k].itemsize
                if outputs <= k < outputs + partials:
                    assert block is not None
                    start = block.data_ptr()
                else:
                    start = next(remaining)
                buffer = Buffer.wrap(self.device, start + offset, extent if 0 not in shape else 0, self)
                windows.append(self._window(k, shape, strides, buffer))
            self._call(windows, numbers)

        return run

    def _call(self, windows: Sequence[ndarray], numbers: tuple[Any, ...]) -> None:
        self.kernel(*windows, *numbers)


def _parts(array: Array) -> Sequence[sympy.Expr]:
    assert array.layout is not None
    return (*array.layout.sizes, *array.layout.strides, array.layout.offset)
