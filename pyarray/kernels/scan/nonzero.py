"""Compaction (nonzero, boolean masks), and range checks of index arrays.

The elements are cut into blocks, which are counted in parallel; one thread scans the blocks' counts.
"""

from __future__ import annotations

import functools

from ... import array_host, jit
from ..._core import host_nonzero
from ...array import empty, ndarray
from ...array_hooks import operation
from ...dtypes import int32, int64, uint8, uint16, uint32, uint64
from ...jit.launch_state import launch_state
from ...jit.replay import guard
from ...memory.host_access import on_host
from ..reduce.reduce import on_grid
from . import scan_gpu

BLOCK = 128  # elements of a block
BLOCKS = 1 << 14  # at most, before blocks get longer

_BITS = {1: uint8, 2: uint16, 4: uint32, 8: uint64}
_SCOPE = {"int32": int32, "int64": int64}


def unsigned_view(a: ndarray) -> ndarray:
    """A view of `a` as unsigned integers of its item size. Complex numbers stay as they are: they are aligned to their
    parts only, and an integer of 8 bytes at an address that is no multiple of 8 is an error on GPUs."""
    return reinterpret_unsigned(a._view(0, a._shape, a._strides))


def reinterpret_unsigned(view: ndarray) -> ndarray:
    """Turn `view`, to which there is no other reference, into an `unsigned_view` of itself."""
    if view._dtype.kind != "c":
        view._key = view._key & ~0xFF | _BITS[view._dtype.itemsize].code
    return view


def nonzero(a: ndarray) -> tuple[ndarray, ...]:
    """Positions of the elements that are not zero, in C order: one 1-D int64 array per axis. Waits for the
    device.

    Raises `ValueError` for a 0-d array.
    """
    if not a._shape:
        raise ValueError("nonzero() takes an array of 1 or more dimensions, got a 0-d array; use a.reshape(1)")
    found = host_nonzero(a)
    return positions(a, a._shape) if found is NotImplemented else found


def count_nonzero(a: ndarray) -> int:
    """The number of elements that are not zero. Waits for the device."""
    return _counted(_flat_bits(a))[1] if a._size else 0


def _flat_bits(a: ndarray) -> ndarray:
    """All elements in C order as a 1-D array; integers as unsigned ones, so that they share artifacts. Bools
    become bytes, which gcc vectorises."""
    flat = operation("contiguous")(a).reshape(a._size)
    return unsigned_view(flat) if a._dtype.kind in "biu" else flat


def _block(count: int) -> int:
    return max(BLOCK, -(-count // BLOCKS))


def _counted(flat: ndarray) -> tuple[ndarray, int]:
    """Nonzero elements before each block of `flat`, and their total."""
    block = _block(flat._size)
    counts = empty(-(-flat._size // block) + 1, int64, flat.device)
    _count_kernel()(counts, flat, block)
    return counts, array_host.result_size(counts)


def select_by_mask(a: ndarray, mask: ndarray) -> ndarray:
    """The elements of `a`, which is on a grid, where a mask of its shape is true, in C order. Waits for the
    device."""
    if not a._size:
        return empty(0, a._dtype, a.device)
    flat = _flat_bits(mask)
    counts = scan_gpu.count(flat)
    out = empty(array_host.result_size(counts), a._dtype, a.device)
    if out._size:
        scan_gpu.compact_into(
            unsigned_view(out), unsigned_view(operation("contiguous")(a).reshape(a._size)), flat, counts
        )
    return out


def positions(a: ndarray, shape: tuple[int, ...]) -> tuple[ndarray, ...]:
    """Positions of `a`'s nonzero elements in an array of `shape`, which has as many elements."""
    if not a._size:
        return tuple(empty(0, int64, a.device) for _ in shape)
    flat = _flat_bits(a)
    if on_grid(flat):
        counts = scan_gpu.count(flat)
        out = empty((len(shape), array_host.result_size(counts)), int64, a.device)
        if out._size:
            scan_gpu.positions_into(out, flat, counts, shape)
        return tuple(out[k] for k in range(len(shape)))
    found, total = _counted(flat)
    out = empty((len(shape), total), int64, a.device)
    if total:
        _positions_kernel(len(shape))(out, flat, found, _block(flat._size), *shape[1:])
    return tuple(out[k] for k in range(len(shape)))


# One text, made of constants only; dtypes are in the keys of the kernel's variants.
@functools.cache
def _count_kernel() -> jit.kernel.Kernel:
    text = """def count_nonzero(found, x, block: int):
    for b in range(found.shape[0] - 1):
        n = int32(0)
        for t in range(b * block, min(b * block + block, x.shape[0])):
            n += int32(x[t] != 0)
        found[b + 1] = n
    for zero in range(1):
        found[zero] = 0
        for b in range(2, found.shape[0]):
            found[b] += found[b - 1]
"""
    return jit.kernel.from_text("count_nonzero", text, dict(_SCOPE))


# The rank is all that differs in the text; dtypes are in its variants' keys.
@functools.cache
def _positions_kernel(rank: int) -> jit.kernel.Kernel:
    """Positions in C order first, which are then delinearized. Each position is stored unconditionally and
    kept by advancing: a branch would be mispredicted half of the time."""
    sizes = [f"n{k}" for k in range(1, rank)]
    text = f"""def nonzero(out, x, found, {", ".join(f"{n}: int" for n in ["block", *sizes])}):
    for b in range(found.shape[0] - 1):
        at = found[b]
        t = b * block
        while at < found[b + 1]:
            out[0, at] = t
            at += int64(x[t] != 0)
            t += 1
"""
    if rank > 1:
        text += "    for p in range(out.shape[1]):\n        left = out[0, p]\n"
        for k in reversed(range(1, rank)):
            text += f"        out[{k}, p] = left % n{k}\n        left = left // n{k}\n"
        text += "        out[0, p] = left\n"
    return jit.kernel.from_text("nonzero", text, dict(_SCOPE))


def check_range(index: ndarray, size: int, axis: int) -> None:
    """Raises `IndexError` unless all indices are in range. On GPUs, where that would wait for the device, in
    debug mode only.
    """
    if not index._size:
        return
    if not size:
        raise_outside(0, 0, size, axis)
    if on_host(index) or launch_state.debug:
        whole = index if index.ndim == 1 else operation("contiguous")(index).reshape(index._size)
        flat = operation("contiguous")(whole)
        block = _block(flat._size)
        extremes = empty((-(-flat._size // block), 2), int64, index.device)
        _extremes_kernel()(extremes, flat, block)
        guard(extremes[0], functools.partial(raise_outside, size=size, axis=axis))


def raise_outside(low: int, high: int, size: int, axis: int) -> None:
    if low < -size or high >= size:
        wrong = low if low < -size else high
        legal = f"indices run from {-size} to {size - 1}" if size else "there is nothing to index"
        raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {size}; {legal}")


# One text, made of constants only; dtypes are in the keys of the kernel's variants.
@functools.cache
def _extremes_kernel() -> jit.kernel.Kernel:
    text = """def extremes(found, index, block: int):
    for b in range(found.shape[0]):
        low = int64(index[b * block])
        high = low
        for t in range(b * block + 1, min(b * block + block, index.shape[0])):
            x = int64(index[t])
            low = min(low, x)
            high = max(high, x)
        found[b, 0] = low
        found[b, 1] = high
    for zero in range(1):
        for b in range(1, found.shape[0]):
            found[zero, 0] = min(found[zero, 0], found[b, 0])
            found[zero, 1] = max(found[zero, 1], found[b, 1])
"""
    return jit.kernel.from_text("extremes", text, dict(_SCOPE))
