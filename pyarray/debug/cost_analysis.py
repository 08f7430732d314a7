"""Cost analysis: what a call of any function would launch, found by running it on the null device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import shapes
from ..array import empty, ndarray
from ..driver.base import get_device
from ..driver.default_device import default_device
from ..dtypes import asdtype
from ..jit.kernel import Kernel
from ..jit.launch_cost import Cost, total
from .trace import Trace


def cost_analysis(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Cost:
    """What `function(*args, **kwargs)` launches, from shapes, strides and dtypes alone: operations, bytes,
    launches. It is called with arrays of the null device, of which no element is known.

    Parameters
    ----------
    function : callable
        A kernel, a function of this library, or any that calls them. Of a kernel it is
        `kernel.cost_analysis(*args)`.
    *args, **kwargs
        Its arguments. Arrays, NumPy's too, also in lists, tuples and dictionaries, stand for their shapes.

    Returns
    -------
    Cost
        The sum over all launches. For CPUs: GPUs have kernels of their own for some functions.

    Raises
    ------
    DeviceError
        Where the size of a result depends on data: `nonzero`, `x[mask]`, `unique_values`.

    Examples
    --------
    >>> a, b = pa.ones((100, 50)), pa.ones((50, 80))
    >>> cost = pa.cost_analysis(pa.matmul, a, b)
    >>> cost.operations, cost.bytes_read, cost.bytes_written, cost.launches
    (800000, 72000, 64000, 1)
    """
    if isinstance(function, Kernel):
        return function.cost_analysis(*args, **kwargs)
    positional, named = _without_data(args), _without_data(kwargs)
    thread = threading.get_ident()
    with default_device("null:0"), Trace() as trace:
        function(*positional, **named)
    return total(row.cost for row in trace.launches if row.thread_id == thread and row.device == "null:0")


def _without_data(value: Any) -> Any:
    """The same with arrays of the null device."""
    if isinstance(value, ndarray):
        return _array(value._shape, value._strides, value._dtype)
    if isinstance(value, np.ndarray):
        return _array(value.shape, value.strides, asdtype(value.dtype))
    if type(value) in (list, tuple):
        return type(value)(map(_without_data, value))
    if type(value) is dict:
        return {name: _without_data(x) for name, x in value.items()}
    return value


def _array(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> ndarray:
    low, high = shapes.byte_bounds(shape, strides, dtype.itemsize)
    memory = empty(-(-(high - low) // dtype.itemsize), dtype, get_device("null:0"))
    return memory._view(-low, shape, strides)
