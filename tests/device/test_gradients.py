"""`kernel.grad` is what differences of the kernel say, on every device, or refused."""

import linecache
import math
import os
import pickle
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
from drawn_gradients import Draw
from gradient_tools import adjoint, agree, differences
from kernel_tools import on

import pyarray as pa
from pyarray.jit.kernel import from_text, kernel

PROGRAMS = int(os.environ.get("PYARRAY_TEST_PROGRAMS", "8"))
V3 = pa.ndarray[pa.float64, (None, 3)]


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pa.func
def bent(x):
    if x > 0.3:
        return x * x
    return 0.3 * x


@pa.func
def half(x):
    return x / 2


@pa.func
def mixed(a, b):
    s = 0.0
    for k in range(3):
        if a * k > 1.7:
            return s + b
        s += a * b * k
    return s


@pa.func
def idx(i):
    return (i * 7 + 3) % 5


# ---- functions and operators

UNARY = (
    "math.sin", "math.cos", "math.tan", "math.asin", "math.acos", "math.atan", "math.sinh", "math.cosh", "math.tanh",
    "math.asinh", "math.atanh", "math.exp", "math.expm1", "math.log", "math.log1p", "math.log2", "math.log10",
    "math.sqrt", "pa.exp2", "pa.cbrt", "math.erf", "math.erfc", "abs", "pa.square", "pa.reciprocal", "pa.sign",
    "math.floor", "math.ceil", "math.trunc", "round", "pa.special.expit", "-", "+", "math.degrees", "pa.positive",
)  # fmt: skip
BINARY = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} ** {1}", "{0} % {1}", "{0} // {1}", "{0} ** 3",
    "{0} ** -1.5", "min({0}, {1})", "max({0}, {1})", "pa.arctan2({0}, {1})", "pa.hypot({0}, {1})",
    "pa.copysign({0}, -{1})", "math.fmod({0}, {1})", "pa.logaddexp({0}, {1})", "pa.where({0} > {1}, {0} * {1}, {1})",
    "({0} if {0} > {1} else {1}) * {0}", "x[int({1} * 3)] * {1}", "({1} * 4 - int({1} * 4)) * {0}",
    "divmod({0}, {1})[1]", "{0} + {1} * divmod({0}, {1})[1]", "math.acosh({0} + {1} + 1)", "pa.nextafter({0}, {1})",
)  # fmt: skip


def elementwise(*expressions):
    """A kernel y[i, k] = expression k, or y[i] of a single one."""
    places = ["i"] if len(expressions) == 1 else [f"i, {k}" for k in range(len(expressions))]
    lines = (f"        y[{at}] = {e}\n" for at, e in zip(places, expressions, strict=True))
    return from_text("k", "def k(x, w, y):\n    for i in range(x.size):\n" + "".join(lines), {"math": math, "pa": pa})


@pytest.mark.slow
@pytest.mark.parametrize("expressions", [[f"{f}(x[i])" for f in UNARY], BINARY], ids=["unary", "binary"])
def test_functions_and_operators(device, expressions):
    """Each has its own row of gradients, by a cotangent that is 0 elsewhere."""
    k = elementwise(*(e.format("x[i]", "w[i]") for e in expressions))
    count = len(expressions)
    args = {
        "x": np.array([0.15, 0.4, 0.62, 0.9]), "w": np.array([0.7, 0.35, 0.8, 0.26]), "y": np.zeros((4, count)),
    }  # fmt: skip
    for checked in (False, True):
        for n, expression in enumerate(expressions):
            cotangents = {"y": np.tile(np.arange(count) == n, (4, 1)) * np.array([[1.0], [-2.0], [0.5], [3.0]])}
            expected = differences(k, args, cotangents, ["x", "w"], 1e-6)
            with pa.debug(checked):
                got = adjoint(k, device, args, cotangents, ["x", "w"])
            for name in "xw":
                np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, atol=1e-7, err_msg=expression)


