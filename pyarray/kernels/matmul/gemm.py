"""Matrix products of any strides and batch: launches csrc/device/pa_gemm.h on CPUs, pa_gemm_gpu.h, pa_gemm_mma.h and
pa_gemm_amd.h on GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import jit, shapes
from ..._core import BoundLaunch, CallPlan
from ...array import ndarray
from ...dtypes import DType, float32
from ...jit.launch_state import launch_state
from ...jit.text_kernel import Address
from ...memory.host_access import not_repeatable
from .. import matmul
from ..elementwise.elementwise import copy_if_aliased
from ..workspace import unchecked_empty
from . import gemm_words
from . import thresholds as th
from .gemm_key import TINY, ProductKey
from .gemm_mma import Tile, along_depth, copy_if_unaligned, is_turned_faster, k_major_operands, tile_for
from .gemm_text import KERNEL, program
from .gemm_types import BLOCKS, is_tf32

if TYPE_CHECKING:
    from .gemm_epilogue import Addends, Epilogue

Layout = tuple[tuple[int, ...], tuple[int, ...]]


def gemm(
    c: ndarray,
    a: ndarray,
    b: ndarray,
    epilogue: Epilogue | None = None,
    addends: Addends = (),
    numbers: Any = (),
    precision: str | None = None,
    sums: Callable[[DType], ndarray] | None = None,
) -> None:
    """`c[...] = a @ b` for arrays (..., m, k), (..., k, n) and (..., m, n) of one type, whose batches
    broadcast to that of `c`. `precision` of float32: "tf32" or "float32"; None is the setting's.

    With `epilogue`, that is applied to the sums, `addends` (arrays like `c`) and `numbers`; `c` has its type. Kernels
    that have no epilogues store the sums to `sums(dtype)`, an array like `c` of that type; None: to a new one."""
    a, b = copy_if_overlapping(a, c), copy_if_overlapping(b, c)
    grid, checked = c._buffer.device.driver.grid, launch_state.debug
    vector = bool(grid and 1 in c._shape[-2:] and not checked and c._size and a._shape[-1])
    special = _special_product(a, b, c, precision) if grid and not (checked or vector) else None
    if grid and epilogue and (vector or special or checked or _needs_a_pass(epilogue, a, c)):
        _apply_to_sums(a, b, c, epilogue, addends, numbers, precision, sums)
    elif special:
        special()
    else:
        _whole(c, a, b, vector, epilogue, addends, numbers, precision, sums)


def _whole(
    c: ndarray,
    a: ndarray,
    b: ndarray,
    vector: bool = False,
    epilogue: Epilogue | None = None,
    addends: Addends = (),
    numbers: Any = (),
    precision: str | None = None,
    sums: Callable[[DType], ndarray] | None = None,
) -> None:
    """`gemm` by the kernels of all shapes, or with `vector` by those of a row or a column times a matrix, on a grid."""
    checked, grid, given = launch_state.debug, c._buffer.device.driver.grid, (a, b, c)
    a, b, c, tiles, parts = (a, b, c, 0, 1) if vector else _for_grid_tiles(*_row_major(a, b, c), checked, precision)
    if grid and epilogue is not None:
        if parts > 1:
            _apply_to_sums(*given, epilogue, addends, numbers, precision, sums)
            return
        if (c._shape, c._strides) != (given[2]._shape, given[2]._strides):  # the transposed product
            addends = [_transposed(x) for x in addends]
    batch, views = _with_merged_axes(arrays := (a, b, c, *addends), c._shape[:-2])
    if vector:
        _with_vector(*views)
        return
    if grid and shapes.size(batch) >= th.MOST_MATRICES:
        for part in _halves(views):
            gemm(part[2], part[0], part[1], epilogue, part[3:], numbers, precision)
        return
    if not (grid or checked) and gemm_words.fits(views, epilogue):
        gemm_words.multiply(views)
        return
    if parts > 1 and not isinstance(tiles, Tile):
        matmul.split_k.add_parts(KERNEL, views[0], views[1], views[2], tiles, parts)
        return
    if isinstance(tiles, Tile) and tiles.bf16x6:
        by_parts, tiles = tiles, matmul.split_k.schedule(c, a._shape[-1], True)[0]
        if matmul.gemm_bf16x6.multiply(KERNEL, views, (by_parts, tiles), epilogue, numbers):
            return
    extra: list[int] = [end for x in arrays for end in buffer_range(x)] if checked else []
    if epilogue is None and a._dtype.is_narrow and a._dtype is not c._dtype:
        epilogue = matmul.gemm_epilogue.Epilogue(c._dtype.name)
    key = ProductKey(a._dtype.name, len(batch), tiles, epilogue)
    if c._size * a._shape[-1] >= th.TUNED_WORK and not checked and not grid:
        _tuned(key, *views, *numbers)
    else:
        if grid:
            extra.append(matmul.split_k.blocks(tiles, c, a._dtype))
        KERNEL.launch(key, c.device, *views, *numbers, *extra, checked=checked)


def _special_product(a: ndarray, b: ndarray, c: ndarray, precision: str | None) -> Callable[[], None] | None:
    """What computes a product on a grid whose shape has kernels of its own, without an epilogue; None of others."""
    if matmul.tall_skinny.fits(a, b, c):
        return lambda: matmul.tall_skinny.multiply(a, b, c)
    parts, product = matmul.deep_products.parts(a, c), partial(_whole, precision=precision)
    return (lambda: matmul.deep_products.multiply(a, b, c, parts, product)) if parts > 1 else None


def _needs_a_pass(epilogue: Epilogue, a: ndarray, c: ndarray) -> bool:
    """Whether a kernel of its own applies an epilogue faster than that of the product, or only this one can."""
    widened = a._dtype is not c._dtype and not a._dtype.is_narrow
    return widened or not matmul.gemm_epilogue.is_cheap(epilogue)


def _with_vector(a: ndarray, b: ndarray, c: ndarray) -> None:
    """The product with a row or a column, on a grid."""
    tiny = matmul.gemv.tiny_operands(a, b, c)
    if tiny is None:
        matmul.gemv.gemv(a, b, c)
    else:
        blocks = matmul.split_k.blocks(TINY, c, a._dtype)
        wider = None if a._dtype is c._dtype else matmul.gemm_epilogue.Epilogue(c._dtype.name)
        KERNEL.launch(ProductKey(a._dtype.name, c.ndim - 2, TINY, wider), c.device, *tiny, blocks, checked=False)


def _with_merged_axes(arrays: Sequence[ndarray], batch: tuple[int, ...]) -> tuple[tuple[int, ...], list[ndarray]]:
    """The batch with axes joined where all arrays allow it, and the arrays as views with that batch."""
    columns = [shapes.broadcast_strides(x._shape[:-2], x._strides[:-2], batch) for x in arrays]
    batch, merged = shapes.collapse(batch, *columns)
    pairs = zip(arrays, merged, strict=True)
    return batch, [x._view(0, batch + x._shape[-2:], steps + x._strides[-2:]) for x, steps in pairs]


def _halves(views: Sequence[ndarray]) -> Iterator[list[ndarray]]:
    """Both halves of arrays along the longest axis of their batch."""
    batch = views[0]._shape[:-2]
    axis = batch.index(max(batch))
    middle = batch[axis] // 2
    for low, high in ((0, middle), (middle, batch[axis])):
        size = *batch[:axis], high - low, *batch[axis + 1 :]
        yield [x._view(low * x._strides[axis], size + x._shape[-2:], x._strides) for x in views]


def _tuned(key: ProductKey, a: ndarray, b: ndarray, c: ndarray, *more: Any) -> None:
    """The launch with the best known block sizes for these operands."""
    device = c._buffer.device
    not_repeatable()  # a replayed call wouldn't ask the tuner again
    blocks = matmul.gemm_blocks

    def launch_arguments(config: Any) -> tuple[Any, tuple[Any, ...]]:
        if config == blocks.DEFAULT:
            return key, (a, b, c, *more)
        return key._replace(blocks=True), (a, b, c, *more, *(config[name] for name in BLOCKS))

    def prepare(config: Any) -> Callable[[], Any]:
        """A launch for the tuner, without observers."""
        variant_key, arguments = launch_arguments(config)
        launch = KERNEL.variant(variant_key, device, checked=False).launch
        return lambda: launch(*arguments)

    inputs = (a, b, *(x for x in more if isinstance(x, ndarray)))
    variant_key, arguments = launch_arguments(
        tuner().choose(device, blocks.tuning_key(a, c, key.epilogue is not None), blocks.DEFAULT, prepare, (c,), inputs)
    )
    KERNEL.launch(variant_key, device, *arguments, checked=False)


def bound_gemm_launch(
    dtype: DType, epilogue: Epilogue | None, layouts: Sequence[Layout], offsets: Sequence[int], device: Any
) -> BoundLaunch | None:
    """The launch bound to arrays of these shapes and strides, those of a, b, c and of the epilogue's arrays, `offsets`
    bytes before them: a function of the addresses of c, a, b and of these. None where each call chooses: on grids, and
    where block sizes are tuned."""
    shape, depth = layouts[2][0], layouts[0][0][-1]
    if device.driver.grid or shapes.size(shape) * depth >= th.TUNED_WORK:
        return None
    key = ProductKey(dtype.name, len(shape) - 2, epilogue=epilogue)
    order = (2, 0, 1, *range(3, len(layouts)))
    return jit.bound_launch.bind_launch(KERNEL.variant(key, device, checked=False), layouts, (), offsets, order)


def product_plan(dtype: DType, device: Any, key: int, has_out: bool) -> CallPlan | None:
    """The plan of a call that multiplies two matrices of one type and any strides into a new one of that type key, or
    into a third operand: all sizes whose block sizes aren't tuned. None on grids, whose tiles depend on sizes."""
    if device.driver.grid:
        return None
    variant = KERNEL.variant(ProductKey(dtype.name, 0), device, checked=False)
    m, k, n = ("dim", 0, 0), ("dim", 0, 1), ("dim", 1, 1)
    target = ("operand", 2, 0) if has_out else ("buffer", 0, 0)
    strides = (("stride", 2, 0), ("stride", 2, 1)) if has_out else (("dim", 1, 1, dtype.itemsize), dtype.itemsize)
    a, b, c = jit.bound_launch.first_slots(variant.program.params)
    fills = [(c, target), *enumerate((m, n, *strides), c + 1)]
    for operand, slot in enumerate((a, b)):
        values = *(("dim", operand, axis) for axis in (0, 1)), *(("stride", operand, axis) for axis in (0, 1))
        fills += [(slot, ("operand", operand, 0)), *enumerate(values, slot + 1)]
    unknown = ((1, 1), (dtype.itemsize, dtype.itemsize))
    step = jit.bound_launch.bind_launch(variant, (unknown,) * 3), tuple(fills), (m, n, k)
    conditions: list[Any] = [
        ("equal", k, ("dim", 1, 0)),
        (1, th.TUNED_WORK - 1, (m, n)),
        (0, th.TUNED_WORK - 1, (m, n, k)),
    ]
    if has_out:
        conditions += [("equal", m, ("dim", 2, 0)), ("equal", n, ("dim", 2, 1))]
        return CallPlan(3, (), (step,), ("operand", 2), (2,), tuple(conditions))
    result = ("array", 0, key, (m, n), None, None)
    return CallPlan(2, ((dtype.itemsize, m, n),), (step,), result, (), tuple(conditions))


