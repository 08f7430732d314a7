"""NumPy-like arrays on CPUs, AMD and NVIDIA GPUs, with zero-copy views and a kernel language in Python.

This module is an Array API namespace; beyond the standard it has kernels (`kernel`, `func`, `BufferView`,
`ndrange`, atomics), `debug` and exchange with NumPy and torch. Importing it touches no compiler, no driver
and no torch.
"""

import importlib as _importlib
import typing as _typing

from . import cuda_interface as _cuda_interface
from . import fft as fft
from . import keywords as _keywords
from . import lib as lib
from . import linalg as linalg
from . import random as random
from . import special as special
from . import testing as testing
from .api import absent as _absent
from .api import methods as _methods
from .api import numpy_names as _numpy_names
from .api import operators as _operators
from .api import ufunc_methods as _ufunc_methods  # noqa: F401  (fills a table)
from .api.aliases import *  # noqa: F403
from .api.along_axis import *  # noqa: F403
from .api.bits import *  # noqa: F403
from .api.calculus import *  # noqa: F403
from .api.chains import matvec as matvec
from .api.chains import vecmat as vecmat
from .api.choosing import *  # noqa: F403
from .api.comparing import *  # noqa: F403
from .api.constants import *  # noqa: F403
from .api.creation import *  # noqa: F403
from .api.data_types import *  # noqa: F403
from .api.einsum import *  # noqa: F403
from .api.elementwise import *  # noqa: F403
from .api.epilogue import *  # noqa: F403
from .api.facts import *  # noqa: F403
from .api.files import *  # noqa: F403
from .api.float_parts import *  # noqa: F403
from .api.further_elementwise import *  # noqa: F403
from .api.fuse import *  # noqa: F403
from .api.grids import *  # noqa: F403
from .api.histograms import *  # noqa: F403
from .api.histograms_nd import *  # noqa: F403
from .api.indexing import *  # noqa: F403
from .api.inspection import __array_namespace_info__ as __array_namespace_info__
from .api.linear_algebra import *  # noqa: F403
from .api.manipulation import *  # noqa: F403
from .api.moments import *  # noqa: F403
from .api.nan_functions import *  # noqa: F403
from .api.numpys_own import *  # noqa: F403
from .api.order_statistics import *  # noqa: F403
from .api.padding import *  # noqa: F403
from .api.polynomials import *  # noqa: F403
from .api.products import *  # noqa: F403
from .api.rearranging import *  # noqa: F403
from .api.scans import *  # noqa: F403
from .api.searching import *  # noqa: F403
from .api.sequences import *  # noqa: F403
from .api.set_operations import *  # noqa: F403
from .api.sets import *  # noqa: F403
from .api.sorting import *  # noqa: F403
from .api.statistical import *  # noqa: F403
from .api.utility import *  # noqa: F403
from .array import ndarray as ndarray
from .array_convert import array as array
from .array_convert import asnumpy as asnumpy
from .array_hooks import operations as _operations
from .buffer_view import BufferView as BufferView
from .debug.cost_analysis import cost_analysis as cost_analysis
from .debug.dump import dump as dump
from .debug.environment import show_config as show_config
from .debug.load import load_dump as load_dump
from .debug.tags import dump_tag as dump_tag
from .debug.trace import trace as trace
from .driver.base import Device as Device
from .driver.base import get_device as get_device
from .driver.default import default_device as default_device
from .driver.default import get_default_device as get_default_device
from .driver.default import set_default_device as set_default_device
from .driver.stream import Event as Event
from .driver.stream import Stream as Stream
from .driver.stream import current_stream as current_stream
from .driver.stream import synchronize as synchronize
from .errors import AutotuneError as AutotuneError
from .errors import BoundsError as BoundsError
from .errors import CompileError as CompileError
from .errors import DeviceError as DeviceError
from .errors import OutOfMemoryError as OutOfMemoryError
from .interop import libraries as _libraries
from .jit.inventory import cache_info as cache_info
from .jit.kernel import func as func
from .jit.kernel import kernel as kernel
from .jit.mode import debug as debug  # after the imports of the folder of that name
from .jit.saved import load_kernel as load_kernel
from .jit.transfer import transfer_info as transfer_info
from .kernels import map as _map
from .kernels.elementwise_kernel import ElementwiseKernel as ElementwiseKernel
from .kernels.raw_kernel import RawKernel as RawKernel
from .kernels.raw_kernel import RawModule as RawModule
from .kernels.reduction_kernel import ReductionKernel as ReductionKernel
from .lang.markers import atomic_add as atomic_add
from .lang.markers import atomic_and as atomic_and
from .lang.markers import atomic_cas as atomic_cas
from .lang.markers import atomic_exchange as atomic_exchange
from .lang.markers import atomic_max as atomic_max
from .lang.markers import atomic_min as atomic_min
from .lang.markers import atomic_or as atomic_or
from .lang.markers import atomic_sub as atomic_sub
from .lang.markers import atomic_xor as atomic_xor
from .lang.markers import ndrange as ndrange
from .lang.markers import unordered as unordered
from .memory.figures import MemoryPool as MemoryPool
from .memory.figures import get_default_memory_pool as get_default_memory_pool
from .tune.autotune import autotune as autotune
from .tune.config import Config as Config
from .tune.time_model import TimeModel as TimeModel

