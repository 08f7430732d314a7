"""NVIDIA GPUs: memory, copies and modules through cuda-bindings (the driver API), kernels from NVRTC."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from typing import Any, NoReturn

from ..errors import DeviceError
from .gpu import BLOCKS, GpuDriver
from .nvrtc import Nvrtc


@functools.cache
def _cuda() -> Any:
    """cuda.bindings.driver, initialised; None where there is no NVIDIA driver or no binding."""
    try:
        from cuda.bindings import driver
    except ImportError:
        return None
    try:
        (code,) = driver.cuInit(0)
    except Exception:  # the binding's own: the system library is not there
        return None
    return driver if int(code) == 0 else None


class CudaDriver(GpuDriver):
    """One NVIDIA GPU, in its primary context, which torch and CuPy use too. Work goes to the legacy default
    stream, in order with theirs."""

    kind = "cuda"
    end_mark = 0
    warp = 32

    def __init__(self, index: int):
        super().__init__(index)
        self._cu = _cuda()
        self._device = self._call("cuDeviceGet", index)
        context = self._call("cuDevicePrimaryCtxRetain", self._device)
        self._context = context
        self._call("cuCtxSetCurrent", context)
        gpu = self._gpu
        gpu.context = int(context)
        for field, name in (
            ("launch", b"cuLaunchKernel"),
            ("get_context", b"cuCtxGetCurrent"),
            ("set_context", b"cuCtxSetCurrent"),
        ):
            setattr(gpu, field, int(self._call("cuGetProcAddress", name, 12000, 0)[0]))
        gpu.full_grid = self.properties()["processors"] * BLOCKS

    @classmethod
    def count(cls) -> int:
        cu = _cuda()
        if cu is None:
            return 0
        code, number = cu.cuDeviceGetCount()
        return int(number) if int(code) == 0 else 0

    def _call(self, name: str, *args: Any) -> Any:
        code, *values = getattr(self._cu, name)(*args)
        if int(code):
            self.fail(name, int(code))
        return values[0] if len(values) == 1 else tuple(values)

    def _enter(self) -> None:
        """The context of this device becomes the calling thread's."""
        self.check_process()
        self._call("cuCtxSetCurrent", self._context)

    def fail(self, what: str, code: int) -> NoReturn:
        self.check_process()
        cu = self._cu
        error = cu.CUresult(code)
        _, text = cu.cuGetErrorString(error)
        words = text.decode() if isinstance(text, bytes) else "unknown error"
        raise DeviceError(f"cuda:{self.index}: {what} failed: {error.name} ({words})")

    def name(self) -> str:
        return str(self._call("cuDeviceGetName", 256, self._device).rstrip(b"\0").decode())

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._call("cuDeviceGetAttribute", attribute, self._device))

    def properties(self) -> Mapping[str, Any]:
        processors = self._attribute("MULTIPROCESSOR_COUNT")
        return {
            "threads": processors * self._attribute("MAX_THREADS_PER_MULTIPROCESSOR"),
            "processors": processors,
            "capability": (
                self._attribute("COMPUTE_CAPABILITY_MAJOR"),
                self._attribute("COMPUTE_CAPABILITY_MINOR"),
            ),
            "shared_bytes": self._attribute("MAX_SHARED_MEMORY_PER_BLOCK"),
            "l2_bytes": self._attribute("L2_CACHE_SIZE"),
        }

    def target(self) -> str:
        major, minor = self.properties()["capability"]
        return f"sm_{major}{minor}"

    def memory_info(self) -> tuple[int, int]:
        self._enter()
        free, total = self._call("cuMemGetInfo")
        return int(free), int(total)

    def allocate(self, nbytes: int) -> int:
        self._enter()
        code, ptr = self._cu.cuMemAlloc(nbytes)
        if int(code) == int(self._cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY):
            return 0
        if int(code):
            self.fail("cuMemAlloc", int(code))
        return int(ptr)

    def free(self, ptr: int, nbytes: int) -> None:
        self._enter()
        self._call("cuMemFree", ptr)

    def fill(self, ptr: int, byte: int, nbytes: int) -> None:
        self._enter()
        self._call("cuMemsetD8Async", ptr, byte, nbytes, self.queue)

    def copy_in(self, ptr: int, host: int, nbytes: int) -> None:
        self._enter()
        self._call("cuMemcpyHtoD", ptr, host, nbytes)

    def copy_out(self, host: int, ptr: int, nbytes: int) -> None:
        self._enter()
        self._call("cuMemcpyDtoH", host, ptr, nbytes)

    def copy_within(self, target: int, source: int, nbytes: int) -> None:
        self._enter()
        if (
            target < source + nbytes and source < target + nbytes
        ):  # the driver's copy asks for disjoint ranges
            scratch = self.allocate(nbytes)
            self._call("cuMemcpyDtoDAsync", scratch, source, nbytes, self.queue)
            self._call("cuMemcpyDtoDAsync", target, scratch, nbytes, self.queue)
            self.free(scratch, nbytes)
            return
        self._call("cuMemcpyDtoDAsync", target, source, nbytes, self.queue)

    def compiler(self) -> Nvrtc:
        return Nvrtc(self.target())

    def load(self, artifact: bytes) -> int:
        self._enter()
        module = self._call("cuModuleLoadData", artifact)
        self._modules = [*getattr(self, "_modules", []), module]
        return len(self._modules) - 1

    def symbol(self, module: int, name: str) -> int:
        self._enter()
        return int(self._call("cuModuleGetFunction", self._modules[module], name.encode()))

    def shared_record(self, nbytes: int) -> int:
        self._enter()
        ptr = int(self._call("cuMemHostAlloc", nbytes, 0))
        ctypes.memset(ptr, 0, nbytes)
        return ptr

    def synchronize(self) -> None:
        self._enter()
        self._call("cuStreamSynchronize", self.queue)

    def stream(self) -> int:
        return 1  # of DLPack: the legacy default stream
