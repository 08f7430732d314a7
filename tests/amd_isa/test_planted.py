"""Bugs that the executor finds, each in a kernel of `bugs.hip`."""

import re

import numpy as np
import pytest

from .harness import HERE, KernelFault, needs_toolchain, run

pytestmark = needs_toolchain
TEXT = (HERE / "bugs.hip").read_text()
LANES = {"gfx942": 64, "gfx1100": 32}


def launch(target, name, a=None, b=None, **more):
    a = np.arange(256, dtype=np.int32) if a is None else a
    b = np.full(256, -1, np.int32) if b is None else b
    run(target, TEXT, name, [a, b], block=more.pop("block", 256), **more)
    return a, b


def waves(target, a):
    return a.reshape(-1, LANES[target])


def test_what_is_right(target):
    a, b = launch(target, "copied")
    assert (a == b).all()
    a, b = launch(target, "half_of_unwritten")
    assert (a == b).all()
    a, b = launch(target, "with_barrier")
    assert (b == a[::-1]).all()
    a, b = launch(target, "part_of_a_vector")
    index = np.arange(256)
    assert (b == a[index // 4 * 4 + index % 2]).all()
    a, b = launch(target, "wave_sum")
    sums = waves(target, a).sum(1)
    assert (waves(target, b) == sums[:, None]).all()


def test_a_wave_that_is_taken_for_32_lanes(target):
    a, b = launch(target, "wave_of_32")
    right = (waves(target, b) == waves(target, a).sum(1)[:, None]).all()
    assert right == (LANES[target] == 32)


def test_a_shuffle_across_64_lanes(target):
    a, b = launch(target, "lane_40")
    assert (waves(target, b) == waves(target, a)[:, [40 % LANES[target]]]).all()
    assert (b[0] == a[40]) == (LANES[target] == 64)


# name: what the executor says, and operands that aren't the usual
FAULTS = {
    "missing_barrier": ("which nothing has written", {}),
    "barrier_of_some": ("waits at a barrier that wave .*, which has ended, did not reach", {}),
    "beyond_lds": ("touched LDS at 1000, of which the block has 1000 bytes", {"shared": 1000}),
    "beyond_global": (r"touched address .* \(4 bytes are written\)", {"a": np.full(256, 1, np.int32)}),
    "wrong_argument_offset": (r"touched address .* \(4 bytes are written\)", {}),
    "before_global": (r"touched address .* \(4 bytes are read\)", {}),
    "unwritten_lds": ("stored is v.* of lane .*, which nothing has written", {}),
    "unwritten_index": ("an address is v.*, which nothing has written", {"block": 255}),
    "unaligned_atomic": ("isn't aligned to 4 bytes", {}),
    "to_constants": ("writes to constants or code", {}),
    "beyond_scratch": ("touched scratch at .*, of which each lane has", {"a": np.arange(256, dtype=np.int32) * 5}),
    "trapped": (r"trapped \(s_trap 2\)", {}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_kernel_line_and_wave(target, name):
    words, operands = FAULTS[name]
    with pytest.raises(KernelFault, match=words) as raised:
        launch(target, name, **operands)
    said = str(raised.value)
    assert said.startswith(f"{name}: ")
    assert re.search(r" at (kernel.hip|amd_hip_atomic.h):[0-9]+ \(", said)
    assert "wave " in said
    assert "of block (0, 0, 0)" in said


def test_a_kernel_without_an_end(target, monkeypatch):
    monkeypatch.setenv("HIP_EMULATOR_ISA_STEPS", "100000")
    with pytest.raises(KernelFault, match="has not come to an end after 100000 instructions"):
        launch(target, "endless")


@pytest.mark.parametrize("name", ["racing", "racing_globally"])
def test_races_where_they_are_looked_for(target, name, monkeypatch):
    launch(target, name)
    monkeypatch.setenv("HIP_EMULATOR_ISA_RACES", "1")
    with pytest.raises(KernelFault, match="races with wave"):
        launch(target, name)
    for right in ("with_barrier", "copied", "wave_sum"):
        launch(target, right)


def test_arguments_of_another_size(target):
    with pytest.raises(KernelFault, match="copied takes 16 bytes of arguments, and 24 came"):
        launch(target, "copied", arguments=[0, 0, 0])


def test_more_threads_than_the_kernel_is_compiled_for(target):
    with pytest.raises(KernelFault, match="launched with 512 threads a block, and is compiled for 256"):
        launch(target, "copied", block=512)
