"""For pytest, where kernels are executed as AMD's instructions: a failed test tells the executor's words, and the next
one finds devices that work."""

import ctypes
import os

import pytest

ISA = os.environ.get("HIP_EMULATOR_ISA", "")


def _emulator():
    rocm = os.environ.get("ROCM_PATH", "")
    library = ctypes.CDLL(os.path.join(rocm, "lib", "libamdhip64.so"))
    library.hipEmulatorFault.restype = ctypes.c_char_p
    return library


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if not ISA or not report.failed or "ROCM_PATH" not in os.environ:
        return
    emulator = _emulator()
    words = (emulator.hipEmulatorFault() or b"").decode(errors="replace")
    if words:
        report.sections.append((f"executor of {ISA}", words))
    emulator.hipEmulatorMend()
