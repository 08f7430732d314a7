"""Methods and attributes of `ndarray` that are functions of the namespace, installed from a table."""

from __future__ import annotations

from typing import Any

from ...array import array_at, ndarray
from ...dtypes import real_of
from ...keywords import install as install_checked
from ...keywords import wrapped
from ...memory.host_access import give_address
from ..core import missing_names, registry
from ..numpy import selection
from ..standard import creation, sorting
from . import flat


def _part(a: ndarray, component: int) -> ndarray:
    """Real (0) or imaginary (1) components of a complex array, as a view."""
    kind = real_of(a._dtype)
    return array_at(a._buffer, a._ptr + component * kind.itemsize, a.shape, a.strides, kind, a._writeable)


def _real(self: ndarray) -> ndarray:
    """The real part; a view, as in NumPy."""
    return _part(self, 0) if self._dtype.kind == "c" else self


def _imag(self: ndarray) -> ndarray:
    """The imaginary part: a view of a complex array, zeros otherwise."""
    return _part(self, 1) if self._dtype.kind == "c" else creation.zeros(self.shape, self._dtype, device=self.device)


def _set_real(self: ndarray, value: Any) -> None:
    _real(self)[...] = value


def _set_imag(self: ndarray, value: Any) -> None:
    if self._dtype.kind != "c":
        raise TypeError(
            f"an array of {self._dtype} has no imaginary part to set; cast it first, a.astype('complex128')"
        )
    _part(self, 1)[...] = value


class MemoryPointer:
    """A pointer to an array's first element: its address `ptr` and its `device`. It keeps the memory alive."""

    __slots__ = ("_buffer", "device", "ptr")

    def __init__(self, ptr: int, buffer: Any):
        self.ptr, self.device, self._buffer = ptr, buffer.device, buffer

    def __int__(self) -> int:
        return self.ptr

    def __repr__(self) -> str:
        return f"<memory of {self.device} at {self.ptr:#x}>"


def _data(self: ndarray) -> MemoryPointer:
    """The pointer to the first element: `a.data.ptr` is its address."""
    give_address(self)
    return MemoryPointer(self._ptr, self._buffer)


def _compress(self: ndarray, condition: Any, axis: int | None = None) -> ndarray:
    """`pyarray.compress(condition, self, axis)`."""
    return selection.compress(condition, self, axis)


def install() -> None:
    """Give `ndarray` these methods."""
    for name, function in registry.methods.items():
        method = wrapped(function)
        method.__name__ = name
        method.__doc__ = f"`pyarray.{function.__name__}` of this array.\n\n    {function.__doc__}"
        setattr(ndarray, name, method)
    for name, method in (
        ("sort", sorting.sort_in_place),
        ("partition", sorting.partition_in_place),
        ("compress", _compress),
        ("conjugate", ndarray.conj),
        ("resize", flat.resize),
        ("tofile", flat.tofile),
    ):
        setattr(ndarray, name, method)
    for name, part, setter in (("real", _real, _set_real), ("imag", _imag, _set_imag)):
        setattr(ndarray, name, property(part, setter))
    setattr(ndarray, "__getattr__", missing_names.no_attribute)  # noqa: B010
    setattr(ndarray, "data", property(_data))  # noqa: B010
    setattr(ndarray, "flat", property(flat.flat, flat.set_flat))  # noqa: B010
    install_checked(ndarray)
