"""Puts NumPy in the place of every operation that this build does not provide, so that what moves no data is testable alone."""

import numpy as np

import pyarray.dlpack  # noqa: F401  (it registers itself)
from pyarray.array import operations
from pyarray.array_convert import asarray, asnumpy


def _host(value):
    return asnumpy(value) if hasattr(value, "_buffer") else value


def _key(key):
    return tuple(map(_host, key)) if isinstance(key, tuple) else _host(key)


def _assign(dst, src):
    np.copyto(asnumpy(dst), _host(src), casting="unsafe")


def _put(a, key, value):
    asnumpy(a)[_key(key)] = _host(value)


for _name, _function in {
    "assign": _assign,
    "astype": lambda a, dtype: asarray(asnumpy(a).astype(dtype.numpy)),
    "contiguous": lambda a: asarray(np.ascontiguousarray(asnumpy(a)).reshape(a.shape)),
    "take": lambda a, key: asarray(asnumpy(a)[_key(key)]),
    "put": _put,
    "nonzero": lambda mask: tuple(map(asarray, np.nonzero(asnumpy(mask)))),
    "any": lambda a: asarray(np.any(_host(a))),
}.items():
    operations.setdefault(_name, _function)