@pytest.mark.slow
def test_kinks_and_zeros(device):
    """At a kink the gradient is the mean of both sides; at 0 powers and roots of sums of squares have finite ones."""
    for expression, at, expected in (
        ("abs(x[i])", 0.0, 0.0), ("max(x[i], 0.0)", 0.0, 0.5), ("x[i] ** 2", 0.0, 0.0), ("x[i] ** 0.0", 0.0, 0.0),
        ("pa.hypot(x[i], 0.0)", 0.0, 0.0), ("x[i] ** 1.0", 0.0, 1.0), ("pa.arctan2(x[i], 1.0)", 0.0, 1.0),
    ):  # fmt: skip
        args = {"x": np.array([at]), "w": np.ones(1), "y": np.zeros(1)}
        got = adjoint(elementwise(expression), device, args, {"y": np.ones(1)}, ["x"])
        assert got["x"].tolist() == [expected], expression


@pytest.mark.parametrize("dtype", [pa.float32, pa.float16, pa.bfloat16])
def test_dtypes(device, dtype):
    """Half floats are computed in float32, and rounded where they are stored."""
    k = elementwise("x[i] * w[i] * w[i]")
    x, w = (pa.asarray([1.0, 2.0, 3.0], dtype=dtype, device=device) for _ in range(2))
    y, gx, gw = (pa.zeros(3, dtype=dtype, device=device) for _ in range(3))
    k(x, w, y)
    k.grad(x, w, y, grad_x=gx, grad_w=gw, grad_y=pa.ones(3, dtype=dtype, device=device))
    assert gx.astype(pa.float32).tolist() == [1, 4, 9]
    assert gw.astype(pa.float32).tolist() == [2, 8, 18]


def test_mixed_dtypes(device):
    k = elementwise("x[i] * w[i]")
    x, w = pa.asarray([1.5, 2.0], dtype=pa.float32, device=device), pa.asarray([3.0, 5.0], device=device)
    gx, gw = pa.zeros_like(x), pa.zeros_like(w)
    k.grad(x, w, pa.zeros(2, device=device), grad_x=gx, grad_w=gw, grad_y=pa.ones(2, device=device))
    assert (gx.tolist(), gw.tolist()) == ([3, 5], [1.5, 2])


# ---- control flow


@pa.kernel
def exits(x, w, y):
    for i in range(x.size):
        s = 0.0
        for j in range(w.size):
            if j == 3:
                continue
            if j == 6:
                break
            s += mixed(x[i], w[j]) * w[j]
        y[i] = s * s


@pa.kernel
def carried(x, y, n: pa.constexpr):
    for i in range(x.size):
        v, k = x[i], 1
        for _ in range(n):
            k = (k * 3) % 5
            if v > 1:
                v = v * 0.3 * k
            else:
                s = math.sin(v)
                v = v + s * x[0]
        y[i] = v


@pa.kernel
def turns(x, w, y):
    for i in range(x.size):
        s, k = 0.0, 0
        while k < w.size:
            s += w[k] * x[i]
            k += 1
        y[i] = s * x[i]


@pa.kernel
def triangle(x, w, y, n: int):
    for i in range(x.size):
        total = 0.0
        for j in range(n, 0, -1):
            inner = 0.0
            for k in range(j):
                inner += w[k] * x[i]
            total += inner * w[j - 1]
        y[i] = total


@pa.kernel
def before_and_behind(x, w, y, n: int):
    for i in range(x.size):
        g = x[i] * x[i]
        total = 0.0
        for k in range(n):
            total += w[k] * g
        y[i] = total * g


@pa.kernel
def changed(x, w, y, n: int):
    for i in range(x.size):
        g = x[i]
        total = 0.0
        for k in range(n):
            total += w[k] * g * g
        g = total * g
        total = total * g
        y[i] = total * g


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "numbers"),
    [(exits, ()), (turns, ()), (triangle, (5,)), (before_and_behind, (5,)), (changed, (5,))],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_control(device, k, numbers):
    args = {"x": drawn(5), "w": drawn(8, seed=1), "y": np.zeros(5)} | dict(zip("n", numbers, strict=False))
    agree(k, device, args, ["y"], ["x", "w"])


def test_values_of_constant_loops_are_kept(device):
    agree(carried, device, {"x": drawn(6), "y": np.zeros(6), "n": 5}, ["y"], ["x"])


@pa.func
def attraction(p, q, softening=0.01):
    d = q - p
    return d / (d @ d + softening) ** 1.5