def is_widening_on_grid(dtype: DType, c: ndarray) -> bool:
    """Whether `gemm` multiplies operands of `dtype` into `c` without casting them first, on a grid: where tensor cores
    do."""
    vector = 1 in c._shape[-2:] or not c._size
    return dtype.itemsize == 1 and not vector and not launch_state.debug and tile_for(c, 0, dtype=dtype) is not None


def is_widening(dtype: DType, out: DType) -> bool:
    """Whether `gemm` multiplies operands of `dtype` into `out` without casting them first."""
    if dtype.kind in "iu" and out.kind in "iu":
        return dtype.itemsize < out.itemsize
    return dtype.is_narrow and out.kind == "f" and dtype.itemsize < out.itemsize <= 4


def _row_major(a: ndarray, b: ndarray, c: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """The operands, or on a grid those of `c.T = b.T @ a.T` if `c` is column-major: it is stored by rows."""
    if abs(c._strides[-2]) >= abs(c._strides[-1]) or not c._buffer.device.driver.grid:
        return a, b, c
    return _transposed(b), _transposed(a), _transposed(c)


def _transposed(x: ndarray) -> ndarray:
    shape, steps = x._shape, x._strides
    return x._view(0, (*shape[:-2], shape[-1], shape[-2]), (*steps[:-2], steps[-1], steps[-2]))


def _apply_to_sums(
    a: ndarray,
    b: ndarray,
    c: ndarray,
    epilogue: Epilogue,
    addends: Addends,
    numbers: Any,
    precision: str | None,
    sums: Callable[[DType], ndarray] | None,
) -> None:
    """A product and its epilogue in a kernel of its own. Sums of narrow floats are float32."""
    kind = float32 if a._dtype.is_narrow else c._dtype
    target = unchecked_empty(c._shape, kind, c.device) if sums is None else sums(kind)
    gemm(target, a, b, precision=precision)
    matmul.gemm_epilogue.apply_epilogue(epilogue, c, target, addends, numbers)


def _for_grid_tiles(
    a: ndarray, b: ndarray, c: ndarray, checked: bool, precision: str | None
) -> tuple[ndarray, ndarray, ndarray, int | Tile, int]:
    """The operands as the tiles of a grid take them, the tiles, which are tensor cores' if they support the dtype,
    except in debug mode, and the number of parts of the depth."""
    if not c._buffer.device.driver.grid:
        return a, b, c, 0, 1
    if not checked:
        depth = a._shape[-1]
        if matmul.split_k.is_tiny(c, depth, a._dtype):
            return a, b, c, TINY, 1
        if a.itemsize == 1 and (tile := tile_for(c, depth, dtype=a._dtype)):
            return *along_depth(a, b), c, tile, 1
        single = a._dtype is float32
        tile = tile_for(c, depth, True) if single and is_tf32(precision) else None
        if tile and (turned := k_major_operands(a, b, c)):
            return *turned, tile, 1
        if single and (tile := matmul.gemm_bf16x6.bf16x6_tile(a, b, c)):
            return a, b, c, tile, 1
        in_parts = single and matmul.split_k.schedule(c, depth, False)[1] > 1
        if not in_parts and (tile := tile_for(c, depth, dtype=a._dtype)):
            a, b = copy_if_unaligned(a, c._shape[-1]), copy_if_unaligned(b, c._shape[-2])
            if is_turned_faster(b, tile):
                a, b, c = _transposed(b), _transposed(a), _transposed(c)
                tile = tile_for(c, depth, dtype=a._dtype) or tile
            return a, b, c, tile, 1
    return a, b, c, *matmul.split_k.schedule(c, a._shape[-1], checked, a._dtype)


def copy_if_overlapping(x: ndarray, c: ndarray) -> ndarray:
    """`x`, copied if it aliases the output in any layout: every element is read many times."""
    if x._ptr == c._ptr and x._size and c._size:
        return x.copy()
    return copy_if_aliased(x, c)


def buffer_range(x: ndarray) -> tuple[Address, Address]:
    return Address(x._buffer.ptr), Address(x._buffer.ptr + x._buffer.nbytes)


def tuner() -> Any:
    """The `LibraryTuner` of block sizes."""
    return matmul.gemm_blocks.tuner(_float32_text)


def _float32_text() -> str:
    return program(ProductKey("float32", 0), "cpu", False).text
