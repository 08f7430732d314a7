"""Arrays from Python and NumPy objects, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pyarray import shapes
from pyarray._core import foreign_array
from pyarray.array import MAX_NDIM, STRIDED, array_at, empty, ndarray, operations, type_key, unchecked_array
from pyarray.array_hooks import Tracer, is_foreign, operation
from pyarray.driver.base import get_device
from pyarray.dtypes import DType, asdtype
from pyarray.errors import with_article
from pyarray.keywords import quick
from pyarray.memory.buffer import Buffer
from pyarray.memory.host_access import address, copy_between, download, numpy_view, on_host, upload
from pyarray.typing import ArrayLike, DeviceLike, DTypeLike


@quick("asarray")
def array(obj: ArrayLike, dtype: DTypeLike = None, copy: bool | None = True, device: DeviceLike = None) -> ndarray:
    """`asarray` that copies unless told otherwise: `copy=None` copies where it must, `copy=False` raises
    `ValueError` there.

    >>> array([[1, 2], [3, 4]], dtype="float32").shape
    (2, 2)
    """
    return asarray(obj, dtype=dtype, copy=copy, device=device)


@quick("asarray")
def asarray(obj: ArrayLike, dtype: DTypeLike = None, copy: bool | None = None, device: DeviceLike = None) -> ndarray:
    """`obj` as an array: an array, a NumPy array, anything with `__dlpack__`, `__cuda_array_interface__` or a
    buffer, a scalar or nested sequences of them.

    On the CPU the memory of NumPy arrays (of subclasses too) and buffers is shared where dtype, alignment and
    byte order allow; read-only memory, and axes of stride 0, give a read-only array; a bytearray can't grow
    meanwhile. `copy=True` always copies, `copy=False` raises `ValueError` where a copy is needed. Dtypes of
    Python scalars are bool, int64, float64, complex128. Raises `TypeError` for unsupported dtypes and for
    masked arrays, `OverflowError` for integers out of the dtype's range.

    >>> asarray([1, 2.5]).dtype
    dtype('float64')
    """
    if type(obj) is np.ndarray and dtype is None and not copy and get_device(device).code == 0:
        found: ndarray | None = foreign_array(obj)
        if found is not None:
            return found
    kind = None if dtype is None else asdtype(dtype)
    if isinstance(obj, ndarray):
        return _converted(obj, kind, copy, obj.device if device is None else get_device(device))
    if isinstance(obj, Tracer):
        array = obj._as_array()
        return array if kind is None else array.astype(kind)
    if is_foreign(obj):
        imported = from_foreign(obj)
        if kind is None and copy is None and device is None:
            return imported
        return _converted(imported, kind, copy, imported.device if device is None else get_device(device))
    return _from_numpy(obj, kind, copy, get_device(device))


def assigned(target: ndarray, value: ArrayLike) -> ndarray:
    """`value`, no array of ours, as the array that is assigned to `target`. Python's integers and floats in a
    sequence must fit an integer dtype, as in NumPy: `OverflowError`, and `ValueError` for NaN."""
    if not isinstance(value, (list, tuple, range)):
        return asarray(value, device=target.device)
    found = _host_values(value, None)
    exact = target._dtype.kind in "iu" and found.dtype.kind in "iuf" and found.dtype != target._dtype.numpy
    if exact or found.dtype.kind == "O":
        return asarray(value, target._dtype, device=target.device)
    return asarray(found, device=target.device)


def from_foreign(x: ArrayLike) -> ndarray:
    """The array on the memory of another library's, one of which `is_foreign` says that it is one. Raises
    what its ways of exchange raise."""
    return operation("from_dlpack" if hasattr(x, "__dlpack__") else "from_cuda_interface")(x)


def asnumpy(a: ArrayLike) -> np.ndarray[Any, Any]:
    """`a` as a NumPy array: the CPU array's own memory, a copy of any other device's. What is no pyarray
    array goes through `numpy.asarray`.

    >>> asnumpy(asarray([1, 2])).tolist()
    [1, 2]
    """
    if not isinstance(a, ndarray):
        return getattr(a, "_asnumpy", lambda: np.asarray(a))()
    return numpy_view(a) if on_host(a) else _download(a)


def to_device(a: ndarray, device: DeviceLike, stream: Any = None) -> ndarray:
    """`a` on `device`: itself when it is there, else a copy, which goes directly between two GPUs of a kind.
    Raises `ValueError` for a stream other than None."""
    if stream is not None:
        raise ValueError(f"to_device takes stream=None, work is ordered by the arrays; got {stream!r}")
    target = get_device(device)
    if target == a.device:
        return a
    result = empty(a.shape, a._dtype, target)
    packed = operation("contiguous")(a) if a._key & STRIDED else a
    if not a.size or copy_between(result, packed):
        return result
    return _upload(asnumpy(packed), a._dtype, target)


def _converted(a: ndarray, kind: DType | None, copy: bool | None, device: Any) -> ndarray:
    same = (kind is None or kind is a._dtype) and device == a.device
    if copy is False and not same:
        raise ValueError(f"turning {a._dtype} on {a.device} into {kind or a._dtype} on {device} copies; pass copy=None")
    moved = to_device(a, device)
    if kind is not None and kind is not a._dtype:
        return moved.astype(kind)
    return moved.copy() if copy and moved is a else moved


def _from_numpy(obj: Any, kind: DType | None, copy: bool | None, device: Any) -> ndarray:
    if isinstance(obj, np.ndarray):
        obj = as_base_class(obj)
    values = _host_values(obj, kind)
    native = values.dtype.isnative
    try:
        source = asdtype(values.dtype if native else values.dtype.newbyteorder("="))
    except TypeError:  # objects, text, dates
        if values.dtype.kind == "O":
            raise _no_number(obj, values) from None
        if isinstance(obj, bytes):
            raise TypeError("bytes are text to NumPy; write frombuffer(..., 'uint8') for numbers") from None
        raise
    shareable = (
        (values is obj or isinstance(values.base, memoryview))  # a bytearray, a memoryview, an array.array
        and native
        and values.flags.aligned
        and kind in (None, source)
        and device.code == 0
    )
    if shareable and not copy:
        return array_on_numpy(values, source, device)
    if copy is False:
        raise ValueError(
            f"the {type(obj).__name__} can't be shared (a NumPy array or a buffer of that dtype, aligned, "
            "native, on the CPU can); pass copy=None or copy=True"
        )
    return _upload(values, kind or source, device)


def as_base_class(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same elements as an array of NumPy's own class, whose attributes are what they are: a subclass may
    say anything of its shape and address. Raises `TypeError` for a masked array."""
    if type(x) is np.ndarray:
        return x
    if isinstance(x, np.ma.MaskedArray):
        what = "a masked array would lose its mask; pass x.filled(value)"
        raise TypeError(f"{what}, or x.data, and x.mask as another array")
    return np.asarray(x)


