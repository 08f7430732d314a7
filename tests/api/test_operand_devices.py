"""Operands that are no arrays yet go to where the first array is, whichever operand that is."""

import itertools

import numpy as np
import pytest

import pyarray as pa

F, AT, B = np.array([3.0, 1.0, 2.0]), np.array([0, 2, 1]), np.array([True, False, True])
EDGES, M = np.array([0.0, 1.0, 4.0]), np.arange(9.0).reshape(3, 3)


def generator():
    return pa.random.default_rng(0)


CALLS = {
    "add": (pa.add, F, AT),
    "allclose": (pa.allclose, F, F),
    "append": (pa.append, F, AT),
    "average": (lambda x, w: pa.average(x, weights=w), F, F),
    "bincount": (lambda x, w: pa.bincount(x, weights=w), AT, F),
    "block": (lambda x, y: pa.block([x, y]), F, F),
    "broadcast_arrays": (lambda x, y: pa.broadcast_arrays(x, y)[0], F, M),
    "choose": (lambda c, x, y: pa.choose(c, [x, y]), AT % 2, F, F),
    "clip": (pa.clip, F, F, F),
    "column_stack": (lambda x, y: pa.column_stack([x, y]), F, F),
    "compress": (pa.compress, B, F),
    "concat": (lambda x, y: pa.concat([x, y]), F, F),
    "convolve": (pa.convolve, F, F),
    "corrcoef": (pa.corrcoef, F, F),
    "cov": (pa.cov, F, F),
    "cross": (pa.cross, F, F),
    "delete": (pa.delete, F, AT[:1]),
    "diff": (lambda x, p, a: pa.diff(x, prepend=p, append=a), F, F, F),
    "digitize": (pa.digitize, F, EDGES),
    "dstack": (lambda x, y: pa.dstack([x, y]), F, F),
    "ediff1d": (lambda x, e, b: pa.ediff1d(x, to_end=e, to_begin=b), F, F, F),
    "einsum": (lambda x, y: pa.einsum("i,i", x, y), F, F),
    "extract": (pa.extract, B, F),
    "gradient": (pa.gradient, F, EDGES),
    "histogram": (lambda x, e, w: pa.histogram(x, e, weights=w)[0], F, EDGES, F),
    "histogram_bin_edges": (pa.histogram_bin_edges, F, EDGES),
    "hstack": (lambda x, y: pa.hstack([x, y]), F, F),
    "insert": (lambda x, v: pa.insert(x, AT, v), F, F),
    "interp": (pa.interp, F, EDGES, F),
    "isin": (pa.isin, F, F),
    "kron": (pa.kron, F, F),
    "lexsort": (lambda x, y: pa.lexsort([x, y]), F, F),
    "logsumexp": (lambda x, b: pa.special.logsumexp(x, b=b), F, F),
    "matmul": (pa.matmul, M, F),
    "max": (lambda x, w: pa.max(x, where=w, initial=0), F, B),
    "meshgrid": (lambda x, y: pa.meshgrid(x, y)[0], F, F),
    "normal": (lambda x, s: generator().normal(x, s), F, F),
    "piecewise": (lambda x, c: pa.piecewise(x, [c], [1, 2]), F, B),
    "polyval": (pa.polyval, F, F),
    "quantile": (pa.quantile, F, np.array([0.5, 0.2])),
    "ravel_multi_index": (lambda x, y: pa.ravel_multi_index((x, y), (3, 3)), AT, AT),
    "repeat": (pa.repeat, F, AT),
    "searchsorted": (lambda x, v, s: pa.searchsorted(x, v, sorter=s), F, F, np.argsort(F)),
    "select": (lambda c, d, x, y: pa.select([c, d], [x, y]), B, ~B, F, F),
    "solve": (pa.linalg.solve, M + np.eye(3), F),
    "stack": (lambda x, y: pa.stack([x, y]), F, F),
    "sum": (lambda x, w: pa.sum(x, where=w), F, B),
    "take": (pa.take, F, AT),
    "take_along_axis": (pa.take_along_axis, F, AT),
    "tensordot": (pa.tensordot, M, M),
    "trapezoid": (pa.trapezoid, F, EDGES),
    "union1d": (pa.union1d, F, F),
    "vstack": (lambda x, y: pa.vstack([x, y]), F, F),
    "where": (pa.where, B, F, F),
}


# what stands behind `x` is brought to where that is
FIRST_DECIDES = {"delete", "ediff1d", "gradient", "max", "piecewise", "quantile", "repeat", "sum"}


@pytest.mark.filterwarnings("ignore:pyarray.linalg on")
@pytest.mark.parametrize("name", CALLS)
def test_hosts_operands_go_to_the_array(name, device):
    call, *operands = CALLS[name]
    expected = call(*(pa.asarray(x, device="cpu") for x in operands))
    for held in itertools.product((True, False), repeat=len(operands)):
        given = [pa.asarray(x, device=device) if k else x for x, k in zip(operands, held, strict=True)]
        found = call(*given)
        if isinstance(found, pa.ndarray):
            deciding = held[:1] if name in FIRST_DECIDES else held
            assert not any(deciding) or str(found.device) == device
            np.testing.assert_allclose(pa.asnumpy(found), pa.asnumpy(expected), rtol=1e-12)
        else:
            assert found == expected


def test_arrays_on_two_devices_are_refused(device):
    other = pa.asarray(F, device="null:0")
    for call in (pa.take, pa.append, pa.trapezoid, pa.cov):
        with pytest.raises(ValueError, match=r"one device|where the array is"):
            call(pa.asarray(F, device=device), other.astype(pa.int64) if call is pa.take else other)
