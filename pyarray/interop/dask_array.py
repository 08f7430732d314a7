"""dask.array with pyarray chunks: dispatch by chunk type, and the backend `"pyarray"`, which
`dask.config.set({"array.backend": "pyarray"})` finds by the entry point `dask.array.backends`."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask import config
from dask.array import dispatch
from dask.array.backends import ArrayBackendEntrypoint, array_creation_dispatch, percentile
from dask.array.chunk_types import register_chunk_type
from dask.utils import Dispatch

from .. import random, shapes
from ..api.numpy.einsum import einsum, tensordot
from ..api.standard.creation import empty, full
from ..api.standard.elementwise import isnan, logical_not
from ..api.standard.indexing import take
from ..api.standard.manipulation import concat
from ..api.standard.statistical import sum as total
from ..array import ndarray
from ..array_convert import asarray, asnumpy

to_pyarray = Dispatch("to_pyarray")


def count(x: ndarray, axis: Any = None, keepdims: bool = False, dtype: Any = np.float64) -> ndarray:
    """How many elements of `x` each element of a reduction over `axis` is made of."""
    axes = shapes.normalize_axes(axis, x.ndim)
    reduced_shape, kept_shape = shapes.reduced(x.shape, axes)
    return full(kept_shape if keepdims else reduced_shape, math.prod(x.shape[k] for k in axes), dtype, device=x.device)


def count_numbers(x: ndarray, **options: Any) -> ndarray:
    """The number of elements that aren't NaN."""
    return total(logical_not(isnan(x)), **options)


class Backend(ArrayBackendEntrypoint):
    """Collections whose chunks are created as pyarray's arrays, on the default device of the process that creates
    them."""

    @classmethod
    def to_backend_dispatch(cls) -> Any:
        """The function that converts another library's chunk."""
        return to_pyarray

    @classmethod
    def to_backend(cls, data: Any, **options: Any) -> Any:
        """The collection with pyarray's chunks: itself if it has such."""
        if isinstance(data._meta, ndarray):
            return data
        return data.map_blocks(cls.to_backend_dispatch(), **options)

    @property
    def RandomState(self) -> Any:
        """The class of the generators that draw the chunks of `dask.array.random.RandomState`."""
        return random.RandomState

    @property
    def default_bit_generator(self) -> Any:
        """The state behind `dask.array.random.default_rng`."""
        return random.Philox4x3210


def _create(name: str, like: str, *args: Any, **options: Any) -> Any:
    """dask's own function of that name, to which the keyword `like` names the type of the chunks."""
    if options.get(like) is None:
        options[like] = empty(())
    with config.set({"array.backend": "numpy"}):  # else it would call this again
        return getattr(da, name)(*args, **options)


for _name, _like in {"ones": "meta", "zeros": "meta", "empty": "meta", "full": "meta", "arange": "like"}.items():
    setattr(Backend, _name, staticmethod(partial(_create, _name, _like)))

# With the import of this module, which dask's brings about, or which brings that about: then dask is whole first.
register_chunk_type(ndarray)
dispatch.concatenate_lookup.register(ndarray, concat)
dispatch.take_lookup.register(ndarray, take)
dispatch.tensordot_lookup.register(ndarray, tensordot)
dispatch.einsum_lookup.register(ndarray, einsum)
dispatch.empty_lookup.register(ndarray, empty)
dispatch.percentile_lookup.register(ndarray, percentile)
dispatch.numel_lookup.register(ndarray, count)
dispatch.nannumel_lookup.register(ndarray, count_numbers)
dispatch.to_numpy_dispatch.register(ndarray, asnumpy)
to_pyarray.register(np.ndarray, asarray)
# by its entry point where the package is installed; from a checkout, too
array_creation_dispatch.register_backend("pyarray", Backend())
