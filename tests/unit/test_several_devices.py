"""Arrays of several devices in one call, and GPU arrays on the host: what is wrong, where, and what to do.
The null device stands for a GPU; nothing is computed."""

import contextlib
import dataclasses

import numpy as np
import pytest

import pyarray as pa


@pytest.fixture
def x():
    return pa.ones((3, 3))


@pytest.fixture
def on_other_device():
    return pa.empty((3, 3), device="null:1")


@pa.kernel
def three(a, b, c, n):
    for i in range(a.shape[0]):
        a[i, 0] = b[i, 0] + c[i, 0] + n


@dataclasses.dataclass
class Pair:
    left: pa.ndarray
    right: pa.ndarray


@pa.kernel
def paired(p):
    for i in range(p.left.shape[0]):
        p.left[i, 0] = p.right[i, 0]


MASK = np.ones((3, 3), bool)
CALLS = {
    "add x1 on cpu, x2 on null:1": lambda x, y: pa.add(x, y),
    "add x1 on null:1, x2 on cpu": lambda x, y: y + x,
    "multiply x1 on cpu, x2 on null:1": lambda x, y: x.__imul__(y),
    "less x1 on null:1, x2 on cpu": lambda x, y: y < x,
    "pow x1 on cpu, x2 on null:1": lambda x, y: pa.pow(x[0], y),
    "minimum x1 on cpu, x2 on null:1": lambda x, y: pa.clip(x, None, y),
    "clip x on cpu, max on null:1": lambda x, y: pa.clip(x, 0, y),
    "clip x on cpu, min on null:1, max on cpu": lambda x, y: pa.clip(x, y, x),
    "where condition on cpu, x1 on null:1, x2 on cpu": lambda x, y: pa.where(x, y, x),
    "matmul x1 on null:1, x2 on cpu": lambda x, y: y @ x,
    "matmul x1 on cpu, x2 on null:1": lambda x, y: pa.matmul(x, y, out=x),
    "concat arrays[0] on cpu, arrays[1] on null:1": lambda x, y: pa.concat([x, y]),
    "stack arrays[0] on cpu, arrays[1] on cpu, arrays[2] on null:1": lambda x, y: pa.stack((x, x, y)),
    "concat arrays[0] on cpu, arrays[9] on null:1": lambda x, y: pa.concat([x] * 9 + [y] * 9),
    "three 'a' on cpu, 'b' on null:1, 'c' on cpu": lambda x, y: three(x, y, x, 1),
    "paired 'p.left' on cpu, 'p.right' on null:1": lambda x, y: paired(Pair(x, y)),
    "vectorize argument 0 on cpu, argument 1 on null:1": lambda x, y: pa.vectorize(max)(x, y),
    "concat arrays[0] on null:1, arrays[1] on cpu": lambda x, y: np.concatenate([y, x]),
    "subtract x1 on null:1, x2 on cpu": lambda x, y: np.subtract(y, x),
}


@pytest.mark.parametrize("said", list(CALLS))
def test_each_argument_is_named(said, x, on_other_device):
    name, where = said.split(" ", 1)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        CALLS[said](x, on_other_device)
    expected = f"{name}(): all arrays must be on one device, got {where}; move them with .to_device(...)"
    assert str(caught.value) == expected
    assert (pa.asnumpy(x) == 1).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: pa.add(x, 1, out=y),
        lambda x, y: pa.sin(x, out=y),
        lambda x, y: pa.matmul(x, x, out=y),
        lambda x, y: pa.sum(x, axis=0, out=y[0]),
        lambda x, y: pa.clip(x, 0, 1, out=y),
    ],
)
def test_out_is_elsewhere(call, x, on_other_device):
    with pytest.raises(ValueError, match=r"\w+\(\): out= is on null:1, the operands are on cpu"):
        call(x, on_other_device)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x.__setitem__(..., y),
        lambda x, y: x.__setitem__(slice(1), y[0]),
        lambda x, y: x.__setitem__([0, 1], y[0]),
    ],
)
def test_assignment_from_elsewhere(call, x, on_other_device):
    with pytest.raises(ValueError, match=r"target on cpu, value on null:1; move it with .to_device"):
        call(x, on_other_device)


