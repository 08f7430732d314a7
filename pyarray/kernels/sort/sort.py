"""Stable sorts and argsorts along the last axis.

Elements are transformed to unsigned keys of the same order (sort_keys.py). The shape decides the algorithm:

- *rows*: a row per iteration, short ones by insertion sort, others by radix sort. An argsort of short rows
  sorts keys that have positions as their low bits, by vectors.
- *blocks*: few long rows, by a parallel radix sort: each pass counts the digits of each block, scans the
counts and scatters the elements. Digits that all keys have in common are skipped.

CPUs sort elements of 2, 4 and 8 bytes by a vectorised quicksort (sort_cpu.py); grids have sort_gpu.py.
"""

from __future__ import annotations

from ... import array_host
from ...array import ndarray
from ...dtypes import bool_, int32, int64, uint8, uint32, uint64
from ..reduce.reduce import on_grid
from ..scan.nonzero import unsigned_view
from ..workspace import unchecked_empty
from . import radix_sort, sort_cpu, sort_gpu
from .sort_keys import KeyTransform, key_transform

DIGIT_BITS = 9  # a pass writes to a cache line for each value of a digit: these fit in L1
MIN_BLOCK = 1 << 14  # elements
MAX_BLOCKS = 64
SPARE_BITS = 10  # sorted bits of a key beyond log2 of the number of elements: few keys agree in all sorted bits
MIN_CUT = 1 << 13  # elements of a row from which on it is cut into blocks, unless there are MANY_ROWS
MANY_ROWS = 32
MAX_PACKED = 1 << 17  # elements of a row of 4-byte keys up to which keys and positions are packed into words
MAX_PACKED_NARROW = {1: 256, 2: 2048}  # the same by the bytes of a key, for many short rows
PACKED_WIDE_SIZES = range(8, 513)  # row sizes for 8-byte keys, which lose their last bits to the positions
MAX_WORKERS = 64  # rows that are sorted at a time, each with its own workspace


def sort_rows(out: ndarray, x: ndarray, descending: bool) -> None:
    """`out[r] = sorted(x[r])`; both are 2-D, contiguous, of one real dtype, and share no memory."""
    order, source, target = key_transform(x._dtype, descending), unsigned_view(x), unsigned_view(out)
    if x._dtype is bool_:
        source = source._view(0, source._shape, source._strides, dtype=uint8)
        target = target._view(0, target._shape, target._strides, dtype=uint8)
    if on_grid(x):
        sort_gpu.sort_rows(target, source, order, False)
        return
    if x.itemsize in sort_cpu.KEY_TYPES or (x.itemsize == 2 and x._shape[1] <= sort_cpu.MAX_NARROW):
        sort_cpu.sort_rows(target, source, order)
        return
    if _packs(x):
        _sort_packed(target, source, order, False)
        return
    if _by_rows(x):
        _launch_rows(target, source, order, False)
        return
    keys, low, high, has_neg_zero = _keys(source, order, False)
    if has_neg_zero and order.zero:
        low, high = min(low, order.flip), max(high, order.flip)
    _passes(keys, low, high, target, order, False)


def can_select(x: ndarray, kth: tuple[int, ...]) -> bool:
    """Whether `select_rows` and `argselect_rows` support `x` and these positions; else it is sorted."""
    if x._dtype.kind == "c" or on_grid(x):
        return False
    return x.itemsize in sort_cpu.KEY_TYPES and 0 < len(kth) <= sort_cpu.MAX_SELECTED


def select_rows(out: ndarray, x: ndarray, kth: tuple[int, ...]) -> None:
    """A partition: the elements at the positions `kth`, distinct and ascending, are those of a sort; elements
    before each aren't larger, elements after it aren't smaller."""
    sort_cpu.sort_rows(unsigned_view(out), unsigned_view(x), key_transform(x._dtype, False), kth)


def argselect_rows(out: ndarray, x: ndarray, kth: tuple[int, ...]) -> None:
    """An argpartition: the positions (int64) of the elements in the order of a partition."""
    sort_cpu.select_positions(out, unsigned_view(x), key_transform(x._dtype, False), kth)


def argsort_rows(out: ndarray, x: ndarray, descending: bool) -> None:
    """`x[r, out[r]]` is sorted; `out` is int64. Stable."""
    order, source = key_transform(x._dtype, descending), unsigned_view(x)
    if on_grid(x):
        sort_gpu.sort_rows(out, source, order, True)
        return
    if x.itemsize == 8 and x._shape[1] in PACKED_WIDE_SIZES:
        _sort_packed_wide(out, source, order)
        return
    if _packs(x):
        _sort_packed(out, source, order, True)
        return
    if _by_rows(x):
        _launch_rows(out, source, order, True)
        return
    keys, low, high, _ = _keys(source, order, True)
    _passes(keys, low, high, out, order, True)


def gather_rows(out: ndarray, x: ndarray, positions: ndarray) -> None:
    """`out[r, t] = x[r, positions[r, t]]`, of contiguous 2-D arrays."""
    if out._size:
        radix_sort.sort_gather()(unsigned_view(out), unsigned_view(x), positions)


def _by_rows(x: ndarray) -> bool:
    return x._shape[1] < MIN_CUT or x._shape[0] >= MANY_ROWS


def _packs(x: ndarray) -> bool:
    """Whether an argsort is faster with keys and positions packed into one word."""
    rows, n = x._shape
    if x.itemsize == 4:
        return n <= MAX_PACKED or (rows >= MANY_ROWS and n < 1 << 32)
    return n <= MAX_PACKED_NARROW.get(x.itemsize, 0) and x._size >= MIN_BLOCK


