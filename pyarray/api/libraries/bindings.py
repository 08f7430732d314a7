"""Calls of a GPU vendor's math libraries: cuBLAS, cuSOLVER and cuFFT through nvmath-python, hipBLAS,
hipSOLVER and hipFFT through hip-python.

AMD's libraries repeat NVIDIA's functions, arguments in the same order, so that a call is written once, with
NVIDIA's names as nvmath spells them. What differs is a row of `VENDORS`. No library is loaded before its
first call.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...array import ndarray
from ...array_views import memory_range
from ...driver.base import Device
from ...driver.diagnosis import NEEDS
from ...driver.hiprtc import binding as hip_python
from ...errors import DeviceError

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@dataclass(frozen=True)
class Vendor:
    """A row of `VENDORS`. `libraries` has, by part, the library's name, the module of its binding and what
    the names of its functions begin with. `load` gives the module, None where it isn't installed; `spelled`
    the name of a function in it; `value` what a call returned. `constants` are numbers, or names of members
    of enumerations: module, class, member."""

    package: str
    install: str
    libraries: Mapping[str, tuple[str, str, str]]
    constants: Mapping[str, Any]
    load: Callable[[str], Any]
    spelled: Callable[[str, str], str]
    value: Callable[[Any], Any]


def _nvmath(module: str) -> Any:
    try:
        return importlib.import_module(f"nvmath.bindings.{module}")
    except ImportError:
        return None


def _camel(prefix: str, name: str) -> str:
    """`dgetrf_buffer_size` as AMD writes it: `hipsolverDnDgetrf_bufferSize`."""
    name, query, _ = name.partition("_buffer_size")
    words = [w.upper() if re.fullmatch("[cdrz]2[cdrz]", w) else w[0].upper() + w[1:] for w in name.split("_")]
    return prefix + "".join(words) + ("_bufferSize" if query else "")


def _answer(returned: tuple[Any, ...]) -> Any:
    """The value, or the tuple of values, that hip-python returns behind the status."""
    status, *values = returned
    if int(status):
        raise RuntimeError(getattr(status, "name", status))
    return values[0] if len(values) == 1 else tuple(values)


VENDORS = {
    "cuda": Vendor(
        package=NEEDS["cuda"].libraries,
        install=NEEDS["cuda"].install,
        libraries={
            "blas": ("cuBLAS", "cublas", ""),
            "solver": ("cuSOLVER", "cusolverDn", ""),
            "fft": ("cuFFT", "cufft", ""),
        },
        # of NVIDIA's headers
        constants={
            **{"as_is": 0, "transposed": 1, "upper": 1, "lower": 0, "values": 0, "vectors": 1},
            **{"c2c": 0x29, "r2c": 0x2A, "c2r": 0x2C, "z2z": 0x69, "d2z": 0x6A, "z2d": 0x6C},
            **{"complex64": 4, "complex128": 5},
        },
        load=_nvmath,
        spelled=lambda prefix, name: prefix + name,
        value=lambda found: found,
    ),
    "hip": Vendor(
        package="hip-python[libraries]",
        install=NEEDS["hip"].install,
        libraries={
            "blas": ("hipBLAS", "hipblas", "hipblas"),
            "solver": ("hipSOLVER", "hipsolver", "hipsolverDn"),
            "fft": ("hipFFT", "hipfft", "hipfft"),
        },
        # hip-python refuses numbers in their place
        constants={
            "as_is": ("hipblas", "hipblasOperation_t", "HIPBLAS_OP_N"),
            "transposed": ("hipblas", "hipblasOperation_t", "HIPBLAS_OP_T"),
            "upper": ("hipblas", "hipblasFillMode_t", "HIPBLAS_FILL_MODE_UPPER"),
            "lower": ("hipblas", "hipblasFillMode_t", "HIPBLAS_FILL_MODE_LOWER"),
            "values": ("hipsolver", "hipsolverEigMode_t", "HIPSOLVER_EIG_MODE_NOVECTOR"),
            "vectors": ("hipsolver", "hipsolverEigMode_t", "HIPSOLVER_EIG_MODE_VECTOR"),
            "complex64": ("hip", "hipDataType", "HIP_C_32F"),
            "complex128": ("hip", "hipDataType", "HIP_C_64F"),
            **{k: ("hipfft", "hipfftType_t", f"HIPFFT_{k.upper()}") for k in ("c2c", "r2c", "c2r")},
            **{k: ("hipfft", "hipfftType_t", f"HIPFFT_{k.upper()}") for k in ("z2z", "d2z", "z2d")},
        },
        load=hip_python,
        spelled=_camel,
        value=_answer,
    ),
}


# What is installed doesn't change while a process runs.
@functools.cache
def package(kind: str) -> tuple[str, str]:
    """Name and version of the bindings' package; the version is "" where that isn't installed."""
    import importlib.metadata  # which takes long to import, and is needed for GPUs alone

    name = VENDORS[kind].package.partition("[")[0]
    try:
        return name, importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return name, ""


# What is installed doesn't change while a process runs.
@functools.cache
def _function(kind: str, part: str, name: str) -> Any:
    vendor = VENDORS[kind]
    title, module, prefix = vendor.libraries[part]
    library = vendor.load(module)
    if library is None:
        raise DeviceError(
            f"linalg and fft on {kind} devices call {title} through {vendor.package}, which isn't installed: "
            f"{vendor.install}; or compute on the CPU: x.to_device('cpu')"
        )
    function = getattr(library, vendor.spelled(prefix, name), None)
    if function is None:
        raise DeviceError(
            f"the {title} binding of {vendor.package} has no {vendor.spelled(prefix, name)}: install a newer "
            f"one ({vendor.install} --upgrade), or compute on the CPU: x.to_device('cpu')"
        )
    return function


# What is installed doesn't change while a process runs.
@functools.cache
def constant(kind: str, name: str) -> Any:
    """The vendor's constant for an option, such as "upper"."""
    spec = VENDORS[kind].constants[name]
    if isinstance(spec, int):
        return spec
    module, owner, member = spec
    return getattr(getattr(VENDORS[kind].load(module), owner), member)