def test_append_moves_nothing(x, on_other_device):
    with pytest.raises(ValueError, match=r"got arrays\[0\] on cpu, arrays\[1\] on null:1; move them"):
        pa.append(x, on_other_device)


def test_indices_from_elsewhere(x, on_other_device):
    index = pa.empty(2, dtype=pa.int64, device="null:1")
    for call in (lambda: x[index], lambda: pa.take(x, index, axis=0), lambda: x.__setitem__(index, 1)):
        with pytest.raises(ValueError, match=r"got one on null:1 for cpu; move it with .to_device"):
            call()
    with pytest.raises(ValueError, match="got one on null:1 for cpu"):
        _ = x[pa.empty((3, 3), dtype=pa.bool, device="null:1")]


@pytest.mark.parametrize("value", [np.float32(2), np.ones(3), [1, 2, 3]])
def test_host_values_go_where_the_array_is(value, on_other_device):
    """As in kernels and in NumPy's own functions; only arrays have a device of their own."""
    driver = on_other_device.device.driver
    for call in (pa.add, pa.matmul, lambda x, y: pa.concat([x, [y] * 3 if np.ndim(y) else [[y] * 3]])):
        driver.calls.clear()
        with contextlib.suppress(KeyError, TypeError, ValueError):  # the null device has no kernels
            call(on_other_device, value)
        assert "copy_in" in [name for name, _ in driver.calls]
    assert pa.add(pa.ones(3), value).tolist() == (1 + np.asarray(value) * np.ones(3)).tolist()


# ---- a GPU array on the host


def test_the_host_reads_only_when_asked(on_other_device):
    driver = on_other_device.device.driver
    pa.zeros(3, device="null:1")
    driver.calls.clear()
    silent = (
        np.asarray, np.array, lambda a: a.__array__(), lambda a: np.zeros((3, 3)).__setitem__(..., a),
        lambda a: np.asarray(a.flat), lambda a: np.asarray([a, a]),
    )  # fmt: skip
    for read in silent:
        with pytest.raises(TypeError):
            read(on_other_device)
    for read in (memoryview, bytearray):
        with pytest.raises(BufferError, match=r"null:1 has no memory .* pyarray.asnumpy\(a\)"):
            read(on_other_device)
    for read in silent[:5]:
        with pytest.raises(TypeError) as caught:
            read(on_other_device)
        for word in ("null:1", "pyarray.asnumpy(a)", "a.get()", "a.item()"):
            assert word in str(caught.value)
    assert "copy_out" not in [name for name, _ in driver.calls]
    with pytest.raises(AttributeError):
        _ = on_other_device.__array_interface__


@pytest.mark.parametrize("read", [float, int, bool, complex, lambda a: a.item(), lambda a: a.tolist()])
def test_what_is_asked_for_is_read_once(read):
    a = pa.zeros((), device="null:1")
    driver = a.device.driver
    driver.calls.clear()
    assert np.isfinite(read(a))
    assert [name for name, _ in driver.calls] == ["copy_out"]


def test_arrays_are_read_when_asked(on_other_device):
    driver = on_other_device.device.driver
    for read in (pa.asnumpy, pa.ndarray.get, pa.ndarray.tolist, pa.ndarray.tobytes):
        driver.calls.clear()
        assert len(read(on_other_device)) in (3, 72)
        assert [name for name, _ in driver.calls] == ["copy_out"]


def test_iteration_gives_views_and_reads_nothing(on_other_device):
    driver = on_other_device.device.driver
    driver.calls.clear()
    rows = list(on_other_device)
    first, *_ = on_other_device
    assert [row._ptr - on_other_device._ptr for row in rows] == [0, 24, 48]
    assert first.device == rows[0][0].device == "null:1"
    assert driver.calls == []
    with pytest.raises(TypeError, match=r"a.item\(\)"):
        list(on_other_device[0, 0])
