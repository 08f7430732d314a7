"""AMD GPUs through hip-python, kernels from hiprtc or from ROCm's clang.

It has run on an emulated HIP runtime only (tests/hip_emulator), not on an AMD GPU yet.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from typing import Any

from ..errors import DeviceError
from .base import Compiler
from .command_compilers import HipClang
from .gpu import GpuDriver
from .gpu_calls import vendor_calls
from .hiprtc import Hiprtc, binding

SUCCESS, NO_POOL = 0, 801  # hipErrorNotSupported
KEEP_ALL = (1 << 64) - 1


@functools.cache
def hip() -> Any:
    """hip-python's `hip`, initialised; None where there is no HIP runtime or no binding."""
    module = binding("hip")
    if module is None:
        return None
    try:
        (code,) = module.hipInit(0)
    except Exception:  # the binding's own: the system library is not there
        return None
    return module if int(code) == SUCCESS else None


def library_path() -> str:
    """Path or name by which hip-python loads the HIP runtime."""
    paths = binding("util.paths")
    return paths.get_library_path("amdhip64").decode() if paths else "libamdhip64.so"


# What is installed doesn't change while a process runs.
@functools.cache
def compiler_for(target: str) -> Compiler:
    """hiprtc; ROCm's clang where hiprtc is missing. Where both are, hiprtc's errors say so."""
    found = Hiprtc(target)
    try:
        _ = found.fingerprint
    except DeviceError:
        clang = HipClang(target)
        try:
            _ = clang.fingerprint
        except DeviceError:
            return found
        return clang
    return found


@functools.cache
def _library() -> ctypes.CDLL:
    """The library that hip-python has loaded: by the same name it is the same one."""
    return ctypes.CDLL(library_path())


class HipDriver(GpuDriver):
    """One AMD GPU. A context is the device's number, and the default stream is the null stream, which torch
    and CuPy use, too."""

    kind = "hip"
    LAUNCH_PARAM_END = 3
    OUT_OF_MEMORY = 2
    NOT_READY = 600
    CALLS = vendor_calls(
        "hip",
        allocate="Malloc",
        free="Free",
        allocate_ordered="MallocFromPoolAsync",
        free_ordered="FreeAsync",
        pinned="HostMalloc",
        synchronize_all="DeviceSynchronize",
        stream_create="StreamCreateWithFlags",
        event_create="EventCreateWithFlags",
        launch="ModuleLaunchKernel",
        get_context="GetDevice",
        set_context="SetDevice",
    )

    def _open_device(self, index: int) -> None:
        self._hip = hip()
        self.warp = self._attribute("WarpSize")
        self._gpu.context = index

    def _address(self, name: str) -> int:
        return ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value or 0

    def _vendor_function(self, name: str) -> Any:
        return getattr(self._hip, name)

    def _error(self, code: int) -> str:
        try:
            error = self._hip.hipError_t(code)
        except ValueError:  # newer than the binding
            return f"error {code}"
        return f"{error.name} ({_text(self._hip.hipGetErrorString(error)[-1])})"

    def _create_pool(self) -> Any:
        hip = self._hip
        properties = hip.hipMemPoolProps()
        properties.allocType = hip.hipMemAllocationType.hipMemAllocationTypePinned
        properties.location.type = hip.hipMemLocationType.hipMemLocationTypeDevice
        properties.location.id = self.index
        code, pool = hip.hipMemPoolCreate(properties)
        if int(code) == NO_POOL:
            return None
        if int(code):
            self.fail("hipMemPoolCreate", int(code))
        # by default each synchronisation gives free memory back, and the next allocation takes it again
        threshold = hip.hipMemPoolAttr.hipMemPoolAttrReleaseThreshold
        self._call_without_context("hipMemPoolSetAttribute", pool, threshold, ctypes.c_uint64(KEEP_ALL))
        return pool

    def _peer_name(self) -> Any:
        return self.index

    def device_of_pointer(self, ptr: int) -> int | None:
        code, properties = self._fill_struct("hipPointerGetAttributes", "hipPointerAttribute_t", ptr)
        kinds = self._hip.hipMemoryType
        of_device = (int(kinds.hipMemoryTypeDevice), int(kinds.hipMemoryTypeManaged))
        return int(properties.device) if code == SUCCESS and int(properties.type) in of_device else None

    def is_pinned(self, host: int) -> bool:
        code, properties = self._fill_struct("hipPointerGetAttributes", "hipPointerAttribute_t", host)
        return code == SUCCESS and int(properties.type) == int(self._hip.hipMemoryType.hipMemoryTypeHost)

    @classmethod
    def count(cls) -> int:
        module = hip()
        if module is None:
            return 0
        code, number = module.hipGetDeviceCount()
        return int(number) if int(code) == SUCCESS else 0

    def name(self) -> str:
        return _text(self._call_without_context("hipDeviceGetName", 256, self.index))

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._hip.hipDeviceAttribute_t, f"hipDeviceAttribute{name}")
        return int(self._call_without_context("hipDeviceGetAttribute", attribute, self.index))

    @functools.cached_property
    def _properties(self) -> dict[str, Any]:
        processors = self._attribute("MultiprocessorCount")
        return {
            "threads": processors * self._attribute("MaxThreadsPerMultiProcessor"),
            "processors": processors,
            "target": (target := self._target()),
            "tensor_cores": _tensor_cores(target),
            "shared_bytes": self._attribute("MaxSharedMemoryPerBlock"),
            "l2_bytes": self._attribute("L2CacheSize"),
            "warp": self.warp,
            "driver": int(self._call_without_context("hipDriverGetVersion")),
            "block_threads": self._attribute("MaxThreadsPerBlock"),
            "block_sides": tuple(self._attribute(f"MaxBlockDim{axis}") for axis in "XYZ"),
            "grid_sides": tuple(self._attribute(f"MaxGridDim{axis}") for axis in "XYZ"),
        }

    def _target(self) -> str:
        """Without the settings that follow its name: what is compiled so runs under each of them."""
        code, properties = self._fill_struct("hipGetDeviceProperties", "hipDeviceProp_t", self.index)
        if code:
            self.fail("hipGetDeviceProperties", code)
        return _text(properties.gcnArchName).partition(":")[0]

    def _fill_struct(self, name: str, structure: str, *args: Any) -> tuple[int, Any]:
        """A call that fills a structure, which the binding makes itself from version 10 on."""
        if binding("util.paths"):
            code, properties = self._vendor_function(name)(*args)
        else:
            properties = getattr(self._hip, structure)()
            (code,) = self._vendor_function(name)(properties, *args)
        return int(code), properties

    def properties(self) -> Mapping[str, Any]:
        return self._properties

    def target(self) -> str:
        return str(self._properties["target"])

    def compiler(self) -> Compiler:
        return compiler_for(self.target())

    def stream(self) -> int:
        return self.current_stream()  # DLPack of ROCm has 0 for the default stream


def _tensor_cores(target: str) -> str:
    """Which matrix instructions of csrc/device/pa_matrix_amd.h a target has: "mfma", "wmma", or "" for none. Those of
    gfx90a flush subnormal halves to zero."""
    return "mfma" if target == "gfx942" else "wmma" if target.startswith(("gfx110", "gfx115")) else ""


def _text(words: Any) -> str:
    """The binding has bytes, str and strings of its own."""
    return words.decode() if hasattr(words, "decode") else str(words)