@pa.kernel
def gravity(positions: V3, velocities: V3, dt: float):
    for i in range(positions.shape[0]):
        force = pa.zeros(3)
        for j in range(positions.shape[0]):
            force += attraction(positions[i], positions[j])
        velocities[i] += force * dt


@pa.kernel(wraparound=True)
def odds_and_ends(x, w, y, n: int):
    n = n // 2
    for i in range(n):
        rng = pa.rng(7, i)
        s = 0.0
        for _ in range(3):
            s += rng.uniform(0.0, 1.0) * x[i - 1] * x[i]
        if (t := x[i] * 2) > 1:
            s += t * (u := t + w[0]) * u
        a = x[i] * x[i] + 1
        newton = lambda v: (v + a / v) / 2  # noqa: E731, B023
        r = 1.0
        for _ in range(5):
            r = newton(r)
        y[i] = s * r * n


@pa.kernel
def computed_places(x, w, y, n: int):
    for i in range(x.size):
        p = pa.zeros(4)
        for k in range(8):
            p[k % 4] += x[i] * k
        q = p.copy()
        for _ in range(3):
            q = q * p + x[i]
        s = 0.0
        for e in q:
            s += e * e
        y[i] = s * w[0] * 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("k", [odds_and_ends, computed_places], ids=lambda k: k.__name__)
def test_odds_and_ends(device, k):
    args = {"x": drawn(8), "w": drawn(1, seed=1), "y": np.zeros(8), "n": 8}
    agree(k, device, args, ["y"], ["x", "w"], rtol=1e-4)


@pytest.mark.slow
def test_small_arrays(device):
    args = {"positions": drawn(5, 3), "velocities": drawn(5, 3, seed=1), "dt": 0.5}
    agree(gravity, device, args, ["velocities"], ["positions", "velocities", "dt"], rtol=1e-4)


@pa.kernel
def algebra(a: pa.ndarray[pa.float64, (None, 3, 3)], b: V3, y):
    for i in range(b.shape[0]):
        m = a[i].T @ a[i] + pa.eye(3)
        v = pa.linalg.solve(m, b[i])
        u = pa.cross(v, b[i]) / pa.linalg.norm(b[i])
        y[i] = pa.linalg.det(m) + (pa.linalg.inv(m) @ u) @ v + pa.max(v) + u.sum()


@pytest.mark.slow
def test_linear_algebra(device):
    args = {"a": drawn(2, 3, 3), "b": drawn(2, 3, seed=1), "y": np.zeros(2)}
    agree(algebra, device, args, ["y"], ["a", "b"], rtol=1e-4)


# ---- arrays


@pa.kernel
def spread(x, at, y):
    for i in range(x.size):
        pa.atomic_add(y, at[i], x[i] * x[i])
        pa.atomic_sub(y, 0, x[i])


@pa.kernel
def gather(x, at, y):
    for i in range(at.size):
        y[i] = x[at[i]] * x[i]


def test_gather_and_scatter(device):
    at = np.array([1, 0, 1, 1, 3])
    agree(spread, device, {"x": drawn(5), "at": at, "y": np.zeros(4)}, ["y"], ["x", "y"])
    agree(gather, device, {"x": drawn(5), "at": at, "y": np.zeros(5)}, ["y"], ["x"])


@pa.kernel
def flat(x, y, m: int, n: int):
    for i, j in pa.ndrange(m, n):
        y[i * n + j] = x[j * m + i] ** 3


@pa.kernel
def flat_rows(x, y, m: int, n: int):
    for i in range(m):
        for j in range(n):
            y[i * n + j] = x[j * m + i] ** 2