if _typing.TYPE_CHECKING:  # to which a dtype in a kernel's signature must be a type
    from . import torch as torch
    from .kernel_types import In as In
    from .kernel_types import InOut as InOut
    from .kernel_types import Out as Out
    from .kernel_types import bfloat16 as bfloat16
    from .kernel_types import bool_ as bool
    from .kernel_types import bool_ as bool_
    from .kernel_types import complex64 as complex64
    from .kernel_types import complex128 as complex128
    from .kernel_types import constexpr as constexpr
    from .kernel_types import float16 as float16
    from .kernel_types import float32 as float32
    from .kernel_types import float64 as float64
    from .kernel_types import int8 as int8
    from .kernel_types import int16 as int16
    from .kernel_types import int32 as int32
    from .kernel_types import int64 as int64
    from .kernel_types import uint8 as uint8
    from .kernel_types import uint16 as uint16
    from .kernel_types import uint32 as uint32
    from .kernel_types import uint64 as uint64
else:
    from ml_dtypes import bfloat16 as bfloat16
    from numpy import bool_ as bool  # noqa: F401  (the standard's name)
    from numpy import bool_ as bool_
    from numpy import complex64 as complex64
    from numpy import complex128 as complex128
    from numpy import float16 as float16
    from numpy import float32 as float32
    from numpy import float64 as float64
    from numpy import int8 as int8
    from numpy import int16 as int16
    from numpy import int32 as int32
    from numpy import int64 as int64
    from numpy import uint8 as uint8
    from numpy import uint16 as uint16
    from numpy import uint32 as uint32
    from numpy import uint64 as uint64

    from .annotations import In as In
    from .annotations import InOut as InOut
    from .annotations import Out as Out
    from .lang.markers import constexpr as constexpr

__version__ = "0.1.0"
__array_api_version__ = "2025.12"

_operators.install()
_methods.install()
for _module in (globals(), linalg.__dict__, fft.__dict__, random.__dict__, special.__dict__):
    _keywords.install(_module)
for _public in (linalg, fft, random, special, lib, lib.stride_tricks, testing):
    _absent.list_public(_public)
_keywords.install_methods(random.Generator)
_keywords.install_methods(random.RandomState)
_numpy_names.install(special, lib.stride_tricks, linalg=linalg, fft=fft)
_operations.update(any=any, assign=_map.assign, astype=_map.astype, contiguous=_map.contiguous)
_operations.update(
    cuda_interface=_cuda_interface.interface, from_cuda_interface=_cuda_interface.from_interface
)
_libraries.install()

if not _typing.TYPE_CHECKING:  # which would take any name for one of the package's

    def __getattr__(name: str) -> object:
        if name == "torch":  # imported when it is asked for, since it imports torch
            return _importlib.import_module(f"{__name__}.torch")
        raise _absent.no_name(__name__, name)
