"""Blocks of a launch, from the packed arguments: csrc/runtime/gpu.c, on a device that only records them."""

import ctypes

import pytest
from pyarray._runtime import ffi, lib

FULL = 100  # blocks that fill the device
THREADS = 256
POINTER, UNSIGNED = ctypes.c_void_p, ctypes.c_uint


@pytest.fixture
def blocks():
    """blocks(step, slots): how many a step with these fields has."""
    launched = []

    def launch(function, gx, *rest):
        launched.append((gx, rest[2]))
        return 0

    same = ctypes.CFUNCTYPE(ctypes.c_int, POINTER)(lambda context: 0)
    calls = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, *[UNSIGNED] * 7, *[POINTER] * 3)(launch)
    device = ffi.new("pa_gpu_device *")
    device.launch = ctypes.cast(calls, POINTER).value
    device.get_context = device.set_context = ctypes.cast(same, POINTER).value
    device.full_grid, device.alive, device.number = FULL, 1, 31
    device.only_stream = ffi.addressof(device.default_stream)

    def count(fields, slots):
        defaults = {"threads": THREADS, "per_thread": 1, "row_slot": -1}
        step = ffi.new("pa_gpu_step *", defaults | fields)
        plan = ffi.new("pa_gpu_plan *", (device, step, 1, 1, ffi.NULL, 0))
        packed = ffi.new("int64_t[]", slots)
        launched.clear()
        assert lib.pa_gpu_launch(plan, ffi.cast("char *", packed), ffi.sizeof(packed)) == 0
        ((found, threads),) = launched or [(0, THREADS)]
        assert threads == (fields.get("threads", THREADS) or 1)
        return found

    yield count
    del calls, same  # which had to outlive the device


def test_a_thread_for_each_iteration(blocks):
    step = {"size_count": 2, "size_slots": [0, 1]}
    assert [blocks(step, [m, n]) for m, n in [(0, 5), (1, 1), (16, 16), (16, 17), (1000, 1000)]] == [
        0, 1, 1, 2, 3907,
    ]  # fmt: skip
    assert blocks(step | {"per_thread": 4}, [1000, 1000]) == 977
    assert blocks(step, [2**40, 2**40]) == 2**31 - 1


def test_one_thread_and_counts_that_the_device_knows(blocks):
    assert blocks({"threads": 0}, [0]) == 1
    assert blocks({"size_count": -1}, [0]) == FULL


def test_a_block_for_each_iteration(blocks):
    step = {"size_count": 1, "size_slots": [0], "team": 1}
    assert [blocks(step, [n, 8192]) for n in (0, 1, FULL, 8192)] == [0, 1, FULL, FULL]


def test_each_long_row_has_a_block(blocks):
    step = {"size_count": 1, "size_slots": [0], "team": 1, "row_slot": 1, "row_elements": 8192}
    assert [blocks(step, [8192, n]) for n in (0, 1, 1024, 2**62)] == [FULL, FULL, FULL, 8192]
    # as many as a block keeps: teams are of 2, 4 or 8 warps
    assert [blocks(step, [8192, n]) for n in (1025, 2048, 2049, 4096, 4097, 8192, 8193)] == [
        2048, 2048, 4096, 4096, 8192, 8192, 8192,
    ]  # fmt: skip
    assert [blocks(step, [n, 2048]) for n in (0, 1, 512, 513, 4097)] == [0, 1, 512, 129, 1025]
    assert blocks(step, [2**40, 8192]) == 2**31 - 1
