"""The emulated HIP runtime finds what it is there to find. All through the driver and hip-python."""

import ctypes
import os
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hip_emulator.build import BUILT, use_emulator

from pyarray.driver.base import devices, get_device
from pyarray.driver.hiprtc import Hiprtc
from pyarray.errors import CompileError, DeviceError

KERNELS = """
extern "C" __global__ void put(float *v, long long i, float x) { v[i] = x; }
extern "C" __global__ void read(const float *v, long long i, float *out) { *out = v[i]; }
extern "C" __global__ void part(int n) { if (threadIdx.x < n) __syncthreads(); }
extern "C" __global__ void apart(int n)
{
    if (threadIdx.x < n) __syncthreads();
    else
        __syncthreads();
}
extern "C" __global__ void masked(int n)
{
    if (threadIdx.x < n) __syncwarp();
    __syncthreads();
}
extern "C" __global__ void divide(int *v) { *v = 7 / (int)(blockDim.x - 1); }
extern "C" __global__ void __launch_bounds__(256) waves(int *out)
{
    __shared__ int all;
    extern __shared__ int lanes[];
    if (threadIdx.x == 0) all = 0;
    __syncthreads();
    int sum = threadIdx.x;
    for (int d = warpSize / 2; d > 0; d /= 2) sum += __shfl_xor(sum, d);
    lanes[threadIdx.x] = sum;
    atomicAdd(&all, 1);
    __syncthreads();
    out[threadIdx.x] = lanes[blockDim.x - 1 - threadIdx.x];
    if (threadIdx.x == 0) out[blockDim.x] = all * 1000 + warpSize;
}
template <typename T> __global__ void never(T *v) { *v = T::none; }
// __global__ void comment(int x)
"""


@pytest.fixture(scope="module")
def emulator():
    if not os.environ.get("ROCM_PATH", "").startswith(str(BUILT)):
        pytest.skip("the emulator is not the HIP runtime of this run")
    return use_emulator()


@pytest.fixture
def run(emulator):
    """Launches of KERNELS by name; what they broke is repaired afterwards."""
    driver = get_device("hip:0").driver
    module = driver.load(driver.compiler().compile(KERNELS))

    def launch(name, *args, form, grid=1, block=1, shared=0):
        kernel = driver.grid_launcher(module, name)
        kernel((grid, 1, 1), (block, 1, 1), shared, struct.pack(form, *args))

    yield launch
    emulator.hipEmulatorMend()
    driver.unload(module)


@pytest.fixture
def driver(run):
    return get_device("hip:0").driver


def floats(driver, ptr, count):
    out = np.empty(count, np.float32)
    driver.copy_out(out.ctypes.data, ptr, out.nbytes)
    return out


@pytest.mark.parametrize(
    ("kernel", "said"), [("part", "a part of"), ("apart", "different barriers"), ("masked", "mask")]
)
def test_misplaced_barriers(emulator, driver, run, kernel, said):
    run(kernel, 5, form="i", block=64)
    with pytest.raises(DeviceError, match="hipErrorLaunchFailure"):
        driver.synchronize()
    assert said in emulator.hipEmulatorFault().decode()
    with pytest.raises(DeviceError, match="hipErrorLaunchFailure"):
        run(kernel, 64, form="i", block=64)  # the device stays broken
    emulator.hipEmulatorMend()
    run(kernel, 64, form="i", block=64)
    driver.synchronize()


def test_a_trap_of_the_processor(emulator, driver, run):
    run("divide", 0, form="P")
    with pytest.raises(DeviceError, match="hipErrorLaunchFailure"):
        driver.synchronize()
    assert "zero" in emulator.hipEmulatorFault().decode()


