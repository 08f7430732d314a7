"""NVIDIA GPUs through cuda-bindings (the driver API), kernels from NVRTC."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any

from .gpu import GpuDriver
from .gpu_calls import vendor_calls
from .kernel_step import KernelStep, shared_up_to
from .nvrtc import Nvrtc

SUCCESS, NO_POOL = 0, 801  # CUDA_ERROR_NOT_SUPPORTED
KEEP_ALL = (1 << 64) - 1


def library_path() -> str:
    """The file name under which cuda-bindings loads libcuda."""
    return "libcuda.so.1"


@functools.cache
def cuda() -> Any:
    """cuda.bindings.driver, initialised; None where there is no NVIDIA driver or no binding."""
    try:
        driver = importlib.import_module("cuda.bindings.driver")
    except ImportError:
        return None
    try:
        (code,) = driver.cuInit(0)
    except Exception:  # the binding's own: the system library is not there
        return None
    return driver if int(code) == SUCCESS else None


class CudaDriver(GpuDriver):
    """One NVIDIA GPU, in its primary context, which torch and CuPy use, too. The default stream is the legacy
    one, and so is theirs."""

    kind = "cuda"
    LAUNCH_PARAM_END = 0
    warp = 32
    OUT_OF_MEMORY = 2
    NOT_READY = 600
    CALLS = vendor_calls(
        "cu",
        allocate="MemAlloc",
        free="MemFree",
        allocate_ordered="MemAllocFromPoolAsync",
        free_ordered="MemFreeAsync",
        pinned="MemHostAlloc",
        locate="PointerGetAttribute",
        set_attribute="FuncSetAttribute",
        synchronize_all="CtxSynchronize",
        stream_create="StreamCreate",
        event_create="EventCreate",
        launch="LaunchKernel",
        launch_dependent="LaunchKernelEx",
        is_capturing="StreamIsCapturing",
        get_context="CtxGetCurrent",
        set_context="CtxSetCurrent",
    )

    def _open_device(self, index: int) -> None:
        self._cu = cuda()
        self._device = self._call_without_context("cuDeviceGet", index)
        self._context = self._call_without_context("cuDevicePrimaryCtxRetain", self._device)
        self._gpu.context = int(self._context)

    def _address(self, name: str) -> int:
        return int(self._call_without_context("cuGetProcAddress", name.encode(), 12000, 0)[0])

    def _vendor_function(self, name: str) -> Any:
        return getattr(self._cu, name)

    def _error(self, code: int) -> str:
        error = self._cu.CUresult(code)
        _, text = self._cu.cuGetErrorString(error)
        words = text.decode() if isinstance(text, bytes) else "unknown error"
        return f"{error.name} ({words})"

    def _create_pool(self) -> Any:
        cu = self._cu
        properties = cu.CUmemPoolProps()
        properties.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = int(self._device)
        code, pool = cu.cuMemPoolCreate(properties)
        if int(code) == NO_POOL:
            return None
        if int(code):
            self.fail("cuMemPoolCreate", int(code))
        # by default each synchronisation gives free memory back, and the next allocation takes it again
        threshold = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        self._call_without_context("cuMemPoolSetAttribute", pool, threshold, cu.cuuint64_t(KEEP_ALL))
        return pool

    def _enable_peer_access(self, other: GpuDriver) -> None:
        assert isinstance(other, CudaDriver)
        cu = self._cu
        for reader, owner in ((self, other), (other, self)):
            if owner._pool is None or not self._call_without_context(
                "cuDeviceCanAccessPeer", reader._device, owner._device
            ):
                continue
            access = cu.CUmemAccessDesc()
            access.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            access.location.id = int(reader._device)
            access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            # without it copies are right as well, by way of the host
            owner._call_without_context("cuMemPoolSetAccess", owner._pool, [access], 1)

    def _peer_name(self) -> Any:
        return self._context

    def _has_dependent_launch(self) -> bool:
        return self._properties["capability"] >= (9, 0)

    def _shared_of(self, step: KernelStep) -> int:
        if not step.shared_most:
            return step.shared
        of_block, of_all = self._properties["shared_bytes_optin"], self._properties["shared_bytes_processor"]
        most = shared_up_to(step.shared, step.shared_most, step.threads, of_block, of_all)
        # with asynchronous copies a kernel can't do with less than it says: the vendor refuses more than a block has
        return max(most, step.shared) if self._properties["capability"] >= (8, 0) else most

    def most_shared(self) -> int:
        return int(self._properties["shared_bytes_optin"])

    def _allow_shared(self, function: int, nbytes: int) -> None:
        most = self._cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.call("set_attribute", self._cu.CUfunction(function), most, nbytes)

    def device_of_pointer(self, ptr: int) -> int | None:
        ordinal = self._cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        code, index = self.try_call("locate", ordinal, ptr)
        return int(index) if code == SUCCESS and int(index) >= 0 else None

    def is_pinned(self, host: int) -> bool:
        return self.device_of_pointer(host) is not None  # of ordinary memory the driver knows nothing

    @classmethod
    def count(cls) -> int:
        cu = cuda()
        if cu is None:
            return 0
        code, number = cu.cuDeviceGetCount()
        return int(number) if int(code) == SUCCESS else 0

    def name(self) -> str:
        return str(self._call_without_context("cuDeviceGetName", 256, self._device).partition(b"\0")[0].decode())

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._call_without_context("cuDeviceGetAttribute", attribute, self._device))

    @functools.cached_property
    def _properties(self) -> dict[str, Any]:
        processors = self._attribute("MULTIPROCESSOR_COUNT")
        return {
            "threads": processors * self._attribute("MAX_THREADS_PER_MULTIPROCESSOR"),
            "processors": processors,
            "capability": (
                self._attribute("COMPUTE_CAPABILITY_MAJOR"),
                self._attribute("COMPUTE_CAPABILITY_MINOR"),
            ),
            "tensor_cores": self._tensor_cores(),
            "shared_bytes": self._attribute("MAX_SHARED_MEMORY_PER_BLOCK"),
            "shared_bytes_optin": self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            "shared_bytes_processor": self._attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
            "l2_bytes": self._attribute("L2_CACHE_SIZE"),
            "warp": self.warp,
            "driver": int(self._call_without_context("cuDriverGetVersion")),
            "block_threads": self._attribute("MAX_THREADS_PER_BLOCK"),
            "block_sides": tuple(self._attribute(f"MAX_BLOCK_DIM_{axis}") for axis in "XYZ"),
            "grid_sides": tuple(self._attribute(f"MAX_GRID_DIM_{axis}") for axis in "XYZ"),
        }

    def _tensor_cores(self) -> str:
        """Which tensor core instructions of csrc/device/pa_gemm_mma.h the device has: "wgmma", "mma", or "" for
        none."""
        major = self._attribute("COMPUTE_CAPABILITY_MAJOR")
        return "wgmma" if major == 9 else "mma" if major >= 8 else ""

    def properties(self) -> Mapping[str, Any]:
        return self._properties

    def target(self) -> str:
        major, minor = self._properties["capability"]
        return f"sm_{major}{minor}"

    def compiler(self) -> Nvrtc:
        return Nvrtc(self.target())

    def stream(self) -> int:
        return self.current_stream() or 1  # of DLPack: the legacy default stream
