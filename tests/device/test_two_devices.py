"""Two GPUs of a kind in one process."""

import numpy as np
import pytest

import pyarray as pa
from pyarray.driver.base import devices


@pytest.fixture
def pair(device):
    """Two devices of a kind, by name."""
    found = devices(pa.get_device(device).kind)
    if len(found) < 2:
        pytest.skip(f"there is one device like {device}")
    return str(found[0]), str(found[1])


@pa.kernel
def halved(out, a):
    for i in range(out.size):
        out[i] = a[i] / 2


@pytest.mark.parametrize("n", [0, 1, 1000, (16 << 20) + 3])
def test_copies(pair, n):
    values = np.random.default_rng(n).integers(0, 256, n, np.uint8)
    here = pa.asarray(values, device=pair[0])
    there = here.to_device(pair[1])
    assert str(there.device) == pair[1]
    np.testing.assert_array_equal(pa.asnumpy(there), values)
    np.testing.assert_array_equal(pa.asnumpy(there[::-2].to_device(pair[0])), values[::-2])


def test_a_copy_is_in_order_with_both(pair):
    """The source is computed just before, and overwritten just after."""
    for turn in range(5):
        a = pa.full(1 << 18, turn, dtype="float64", device=pair[0])
        b = a * 2
        c = b.to_device(pair[1])
        b[...] = -1
        d = c + 1
        del a, b
        assert float(pa.min(d)) == float(pa.max(d)) == 2 * turn + 1


def test_kernels_on_both(pair):
    for device in (*pair, *pair):
        a = pa.arange(1000, dtype="float64", device=device)
        out = pa.empty(1000, dtype="float64", device=device)
        halved(out, a)
        assert pa.asnumpy(out).tolist() == (np.arange(1000) / 2).tolist()
        with pa.debug(), pytest.raises(pa.BoundsError, match="argument 'a' axis 0: got index 10"):
            halved(out, a[:10])


def test_work_on_one_leaves_the_other_current(pair):
    torch = pytest.importorskip("torch")
    pa.ones(8, device=pair[1])
    halved(pa.empty(8, device=pair[1]), pa.ones(8, device=pair[1]))
    pa.synchronize(pair[1])
    if torch.cuda.is_available():
        assert torch.cuda.current_device() == 0
        assert torch.ones(3, device="cuda").device.index == 0
        there = torch.from_dlpack(pa.ones(3, device=pair[1]))
        assert there.device.index == 1
        assert pa.from_dlpack(there).device == pair[1]
    a = pa.ones(8, device=pair[0]) + 1
    assert a.tolist() == [2] * 8


def test_a_stream_waits_for_the_other_device(pair):
    first, second = (pa.Stream(name, non_blocking=True) for name in pair)
    with first:
        a = pa.full(1 << 18, 3.0, device=pair[0])
        done = first.record()
    second.wait(done)
    second.wait(first)
    with first, second:
        b = a.to_device(pair[1])
    second.synchronize()
    assert float(pa.sum(b)) == 3.0 * (1 << 18)
