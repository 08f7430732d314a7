"""`python -m pyarray info` and `show_config`: what is there, what is missing and the command that fixes it.
The machines are made up here."""

import importlib.metadata
import os
import re
import subprocess
import sys

import pytest

import pyarray as pa
from pyarray import __main__ as command
from pyarray.debug import environment
from pyarray.driver import base, diagnosis, hip, hiprtc, nvrtc
from pyarray.driver.null import NullDriver


class Library:
    """A vendor's driver library: `version`, and what its start answers."""

    def __init__(self, version, start=0):
        self.version, self.start = version, start

    def __getattr__(self, name):
        if not name.endswith(("Init", "Version")):
            raise AttributeError(name)
        return self._version if name.endswith("Version") else lambda flags: self.start

    def _version(self, place):
        place._obj.value = self.version
        return 0


@pytest.fixture
def machine(monkeypatch):
    """Says which libraries, files and packages there are. What isn't said is absent."""

    def make(libraries=None, files=(), packages=None, distribution="debian", refused=(), compiles=True):
        def load(name, *args, **kwargs):
            found = (libraries or {}).get(name)
            if isinstance(found, Library):
                return found
            raise OSError(found or f"{name}: cannot open shared object file: No such file or directory")

        def version(name):
            try:
                return (packages or {})[name]
            except KeyError:
                raise importlib.metadata.PackageNotFoundError(name) from None

        def of_compiler():
            if not compiles:
                raise pa.DeviceError("it is not there")
            return "13.5"

        monkeypatch.setattr(diagnosis.ctypes, "CDLL", load)
        monkeypatch.setattr(diagnosis.os.path, "exists", lambda path: path in files)
        monkeypatch.setattr(diagnosis.os, "access", lambda path, mode: path not in refused)
        monkeypatch.setattr(diagnosis.importlib.metadata, "version", version)
        monkeypatch.setattr(diagnosis.platform, "freedesktop_os_release", lambda: {"ID": distribution})
        monkeypatch.setattr(nvrtc, "version", of_compiler)
        monkeypatch.setattr(hiprtc, "version", of_compiler)
        monkeypatch.setattr(hip, "library_path", lambda: "libamdhip64.so")
        monkeypatch.setattr(diagnosis, "_hardware", lambda needs: diagnosis.Part("hardware", "two GPUs"))

    return make


CUDA, HIP = {"libcuda.so.1": Library(13000)}, {"libamdhip64.so": Library(60342134)}
BOUND = {"cuda-bindings": "13.0.1", "hip-python": "7.1"}
ALL = BOUND | {"nvmath-python": "1.0", "rocm-bindings-libraries": "10.0"}
CASES = [
    # kind, machine, the part that is to be fixed, what is said of it, the command
    ("cuda", {}, "driver", "no libcuda.so.1, the library of NVIDIA's", "sudo apt-get install nvidia-driver"),
    ("cuda", {"distribution": "ubuntu"}, "driver", "no libcuda.so.1", "sudo ubuntu-drivers install"),
    ("cuda", {"distribution": "arch"}, "driver", "no libcuda.so.1", "see https://www.nvidia.com/drivers"),
    ("cuda", {"libraries": CUDA}, "driver", "13.0, but no /dev/nvidiactl", "sudo modprobe nvidia"),
    (
        "cuda", {"libraries": CUDA, "files": ["/.dockerenv"]},
        "driver", "libcuda.so.1 13.0, but no /dev/nvidiactl", "docker run --gpus all ...",
    ),
    (
        "cuda", {"libraries": {"libcuda.so.1": Library(13000, 803)}, "files": ["/dev/nvidiactl"]},
        "driver", "whose cuInit answers error 803", "sudo apt-get install nvidia-driver",
    ),
    (
        "cuda", {"libraries": {"libcuda.so.1": "libcuda.so.1: file too short"}},
        "driver", "libcuda.so.1 can't be loaded (libcuda.so.1: file", "sudo apt-get install nvidia-driver",
    ),
    (
        "cuda", {"libraries": CUDA, "files": ["/dev/nvidiactl"]},
        "binding", "the package cuda-bindings is not installed", "pip install 'pyarray-kernels[cuda]'",
    ),
    (
        "cuda", {"libraries": CUDA, "files": ["/dev/nvidiactl"], "packages": BOUND, "compiles": False},
        "compiler", "no nvrtc (it is not there)", "pip install 'pyarray-kernels[cuda]'",
    ),
    (
        "cuda", {"libraries": CUDA, "files": ["/dev/nvidiactl"], "packages": BOUND},
        "libraries", "the package nvmath-python is not installed", "pip install 'pyarray-kernels[cuda]'",
    ),
    ("hip", {}, "driver", "no libamdhip64.so", "sudo apt-get install amdrocm-runtime"),
    ("hip", {"distribution": "fedora"}, "driver", "AMD's driver", "see https://rocm.docs.amd.com"),
    ("hip", {"libraries": HIP}, "driver", ".so 6.3.42134, but no /dev/kfd", "sudo modprobe amdgpu"),
    (
        "hip", {"libraries": HIP, "files": ["/dev/kfd"], "refused": ["/dev/kfd"]},
        "driver", "/dev/kfd is not for this user", "sudo usermod -aG render,video $USER",
    ),
    (
        "hip", {"libraries": HIP, "files": ["/dev/kfd"]},
        "binding", "the package hip-python is not installed", "pip install 'pyarray-kernels[hip]'",
    ),
    (
        "hip", {"libraries": HIP, "files": ["/dev/kfd"], "packages": BOUND, "compiles": False},
        "compiler", "no hiprtc (it is not there)", "sudo apt-get install amdrocm-runtime",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "there", "name", "said", "fix"), CASES)