@pytest.mark.parametrize("size", [64, 4096, 100])
@pytest.mark.parametrize("place", [-1, 0])
def test_out_of_range_writes(emulator, driver, run, size, place):
    ptr = driver.allocate(size)
    run("put", ptr, size // 4 if place == 0 else place, 1.5, form="Pqf")
    with pytest.raises(DeviceError, match="hipErrorIllegalAddress"):
        driver.synchronize()
    assert f"block of {size}" in emulator.hipEmulatorFault().decode()
    emulator.hipEmulatorMend()
    driver.free(ptr, size)
    driver.synchronize()


def test_use_after_free(emulator, driver, run):
    ptr, out = driver.allocate(256), driver.allocate(4)
    driver.free(ptr, 256)
    run("read", ptr, 3, out, form="PqP")
    with pytest.raises(DeviceError, match="hipErrorIllegalAddress"):
        driver.synchronize()
    assert "256 bytes that was freed" in emulator.hipEmulatorFault().decode()
    emulator.hipEmulatorMend()
    with pytest.raises(DeviceError, match="hipErrorInvalidValue"):
        driver.free(ptr, 256)
    driver.free(out, 4)


def test_memory_of_another_device(emulator, driver, run):
    other = get_device("hip:1").driver
    ptr = other.allocate(256)
    other.synchronize()
    run("put", ptr, 0, 1.5, form="Pqf")
    with pytest.raises(DeviceError, match=r"hip:0: .*hipErrorIllegalAddress"):
        driver.synchronize()
    assert "in a block of device 1" in emulator.hipEmulatorFault().decode()
    other.free(ptr, 256)
    other.synchronize()  # that one is well


def test_fresh_memory_and_leaks(emulator, driver):
    before = emulator.hipEmulatorBlocks(0)
    ptr = driver.allocate(400)
    assert ptr % 64 == 0
    assert (floats(driver, ptr, 100) > 1e38).all()
    assert emulator.hipEmulatorBlocks(0) == before + 1
    driver.free(ptr, 400)
    assert emulator.hipEmulatorBlocks(0) == before


@pytest.mark.parametrize("order", ["late", "early", "1", "2"])
def test_work_runs_as_late_as_it_may(emulator, driver, run, order, monkeypatch):
    """Between streams that don't wait for each other only; the default stream is in order with others."""
    monkeypatch.setattr(driver._gpu, "ordered", 0)
    emulator.hipEmulatorOrder(order.encode())
    ptr, out = driver.allocate(4), driver.allocate(4)
    driver.fill(ptr, 0, 4)
    driver.synchronize()
    first, second = driver.stream_create(True), driver.stream_create(True)
    try:
        driver.enter_stream(first)
        run("put", ptr, 0, 3.0, form="Pqf")
        driver.leave_stream(first, 0)
        driver.enter_stream(second)
        run("read", ptr, 0, out, form="PqP")
        driver.leave_stream(second, 0)
        driver.stream_synchronize(second)
        unordered = floats(driver, out, 1)[0]
        assert unordered in ([0] if order == "late" else [3] if order == "early" else [0, 3])
        driver.enter_stream(second)
        driver.stream_wait(second, first)
        run("read", ptr, 0, out, form="PqP")
        driver.leave_stream(second, 0)
        driver.stream_synchronize(second)
        assert floats(driver, out, 1)[0] == 3
    finally:
        emulator.hipEmulatorOrder(b"late")
        for stream in (first, second):
            driver.stream_destroy(stream)
        driver.free(ptr, 4)
        driver.free(out, 4)


def test_pinned_memory_is_read_late(driver):
    ptr, place = driver.allocate(4), driver.pinned(4)
    view = ctypes.c_float.from_address(place)
    view.value = 1
    driver.call("copy_in", ptr, place, 4, 0)
    view.value = 2
    assert floats(driver, ptr, 1)[0] == 2
    driver.free(ptr, 4)


def test_events_and_queries(emulator, driver, run):
    start, end, other = (driver.event_create(timing=t) for t in (True, True, False))
    ptr = driver.allocate(4)
    driver.event_record(start, 0)
    run("put", ptr, 0, 1.0, form="Pqf")
    driver.event_record(end, 0)
    driver.event_record(other, 0)
    assert not driver.event_done(end)  # asking again and again comes to an end
    with pytest.raises(DeviceError, match="hipErrorNotReady"):
        driver.event_elapsed(start, end)
    asked = 0
    while not driver.event_done(end):
        asked += 1
    assert 0 < asked < 10
    assert driver.event_elapsed(start, end) >= 0
    driver.synchronize()
    with pytest.raises(DeviceError, match="hipErrorInvalidHandle"):
        driver.event_elapsed(start, other)
    driver.free(ptr, 4)


def test_memory_has_an_end(emulator, driver):
    driver.trim()
    held = emulator.hipEmulatorMemory(0, 0)
    try:
        emulator.hipEmulatorMemory(held + (1 << 20), 0)
        assert driver.allocate(2 << 20) == 0
        ptr = driver.allocate(900 << 10)
        assert driver.memory_info() == (124 << 10, held + (1 << 20))
        assert driver.allocate(900 << 10) == 0
        driver.free(ptr, 900 << 10)
        ptr = driver.allocate(1 << 20)
        assert ptr
        driver.free(ptr, 1 << 20)
    finally:
        emulator.hipEmulatorMemory(0, 0)


@pytest.mark.parametrize("device", ["hip:0", "hip:1"])
def test_waves_and_shared_memory(emulator, device):
    driver = get_device(device).driver
    module = driver.load(driver.compiler().compile(KERNELS))
    out = np.empty(257, np.int32)
    ptr = driver.allocate(out.nbytes)
    driver.grid_launcher(module, "waves")((1, 1, 1), (256, 1, 1), 1024, struct.pack("P", ptr))
    driver.copy_out(out.ctypes.data, ptr, out.nbytes)
    lanes = driver.warp
    assert lanes == {"hip:0": 64, "hip:1": 32}[device]
    sums = np.arange(256).reshape(-1, lanes).sum(1).repeat(lanes)
    assert out.tolist() == [*sums[::-1], 256_000 + lanes]
    driver.free(ptr, out.nbytes)
    driver.unload(module)


def test_code_for_another_target(emulator, driver):
    code = Hiprtc("gfx1030").compile(KERNELS)
    with pytest.raises(DeviceError, match="hipErrorNoBinaryForGpu"):
        driver.load(code)
    module = get_device("hip:1").driver.load(code)
    for name in ("never", "comment"):
        with pytest.raises(DeviceError, match=rf"hipErrorNotFound.*undefined symbol: pa_grid_{name}"):
            get_device("hip:1").driver.symbol(module, name)


def test_code_that_is_no_library(emulator, driver, run):
    code = driver.compiler().compile(KERNELS)
    with pytest.raises(DeviceError, match=r"hipErrorInvalidImage.*of 100 bytes at .*cannot read"):
        driver.load(code[:56] + struct.pack("Q", 100) + code[64:164])


def test_refused_text_and_unknown_targets(emulator):
    with pytest.raises(CompileError, match=r"refused the kernel for gfx90a:(\n.*)+kernel.hip:2.*nothing"):
        Hiprtc("gfx90a").compile('\nextern "C" __global__ void f() { nothing(); }')
    with pytest.raises(DeviceError, match="no target 'sm_90'"):
        Hiprtc("sm_90").compile(KERNELS)


def test_bad_launches(driver, run):
    with pytest.raises(DeviceError, match=r"block \(2048, 1, 1\).*hipErrorInvalidConfiguration"):
        run("part", 1, form="i", block=2048)
    with pytest.raises(DeviceError, match="hipErrorInvalidValue"):
        run("part", 1, form="i", grid=0)


def start(code):
    """A process that runs `code`."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_processes_and_threads_compile_at_once(emulator, tmp_path):
    """Same and other texts, none of them in the cache."""
    code = f"""
        import os, threading
        from concurrent.futures import ThreadPoolExecutor
        from hip_emulator.build import use_emulator
        use_emulator()
        os.environ["HIP_EMULATOR_CACHE"] = {str(tmp_path)!r}
        from pyarray.driver.base import get_device
        driver, together = get_device("hip:0").driver, threading.Barrier(4)
        def load(thread):
            for k in 0, 1, thread + 2:
                text = f'extern "C" __global__ void only_{{k}}(int *v) {{{{ *v = {{k}}; }}}}'
                together.wait()
                try:
                    module = driver.load(driver.compiler().compile(text))
                    driver.symbol(module, f"only_{{k}}")
                except BaseException:
                    together.abort()  # the others would wait for ever
                    raise
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(load, range(4)))
    """
    for process in [start(code), start(code)]:
        said = process.communicate()[1]
        assert process.returncode == 0, said
    left = {path.name for path in tmp_path.iterdir()}
    assert len(left) == 7, left  # six texts and the headers, and nothing half done
    assert not any("-" in name for name in left)


def test_a_fork_has_no_device(emulator):
    """At the library itself: the driver doesn't even ask."""
    assert len(devices("hip")) == 2
    code = """
        import os
        from hip_emulator.build import use_emulator
        library = use_emulator()
        assert library.hipInit(0) == 0
        child = os.fork()
        if child == 0:
            os._exit(library.hipDeviceSynchronize())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert library.hipDeviceSynchronize() == 0
    """
    process = start(code)
    said = process.communicate()[1]
    assert process.returncode == 0, said
