"""NumPy-like arrays on CPUs, AMD and NVIDIA GPUs, with zero-copy views and a kernel language in Python.

This module is an Array API namespace; beyond the standard it has kernels (`kernel`, `func`, `BufferView`,
`ndrange`, atomics), `debug` and exchange with NumPy and torch. Importing it touches no compiler, no driver
and no torch.
"""

import importlib as _importlib
import os as _os
import typing as _typing

from . import cuda_interface as _cuda_interface
from . import debug as _debug  # noqa: F401  (before the function of that name)
from . import docstrings as _docstrings
from . import dtypes as _dtypes
from . import fft as fft
from . import keywords as _keywords
from . import lib as lib
from . import linalg as linalg
from .api.core import missing_names as _absent
from .api.methods import functions as _methods
from .api.methods import numpy_names as _numpy_names
from .api.methods import operators as _operators
from .api.methods import ufunc_methods as _ufunc_methods  # noqa: F401  (fills a table)
from .api.numpy.aliases import *  # noqa: F403
from .api.numpy.along_axis import *  # noqa: F403
from .api.numpy.array_queries import *  # noqa: F403
from .api.numpy.bits import *  # noqa: F403
from .api.numpy.calculus import *  # noqa: F403
from .api.numpy.comparison import *  # noqa: F403
from .api.numpy.einsum import *  # noqa: F403
from .api.numpy.files import *  # noqa: F403
from .api.numpy.float_parts import *  # noqa: F403
from .api.numpy.grids import *  # noqa: F403
from .api.numpy.histograms import *  # noqa: F403
from .api.numpy.histograms_nd import *  # noqa: F403
from .api.numpy.kernel_functions import *  # noqa: F403
from .api.numpy.matrix_products import matvec as matvec
from .api.numpy.matrix_products import vecmat as vecmat
from .api.numpy.moments import *  # noqa: F403
from .api.numpy.nan_functions import *  # noqa: F403
from .api.numpy.order_statistics import *  # noqa: F403
from .api.numpy.padding import *  # noqa: F403
from .api.numpy.polynomials import *  # noqa: F403
from .api.numpy.products import *  # noqa: F403
from .api.numpy.rearrangement import *  # noqa: F403
from .api.numpy.reexports import *  # noqa: F403
from .api.numpy.selection import *  # noqa: F403
from .api.numpy.sequences import *  # noqa: F403
from .api.numpy.set_operations import *  # noqa: F403
from .api.numpy.ufuncs import *  # noqa: F403
from .api.standard.constants import *  # noqa: F403
from .api.standard.conversion import *  # noqa: F403
from .api.standard.creation import *  # noqa: F403
from .api.standard.data_types import *  # noqa: F403
from .api.standard.elementwise import *  # noqa: F403
from .api.standard.indexing import *  # noqa: F403
from .api.standard.inspection import __array_namespace_info__ as __array_namespace_info__
from .api.standard.linear_algebra import *  # noqa: F403
from .api.standard.manipulation import *  # noqa: F403
from .api.standard.scans import *  # noqa: F403
from .api.standard.searching import *  # noqa: F403
from .api.standard.sets import *  # noqa: F403
from .api.standard.sorting import *  # noqa: F403
from .api.standard.statistical import *  # noqa: F403
from .api.standard.utility import *  # noqa: F403
from .array import ndarray as ndarray
from .array_convert import asnumpy as asnumpy
from .array_hooks import operations as _operations
from .buffer_view import BufferView as BufferView
from .driver.base import Device as Device
from .driver.base import get_device as get_device
from .driver.default_device import *  # noqa: F403
from .driver.stream import *  # noqa: F403
from .errors import *  # noqa: F403
from .interop import registrations as _registrations
from .jit.functions import func as func
from .jit.kernel_registry import cache_info as cache_info
from .jit.launch_state import debug as debug  # after the imports of the folder of that name
from .kernels.elementwise import elementwise as _map
from .kernels.random.kernel_rng import rng as rng
from .lang.markers import *  # noqa: F403
from .memory.usage import *  # noqa: F403
from .structured_array import StructuredArray as StructuredArray

