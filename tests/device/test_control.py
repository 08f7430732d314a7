"""Control flow of kernels means on every device, in release and in debug mode, what plain Python says."""

import enum
import math

import numpy as np
import pytest
from kernel_tools import launch, on

import pyarray as pa
from pyarray import config


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@pa.func
def apply(f, x):
    return f(x)


@pa.func
def twice(f, x, y=2):
    return f(f(x)) + y


@pa.func
def first_above(v, limit):
    for i, x in enumerate(v):
        if x > limit:
            return i
    else:
        return -1


def as_python(kernel, device, *args):
    """Asserts that release and debug mode do what the function does in Python."""
    host = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    kernel.__wrapped__(*host)
    for checked in (False, True):
        with pa.debug(checked):
            got = launch(kernel, device, *args)
        for expected, actual in zip((a for a in host if isinstance(a, np.ndarray)), got, strict=True):
            np.testing.assert_array_equal(actual, expected)


@pa.kernel
def nested(out, v, n):
    s = n * 2

    def g(x, y=3):
        t = x * y
        return t + s

    h = g
    for i, x in enumerate(v):

        def local(a):
            if a > 3:
                return a
            return -a

        late = lambda z: z + s + t  # noqa: B023, E731
        t = i + 1
        out[i] = g(x) + apply(h, x) + apply(lambda q: q * s + i, x) + twice(local, x) + late(x)  # noqa: B023
        t = 7
        out[i] += late(0) + first_above(v, i)


def test_functions_inside_functions(device):
    as_python(nested, device, np.zeros(8, np.int64), np.arange(1, 9), 3)


@pa.kernel
def sequences(out, v, w, n):
    for i in range(out.size):
        t = 0
        for a, b in zip(v, w):  # noqa: B905
            t += a * b
        for j, (a, b) in enumerate(zip(v, range(5, 0, -1)), 2):  # noqa: B905
            t = t * 3 + a + b + j
        for x in reversed(v):
            t = t * 2 + x
        for q in reversed(range(1, n)):
            t = t * 2 + q
        for q in reversed(range(n, 1, -2)):
            t = t * 2 + q
        for m, q in enumerate(range(n, 20, 7)):
            t = t * 2 + q * m
            n2 = q
            q = n2 + 1
        for x, q in zip(range(n), reversed(range(n, 30, 4))):  # noqa: B905
            t = t * 2 + q - x
        out[i] = t % 100003


@pytest.mark.parametrize("n", [-3, 0, 1, 2, 7])
def test_sequences(device, n):
    as_python(sequences, device, np.zeros(3, np.int64), np.arange(1, 9), np.arange(3, 9), n)
    as_python(sequences, device, np.zeros(3, np.int64), np.zeros(0, np.int64), np.arange(3), n)


@pa.kernel
def exits(out, n):
    for i in range(out.size):
        t = 0
        for q in range(3):
            if q == n:
                found = q
                break
        else:
            found = -1
            t += 1000
        c = 0
        while (c := c + 1) < n:
            if c == 5:
                end = 7
                break
            for _ in range(c):
                if c == 3:
                    break
            else:
                continue
            t += 10
        else:
            end = 9
        while True:
            c += 1
            if c % 4 == 0:
                last = c
                break
        if (y := n - 3) > 0 and (z := y * 2) > 1:
            t += z
        t += (k := y) + k if y > 1 else (k := 2) * 3
        out[i] = t + found * 100 + end + last + y + k


@pytest.mark.parametrize("n", range(9))
def test_exits(device, n):
    as_python(exits, device, np.zeros(4, np.int64), n)


@pa.kernel
def returns(out, n):
    m = 4
    if n > 7:
        return
    while True:
        m += 1
        for j in range(m):
            if j * n == 12:
                out[0] = -1
                return
        if m == 7:
            break
    for i in range(out.size):
        out[i] = m + i
    if n == 5:
        out[1] = 9
        return
    out[2] += 3
    for i, j in pa.ndrange(2, (1, 3)):
        out[i + 2 * j] += 100
    if n > 2:
        for _ in range(n, 0, -1):
            return


@pytest.mark.parametrize("n", range(10))
def test_return_of_a_kernel(device, n):
    as_python(returns, device, np.zeros(8, np.int64), n)


@pa.kernel
def guarded(out, v):
    if v.size == 0:
        return
    for i in range(v[0]):
        out[i] = v[1]


