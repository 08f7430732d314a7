"""The examples of several devices and processes: what they compute is what one computes."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
FEW = examples(15)


@pytest.mark.slow
def test_two_processes_learn_what_one_learns():
    """Gradients are added up by torch in the memory of our arrays. The example asserts the rest."""
    for name in ("torch", "sklearn"):
        pytest.importorskip(name)
    env = os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYARRAY_DEVICE": "cpu"}
    done = subprocess.run(
        [sys.executable, EXAMPLES / "digits_parallel.py", "2"],
        env=env, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert all(f"process {rank} of 2 on cpu, gloo: loss" in said for rank in (0, 1))
    assert "all processes have the same parameters" in said
    apart = float(said.rpartition("differ by at most ")[2])
    assert apart < 1e-3


def out_of_core():
    spec = importlib.util.spec_from_file_location("out_of_core", EXAMPLES / "out_of_core.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@FEW
@given(data=st.data())
def test_parts_on_several_devices_have_the_moments_of_the_whole(device, data):
    values = np.random.default_rng(data.draw(st.integers(0, 99))).normal(3, 2, data.draw(st.integers(1, 500)))
    devices = data.draw(st.sampled_from([[device], [device, "cpu"], ["cpu", device, device]]))
    mean, deviation = out_of_core().moments(values, devices, data.draw(st.integers(1, 600)))
    assert mean == pytest.approx(values.mean(), rel=1e-12)
    assert deviation == pytest.approx(values.std(), rel=1e-9, abs=1e-12)