def call(device: Device, part: str, name: str, *args: Any) -> Any:
    """The value of the library's function `name`, without the status. The device must be current.

    Raises `DeviceError` where the binding, the library or the function is missing, or the call fails.
    """
    vendor, function = VENDORS[device.kind], _function(device.kind, part, name)
    try:
        return vendor.value(function(*args))
    except Exception as error:  # each library has an error of its own
        title = vendor.libraries[part][0]
        raise DeviceError(
            f"{device}: {title}'s {name} failed: {type(error).__name__}: {error}. If {title} is missing: "
            f"{vendor.install}"
        ) from error


# A handle has memory of its own that calls share: no two threads and no two streams have one at a time.
_free: dict[tuple[Device, str, int], list[Any]] = {}


@contextmanager
def handle(device: Device, part: str) -> Iterator[Any]:
    """A handle of the library whose calls go to the current stream, in a block in which the device is
    current."""
    with device.driver.current():
        stream = device.driver.current_stream()
        free = _free.setdefault((device, part, stream), [])
        try:
            library_handle = free.pop()
        except IndexError:
            library_handle = call(device, part, "create")
        call(device, part, "set_stream", library_handle, stream)
        yield library_handle
        free.append(library_handle)  # not after an error, which may have been the handle's


@contextmanager
def working(*arrays: ndarray) -> Iterator[None]:
    """A block in which a library works on these arrays on the current stream: ordered after other streams' work on
    them."""
    extents = [(x, *memory_range(x)) for x in arrays]
    for x, low, high in extents:
        x.device.driver.before_access(low, high - low, True)
    try:
        yield
    finally:
        for x, low, high in extents:
            x.device.driver.after_access(low, high - low, True)


@contextmanager
def opened(part: str, first: ndarray, *others: ndarray) -> Iterator[Callable[..., Any]]:
    """`call(name, *arguments)` of the library, for the dtype and the device of `first`: the letter of the
    type is put before the name, and the handle before the arguments. The arrays are in use in the block."""
    device, letter = first.device, LETTERS[first._dtype.name]
    with handle(device, part) as library_handle, working(first, *others):
        yield lambda name, *args: call(device, part, letter + name, library_handle, *args)
