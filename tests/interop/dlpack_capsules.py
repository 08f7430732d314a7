"""DLPack capsules made by hand, field by field, with ctypes: what no well-behaved producer would send."""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)


class Tensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


Deleter = CFUNCTYPE(None, c_void_p)


class Managed(Structure):
    _fields_ = (("tensor", Tensor), ("context", c_void_p), ("deleter", Deleter))


class Versioned(Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", Deleter),
        ("flags", c_uint64),
        ("tensor", Tensor),
    )


_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def name(capsule) -> bytes:
    """Name of a capsule."""
    return _name(capsule)


def tensor_of(capsule) -> Tensor:
    """The tensor in a capsule that was not consumed."""
    kind = Versioned if name(capsule) == b"dltensor_versioned" else Managed
    return ctypes.cast(_pointer(capsule, name(capsule)), POINTER(kind)).contents.tensor


def flags_of(capsule) -> int:
    """The flags of a versioned capsule that was not consumed."""
    return ctypes.cast(_pointer(capsule, b"dltensor_versioned"), POINTER(Versioned)).contents.flags


class Producer:
    """A CPU tensor on the bytes `memory`; every field can be another. `deleted` counts the deleter's
    calls."""

    def __init__(
        self,
        memory,
        shape,
        strides=None,
        *,
        versioned=True,
        major=1,
        flags=0,
        null=False,
        device=(1, 0),
        **fields,
    ):
        self.deleted = 0
        self.device = device
        self.buffer = ctypes.create_string_buffer(bytes(memory), len(memory))
        self.sizes = (c_int64 * len(shape))(*shape)
        self.steps = None if strides is None else (c_int64 * len(strides))(*strides)
        facts = {"ndim": len(shape), "code": 2, "bits": 32, "lanes": 1, "byte_offset": 0, **fields}
        tensor = Tensor(
            data=None if null else ctypes.addressof(self.buffer),
            device_type=device[0], device_id=device[1], shape=self.sizes, strides=self.steps, **facts,
        )  # fmt: skip
        self.deleter = Deleter(self._delete)
        if versioned:
            self.managed = Versioned(major=major, minor=0, deleter=self.deleter, flags=flags, tensor=tensor)
        else:
            self.managed = Managed(tensor=tensor, deleter=self.deleter)
        self.name = b"dltensor_versioned" if versioned else b"dltensor"
        self.capsule = _new(ctypes.addressof(self.managed), self.name, None)

    def _delete(self, pointer):
        assert pointer == ctypes.addressof(self.managed)
        self.deleted += 1

    def __dlpack__(self, **wishes):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


class ExchangeApi(Structure):
    """The table of C functions that a type has as `__dlpack_c_exchange_api__`."""


TensorFrom = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, POINTER(c_void_p))
CurrentStream = ctypes.PYFUNCTYPE(ctypes.c_int, c_int32, c_int32, POINTER(c_void_p))
ExchangeApi._fields_ = (
    ("major", c_uint32),
    ("minor", c_uint32),
    ("older", POINTER(ExchangeApi)),
    ("allocate", c_void_p),
    ("managed_tensor_from", TensorFrom),
    ("managed_tensor_to", c_void_p),
    ("tensor_from", c_void_p),
    ("current_stream", CurrentStream),
)


def exchanging(stream=0, major=1, older=None, **broken):
    """A class of producers with a table of C functions of its own, whose `table_calls` counts its use. `broken`:
    functions to use in place of the table's."""
    calls = []

    def managed_tensor_from(x, out):
        calls.append(1)
        out[0] = ctypes.addressof(x.managed)
        return 0

    def current_stream(kind, index, out):
        out[0] = stream
        return 0

    functions = {"managed_tensor_from": managed_tensor_from, "current_stream": current_stream} | broken
    made = {
        "managed_tensor_from": TensorFrom(functions["managed_tensor_from"]),
        "current_stream": CurrentStream(functions["current_stream"]),
    }
    table = ExchangeApi(major=major, minor=3, older=None if older is None else ctypes.pointer(older), **made)
    capsule = _new(ctypes.addressof(table), EXCHANGE, None)
    parts = {"__dlpack_c_exchange_api__": capsule, "table": table, "table_calls": calls, "kept": made}
    return type("Exchanging", (Producer,), parts)


EXCHANGE = b"dlpack_exchange_api"