def _no_number(obj: Any, values: np.ndarray[Any, Any]) -> Exception:
    """What is wrong with `obj`, of which NumPy can only make an array of objects."""
    if isinstance(obj, Iterable) and not isinstance(obj, np.ndarray) and values.ndim == 0:
        what = f"{with_article(type(obj).__name__)} is no sequence"
        return TypeError(f"asarray() takes arrays, numbers and sequences, and {what}; make a list of it")
    for item in values.flat:
        if type(item) is int and not -(1 << 63) <= item < 1 << 64:
            what = f"{item} is out of range for int64 and uint64"
            return OverflowError(f"{what}; pass it as a float, or name a floating dtype")
        if not isinstance(item, (bool, int, float, complex, np.number, np.bool_)):
            came = "None" if item is None else type(item).__name__
            advice = "write math.nan for what is missing" if item is None else "convert it to a number"
            return TypeError(f"an element is a number or a bool, got {came}; {advice}")
    return TypeError("an array of objects can't be shared or copied; name a dtype with astype(...) first")


def _host_values(obj: Any, kind: DType | None) -> np.ndarray[Any, Any]:
    """`numpy.asarray`, also for sequences that hold our own arrays. Python numbers must fit `kind`, if one is
    given; NumPy's are cast."""
    if isinstance(obj, (list, tuple)) and obj and isinstance(obj[0], np.ma.MaskedArray):
        as_base_class(obj[0])  # says what to do instead
    try:
        return _cast_values(obj, kind)
    except TypeError:
        if not isinstance(obj, (list, tuple)):
            raise
    # NumPy reads our arrays on the CPU, and refuses others. Looking for those first would take as long as
    # reading a list of numbers.
    return _cast_values(_without_arrays(obj), kind)


