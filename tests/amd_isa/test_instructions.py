"""Instructions by their builtins (`instructions.hip`) against what AMD's manuals say of lanes, in NumPy."""

import ml_dtypes
import numpy as np
import pytest

from .harness import HERE, needs_toolchain, run

pytestmark = needs_toolchain
TEXT = (HERE / "instructions.hip").read_text()
LANES = {"gfx942": 64, "gfx1100": 32}
NONE = -7  # what a lane keeps that finds no other


def lanes(target):
    return np.arange(LANES[target])


def by_lane(target, name, a=None):
    n = LANES[target]
    a = np.arange(n, dtype=np.int32) * 3 + 100 if a is None else a
    b = np.zeros(n, np.int32)
    run(target, TEXT, name, [a, b], block=n)
    return a, b


def moved(a, source, otherwise=NONE):
    """Each lane's value from lane `source`, where that is one."""
    source = np.asarray(source)
    return np.where(source >= 0, a[np.maximum(source, 0)], otherwise)


def in_row(lane, other):
    return np.where((other >= 0) & (other < 16), lane & ~15 | other, -1)


# name: the lane that is read, of a lane
MOVES = {
    "dpp_quad": lambda lane: lane & ~3 | 3 - (lane & 3),
    "dpp_shift_left": lambda lane: in_row(lane, (lane & 15) + 1),
    "dpp_rotate": lambda lane: lane & ~15 | (lane - 5) & 15,
    "dpp_mirror": lambda lane: lane & ~15 | 15 - (lane & 15),
    "dpp_half_mirror": lambda lane: lane & ~7 | 7 - (lane & 7),
    "dpp_rows": lambda lane: np.where(lane // 16 % 2 == 0, in_row(lane, (lane & 15) - 1), -1),
    "swizzle_swap": lambda lane: lane ^ 1,
    "swizzle_quad": lambda lane: lane ^ 1,
    "bpermute": lambda lane: lane ^ 5,
    "permute": lambda lane: lane ^ 9,
    "read_first": lambda lane: lane * 0,
    "read_lane": lambda lane: lane * 0 + 11,
}
MOVES_OF = {
    "gfx942": {
        "row_newbcast": lambda lane: lane & ~15 | 3,
        "bcast15": lambda lane: np.where(lane >= 16, (lane & ~15) - 1, -1),
        "bcast31": lambda lane: np.where(lane >= 32, 31, -1),
        "wave_shift": lambda lane: lane - 1,
    },
    "gfx1100": {
        "row_share": lambda lane: lane & ~15 | 3,
        "row_xmask": lambda lane: lane ^ 6,
        "permlane": lambda lane: lane,
        "permlane_x": lambda lane: (lane & ~15 ^ 16) | lane & 8 | 7 - (lane & 7),
    },
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_divisions_have_one_rounding(target, dtype):
    """Of all exponents, most of whose quotients are scaled on the way."""
    rng, kind = np.random.default_rng(0), {"f32": np.float32, "f64": np.float64}[dtype]
    info, n = np.finfo(kind), LANES[target]
    special = [0, -0.0, 1, -3, info.max, info.tiny, -info.smallest_subnormal, info.tiny / 3, np.inf, np.nan]
    for _ in range(8):
        with np.errstate(all="ignore"):
            powers = kind(2) ** rng.integers(info.minexp - info.nmant, info.maxexp, n + 32).astype(kind)
            values = np.concatenate([(rng.uniform(1, 2, n + 32) * powers).astype(kind)[: n + 32 - 10], special])
            values = rng.permutation(values.astype(kind))
            x, by = values[:n].copy(), values[n:].copy()
            wanted = x / by[:, None]
        got = np.zeros_like(wanted)
        run(target, TEXT, f"divide_{dtype}", [x, by, got], block=n)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", MOVES)
def test_movement_between_lanes(target, name):
    a, b = by_lane(target, name)
    np.testing.assert_array_equal(b, moved(a, MOVES[name](lanes(target))))


def test_movement_that_one_target_has(target):
    for name, source in MOVES_OF[target].items():
        a, b = by_lane(target, name)
        np.testing.assert_array_equal(b, moved(a, source(lanes(target))), err_msg=name)


def test_movement_that_is_zero_or_masked(target):
    lane = lanes(target)
    a, b = by_lane(target, "dpp_shift_right")
    np.testing.assert_array_equal(b, moved(a, in_row(lane, (lane & 15) - 3), 0))
    a, b = by_lane(target, "dpp_banks")
    bank = lane // 4 % 4
    inside = (bank == 1) | (bank == 2)
    np.testing.assert_array_equal(b, np.where(inside, moved(a, in_row(lane, (lane & 15) - 1), 0), NONE))


def test_integers(target):
    a, b = by_lane(target, "before")
    np.testing.assert_array_equal(b, lanes(target))
    a, b = by_lane(target, "ballot")
    assert (b == np.sum(a & 1)).all()
    a, b = by_lane(target, "byte_permute")
    np.testing.assert_array_equal(b, (a >> 24 & 255) << 16 | 0x33 << 8 | 0x44)
    a, b = by_lane(target, "align_bits")
    np.testing.assert_array_equal(b.view(np.uint32), (a.view(np.uint32) << np.uint32(24)) | np.uint32(0x123456))
    a, b = by_lane(target, "sad")
    bytes_of = a.view(np.uint8).reshape(-1, 4).astype(int)
    np.testing.assert_array_equal(b, 5 + np.abs(bytes_of - [0x40, 0x30, 0x20, 0x10]).sum(1))
    a, b = by_lane(target, "bit_field")
    part = (a * 77777 >> 5) & 511
    np.testing.assert_array_equal(b, np.where(part >= 256, part - 512, part))
    a, b = by_lane(target, "median", lanes(target).astype(np.int32) - 20)
    np.testing.assert_array_equal(b, (np.clip(a, -3.5, 20.25) * 4).astype(int))


def pair(target, kind, each=1):
    rng = np.random.default_rng(24)
    return [rng.uniform(-4, 4, LANES[target] * each).astype(kind) for _ in range(2)]


def by_pairs(target, name, a, b, kind, size):
    c = np.zeros(size, kind)
    run(target, TEXT, name, [a, b, c], block=LANES[target])
    return c


def test_halves(target):
    a, b = pair(target, np.float16, 2)
    n = len(a)
    swapped = a.reshape(-1, 2)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(by_pairs(target, "packed_halves", a, b, np.float16, n), a * b + swapped - b)
    x, y = (v.astype(np.float64).reshape(-1, 2) for v in (a, b))
    dots = by_pairs(target, "dot_halves", a, b, np.float32, n // 2)
    np.testing.assert_allclose(dots, (x * y).sum(1) + 1.5, rtol=1e-6, atol=1e-6)
    mixed = by_pairs(target, "mixed_fma", a, b, np.float32, n // 2)
    np.testing.assert_array_equal(mixed, (x[:, 1] * -y[:, 0] + x[:, 0]).astype(np.float32))
    both = by_pairs(target, "mixed_fma_halves", a, b, np.float16, n).reshape(-1, 2)
    sums = (x * [2.5, -2.5] + y[:, ::-1]).astype(np.float32)
    np.testing.assert_array_equal(both, sums.astype(np.float16))


DOTS = {
    "gfx942": ["int8_int8", "int4_int4", "int16_int16", "uint8_uint8", "uint4_uint4", "uint16_uint16"],
    "gfx1100": [
        "int8_int8", "int8_uint8", "uint8_int8", "int4_int4", "int4_uint4", "uint4_int4", "uint8_uint8", "uint4_uint4",
    ],
}  # fmt: skip


def parts_of(words, kind):
    """The numbers of `kind` ("int4") in each 32-bit word, the lowest bits first."""
    signed, bits = not kind.startswith("u"), int(kind.lstrip("uint"))
    parts = (words.view(np.uint32)[:, None].astype(np.int64) >> np.arange(0, 32, bits)) & ((1 << bits) - 1)
    return np.where(parts >> (bits - 1) & 1, parts - (1 << bits), parts) if signed else parts


def test_dot_products_of_integers(target):
    rng = np.random.default_rng(24)
    a, b = rng.integers(-(2**31), 2**31, (2, LANES[target])).astype(np.int32)
    a[:2], b[:2] = -1, [0x7F7F7F7F, -1]
    for name in DOTS[target]:
        kind_a, kind_b = name.split("_")
        wanted = 7 + (parts_of(a, kind_a) * parts_of(b, kind_b)).sum(1)
        got = by_pairs(target, "dot_" + name, a, b, np.int32, len(a))
        np.testing.assert_array_equal(got, wanted.astype(np.int32), err_msg=name)


SATURATED = [("int32", 1), ("uint32", 1), ("int16", 1), ("uint16", 1), ("int16", 2), ("uint16", 2)]


@pytest.mark.parametrize(("kind", "each"), SATURATED)
def test_sums_that_saturate(target, kind, each):
    rng = np.random.default_rng(24)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    a, b = rng.integers(low, high, (2, LANES[target], each), kind, endpoint=True)
    a[:3], b[:3] = [[low], [high], [low]], [[high], [low], [low]]
    name = f"saturate_{kind}{'_pairs' if each == 2 else ''}"
    got = by_pairs(target, name, a, b, kind, 2 * a.size).reshape(len(a), 2, each)
    wide = np.stack([a.astype(np.int64) + b, a.astype(np.int64) - b], axis=1)
    np.testing.assert_array_equal(got, np.clip(wide, low, high))


def test_quotients_are_rounded_right(target):
    for kind, name in ((np.float32, "quotient"), (np.float64, "quotient_double")):
        a, b = pair(target, kind)
        special = [0, -0.0, np.inf, np.nan, np.finfo(kind).tiny / 8, np.finfo(kind).max, 1, 3]
        a[:8], b[:8] = special, special[::-1]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(by_pairs(target, name, a, b, kind, len(a)), a / b)
    a, b = pair(target, np.float64)
    np.testing.assert_array_equal(by_pairs(target, "root_double", np.abs(a), b, np.float64, len(a)), np.sqrt(np.abs(a)))


PRODUCTS = {  # name: type of the factors, of the result, sizes
    "matrix_halves": (np.float16, np.float32, 16, 16),
    "matrix_bfloats": (ml_dtypes.bfloat16, np.float32, 16, 16),
    "matrix_floats": (np.float32, np.float32, 32, 2),
    "matrix_doubles": (np.float64, np.float64, 16, 4),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_matrix_instructions(target, name):
    if target == "gfx1100" and name in ("matrix_floats", "matrix_doubles"):
        pytest.skip("WMMA of gfx1100 multiplies halves, bfloat16 and bytes only")
    kind, result, size, depth = PRODUCTS[name]
    rng = np.random.default_rng(42)
    a = rng.uniform(-2, 2, (size, depth)).astype(kind)
    b = rng.uniform(-2, 2, (depth, size)).astype(kind)
    c = rng.uniform(-2, 2, (size, size)).astype(result)
    wanted = a.astype(np.float64) @ b.astype(np.float64) + c
    run(target, TEXT, name, [a, b, c], block=LANES[target])
    np.testing.assert_allclose(c, wanted, rtol=1e-6 if result == np.float32 else 1e-14, atol=1e-6)
