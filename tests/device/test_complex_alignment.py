"""Arrays of complex numbers at addresses that are multiples of a part's size only, to which they are aligned. GPUs fail
where a kernel reads such an element by one load, the undefined-behaviour sanitizer where one does so on the CPU."""

import numpy as np
import pytest

import pyarray as pa

SIDE = 12
FUNCTIONS = {
    "map": lambda z: z * 2 + 1,
    "copy": lambda z: z.copy(),
    "transpose": lambda z: z.T.copy(),
    "cast": lambda z: z.astype(pa.complex128),
    "where": lambda z: pa.where(z.real > 0, z, z * 1j),
    "sum": pa.sum,
    "sum axis 0": lambda z: pa.sum(z, axis=0),
    "sum axis 1": lambda z: pa.sum(z, axis=1),
    "prod": lambda z: pa.prod(z[0]),
    "any": pa.any,
    "var": pa.var,
    "cumsum": lambda z: pa.cumsum(z, axis=None),
    "cumprod": lambda z: pa.cumprod(z[:2], axis=1),
    "sort": pa.sort,
    "argsort": pa.argsort,
    "unique": pa.unique_values,
    "take": lambda z: z[[3, 1, 2]],
    "take axis 1": lambda z: pa.take(z, pa.asarray([5, 0], device=z.device), axis=1),
    "along": lambda z: pa.take_along_axis(z, pa.zeros((1, SIDE), dtype=pa.int64, device=z.device), axis=0),
    "mask": lambda z: z[z.real > 0],
    "nonzero": lambda z: pa.nonzero(z)[1],
    "concat": lambda z: pa.concat([z, z]),
    "stack": lambda z: pa.stack([z, z], axis=1),
    "roll": lambda z: pa.roll(z, 1),
    "matmul": lambda z: z @ z,
    "vector": lambda z: z @ z[0],
    "vecdot": lambda z: pa.vecdot(z, z),
    "real": lambda z: z.real + z.imag,
    "tril": pa.tril,
    "repeat": lambda z: pa.repeat(z, 2, axis=0),
    "fused": pa.fuse(lambda z: pa.sum(z * 2, axis=0)),
    "norm": lambda z: pa.linalg.vector_norm(z),
}


def put(z):
    z[[1, 2]] = z[[2, 1]]


def put_one(z):
    z[[1, 2], 3] = 7j


def masked(z):
    z[z.real > 0] = 1j


def masked_by(z):
    z[z.real > 0] = z.T[z.real > 0]


def element(z):
    z[3, 3] = 1j


def assigned(z):
    z[1:] = z[:-1]


def added(z):
    z += 1j


@pa.kernel
def doubled(z):
    for i, j in pa.ndrange(z.shape[0], z.shape[1]):
        z[i, j] = z[i, j] * 2 + 1j


WRITES = (put, put_one, masked, masked_by, element, assigned, added, doubled)


def off_by_a_part(device, dtype):
    parts = np.random.default_rng(1).standard_normal(2 * SIDE * SIDE + 1)
    z = pa.asarray(parts.astype(np.float32 if dtype == "complex64" else np.float64), device=device)[1:].view(dtype)
    assert z._ptr % z.itemsize == z.itemsize // 2
    return z.reshape(SIDE, SIDE)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(device, name, dtype):
    z = off_by_a_part(device, dtype)
    whole = pa.asarray(pa.asnumpy(z), device=device)
    found, expected = pa.asnumpy(FUNCTIONS[name](z)), pa.asnumpy(FUNCTIONS[name](whole))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("write", WRITES, ids=lambda f: getattr(f, "__name__", str(f)))
def test_writes(device, write, dtype):
    z = off_by_a_part(device, dtype)
    whole = pa.asarray(pa.asnumpy(z), device=device)
    write(z)
    write(whole)
    np.testing.assert_array_equal(pa.asnumpy(z), pa.asnumpy(whole))
