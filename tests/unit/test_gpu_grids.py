"""Blocks of a launch, from the packed arguments: csrc/runtime/gpu.c, on a device that only records them."""

import ctypes

import pytest
from pyarray._runtime import ffi, lib

FULL = 100  # blocks that fill the device
THREADS = 256
MOST = (2**32 - 1) // THREADS  # blocks that HIP takes
L2 = 1 << 20
POINTER, UNSIGNED = ctypes.c_void_p, ctypes.c_uint


class Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = (("id", ctypes.c_int), ("value", ctypes.c_int * 17))


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", UNSIGNED * 3), ("block", UNSIGNED * 3), ("shared", UNSIGNED), ("stream", POINTER),
        ("attributes", ctypes.POINTER(Attribute)), ("count", UNSIGNED),
    )  # fmt: skip


@pytest.fixture
def launches():
    """launches(steps, slots): function, blocks and threads of each that steps with these fields make."""
    launched, capturing = [], False

    def launch(function, gx, *rest):
        launched.append((function, gx, rest[2]))
        return 0

    def launch_dependent(config, function, *rest):
        found = config.contents
        assert found.count == 1
        assert found.attributes[0].id == 6
        assert found.attributes[0].value[1] == 1
        launched.append((function, found.grid[0], found.block[0], found.shared, *found.grid[1:], *found.block[1:]))
        return 0

    def ask_capturing(stream, status):
        status[0] = capturing
        return 0

    same = ctypes.CFUNCTYPE(ctypes.c_int, POINTER)(lambda context: 0)
    calls = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, *[UNSIGNED] * 7, *[POINTER] * 3)(launch)
    dependent_calls = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Config), *[POINTER] * 3)(launch_dependent)
    device = ffi.new("pa_gpu_device *")
    asked = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.POINTER(ctypes.c_int))(ask_capturing)
    device.is_capturing = ctypes.cast(asked, POINTER).value
    device.launch_dependent = ctypes.cast(dependent_calls, POINTER).value
    device.launch = ctypes.cast(calls, POINTER).value
    device.get_context = device.set_context = ctypes.cast(same, POINTER).value
    device.resident_blocks, device.alive, device.id, device.l2_bytes = FULL, 1, 31, L2
    device.only_stream = ffi.addressof(device.default_stream)

    def run(fields, slots, captured=False):
        nonlocal capturing
        capturing = captured
        defaults = {"threads": THREADS, "per_thread": 1, "row_slot": -1}
        steps = ffi.new("pa_gpu_step[]", [defaults | step for step in fields])
        plan = ffi.new("pa_gpu_plan *", (device, steps, len(steps), 1, ffi.NULL, 0))
        packed = ffi.new("int64_t[]", slots)
        launched.clear()
        assert lib.pa_gpu_launch(plan, ffi.cast("char *", packed), ffi.sizeof(packed)) == 0
        return list(launched)

    yield run
    del calls, dependent_calls, asked, same  # which had to outlive the device


@pytest.fixture
def blocks(launches):
    """blocks(step, slots): how many a step with these fields has."""

    def count(fields, slots):
        ((_, found, threads),) = launches([fields], slots) or [(None, 0, THREADS)]
        assert threads == (fields.get("threads", THREADS) or 1)
        return found

    return count


def test_a_thread_for_each_iteration(blocks):
    step = {"size_count": 2, "size_slots": [0, 1]}
    assert [blocks(step, [m, n]) for m, n in [(0, 5), (1, 1), (16, 16), (16, 17), (1000, 1000)]] == [
        0, 1, 1, 2, 3907,
    ]  # fmt: skip
    assert blocks(step | {"per_thread": 4}, [1000, 1000]) == 977
    assert blocks(step, [2**40, 2**40]) == MOST
    assert blocks(step | {"threads": 1}, [2**40, 2**40]) == 2**31 - 1


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
    assert blocks(step, [2**40, 8192]) == MOST


ROWS = {"size_count": 2, "size_slots": [0, 1], "team": 1, "row_slot": 2, "row_elements": 8192}
# slot 2: the row, of 4097 to 8192 elements in fours; 3 and 4: a pointer and a stride; 5: another stride
GUARDS = [(2, -1, 4097, 8192), (2, 3, 0, 0), (3, 15, 0, 0), (4, 15, 0, 0), (5, -1, 4, 4)]
GUARDED = ROWS | {"function": 2, "row_bytes": 8, "guard_count": 5, "guards": GUARDS}
FITTING = [8, 9, 8192, 1 << 40, 1 << 36, 4]


def functions(launches, slots, before=()):
    return [
        function
        for function, *_ in launches([*before, GUARDED, ROWS | {"function": 1}, {"function": 3, "threads": 0}], slots)
    ]


def test_a_step_takes_the_place_of_the_ones_up_to_the_next_without_where_its_guards_hold(launches):
    assert launches([GUARDED, ROWS], FITTING) == [(2, 72, THREADS)]
    assert functions(launches, FITTING) == [2, 3]
    changes = [
        (2, 8196),
        (2, 4096),
        (2, 8190),
        (3, (1 << 40) + 8),
        (4, 4),
        (5, 8),
        (5, -4),
        (5, (1 << 32) + 4),
    ]
    for slot, value in changes:
        assert functions(launches, [value if k == slot else x for k, x in enumerate(FITTING)]) == [1, 3]
    assert functions(launches, [8, 9, 4100, *FITTING[3:]]) == [2, 3]
    assert functions(launches, [8, 0, *FITTING[2:]]) == [3]
    unguarded = {"function": 4, "size_count": 1, "size_slots": [0]}
    assert functions(launches, FITTING, [unguarded, GUARDED | {"function": 5}]) == [4, 5, 3]


def test_guards_are_for_arrays_that_do_not_fit_into_the_cache(launches):
    rows = 2 * L2 // (8192 * 8)
    assert functions(launches, [rows, 1, *FITTING[2:]]) == [1, 3]
    assert functions(launches, [rows + 1, 1, *FITTING[2:]]) == [2, 3]
    for rows in (1 << 20, 1 << 40):  # more blocks than a grid has
        assert functions(launches, [rows, rows, *FITTING[2:]]) == [1, 3]


def test_a_dependent_launch_is_made_by_the_call_that_allows_it(launches):
    dependent = {"function": 1, "size_count": 1, "size_slots": [0], "dependent_launch": 1, "shared": 64}
    plain = {"function": 2, "size_count": 1, "size_slots": [0]}
    launched = 1, 4, THREADS, 64, 1, 1, 1, 1
    assert launches([dependent, plain, dependent], [1000]) == [launched, (2, 4, THREADS), launched]
    assert launches([dependent, plain], [1000], captured=True) == [(1, 4, THREADS), (2, 4, THREADS)]
