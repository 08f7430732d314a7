"""Debug mode in the library's own kernels: whatever argument is cut short below the API, the launch reports
it or doesn't need what is gone, and nothing outside is touched."""

import numpy as np
import pytest
from kernel_tools import on

import pyarray as pa
from pyarray.array import ndarray
from pyarray.errors import BoundsError
from pyarray.jit.launch_state import add_observer, debug, remove_observer
from pyarray.jit.report import raise_bounds
from pyarray.kernels.matmul.gemm_key import ProductKey
from pyarray.kernels.matmul.gemm_text import KERNEL

GUARD = 23


def _grid(device, *shape, dtype=np.int64):
    return on(device, np.arange(np.prod(shape)).astype(dtype).reshape(shape) % 5)


OPERATIONS = {
    "add": lambda d: pa.add(_grid(d, 6), _grid(d, 6)),
    "add of a transpose": lambda d: pa.add(_grid(d, 3, 4), _grid(d, 4, 3).T),
    "exp": lambda d: pa.exp(_grid(d, 7, dtype=np.float32)),
    "assignment": lambda d: _grid(d, 3, 6)[:, ::2].copy(),
    "sum": lambda d: pa.sum(_grid(d, 40)),
    "sum of rows": lambda d: pa.sum(_grid(d, 3, 5), axis=1),
    "max of columns": lambda d: pa.max(_grid(d, 3, 5), axis=0),
    "argmax": lambda d: pa.argmax(_grid(d, 3, 5), axis=1),
    "gather": lambda d: _grid(d, 6)[_grid(d, 4)],
    "scatter": lambda d: _grid(d, 6).__setitem__(_grid(d, 4), 1),
    "take_along_axis": lambda d: pa.take_along_axis(_grid(d, 3, 5), _grid(d, 3, 2), axis=1),
    "mask": lambda d: _grid(d, 6)[_grid(d, 6) > 2],
    "masked assignment": lambda d: _grid(d, 6).__setitem__(_grid(d, 6) > 2, 0),
    "tril": lambda d: pa.tril(_grid(d, 4, 4)),
    "eye": lambda d: pa.eye(4, device=d),
    "arange": lambda d: pa.arange(9, device=d),
}


def _short(x, axis):
    """A copy of the array, one shorter along an axis, and the memory around it."""
    shape = [n - (k == axis) for k, n in enumerate(x.shape)]
    flat = np.empty(np.prod(shape, dtype=int) * x.dtype.itemsize + 2 * GUARD * 16, np.uint8)
    flat[:] = GUARD
    inner = flat[16 * GUARD : -16 * GUARD].view(x.dtype).reshape(shape)
    whole = tuple(slice(n) for n in shape)
    inner[...] = pa.asnumpy(x)[whole]
    return inner, flat


def _launches(operation, device):
    seen = []

    def observer(launch):
        seen.append(launch)
        launch.run()

    with debug():
        add_observer(observer)
        try:
            operation(device)
        finally:
            remove_observer(observer)
    return seen


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_short_argument(device, name):
    if device != "cpu":
        pytest.skip("the memory around it is the host's")
    found = 0
    launches = _launches(OPERATIONS[name], device)
    for launch in launches:
        for victim, x in launch.args.items():
            if not isinstance(x, ndarray) or not x.size:
                continue
            for axis in range(x.ndim):
                inner, flat = _short(x, axis)
                args = dict(launch.args) | {victim: pa.asarray(inner)}
                failure = launch.variant.launch(*args.values())
                found += bool(failure)
                assert (flat[: 16 * GUARD] == GUARD).all(), (launch.kernel, victim, axis)
                assert (flat[-16 * GUARD :] == GUARD).all(), (launch.kernel, victim, axis)
    assert launches
    assert found or name in ("arange", "eye", "exp", "sum")  # these have one array, which says how far to go


def test_an_index_beyond(device):
    """The API has looked at index arrays before; below it, indices are held inside."""
    launch = _launches(OPERATIONS["gather"], device)[-1]
    a, x = list(launch.args.values())[:2]
    for bad, nearest in ((6, 5), (-7, 0), (2**62, 5), (-(2**62), 0)):
        args = [pa.full_like(v, bad) if name.startswith("i") else v for name, v in launch.args.items()]
        assert not launch.variant.launch(*args)
        assert pa.asnumpy(x).tolist() == [pa.asnumpy(a)[nearest]] * 4


def test_matmul_outside_its_memory(device):
    a, b, c = (on(device, np.ones((4, 4))) for _ in range(3))
    places = [end for x in (a, b, c) for end in (x._ptr, x._ptr + 128)]
    grid = () if device == "cpu" else (2,)
    with debug():
        KERNEL.launch(ProductKey("float64", 0), a.device, a, b, c, *places, *grid)
        for which, name in enumerate("abc"):
            short = list(places)
            short[2 * which + 1] -= 8
            with pytest.raises(BoundsError) as caught:
                KERNEL.launch(ProductKey("float64", 0), a.device, a, b, c, *short, *grid)
            assert (caught.value.kernel, caught.value.argument) == ("matmul", name)
        assert pa.all(a @ b == 4)


def test_the_report_names_the_library(device):
    (launch,) = _launches(OPERATIONS["add"], device)
    short = [x[:-1] if isinstance(x, ndarray) and k else x for k, x in enumerate(launch.args.values())]
    failure = launch.variant.launch(*short)
    with pytest.raises(BoundsError, match=r"kernel\[add\] tid=5, argument '\w+' axis 0: got index 5"):
        raise_bounds("add", launch.variant.program.sites, failure)