def _sort_packed(out: ndarray, x: ndarray, order: KeyTransform, positions: bool) -> None:
    """As `_launch_rows`, by sorting words with keys in the upper and positions in the lower half."""
    word = uint64 if x.itemsize == 4 else uint32
    keys, ordered = (unchecked_empty(x._shape, word, x.device) for _ in range(2))
    radix_sort.pack_words()(keys, x, order)
    sort_cpu.sort_rows(ordered, keys, key_transform(word, False))
    radix_sort.unpack_words()(out, ordered, x, "positions" if positions else "values")


def _sort_packed_wide(out: ndarray, x: ndarray, order: KeyTransform) -> None:
    """An argsort by words with the leading bits of keys that differ in a row, and positions below them.
    Ties are sorted by whole keys, by insertion: rows are short."""
    keys, ordered = (unchecked_empty(x._shape, uint64, x.device) for _ in range(2))
    lost = unchecked_empty((x._shape[0],), uint64, x.device)
    below = (x._shape[1] - 1).bit_length()
    radix_sort.pack_rows()(keys, lost, x, below, order)
    sort_cpu.sort_rows(ordered, keys, key_transform(uint64, False))
    radix_sort.unpack_rows()(out, ordered, lost, x, below, order)


def _launch_rows(out: ndarray, x: ndarray, order: KeyTransform, positions: bool) -> None:
    rows, n = x._shape
    workers = min(rows, MAX_WORKERS)
    number = int32 if n < 1 << 31 else int64
    keys = unchecked_empty((workers, 2, n), x._dtype, x.device)
    counts = unchecked_empty((workers, 256 if n > radix_sort.MAX_INSERTION else 0), number, x.device)
    places = unchecked_empty((workers, 2, n), number, x.device) if positions else keys
    kind = "positions" if positions else "values"
    radix_sort.sort_each_row()(out, x, keys, counts, -(-rows // workers), order, places, kind)


def _keys(x: ndarray, order: KeyTransform, equal_zeros: bool) -> tuple[ndarray, int, int, bool]:
    """The keys, their minimum and maximum, and whether there is a -0.0. Waits for the device."""
    keys = unchecked_empty(x._shape, x._dtype, x.device)
    block = max(MIN_BLOCK, -(-x._size // MAX_BLOCKS))
    extremes = unchecked_empty((3, -(-x._size // block)), x._dtype, x.device)
    zero = 0 if equal_zeros else order.zero
    flat = (a._view(0, (a._size,), (a._dtype.itemsize,)) for a in (keys, x))
    radix_sort.make_keys()(*flat, extremes, block, order, zero)
    low, high, has_neg_zero = array_host.host(extremes)[:, 0].tolist()
    return keys, low, high, bool(has_neg_zero)


def _passes(keys: ndarray, low: int, high: int, out: ndarray, order: KeyTransform, positions: bool) -> None:
    """A radix sort from the last digit to the first; the last pass writes elements or positions into `out`.

    An argsort of wide keys sorts by the upper digits only, in which nearly all keys differ, and then sorts
    runs of equal digits by insertion. If a run is too long for that, all digits are sorted by.
    """
    width, enough = max((high - low).bit_length(), 1), keys._shape[1].bit_length() + SPARE_BITS
    start = None
    if positions and width > enough + DIGIT_BITS:
        passes = -(-enough // DIGIT_BITS)
        keys, indices = _sort_digits(keys, None, order, low, width - passes * DIGIT_BITS, passes, positions)
        wrong = unchecked_empty((keys._shape[0], -(-keys._shape[1] // MIN_BLOCK)), int32, keys.device)
        radix_sort.sort_ties()(out, keys, wrong, low, width - passes * DIGIT_BITS, MIN_BLOCK, indices)
        if not array_host.host(wrong).any():
            return
        start = indices
    _sort_digits(keys, start, order, low, 0, -(-width // DIGIT_BITS), positions, width, out)


def _sort_digits(
    keys: ndarray,
    indices: ndarray | None,
    order: KeyTransform,
    low: int,
    shift: int,
    passes: int,
    positions: bool,
    width: int = 0,
    out: ndarray | None = None,
) -> tuple[ndarray, ndarray | None]:
    """Keys and their positions (None: unpermuted) sorted by `passes` digits from bit `shift` on; the last pass
    writes into `out` if given. `keys` and `indices` are overwritten."""
    digit = -(-width // passes) if width else DIGIT_BITS
    rows, n = keys._shape
    block = max(MIN_BLOCK, -(-n * rows // MAX_BLOCKS))
    number = int32 if n < 1 << 31 else int64
    counts = unchecked_empty((rows, -(-n // block), 1 << digit), number, keys.device)
    totals = unchecked_empty((rows, 1 << digit), number, keys.device)
    kind, key_spare, index_spare = "positions" if positions else "values", None, None
    for k in range(passes):
        args = (keys, counts, totals, low, shift + k * digit, (1 << digit) - 1, block, order)
        sources = totals if indices is None else indices, indices is not None
        if out is not None and k == passes - 1:
            radix_sort.radix_pass()(out, *args, *sources, out, kind, True)
            break
        target = unchecked_empty(keys._shape, keys._dtype, keys.device) if key_spare is None else key_spare
        to = target
        if positions:
            to = unchecked_empty(keys._shape, number, keys.device) if index_spare is None else index_spare
        radix_sort.radix_pass()(target, *args, *sources, to, kind, False)
        if positions:
            indices, index_spare = to, indices
        keys, key_spare = target, keys
    return keys, indices