def test_what_is_missing_and_what_fixes_it(kind, there, name, said, fix, machine):
    machine(**there)
    first = next(part for part in diagnosis.parts(kind) if part.fix)
    assert first.name == name
    assert said in first.found
    assert first.fix.startswith(fix)
    if name != "libraries":  # without which there is a device
        assert str(first) in diagnosis.missing(kind)
    assert "two GPUs" in diagnosis.missing(kind)


def test_nothing_is_missing(machine):
    machine(CUDA, ["/dev/nvidiactl"], ALL)
    found = {part.name: str(part) for part in diagnosis.parts("cuda")}
    assert found == {
        "hardware": "two GPUs", "driver": "libcuda.so.1 13.0", "binding": "cuda-bindings 13.0.1",
        "compiler": "nvrtc 13.5", "libraries": "nvmath-python 1.0",
    }  # fmt: skip
    assert diagnosis.missing("cuda") == "two GPUs"


@pytest.mark.skipif("cuda:0" in map(str, base.devices("cuda")), reason="there is a CUDA device")
def test_a_device_that_is_absent_says_why(machine):
    machine()
    with pytest.raises(pa.DeviceError) as caught:
        pa.empty(3, device="cuda:0")
    for words in ("no device 'cuda:0'", "libcuda.so.1", "sudo apt-get install nvidia-driver", "pyarray info"):
        assert words in str(caught.value)


@pytest.mark.skipif("cuda:0" in map(str, base.devices("cuda")), reason="there is a CUDA device")
def test_a_machine_without_gpus_is_told_to_use_the_cpu(machine, monkeypatch):
    machine()
    none = diagnosis.Part("hardware", "no NVIDIA GPU on the PCI bus")
    monkeypatch.setattr(diagnosis, "_hardware", lambda needs: none)
    with pytest.raises(pa.DeviceError) as caught:
        pa.empty(3, device="cuda:0")
    assert str(caught.value) == (
        "no device 'cuda:0': no NVIDIA GPU on the PCI bus, and no libcuda.so.1, the library of NVIDIA's "
        "driver; leave device= out, or write device='cpu'; python -m pyarray info says more"
    )


def test_a_gpu_without_a_compiler(monkeypatch):
    for name in ("cuda.bindings", "cuda.bindings.nvrtc"):
        monkeypatch.setitem(sys.modules, name, None)
    nvrtc._nvrtc.cache_clear()
    nvrtc.version.cache_clear()
    try:
        for use in (lambda: nvrtc.Nvrtc("sm_90").compile(""), lambda: nvrtc.Nvrtc("sm_90").fingerprint):
            with pytest.raises(pa.DeviceError, match=r"NVRTC: pip install 'pyarray-kernels\[cuda\]'"):
                use()
        assert "pip install 'pyarray-kernels[cuda]'" in str(diagnosis.parts("cuda")[-2])  # the compiler
    finally:
        nvrtc._nvrtc.cache_clear()


def test_the_bus_may_be_hidden(monkeypatch):
    monkeypatch.setattr(diagnosis, "_PCI", "/nowhere")
    assert diagnosis.parts("hip")[0].found == "the PCI bus can't be read, so nobody knows of AMD GPUs"


# ---- the report


def rows_of(kind):
    return dict(environment._of_kind(kind))


def test_devices_with_model_target_and_memory():
    first = rows_of("null")["device null:0"]
    # what other tests of this process have freed there may still be in the pool
    assert re.match(r"null, null, [0-9.]+ of 1024\.0 GiB free \(threads 1", first)
    assert "GiB free (threads" in rows_of("cpu")["device cpu"]


def test_what_breaks_is_said(monkeypatch):
    def broken(*_):
        raise pa.DeviceError("it fell off the bus")

    monkeypatch.setattr(NullDriver, "memory_info", broken)
    assert rows_of("null")["device null:1"] == "none (it fell off the bus)"
    monkeypatch.setattr(environment, "devices", lambda kind: 1 / 0)
    assert rows_of("hip")["hip"] == "no device: none (ZeroDivisionError: division by zero)"
    monkeypatch.setenv("PYARRAY_DEVICE", "gpu")
    said = dict(environment.report())
    assert "PYARRAY_DEVICE='gpu': unknown device" in said["default device"]
    assert "PYARRAY_DEVICE=gpu" in said["settings"]


def test_three_ways_to_print_it(capsys):
    pa.show_config()
    first = capsys.readouterr().out
    command.main(["info"])
    second = capsys.readouterr().out
    command.main([])
    third = capsys.readouterr().out
    for out in (first, second, third):
        for word in (
            "pyarray ",
            "device cpu",
            "C compiler",
            "cuda",
            "hip",
            "hardware",
            "driver",
            "kernel cache",
        ):
            assert word in out


def test_it_needs_nothing(tmp_path):
    """Neither GPU packages nor a compiler nor a home, and no traceback."""
    code = (
        "import sys\n"
        "for name in ('cuda', 'cuda.bindings', 'hip', 'rocm', 'torch'): sys.modules[name] = None\n"
        "from pyarray.__main__ import main\n"
        "main(['info'])\n"
    )
    place = {"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=place, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "pip install ziglang" in done.stdout
    assert "pip install 'pyarray-kernels[cuda]'" in done.stdout