if _typing.TYPE_CHECKING:  # to which a dtype in a kernel's signature must be a type
    from . import nn as nn
    from . import quaternion as quaternion
    from . import random as random
    from . import special as special
    from . import testing as testing
    from . import torch as torch
    from . import typing as typing
    from .debug.cost_analysis import cost_analysis as cost_analysis
    from .debug.dump import dump as dump
    from .debug.environment import show_config as show_config
    from .debug.load import load_dump as load_dump
    from .debug.tags import dump_tag as dump_tag
    from .debug.trace import trace as trace
    from .fusion.fuse import fuse as fuse
    from .fusion.fused_gemm import gemm as gemm
    from .jit.foreign_arrays import transfer_info as transfer_info
    from .jit.graph import Graph as Graph
    from .jit.graph import capture as capture
    from .jit.kernel import kernel as kernel
    from .jit.saved import load_kernel as load_kernel
    from .kernel_types import *  # noqa: F403
    from .kernel_types import bool_ as bool  # noqa: F401  (the standard's name)
    from .kernels.cpp.elementwise_kernel import ElementwiseKernel as ElementwiseKernel
    from .kernels.cpp.raw_kernel import RawKernel as RawKernel
    from .kernels.cpp.raw_kernel import RawModule as RawModule
    from .kernels.cpp.reduction_kernel import ReductionKernel as ReductionKernel
    from .tune.autotune import autotune as autotune
    from .tune.config import Config as Config
    from .tune.time_model import TimeModel as TimeModel
else:
    from .annotations import In as In
    from .annotations import InOut as InOut
    from .annotations import Out as Out
    from .lang.markers import constexpr as constexpr

    globals().update({_row.name: _row.numpy.type for _row in _dtypes.ALL}, bool_=_dtypes.bool_.numpy.type)

__version__ = "0.1.0"
__array_api_version__ = "2025.12"

# What is imported when it is first used, and the module that has it: importing pyarray is quick.
_LAZY = {
    "cost_analysis": "debug.cost_analysis",
    "dump": "debug.dump",
    "show_config": "debug.environment",
    "load_dump": "debug.load",
    "dump_tag": "debug.tags",
    "trace": "debug.trace",
    "fuse": "fusion.fuse",
    "gemm": "fusion.fused_gemm",
    "transfer_info": "jit.foreign_arrays",
    "Graph": "jit.graph",
    "capture": "jit.graph",
    "kernel": "jit.kernel",
    "load_kernel": "jit.saved",
    "ElementwiseKernel": "kernels.cpp.elementwise_kernel",
    "RawKernel": "kernels.cpp.raw_kernel",
    "RawModule": "kernels.cpp.raw_kernel",
    "ReductionKernel": "kernels.cpp.reduction_kernel",
    "autotune": "tune.autotune",
    "Config": "tune.config",
    "TimeModel": "tune.time_model",
}
_LAZY_MODULES = ("nn", "quaternion", "random", "special", "testing", "torch", "typing")

_operators.install()
_methods.install()
for _module in (globals(), linalg.__dict__, fft.__dict__):
    _keywords.install(_module)
for _module in (globals(), linalg.__dict__, fft.__dict__, lib.stride_tricks.__dict__):
    _docstrings.install(_module)
for _public in (linalg, fft, lib, lib.stride_tricks):
    _absent.list_public(_public)
_numpy_names.install(lib.stride_tricks, linalg=linalg, fft=fft)
_operations.update(assign=_map.assign, astype=_map.astype, contiguous=_map.contiguous)
_operations.update(cuda_interface=_cuda_interface.interface, from_cuda_interface=_cuda_interface.from_interface)
_registrations.install()
if _os.environ.get("PYARRAY_DUMP_ARGS"):
    _importlib.import_module(".debug.dump", __name__)  # the dump begins with the first launch

if not _typing.TYPE_CHECKING:  # which would take any name for one of the package's

    def __getattr__(name: str) -> object:
        if name in _LAZY_MODULES:
            return _importlib.import_module(f".{name}", __name__)
        if name not in _LAZY:
            raise _absent.no_name(__name__, name)
        value = getattr(_importlib.import_module(f".{_LAZY[name]}", __name__), name)
        globals()[name] = value
        _keywords.install(globals(), [name])
        _docstrings.install(globals(), [name])
        return globals()[name]

    def __dir__() -> list[str]:
        # without pyarray.torch where torch isn't installed: inspect.getmembers and others ask for each name
        from importlib.util import find_spec

        modules = (name for name in _LAZY_MODULES if name != "torch" or find_spec("torch"))
        return sorted({*globals(), *_LAZY, *modules})
