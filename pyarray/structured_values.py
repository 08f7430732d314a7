"""Records as Python and NumPy have them, and keys of structured arrays: what `structured_array` is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyarray.annotations import field_names, is_structure
from pyarray.array import empty, ndarray
from pyarray.array_convert import as_base_class, asarray, asnumpy
from pyarray.errors import with_article
from pyarray.memory.host_access import address
from pyarray.structured_dtypes import Layout


def record_key(key: Any, ndim: int, inner: int = 1) -> Any:
    """The key of the words of the records at `key`, or of a field that has `inner` axes of its own."""
    items = key if type(key) is tuple else (key,)
    count = sum(getattr(k, "ndim", 1) or 1 if _is_mask(k) else 1 for k in items if k is not None and k is not Ellipsis)
    if count > ndim:
        raise IndexError(f"too many indices for an array of {ndim} dimensions: {count}")
    whole = (slice(None),) * inner
    return (*items, *whole) if any(k is Ellipsis for k in items) else (*items, Ellipsis, *whole)


def is_names(key: Any) -> bool:
    """Whether a key is a list of names of fields."""
    return type(key) is list and bool(key) and all(isinstance(name, str) for name in key)


def _is_mask(key: Any) -> bool:
    return isinstance(key, (ndarray, np.ndarray)) and key.dtype.kind == "b"


def as_record(layout: Layout, value: Any) -> Any:
    """A record of NumPy as an instance of the layout's class, or as a tuple where the user has none."""
    if not layout.declared:
        return value.item()
    items = {}
    for name, field in layout.fields.items():
        part = value[name]
        items[name] = as_record(field.inner, part) if field.inner else part.copy() if field.shape else part.item()
    return layout.record(**items)


def _as_tuples(value: Any) -> Any:
    """Instances of dataclasses as the tuples that NumPy makes records of, also in lists."""
    if hasattr(value, "__pyarray_layout__"):
        return _as_tuples(value.item())
    if isinstance(value, list):
        return [_as_tuples(item) for item in value]
    if is_structure(type(value)):
        return tuple(_as_tuples(getattr(value, name)) for name in field_names(type(value)))
    return asnumpy(value) if isinstance(value, ndarray) else value


def host_records(value: Any, layout: Layout) -> np.ndarray[Any, Any]:
    """`value` as records of NumPy: an array of them, a record, or (nested lists of) tuples and instances of
    dataclasses. Raises `TypeError` for what is none of these."""
    if isinstance(value, (np.ndarray, np.void)) and value.dtype.names is not None:
        values = as_base_class(np.asarray(value))
        return values if values.dtype == layout.dtype else values.astype(layout.dtype)
    try:
        return np.array(_as_tuples(value), dtype=layout.dtype)
    except OverflowError as error:
        what = f"{value!r} as {'records' if isinstance(value, list) else 'a record'} of {layout}: {error}"
        raise OverflowError(f"{what}; pass a number that fits, or give the field a wider type") from None
    except (TypeError, ValueError) as error:
        what = f"{with_article(type(value).__name__)} is no record of {layout}: {error}"
        raise TypeError(f"{what}; records are tuples of {len(layout.fields)} values, or instances") from None


def words_of(values: np.ndarray[Any, Any], layout: Layout, device: Any) -> ndarray:
    """Fresh words on the device that hold these records."""
    packed = np.array(values, dtype=layout.dtype, order="C", copy=True)
    if not packed.size:
        return empty((*packed.shape, layout.words), layout.word, device)
    words = packed.reshape(-1).view(layout.word.numpy).reshape(*packed.shape, layout.words)
    return asarray(words, device=device)


def is_aligned(values: np.ndarray[Any, Any], layout: Layout) -> bool:
    """Whether each record of NumPy lies where its fields can be read."""
    return not any(at % layout.alignment for at in (address(values), *values.strides))
