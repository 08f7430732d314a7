"""Diagnoses why a device kind has no devices: what is installed, what is missing, which command fixes it.

Nothing here raises: what can't be found out is said in the text.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import platform
from collections.abc import Callable
from typing import NamedTuple

from ..errors import DeviceError


class Needs(NamedTuple):
    """A row of `NEEDS`. `ask_version` and `start` are calls to the vendor's library; `node` is the file
    through which it reaches its devices, with the commands that make it (`module`), let a container have it
    and let a user have it (`access`); `packages` of the binding, one is enough; `libraries` is the package of
    what `linalg` and `fft` call. `driver` and `compiler` are modules: one gives `library_path()`, the other
    `version()`."""

    maker: str
    pci: str  # the vendor's number
    driver: str
    ask_version: str
    start: str
    shown: Callable[[int], str]
    node: str
    module: str
    container: str
    access: str
    packages: tuple[str, ...]
    libraries: str
    compiler: str
    install: str
    compiler_comes_with_driver: bool
    drivers: dict[str, str]  # by distribution; "" for any other
    instead: str = ""  # a module, whose `clang_version` tells of the compiler that is taken where the first is missing


_PCI = "/sys/bus/pci/devices"
_ROCM = "see https://rocm.docs.amd.com/projects/install-on-linux"
_ROCM_APT = "sudo apt-get install amdrocm-runtime  # from AMD's repository: rocm.docs.amd.com"
NEEDS = {
    "cuda": Needs(
        "NVIDIA",
        "0x10de",
        "pyarray.driver.cuda",
        "cuDriverGetVersion",
        "cuInit",
        lambda n: f"{n // 1000}.{n % 1000 // 10}",
        "/dev/nvidiactl",
        "sudo modprobe nvidia",
        "docker run --gpus all ...",
        "sudo chmod a+rw /dev/nvidia*",
        ("cuda-bindings",),
        "nvmath-python",
        "pyarray.driver.nvrtc",
        "pip install 'pyarray-kernels[cuda]'",
        compiler_comes_with_driver=False,
        drivers={
            "debian": "sudo apt-get install nvidia-driver",
            "ubuntu": "sudo ubuntu-drivers install",
            "": "see https://www.nvidia.com/drivers",
        },
    ),
    "hip": Needs(
        "AMD",
        "0x1002",
        "pyarray.driver.hip",
        "hipRuntimeGetVersion",
        "hipInit",
        lambda n: f"{n // 10_000_000}.{n // 100_000 % 100}.{n % 100_000}",
        "/dev/kfd",
        "sudo modprobe amdgpu",
        "docker run --device=/dev/kfd --device=/dev/dri ...",
        "sudo usermod -aG render,video $USER  # and log in again",
        ("hip-python", "rocm-bindings-hip"),
        "rocm-bindings-libraries",
        "pyarray.driver.hiprtc",
        "pip install 'pyarray-kernels[hip]'",
        compiler_comes_with_driver=True,
        drivers={"debian": _ROCM_APT, "ubuntu": _ROCM_APT, "": _ROCM},
        instead="pyarray.driver.command_compilers",
    ),
}


class Part(NamedTuple):
    """One thing that a kind needs: what was found, and how to fix it, "" if it needs no fixing."""

    name: str
    found: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.found}; to fix it: {self.fix}" if self.fix else self.found


def parts(kind: str, works: bool = False) -> list[Part]:
    """What a kind of `NEEDS` needs, from the hardware up. `works`: there are devices, so that only versions
    are asked for."""
    needs = NEEDS[kind]
    return [_hardware(needs), _driver(needs, works), _binding(needs), _compiler(needs), _libraries(needs)]


def missing(kind: str) -> str:
    """Why there is no device of a kind, in one clause with what to do."""
    needs, hardware = NEEDS[kind], _hardware(NEEDS[kind]).found
    for look in (lambda needs: _driver(needs, False), _binding, _compiler):
        if (part := look(needs)).fix:
            if hardware.startswith("no ") and part.found.startswith("no "):
                # what could be installed makes no GPU
                return f"{hardware}, and {part.found}; leave device= out, or write device='cpu'"
            return f"{part} ({hardware})"
    return hardware


def _hardware(needs: Needs) -> Part:
    """GPUs as the PCI bus shows them, whether there is a driver or not. Some containers hide it."""
    count = 0
    try:
        for entry in os.listdir(_PCI):
            vendor, kind = (_text(os.path.join(_PCI, entry, name)) for name in ("vendor", "class"))
            count += vendor == needs.pci and kind[:4] in ("0x03", "0x12")
    except OSError:
        return Part("hardware", f"the PCI bus can't be read, so nobody knows of {needs.maker} GPUs")
    return Part("hardware", f"{count or 'no'} {needs.maker} GPU{'s' if count > 1 else ''} on the PCI bus")


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def _driver(needs: Needs, works: bool) -> Part:
    fix, name = _driver_fix(needs), ""
    try:
        name = importlib.import_module(needs.driver).library_path()
        library = ctypes.CDLL(name)
    except Exception as error:  # a library that is there may fail to load for any reason
        if "cannot open shared object file" in str(error):
            return Part("driver", f"no {name}, the library of {needs.maker}'s driver", fix)
        return Part("driver", f"{name} can't be loaded ({error})", fix)
    what = f"{name}{_version_of(library, needs)}"
    if works:
        return Part("driver", what)
    if not os.path.exists(needs.node):
        return Part("driver", f"{what}, but no {needs.node}", needs.container if _in_container() else needs.module)
    if not os.access(needs.node, os.R_OK | os.W_OK):
        return Part("driver", f"{what}, but {needs.node} is not for this user", needs.access)
    code = _call(library, needs.start, ctypes.c_uint(0))
    return Part("driver", f"{what}, whose {needs.start} answers error {code}", fix) if code else Part("driver", what)


def _in_container() -> bool:
    return any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv")))


def _version_of(library: ctypes.CDLL, needs: Needs) -> str:
    number = ctypes.c_int(0)
    code = _call(library, needs.ask_version, ctypes.byref(number))
    return "" if code or not number.value else f" {needs.shown(number.value)}"


def _call(library: ctypes.CDLL, name: str, argument: object) -> int:
    try:
        return int(getattr(library, name)(argument))
    except AttributeError:
        return -1


def _binding(needs: Needs) -> Part:
    installed = [f"{name} {version}" for name in needs.packages if (version := _installed(name))]
    if installed:
        return Part("binding", ", ".join(installed))
    return Part("binding", f"the package {needs.packages[0]} is not installed", needs.install)


def _libraries(needs: Needs) -> Part:
    version = _installed(needs.libraries)
    if version:
        return Part("libraries", f"{needs.libraries} {version}")
    note = f"no linalg and no fft there, since the package {needs.libraries} is not installed"
    return Part("libraries", note, needs.install)


def _installed(package: str) -> str | None:
    import importlib.metadata  # which takes long to import, and is rarely needed

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _compiler(needs: Needs) -> Part:
    name = needs.compiler.rpartition(".")[2]
    fix = _driver_fix(needs) if needs.compiler_comes_with_driver else needs.install
    try:
        return Part("compiler", f"{name} {importlib.import_module(needs.compiler).version()}")
    except Exception as error:  # a binding of the wrong version fails in its own ways
        what = "" if isinstance(error, DeviceError) else f"{type(error).__name__}: "
        lacks = f"no {name} ({what}{error})"
    if needs.instead:
        with contextlib.suppress(DeviceError):
            return Part("compiler", f"{lacks}, but {importlib.import_module(needs.instead).clang_version()}")
    return Part("compiler", lacks, fix)


def _driver_fix(needs: Needs) -> str:
    try:
        distribution = platform.freedesktop_os_release().get("ID", "")
    except OSError:
        distribution = ""
    return needs.drivers.get(distribution, needs.drivers[""])
