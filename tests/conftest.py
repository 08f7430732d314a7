"""Settings of every test: the kernel cache of the tests, hypothesis without deadlines, the devices that are
there."""

import gc
import importlib.util
import os
import shutil
from pathlib import Path

import pytest
from amd_isa import toolchain
from hip_emulator.build import use_emulator
from hypothesis import settings

pytest_plugins = (
    "variants_by_turn", "kernel_optimisation", "targets.kernel_recorder", "amd_isa.reports", "amd_isa.decoded_texts",
)  # fmt: skip

# Before pyarray is imported. Tests never touch the user's cache. Theirs lives on: most of a first run is
# compiling, and an entry's name is a hash of all that decides it.
if "PYARRAY_CACHE_DIR" not in os.environ:
    _cache = Path(__file__).resolve().parent.parent / ".venv" / "test-cache"
    # What was measured by another run may be of a busier machine. (Workers of xdist find the variable set.)
    shutil.rmtree(_cache / "tune", ignore_errors=True)
    os.environ["PYARRAY_CACHE_DIR"] = str(_cache)
# Each process that a test starts would compile the Python of the package anew: half of its time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Tests count compiles.
os.environ["PYARRAY_WARMED"] = "0"

# There are as many workers as cores: more threads of NumPy's and torch's libraries would spin for each other,
# and each process of torch's compiler imports torch anew.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"):
    os.environ.setdefault(_name, "1")

from pyarray.driver.base import devices  # noqa: E402


def pytest_configure():
    from strategies import examples  # once the plugins are there: it asks one of them for the day's turn

    settings.register_profile("pyarray", examples(100))
    settings.load_profile("pyarray")


def _devices():
    """What PYARRAY_TEST_DEVICES names, else the CPU, an emulated AMD GPU and the first NVIDIA GPU. HIP_EMULATOR=0: AMD
    GPUs are this machine's."""
    if "PYARRAY_TEST_DEVICES" in os.environ:
        names = os.environ["PYARRAY_TEST_DEVICES"].split(",")
    else:
        names = ["cpu", "hip:0", *(f"cuda:{device.index}" for device in devices("cuda")[:1])]
    if os.environ.get("HIP_EMULATOR") == "0":
        return names
    if os.environ.get("HIP_EMULATOR_ISA") and (missing := toolchain.missing()):
        pytest.exit(f"HIP_EMULATOR_ISA: AMD code objects can't be made here: {missing}", returncode=4)
    emulated = [name for name in names if name.startswith("hip")]
    if emulated and shutil.which("c++") and any(map(importlib.util.find_spec, ("rocm", "hip"))):
        use_emulator()
        return names
    return [name for name in names if name not in emulated]


DEVICES = _devices()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """What a file leaves stays, as do the modules and items of all tests: millions of objects, at which each
    further collection of garbage would look."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_collection_finish():
    gc.freeze()


def pytest_report_header():
    return f"devices: {', '.join(DEVICES)}"


@pytest.fixture(params=DEVICES)
def device(request):
    """Each device that this machine has, by name."""
    return request.param