@pa.kernel
def pairs(x, y, m: int, n: int):
    for i in range(x.size // 2):
        y[2 * i] = x[2 * i] * x[2 * i + 1]
        y[2 * i + 1] = x[2 * i] - x[2 * i + 1]


@pytest.mark.parametrize("k", [flat, flat_rows, pairs], ids=lambda k: k.__name__)
def test_indices_that_tell_iterations_apart(device, k):
    agree(k, device, {"x": drawn(6), "y": np.zeros(6), "m": 2, "n": 3}, ["y"], ["x"])


@pa.kernel
def rows(x, y):
    for i in range(x.shape[0]):
        source, row = x[i, ::-1], y[i]
        for j in range(row.size):
            row[j] = source[j] * source[0]
        last = row[1:]
        last[0] += x.T[1, i] ** 2


def test_views_in_kernels(device):
    x = drawn(6, 8)[::2, 1::2][:, :3]
    agree(rows, device, {"x": x, "y": np.zeros((3, 3))}, ["y"], ["x", "y"])


@pa.kernel
def twice(x, t, y):
    for i in range(x.size):
        t[i] = math.sin(x[i])
    for i in range(x.size):
        y[i] = t[i] * t[x.size - 1 - i]


def test_values_from_an_earlier_loop(device):
    """They are as the launch left them; their gradients end at 0, as the stores take them."""
    x, t, y = drawn(4), np.zeros(4), np.zeros(4)
    args = {"x": x, "t": t, "y": y}
    cotangents = {"y": drawn(4, seed=1), "t": np.zeros(4)}
    expected = differences(twice, args, {"y": cotangents["y"]}, ["x"], 1e-6)
    got = adjoint(twice, device, args, cotangents, ["x", "t", "y"])
    np.testing.assert_allclose(got["x"], expected["x"], rtol=1e-6)
    assert got["t"].tolist() == got["y"].tolist() == [0] * 4


@pa.kernel
def loss(x, p: float, out):
    s = 0.0
    for i in range(x.size):
        s += p * x[i] ** 2
        out[1] += x[i]
    out[0] = math.sqrt(s) * p


@pytest.mark.slow
def test_sums_and_numbers(device):
    args = {"x": drawn(700), "p": 0.75, "out": np.zeros(2)}
    agree(loss, device, args | {"x": drawn(9)}, ["out"], ["x", "p", "out"])
    gradients = [adjoint(loss, device, args, {"out": np.array([2.0, 3.0])}, ["p"])["p"] for _ in range(3)]
    assert gradients[0] == gradients[1] == gradients[2]  # of a number it is a sum, which has the same bits each time
    s = (args["x"] ** 2).sum()
    np.testing.assert_allclose(gradients[0], 2 * 1.5 * math.sqrt(0.75 * s) / math.sqrt(1), rtol=1e-12)


@dataclass
class Filter:
    weights: pa.BufferView[pa.float64]
    gain: float = 1.0
    mode: str = "sum"


@pa.kernel
def structured(f: Filter, pair):
    out, v = pair
    for i in range(out.size):
        out[i] = f.weights[0] * v[i] + f.weights[1] * v[i + 1] * f.gain


def test_structures(device):
    def new(*values):
        return pa.asarray(values, device=device)

    w, v, out = new(1.0, 3.0), new(0.0, 1.0, 2.0, 3.0), new(0.0, 0.0, 0.0)
    g = Filter(new(0.0, 0.0), pa.zeros((), device=device), None)
    gv = pa.zeros(4, device=device)
    structured.grad(Filter(w, 2.0), (out, v), grad_f=g, grad_pair=(pa.ones(3, device=device), gv))
    assert (g.weights.tolist(), g.gain.item(), gv.tolist()) == ([3.0, 12.0], 18.0, [1.0, 7.0, 7.0, 6.0])
    gv[:] = 0
    structured.grad(Filter(w, 2.0), (out, v), grad_pair=(pa.ones(3, device=device), gv), grad_f=Filter(None, 1.0))
    assert gv.tolist() == [1.0, 7.0, 7.0, 6.0]


# ---- in place


@pa.kernel
def add_one(v):
    for i in range(v.size):
        v[i] = v[i] + 1.0


@pa.kernel
def double(v):
    for i in range(v.size):
        v[i] = 2 * v[i] + 1


@pa.kernel
def recurrence(a, b, e, n: int):
    for _ in range(1):
        for i in range(n):
            e[i + 1] = 0.5 * e[i] + b[i] * a[0]


@pytest.mark.slow
def test_updates_that_need_no_old_value(device):
    """NVIDIA/warp#1294: `arr[i] = arr[i] + 1` had a gradient of 2."""
    agree(add_one, device, {"v": drawn(3)}, ["v"], ["v"])
    agree(double, device, {"v": drawn(3)}, ["v"], ["v"])
    args = {"a": drawn(1), "b": drawn(5), "e": drawn(6, seed=1), "n": 5}
    agree(recurrence, device, args, ["e"], ["a", "b", "e"])


def test_chains_of_launches(device):
    """Gradients are of what arrays hold: going back over launches, those of what was overwritten are 0
    (NVIDIA/warp#1062, #1294)."""
    scale = elementwise("x[i] * w[i]")
    new = lambda *v: pa.asarray(v, device=device)  # noqa: E731
    a, b, w, y = new(1.0, 2.0), new(3.0, 4.0), new(5.0, 6.0), new(0.0, 0.0)
    ga, gb, gy = new(0.0, 0.0), new(0.0, 0.0), new(1.0, 1.0)
    scale(a, w, y)
    scale(b, w, y)
    double(y)
    double.grad(y, grad_v=gy)
    scale.grad(b, w, y, grad_x=gb, grad_y=gy)
    scale.grad(a, w, y, grad_x=ga, grad_y=gy)
    assert (ga.tolist(), gb.tolist(), gy.tolist()) == ([0, 0], [10, 12], [0, 0])


@pa.kernel
def plasticity(th, total, n: pa.constexpr):
    for _ in range(1):
        e, a = 0.0, 0.0
        for i in range(n):
            trial = 1000.0 * (th[0] * math.sin(2 * math.pi * i / n) - e)
            d = 0.0
            if abs(trial) > 2.0:
                d = (abs(trial) - 2.0) / 1000.0
                a += d
            e = e + (d if trial > 0 else -d)
        total[0] += a


def test_plasticity(device):
    """The model of taichi-dev/taichi#8802, with its true gradient."""
    args = {"th": np.array([0.0045]), "total": np.zeros(1), "n": 60}
    got = adjoint(plasticity, device, args, {"total": np.ones(1)}, ["th"])
    np.testing.assert_allclose(got["th"], [3.895472], rtol=1e-6)


@pa.kernel
def components(x, y):
    for i in range(x.size):
        m = pa.zeros(2)
        m[0] = m[0] + x[i]
        m[0] = m[0] + x[i] * 2
        m[0] += x[i]
        m[1] = m[0] * m[0]
        k = i % 2
        m[k] = m[k] * x[i]
        y[i] = m[0] * m[1]


@pa.kernel
def selected(x, w, y):
    for i in range(x.size):
        y[i] = x[i] / w[i] if i % 2 else x[i]


@pa.kernel
def renamed(x, w, y):
    for i in range(x.size):
        b = x[i]
        a = b
        if b > 0.0:
            b = a * a
        else:
            b = a * a
            b *= a
        y[i] = b


@pa.kernel
def accumulated(x, w, y):
    for i in range(x.size):
        for j in range(w.size):
            y[i] += x[i] * w[j]


@pytest.mark.parametrize("k", [selected, renamed, accumulated], ids=lambda k: k.__name__)
def test_what_others_get_wrong(device, k):
    """NVIDIA/warp#1736 and #202, taichi-dev/taichi#8356."""
    agree(k, device, {"x": drawn(4), "w": drawn(4, seed=2), "y": np.zeros(4)}, ["y"], ["x", "w"])


def test_components_that_are_assigned_again(device):
    """NVIDIA/warp#1697."""
    agree(components, device, {"x": drawn(4), "y": np.zeros(4)}, ["y"], ["x"])


# ---- what is refused: tests/lang/test_rejected_gradients.py, too


@pa.kernel
def plasticity_in_arrays(th, total, e, n: int):
    for _ in range(1):
        for i in range(n):
            trial = 1000.0 * (th[0] * math.sin(2 * math.pi * i / n) - e[i])
            d = 0.0
            if abs(trial) > 2.0:
                d = (abs(trial) - 2.0) / 1000.0
                total[0] += d
            e[i + 1] = e[i] + (d if trial > 0 else -d)


def test_what_iterations_read_of_each_other_is_refused():
    """As taichi-dev/taichi#8802 has it: `e[i]` is read, and `e[i + 1]` stored, in the arrays themselves."""
    grads = {"grad_th": pa.zeros(1), "grad_total": pa.ones(1), "grad_e": pa.zeros(61)}
    with pytest.raises(pa.CompileError, match="needs this element of 'e' as it is read here"):
        plasticity_in_arrays.grad(pa.zeros(1), pa.zeros(1), pa.zeros(61), 60, **grads)


def test_an_array_between_needs_a_gradient():
    with pytest.raises(pa.CompileError, match="pass grad_t, zeros at first"):
        twice.grad(pa.ones(3), pa.ones(3), pa.ones(3), grad_x=pa.zeros(3), grad_y=pa.ones(3))


def test_wrong_arguments(device):
    new = lambda n: pa.zeros(n, device=device)  # noqa: E731
    k = elementwise("x[i] * w[i]")
    a, b, c, g = new(3), new(3), new(3), new(3)
    for error, text, args, grads in (
        (ValueError, "'x' and 'y' share memory", (a, b, a), {"grad_x": g}),
        (ValueError, "'grad_x' and 'grad_y' share memory", (a, b, c), {"grad_x": g, "grad_y": g}),
        (ValueError, "'x' and 'grad_x' share memory", (a, b, c), {"grad_x": a}),
        (ValueError, "'grad_x' has the shape (4,)", (a, b, c), {"grad_x": new(4)}),
        (TypeError, "'grad_x' must be a 1-D array of float64", (a, b, c), {"grad_x": g.astype(pa.float32)}),
        (TypeError, "'grad_x' must be a 1-D array of float64", (a, b, c), {"grad_x": 1.0}),
        (TypeError, "no keyword 'grad_z'", (a, b, c), {"grad_z": g}),
        (ValueError, "read-only", (a, b, c), {"grad_x": pa.broadcast_to(new(1), (3,))}),
    ):
        with pytest.raises(error) as caught:
            k.grad(*args, **grads)
        assert text in str(caught.value)
    with pytest.raises(TypeError, match="'at' is of int64, and floats alone have gradients"):
        gather.grad(a, pa.zeros(3, dtype=pa.int64, device=device), c, grad_at=g)
    with pytest.raises(TypeError, match="first derivatives alone"):
        _ = k.grad.grad
    parts = new(8)  # that share no element
    k.grad(a, b, c, grad_x=parts[::2][:3], grad_w=parts[1::2][:3], grad_y=g)


def test_gradients_whose_elements_overlap():
    windows = np.lib.stride_tricks.as_strided(np.zeros(6), (4, 3), (8, 8))
    k = elementwise("x[i, 0] * w[i]")
    with pytest.raises(ValueError, match="elements of 'grad_x' may share memory"):
        k.grad(np.zeros((4, 3)), np.ones(4), np.ones(4), grad_x=windows, grad_y=np.ones(4))


# ---- as any kernel


def test_no_gradients_and_no_iterations(device):
    k = elementwise("x[i] * w[i]")
    a = pa.zeros(3, device=device)
    k.grad(a, a.copy(), a.copy())
    empty = [pa.zeros(0, device=device) for _ in range(5)]
    k.grad(*empty[:3], grad_x=empty[3], grad_y=empty[4])


def test_gradients_add_up_and_are_taken(device):
    args = {"x": np.array([2.0]), "w": np.array([3.0]), "y": np.zeros(1)}
    k = elementwise("x[i] * w[i]")
    there = [on(device, a) for a in args.values()]
    gx, gy = on(device, np.array([10.0])), on(device, np.array([1.0]))
    k.grad(*there, grad_x=gx, grad_y=gy)
    k.grad(*there, grad_x=gx, grad_y=gy)
    assert (gx.tolist(), gy.tolist()) == ([13.0], [0.0])


def test_it_is_a_kernel(device, tmp_path):
    k = elementwise("x[i] * w[i]")
    a, g = [pa.ones(3, device=device) for _ in range(3)], [pa.ones(3, device=device) for _ in range(2)]
    k.grad(*a, grad_x=g[0], grad_y=g[1])
    assert k.grad is k.grad
    assert k.grad.cache_info()["variants"] == 1
    assert "grad_x" in k.grad.source(device)
    assert k.grad.signature["grad_x"].direction == "INOUT"
    assert k.grad.explain_miss(*a, grad_x=g[0], grad_y=g[1]) is None
    assert k.grad.cost_analysis(*a, grad_x=g[0], grad_y=g[1]).operations > 0
    assert pickle.loads(pickle.dumps(add_one.grad)) is add_one.grad


def test_numpy_arrays(device):
    x, gx = np.array([1.0, 2.0]), np.zeros(2)
    with pa.default_device(device):
        elementwise("x[i] * x[i] * w[i]").grad(x, np.ones(2), np.zeros(2), grad_x=gx, grad_y=np.ones(2))
    assert gx.tolist() == [2.0, 4.0]


def test_bounds_are_checked(device):
    k = from_text("outside", "def outside(x, y):\n    for i in range(y.size):\n        y[i] = x[i + 1]\n", {})
    a, b = pa.zeros(3, device=device), pa.zeros(3, device=device)
    with pa.debug(), pytest.raises(IndexError):
        k.grad(a, b, grad_x=pa.zeros(3, device=device), grad_y=pa.ones(3, device=device))


# ---- arrays that carry gradients


@pa.kernel
def squares(x, y):
    for i in range(x.size):
        y[i] = x[i] * x[i]


def test_views_carry_their_part_of_the_gradients(device):
    a, y = pa.arange(12.0, device=device), pa.zeros(3, device=device)
    assert a.grad is None
    a.attach_grad()
    y.attach_grad()
    y.grad.fill(1)
    v = a[9:3:-2]
    squares(v, y)
    squares.grad(v, y)
    assert v.grad.tolist() == [18, 14, 10]
    assert a.grad.tolist() == [0, 0, 0, 0, 0, 10, 0, 14, 0, 18, 0, 0]
    assert y.grad.tolist() == [0, 0, 0]
    assert a.reshape(3, 4).T[1:, 0].grad.tolist() == a.grad[1:4].tolist()
    assert a[5:].grad.strides == (8,)
    assert a.view(pa.int64).grad is None
    given = pa.zeros(3, device=device)  # in the place of its own
    squares.grad(v, y, grad_x=given, grad_y=pa.ones(3, device=device))
    assert (given.tolist(), v.grad.tolist()) == ([18, 14, 10], [18, 14, 10])
    a.attach_grad()
    assert a.grad.tolist() == [0] * 12


def test_gradients_of_what_has_none(device):
    with pytest.raises(TypeError, match="elements are of int64, and floats alone have gradients"):
        pa.zeros(3, dtype=pa.int64, device=device).attach_grad()
    a, y = pa.ones(1, device=device), pa.zeros(3, device=device)
    a.attach_grad()
    y.attach_grad()
    with pytest.raises(ValueError, match="elements repeat"):
        squares.grad(pa.broadcast_to(a, (3,)), y)
    with pytest.raises(ValueError, match="the array has gradients"):
        a.resize(10)


def test_structures_carry_gradients(device):
    f = Filter(pa.asarray([1.0, 3.0], device=device), 2.0)
    f.weights.attach_grad()
    v, out = pa.arange(4.0, device=device), pa.zeros(3, device=device)
    structured.grad(f, (out, v), grad_pair=(pa.ones(3, device=device), None))
    assert f.weights.grad.tolist() == [3.0, 12.0]


def test_gradients_live_as_long_as_their_array():
    a = pa.zeros(1000)
    a.attach_grad()
    gradients = weakref.ref(a._buffer.gradient._buffer)
    view = a[10:20]
    del a
    assert view.grad.tolist() == [0] * 10
    assert gradients() is not None
    del view
    assert gradients() is None


# ---- saved, and in torch


def test_a_saved_adjoint_checks_its_arrays(tmp_path):
    a, b, g = pa.asarray([1.0, 2.0]), pa.zeros(2), pa.zeros(2)
    squares.grad(a, b, grad_x=g, grad_y=pa.ones(2))
    squares.grad.save(tmp_path / "squares")
    loaded = pa.load_kernel(tmp_path / "squares")
    loaded(a, b, grad_x=g, grad_y=pa.ones(2))
    assert g.tolist() == [4.0, 8.0]
    with pytest.raises(ValueError, match="share memory"):
        loaded(a, b, grad_x=g, grad_y=g)


# ---- drawn programs

SPACE = {"math": math, "np": np, "pa": pa, "half": half, "bent": bent, "mixed": mixed, "idx": idx}
WANTED = ["x", "w", "a", "y", "p"]


def made_kernel(seed):
    text = Draw(seed).text
    path = f"<drawn gradient {seed}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := dict(SPACE))
    return kernel(space["k"]), text


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_drawn_programs_are_right_or_refused(device, seed):
    k, text = made_kernel(seed)
    rng, n = np.random.default_rng(seed), 6
    args = {
        "x": rng.standard_normal(n), "w": rng.standard_normal(5), "a": rng.standard_normal((n, 3)),
        "y": rng.standard_normal(n), "z": np.zeros(1), "t": np.zeros(n), "p": 0.7, "n": n, "m": 4,
    }  # fmt: skip
    cotangents = {name: rng.standard_normal(args[name].shape) for name in "yz"} | {"t": np.zeros(n)}
    try:
        got = adjoint(k, device, args, cotangents, WANTED)
    except pa.CompileError:  # `test_refused` says with which words
        return
    coarse, fine = (differences(k, args, cotangents, WANTED, step) for step in (1e-6, 3e-7))
    for name in WANTED:
        smooth = np.abs(coarse[name] - fine[name]) <= 1e-4 * (1 + np.abs(coarse[name]))
        expected = np.where(smooth, coarse[name], got[name])
        np.testing.assert_allclose(got[name], expected, rtol=1e-4, atol=1e-4, err_msg=f"{name}, seed {seed}\n{text}")


@dataclass
class Held:
    x: object
    pair: tuple
    factor: float


@pa.kernel
def of_held(h, y):
    for i in range(y.size):
        y[i] = h.factor * h.x[i] * h.pair[0][i] + h.pair[1]


def test_a_saved_adjoint_takes_the_gradients_that_arrays_carry(device, tmp_path):
    def made():
        x, z, y = pa.arange(3.0, device=device), pa.full(3, 2.0, device=device), pa.zeros(3, device=device)
        x.attach_grad()
        y.attach_grad()
        y.grad.fill(1)
        return Held(x, (z, 4), 3.0), y

    for _ in range(2):
        held, y = made()
        of_held(held, y)
        of_held.grad(held, y)
        assert held.x.grad.tolist() == [6, 6, 6]
    of_held.grad.save(tmp_path / "held")
    again = pa.load_kernel(tmp_path / "held")
    held, y = made()
    of_held(held, y)
    again(held, y)
    assert (held.x.grad.tolist(), y.grad.tolist(), held.pair[0].grad) == ([6, 6, 6], [0, 0, 0], None)

    x, y = pa.arange(3.0, device=device), pa.zeros(3, device=device)
    squares.grad(x, y, grad_x=pa.zeros(3, device=device), grad_y=pa.ones(3, device=device))
    squares.grad.save(tmp_path / "squares")
    x.attach_grad()
    y.attach_grad()
    y.grad.fill(1)
    pa.load_kernel(tmp_path / "squares")(x, y)
    assert x.grad.tolist() == [0, 2, 4]


RECORD = np.dtype([("x", np.float32), ("n", np.int32), ("v", np.float32, 2)])


@pa.kernel
def of_records(out, a):
    for i in range(a.size):
        out[i] = a[i].x * a[i].x + a[i].n * a[i].v[1]


@pytest.mark.parametrize("fields", [["x", "n", "v"], ["x", "v"]])
def test_records_of_gradients_may_have_integers(device, fields):
    made = np.zeros(4, RECORD)
    made["x"], made["n"], made["v"] = 3, [1, 2, 3, 4], 5
    a, g = pa.asarray(made, device=device), pa.asarray(np.zeros(4, RECORD), device=device)
    g["n"][...] = 7
    one = pa.ones(4, dtype=pa.float32, device=device)
    of_records.grad(pa.zeros(4, dtype=pa.float32, device=device), a, grad_out=one, grad_a=g[fields])
    got = pa.asnumpy(g)
    assert (got["x"].tolist(), got["n"].tolist()) == ([6.0] * 4, [7] * 4)
    assert got["v"].tolist() == [[0.0, n] for n in (1.0, 2.0, 3.0, 4.0)]