def test_a_loop_behind_a_return_reads_no_bounds(device):
    as_python(guarded, device, np.zeros(3), np.zeros(0, np.int64))
    as_python(guarded, device, np.zeros(3), np.array([2, 5]))


@pa.kernel
def matches(out, mode="fast", color=Color.RED, level=Level.HIGH, option=None):
    for i in range(out.size):
        match i:
            case 0:
                r = 5
            case 1 | 2:
                r = 6
            case x if x > 4:
                r = x * 2
            case _:
                r = -1
        match mode:
            case "fast":
                r += 100
            case "slow":
                r += nowhere  # noqa: F821
        match color:
            case Color.RED:
                r += 1000
            case Color.BLUE:
                r += 2000
        if color is Color.RED:
            r += 1
        match (i, level):
            case (3, Level.HIGH):
                r += 7
            case (a, 1):
                r -= a
        match i > 2:
            case True:
                r *= 2
        match option:
            case None:
                r += 3
            case y:
                r += y
        out[i] = r


def test_match(device):
    as_python(matches, device, np.zeros(7, np.int64))
    as_python(matches, device, np.zeros(7, np.int64), "other", Color.BLUE, Level.LOW, 5)


def test_a_name_as_the_last_case_is_any_other_value(device):
    @pa.kernel
    def others(out, k):
        for i in range(out.size):
            match i, k:
                case 0, _:
                    r = 1
                case n, m:
                    r = 10 * n + m
            match r:
                case 1:
                    s = 5
                case x:
                    s = x
            out[i] = s

    as_python(others, device, np.zeros(3, np.int64), 4)


@pa.func
def incremented(x):
    return x + 1


def test_functions_as_arguments(device):
    as_python(called, device, np.zeros(3), np.arange(3.0), incremented)


@pa.kernel
def called(out, v, f):
    for i in range(v.size):
        out[i] = f(v[i])


def test_lambdas_as_arguments(device):
    for f in (lambda x: x * 2 + 1, lambda x, y=3: x - y, math.sqrt, lambda x: math.floor(x / 2)):
        as_python(called, device, np.zeros(5), np.arange(5.0), f)


@pa.kernel
def functions(out, v, w):
    for i in range(v.size):
        x, n, m = v[i], w[i], w[i] % 7 + 1
        a, b = divmod(n, m)
        f, t = math.modf(x)
        e, g = math.frexp(x)
        out[i, 0] = math.isqrt(abs(n)) + math.gcd(n, m) + math.lcm(m, 6) + a * 3 + b
        out[i, 1] = math.factorial(m) + math.comb(m + 20, m) + math.perm(m + 3, m)
        out[i, 2] = f
        out[i, 3] = t
        out[i, 4] = e
        out[i, 5] = g
        out[i, 6] = np.ldexp(x, int(n % 3000) - 1500)
        out[i, 7] = math.remainder(x, 0.3)
        out[i, 8] = math.ulp(x)
        out[i, 9] = math.isclose(x, x * (1 + 1e-10)) + 2 * math.isclose(x, x + 1, abs_tol=2)
        out[i, 10] = np.add(x, 1.0) - np.multiply(x, 2.0) + np.clip(x, -1.0, 1.0) + np.fmax(x, 0.0)
        out[i, 11] = np.bitwise_and(n, 5) + np.left_shift(m, 2) + np.invert(n) + np.bitwise_count(n)
        out[i, 12] = np.logical_and(n, m) + np.greater(x, 1.0) * 2 + np.heaviside(x, 0.5)
        out[i, 13] = np.remainder(n, m) + np.floor_divide(n, m) + np.spacing(x) + np.negative(x)


@pa.kernel
def rounded_functions(out, v):
    for i in range(v.size):
        x = v[i]
        out[i, 0] = math.degrees(x) + math.radians(x)
        out[i, 1] = np.float_power(abs(x), 0.5) + np.true_divide(x, 3.0)
        p, q = pa.frexp(x)
        f, t = pa.modf(x)
        out[i, 3] = p + 10 * q + 100 * f + 1000 * t + pa.ldexp(x, 3) + pa.float_power(x, 2) + np.around(x)
        out[i, 4] = np.isclose(x, 0.5 + 1e-6) + 2 * pa.isclose(x, 3.5, 0.1, 0.1) + 4 * np.isreal(x) + pa.iscomplex(x)
        out[i, 2] = math.log(abs(x) + 2, 3) + pa.special.expit(min(max(x, -9.0), 9.0)) + np.logaddexp2(1.0, 2.0)


