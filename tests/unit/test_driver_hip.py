"""The HIP driver apart from what every device's tests show: with and without its binding and its library."""

import gc
import subprocess
import sys
from types import SimpleNamespace

import pytest

import pyarray as pa
from pyarray.driver import command_compilers, diagnosis, hip, hiprtc
from pyarray.driver.base import devices, get_device
from pyarray.errors import DeviceError
from pyarray.memory.pool import get_pool


@pytest.fixture
def forgotten():
    """What the driver remembers of the binding is asked for anew, in the test and after it."""
    caches = (hiprtc.binding, hiprtc.version, hip.hip, hip.compiler_for)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def driver():
    if not devices("hip"):
        pytest.skip("no HIP device, not even an emulated one")
    return get_device("hip:0").driver


def without(monkeypatch, *names):
    """Imports of these packages fail."""
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)


def test_without_the_binding(monkeypatch, forgotten):
    without(monkeypatch, "rocm", "rocm.bindings", "rocm.bindings.hip", "rocm.bindings.hiprtc", "hip", "hip.hip")
    assert hip.HipDriver.count() == 0
    assert devices("hip") == []
    with pytest.raises(DeviceError, match="no device 'hip:7'"):
        get_device("hip:7")
    with pytest.raises(DeviceError, match=r"pip install 'pyarray-kernels\[hip\]'"):
        hiprtc.version()


def test_without_the_library(monkeypatch, forgotten):
    """hip-python is there, and raises its own at the first call."""

    def fails(*args):
        raise RuntimeError("failed to dlopen libamdhip64.so")

    here = {"hip": SimpleNamespace(hipInit=fails), "hiprtc": SimpleNamespace(hiprtcVersion=fails)}
    monkeypatch.setattr(hip, "binding", here.get)
    monkeypatch.setattr(hiprtc, "binding", here.get)
    assert hip.HipDriver.count() == 0
    with pytest.raises(DeviceError, match=r"hiprtc can't be loaded \(failed to dlopen"):
        hiprtc.Hiprtc("gfx90a").compile("")


def test_the_binding_is_found_in_both_its_places(monkeypatch, forgotten):
    old, new = SimpleNamespace(), SimpleNamespace()
    monkeypatch.setitem(sys.modules, "hip", SimpleNamespace(__path__=[]))
    monkeypatch.setitem(sys.modules, "hip.hip", old)
    without(monkeypatch, "rocm", "rocm.bindings", "rocm.bindings.hip")
    assert hiprtc.binding("hip") is old
    hiprtc.binding.cache_clear()
    monkeypatch.setitem(sys.modules, "rocm", SimpleNamespace(__path__=[]))
    monkeypatch.setitem(sys.modules, "rocm.bindings", SimpleNamespace(__path__=[]))
    monkeypatch.setitem(sys.modules, "rocm.bindings.hip", new)
    assert hiprtc.binding("hip") is new


def test_import_loads_no_binding():
    code = "import sys, pyarray; print(*(m for m in sys.modules if m.partition('.')[0] in ('hip', 'rocm')))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "\n"


def test_errors_have_names(driver):
    with pytest.raises(DeviceError, match=r"^hip:0: a call failed: hipErrorInvalidValue \(invalid argument\)"):
        driver.fail("a call", 1)
    with pytest.raises(DeviceError, match="failed: error 123456"):
        driver.fail("a call", 123456)


def test_properties(driver):
    facts = driver.properties()
    assert facts["threads"] > 0
    assert facts["warp"] in (32, 64)
    assert driver.target() == facts["target"]
    assert hiprtc.TARGET.fullmatch(driver.target())
    assert driver.name()
    assert driver.compiler().fingerprint.startswith("hiprtc ")


def test_dlpack_numbers_of_streams(driver):
    """DLPack has 0 for ROCm's default stream, and no 1 and 2."""
    assert driver.stream() == 0
    stream = driver.stream_create(False)
    driver.enter_stream(stream)
    assert driver.stream() == stream > 2
    driver.leave_stream(stream, 0)
    driver.stream_destroy(stream)


def test_whose_memory_an_address_is(driver):
    ptr, place = driver.allocate(64), driver.pinned(64)
    assert driver.device_of_pointer(ptr) == driver.device_of_pointer(ptr + 63) == 0
    assert driver.device_of_pointer(place) is None
    assert driver.device_of_pointer(64) is None
    driver.free(ptr, 64)


def test_a_program_leaves_nothing_behind(driver):
    pool = get_pool(get_device("hip:0"))
    gc.collect()
    pool.trim()
    before = driver.memory_info()
    for n in (10, 1000, 100_000):
        a = pa.ones(n, dtype="float32", device="hip:0")
        assert float(pa.sum(a * 2)) == 2 * n
    del a
    gc.collect()
    pool.trim()
    after = driver.memory_info()
    assert after[1] == before[1]
    assert before[0] - after[0] < 4096  # a record of failures may have come


def test_clang_compiles_where_hiprtc_is_missing(monkeypatch, forgotten, tmp_path):
    def missing():
        raise DeviceError("there is no hiprtc")

    clang = tmp_path / "clang++-19"
    clang.write_text("#!/bin/sh\necho clang version 19.1.7\n")
    clang.chmod(0o755)
    monkeypatch.setattr(hiprtc, "version", missing)
    monkeypatch.setattr(command_compilers, "_clangs", lambda: [str(clang)])
    compiler = hip.compiler_for("gfx942")
    assert isinstance(compiler, command_compilers.HipClang)
    assert compiler.fingerprint.startswith("clang version 19.1.7 ")
    assert "--offload-arch=gfx942" in compiler.fingerprint
    (found,) = (part for part in diagnosis.parts("hip") if part.name == "compiler")
    assert str(found) == "no hiprtc (there is no hiprtc), but clang version 19.1.7"


def test_without_any_compiler_the_error_is_of_hiprtc(monkeypatch, forgotten):
    def missing():
        raise DeviceError("there is no hiprtc")

    monkeypatch.setattr(hiprtc, "version", missing)
    monkeypatch.setattr(command_compilers, "_clangs", list)
    with pytest.raises(DeviceError, match="there is no hiprtc"):
        hip.compiler_for("gfx942").compile("int a;")
    (found,) = (part for part in diagnosis.parts("hip") if part.name == "compiler")
    assert found.found == "no hiprtc (there is no hiprtc)"
    assert found.fix