def _cast_values(obj: Any, kind: DType | None) -> np.ndarray[Any, Any]:
    if kind is None or isinstance(obj, (np.ndarray, np.generic)):
        return _of_equal_lengths(obj)
    try:
        with np.errstate(all="ignore"):
            return np.asarray(obj, dtype=kind.numpy)
    except (OverflowError, TypeError, ValueError) as error:
        values = _of_equal_lengths(obj)
        if values.dtype.kind == "O" and not isinstance(error, OverflowError):
            raise _no_number(obj, values) from None
        what = f"the {type(obj).__name__} can't become an array of {kind}: {error}"
        kinds = (OverflowError, TypeError, ValueError)
        raise next(e for e in kinds if isinstance(error, e))(f"{what}; name a dtype that holds it") from None


def _of_equal_lengths(obj: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(obj)
    except ValueError as error:
        raise ValueError(f"nested sequences must have equal lengths and hold numbers: {error}") from None


def _without_arrays(obj: Any) -> Any:
    if isinstance(obj, (list, tuple)):
        return [_without_arrays(item) for item in obj]
    return asnumpy(obj) if isinstance(obj, ndarray) else obj


def array_on_numpy(values: np.ndarray[Any, Any], kind: DType, device: DeviceLike) -> ndarray:
    """An array on the memory of an aligned NumPy array whose dtype is `kind`. Checks nothing."""
    return array_on_memory(device, address(values), values.shape, values.strides, kind, values.flags.writeable, values)


def array_on_memory(
    device: Any,
    ptr: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    writeable: bool,
    owner: Any,
) -> ndarray:
    """An array whose first element is at `ptr`, in memory of `owner`, which stays alive as long; read-only
    where elements repeat. Checks nothing but the rank."""
    contiguous, size = shapes.contiguity_and_size(shape, strides, dtype.itemsize)
    if not contiguous or len(shape) > MAX_NDIM:
        writeable = writeable and not shapes.repeats(shape, strides)
        low, high = shapes.byte_bounds(shape, strides, dtype.itemsize)
        return array_at(Buffer.wrap(device, ptr + low, high - low, owner), ptr, shape, strides, dtype, writeable)
    buffer = Buffer.wrap(device, ptr, size * dtype.itemsize, owner)
    return unchecked_array(buffer, shape, strides, size, dtype, type_key(dtype, len(shape), False, writeable, device))


def _upload(values: np.ndarray[Any, Any], kind: DType, device: Any) -> ndarray:
    result = empty(values.shape, kind, device)
    if not result.size:
        return result
    if on_host(result):
        with np.errstate(all="ignore"):
            np.copyto(numpy_view(result), values, casting="unsafe")
    else:
        upload(device, result._ptr, np.ascontiguousarray(values, dtype=kind.numpy))
    return result


def _download(a: ndarray) -> np.ndarray[Any, Any]:
    values = np.empty(a.shape, dtype=a._dtype.numpy)
    if a.size:
        packed = operation("contiguous")(a) if a._key & STRIDED else a
        download(a.device, packed._ptr, values)
    return values


operations.update(array=array, asarray=asarray, assigned=assigned, asnumpy=asnumpy, to_device=to_device)