def test_functions_of_math_and_numpy(device):
    rng = np.random.default_rng(0)
    v = np.concatenate([rng.normal(size=40) * 10.0 ** rng.integers(-320, 300, 40), [0.0, -0.0, 1.5, -2.0, 1e308]])
    w = np.concatenate([rng.integers(-(2**62), 2**62, 40), [0, 1, 2, 2**63 - 1, 49]])
    with np.errstate(all="ignore"):
        as_python(functions, device, np.zeros((45, 14)), v, w)
    (got, _) = launch(rounded_functions, device, np.zeros((5, 5)), np.array([-2.0, 0.0, 0.5, 3.0, 100.0]))
    assert got[1:4, 3].tolist() == [0.0, 54.75, 3056.75]
    assert got[:, 4].tolist() == [4, 4, 5, 4, 4]
    assert got[2, 0] == pytest.approx(math.degrees(0.5) + math.radians(0.5))
    assert got[3, 1] == pytest.approx(math.sqrt(3.0) + 1.0)
    assert got[4, 2] == pytest.approx(math.log(102, 3) + 1 / (1 + math.exp(-9)) + math.log2(6))


@pa.kernel
def not_finite(out, v):
    for i in range(v.size):
        out[i, 0] = np.nan_to_num(v[i])
        out[i, 1] = np.nan_to_num(v[i], nan=3.0, posinf=7.0)
        out[i, 2] = np.nan_to_num(v[i], True, 1.0, 2.0, -5.0)
        out[i, 3] = np.isclose(v[i], v[0]) + 2 * np.isclose(v[i], math.nan, equal_nan=True)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_nan_to_num_and_isclose(device, kind):
    v = np.array([np.inf, -np.inf, np.nan, 1.5], kind)
    as_python(not_finite, device, np.zeros((4, 4), kind), v)


@pa.func
def spin(n):
    k = 0
    while k >= 0:
        k = min(k + 1, n)
    return k


@pa.kernel
def hangs(v, n):
    for i in range(v.size):
        if i > 2:
            v[i] = spin(n)


def test_an_endless_loop_is_reported(device):
    config.set("PYARRAY_DEBUG_TURNS", 1000)
    try:
        with pa.debug(), pytest.raises(pa.EndlessLoopError, match=r"endless loop: kernel.hangs. tid=3") as caught:
            hangs(on(device, np.zeros(8)), 50)
    finally:
        config.set("PYARRAY_DEBUG_TURNS", None)
    error = caught.value
    assert (error.kernel, error.turns, error.tid) == ("hangs", 1000, 3)
    assert [f.function for f in error.frames] == ["hangs", "spin"]
    assert error.launch[0] == __file__


@pa.kernel
def operand_that_decides(out, v, w):
    for i in range(out.size):
        x = v[i]
        a = x and w[i]
        b = x or w[i] or 9
        c = (x > 2 and x) or -1
        d = not (x and w[i])
        e = 0 or x
        f = (y := v[i] // 2) and y + 10
        out[i] = a + 10 * b + 1000 * c + 100000 * d + 10**6 * e + 10**7 * f


def test_and_and_or_are_the_operand_that_decides(device):
    v = np.array([0, 1, 2, 3, 0, 5])
    as_python(operand_that_decides, device, np.zeros(6, np.int64), v, np.array([0, 0, 7, 8, 4, 0]))
    as_python(operand_that_decides, device, np.zeros(6), v, np.array([0, 0, 7.5, 8, 0.5, 0]))


@pa.kernel
def asked_for_none(out, v):
    for i in range(v.shape[0]):
        y = 0
        if (y := v[i]) is None or None is not (y := y + 10):
            out[i] = y


def test_what_is_compared_with_none_is_evaluated(device):
    as_python(asked_for_none, device, np.zeros(3, np.int64), np.arange(3))


def test_functions_of_math_with_one_argument(device):
    @pa.kernel
    def single(out, n: int):
        for i in range(1):
            out[i], out[1], out[2], out[3] = math.gcd(n), math.lcm(-n), math.perm(n), math.gcd() + math.lcm()

    out = pa.zeros(4, device=device)
    single(out, 4)
    assert out.tolist() == [4, 4, 24, 1]
