"""A fixed part of the tests of devices, on AMD code objects: `make test-amd` runs all of them."""

import os
import subprocess
import sys

from .harness import HERE, needs_toolchain

pytestmark = needs_toolchain
ROOT = HERE.parent.parent
# What differs most between a CPU's code and a GPU's: waves, barriers, atomics, shared memory, matrix
# instructions, wide and narrow types.
SELECTION = [
    "tests/device/test_kernels.py::test_loops[hip:0]", "tests/device/test_kernels.py::test_casts[hip:0-float16]",
    "tests/device/test_kernels.py::test_casts[hip:0-uint64]",
    "tests/device/test_control.py::test_nan_to_num_and_isclose[hip:0-float32]",
    "tests/device/test_control.py::test_nan_to_num_and_isclose[hip:0-float64]",
    "tests/device/test_semantics.py::test_atomics[hip:0-int32]",
    "tests/device/test_semantics.py::test_atomics[hip:0-bfloat16]",
    "tests/device/test_row_kernels.py::test_softmax[hip:0-float32-release]",
    "tests/device/test_softmax.py::test_as_numpy[hip:0-float16-columns]",
    "tests/device/test_block_rows.py::test_lengths[hip:0-cached-64-0-float32]",
    "tests/device/test_tensor_cores.py::test_nothing_beside_the_result_is_written[hip:0-float16]",
]  # fmt: skip


def test_the_device_suite_runs_on_code_objects(target):
    environment = os.environ | {"HIP_EMULATOR_ISA": target, "PYARRAY_TEST_DEVICES": "hip:0"}
    for name in ("ROCM_PATH", "HIP_EMULATOR_CACHE", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *SELECTION]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_a_missing_toolchain_is_told(tmp_path):
    environment = os.environ | {"HIP_EMULATOR_ISA": "gfx942", "PATH": str(tmp_path)}
    environment.pop("ROCM_PATH", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", SELECTION[0]]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 4
    assert "apt-get install clang-19 lld-19" in done.stdout + done.stderr


def test_the_report_is_one_file(tmp_path):
    """Here without an AMD GPU, and on no test, which pytest takes for a failure."""
    place = tmp_path / "report.txt"
    command = [sys.executable, "-m", "tests.amd_report", "--output", str(place), "--device", "cpu", "--"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    arguments = ["tests/unit/test_null.py", "-k", "no_such_test"]
    done = subprocess.run([*command, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
    text = place.read_text()
    assert done.returncode == 1
    for part in ("==== commit", "==== pyarray info", "device cpu", "==== rocminfo", "==== tests on cpu", "deselected"):
        assert part in text
    assert "please attach it to an issue" in done.stdout
