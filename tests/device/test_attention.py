"""Attention and its gradients on every device, against NumPy."""

import numpy as np
import pytest

import pyarray as pa
from pyarray.kernels.attention import tile_text
from pyarray.lang.dialect import DIALECTS

LIMITS = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12}


def reference(q, k, v, grad, mask=None, causal=False, scale=None):
    """The result, its logsumexp, and the gradients of q, k and v."""
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    with np.errstate(all="ignore"):
        scores = scale * q @ np.swapaxes(k, -1, -2)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        top = scores.max(-1, keepdims=True, initial=-np.inf)
        weights = np.exp(scores - np.where(np.isinf(top), 0, top))
        total = weights.sum(-1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
        out, logsumexp = weights @ v, (np.log(total) + np.where(np.isinf(top), 0, top))[..., 0]
    changes = weights * (grad @ np.swapaxes(v, -1, -2) - (grad * out).sum(-1, keepdims=True))
    grads = scale * changes @ k, scale * np.swapaxes(changes, -1, -2) @ q, np.swapaxes(weights, -1, -2) @ grad
    return out, logsumexp, *(total_like(g, x) for g, x in zip(grads, (q, k, v), strict=True))


def total_like(grad, x):
    """The sums over axes along which x was broadcast."""
    grad = grad.sum(tuple(range(grad.ndim - x.ndim)))
    axes = tuple(axis for axis, n in enumerate(x.shape) if n == 1 != grad.shape[axis])
    return grad.sum(axes, keepdims=True)


def drawn(shape, dtype, device, seed, turned=False):
    """An array on the device; `turned`: in memory its length is before its heads."""
    values = np.random.default_rng(seed).normal(size=shape).astype("f")
    if turned:
        return pa.asarray(np.ascontiguousarray(np.swapaxes(values, 1, 2)), device=device).astype(dtype).swapaxes(1, 2)
    return pa.asarray(values, device=device).astype(dtype)


def check(arrays, grad, mask=None, **options):
    q, k, v = arrays
    on_host = [pa.asnumpy(x).astype("d") for x in (q, k, v, grad)]
    host_mask = None if mask is None else pa.asnumpy(mask)
    host_mask = host_mask if host_mask is None or host_mask.dtype == bool else host_mask.astype("d")
    out, logsumexp, *grads = reference(*on_host, host_mask, **options)
    found, sums = pa.nn.attention(q, k, v, mask, return_logsumexp=True, **options)
    assert (found.shape, found.dtype, sums.shape) == (out.shape, q.dtype, logsumexp.shape)
    limit = LIMITS[q.dtype.name]
    np.testing.assert_allclose(pa.asnumpy(found).astype("d"), out, atol=limit, rtol=limit)
    np.testing.assert_allclose(pa.asnumpy(sums), logsumexp, atol=min(limit, 1e-3), rtol=1e-4)
    computed = pa.nn.attention_backward(grad, q, k, v, found, sums, mask, **options)
    for got, expected, x in zip(computed, grads, arrays, strict=True):
        assert (got.shape, got.dtype) == (x.shape, x.dtype)
        scale = max(np.abs(expected).max(initial=0), 1)
        np.testing.assert_allclose(pa.asnumpy(got).astype("d"), expected, atol=2 * limit * scale, rtol=2 * limit)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_as_numpy(device, dtype):
    for heads, queries, keys in ((3, 5, 7), (1, 1, 1), (2, 66, 34), (2, 70, 1)):
        q = drawn((2, heads, queries, 12), dtype, device, 0)
        k, v = (drawn((2, heads, keys, 12), dtype, device, n) for n in (1, 2))
        check((q, k, v), drawn((2, heads, queries, 12), dtype, device, 3))


@pytest.mark.slow
def test_causal_with_strides_and_broadcast_heads(device):
    q, grad = (drawn((2, 3, 67, 20), "float16", device, n, turned=True) for n in (0, 3))
    k, v = (drawn((2, 1, 40, 20), "float16", device, n) for n in (1, 2))
    check((q, k, v), grad, causal=True, scale=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bool", "float32"])
def test_masks_and_queries_that_see_nothing(device, kind):
    q, k, v, grad = (drawn((2, 9, 8), "float32", device, n) for n in range(4))
    mask = np.random.default_rng(5).random((9, 9)) < 0.6
    mask[4] = False
    if kind == "float32":
        mask = np.where(mask, 0.5, -np.inf).astype("f")
    mask = pa.asarray(mask, device=device)
    check((q, k, v), grad, mask, causal=kind == "bool")
    out, logsumexp = pa.nn.attention(q, k, v, mask, return_logsumexp=True)
    assert np.all(pa.asnumpy(out)[:, 4] == 0)
    assert np.all(pa.asnumpy(logsumexp)[:, 4] == -np.inf)


def test_scores_far_below_zero(device):
    """What stands for keys that don't exist must not be far above those that do."""
    q, grad = (drawn((2, 1, 3, 64), "float16", device, n) for n in (0, 3))
    k, v = (drawn((2, 1, 5, 64), "float16", device, n) for n in (1, 2))
    check((-abs(q), abs(k), v), grad, scale=0.5)


@pytest.mark.parametrize("shape", [(0, 4, 4), (2, 0, 4), (2, 4, 0)])
def test_nothing_of_something(device, shape):
    batch, queries, keys = shape
    q, grad = (drawn((batch, queries, 4), "float32", device, n) for n in (0, 3))
    k, v = (drawn((batch, keys, 4), "float32", device, n) for n in (1, 2))
    check((q, k, v), grad)


@pytest.mark.slow
def test_fragments_of_matrix_instructions(device, monkeypatch):
    """The text for matrix instructions, whose products threads of other devices compute."""
    if not device.startswith("hip"):
        pytest.skip("CUDA has it anyway, CPUs haven't")
    monkeypatch.setitem(DIALECTS, "hip", DIALECTS["cuda"])
    kernels = tile_text.forward, tile_text.backward_queries, tile_text.backward_keys
    for kernel in kernels:
        kernel.cache_clear()
    q, grad = (drawn((1, 70, 24), "bfloat16", device, n) for n in (0, 3))
    k, v = (drawn((1, 83, 24), "bfloat16", device, n) for n in (1, 2))
    check((q, k, v), grad, causal=True)
    made = tile_text.forward(tile_text.Problem(q._dtype, True, "", 32, 32))
    assert "pa_tile_start_rows" in made.source(device)
    assert made.source(device).count("pa_tile_clear<") >= 3  # of queries, keys and values that don't exist
    for kernel in kernels:
        kernel.cache_clear()


@pytest.mark.parametrize("head", [64, 128])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_heads_with_their_own_kernel(device, head, dtype):
    """By wgmma on sm_90; sizes around those of its blocks."""
    if not device.startswith("cuda"):
        pytest.skip("the kernel is of CUDA")
    sizes = (1, 1, 1, 1), (2, 3, 100, 77), (1, 2, 129, 300), (1, 5, 300, 129), (2, 2, 1, 513), (1, 133, 128, 128)
    for batch, heads, queries, keys in sizes:
        q, grad = (drawn((batch, heads, queries, head), dtype, device, n, turned=True) for n in (0, 3))
        k, v = (drawn((batch, heads, keys, head), dtype, device, n) for n in (1, 2))
        for causal in (False, True):
            check((q, k, v), grad, causal=causal)


@pytest.mark.parametrize("head", [64, 128])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_masks_of_heads_with_their_own_kernel(device, head, dtype):
    """Masks of any strides, of whole chunks of a line and not, with queries that see nothing."""
    if not device.startswith("cuda"):
        pytest.skip("the kernel is of CUDA")
    for batch, heads, queries, keys in ((1, 1, 1, 1), (2, 3, 100, 77), (1, 2, 129, 304), (2, 2, 260, 128)):
        q, grad = (drawn((batch, heads, queries, head), dtype, device, n) for n in (0, 3))
        k, v = (drawn((batch, heads, keys, head), dtype, device, n) for n in (1, 2))
        seen = np.random.default_rng(4).random((batch, heads, queries, keys)) < 0.6
        seen[0, 0, queries // 2] = False
        hosts = seen, np.where(seen, np.random.default_rng(5).normal(size=seen.shape), -np.inf)
        masks = [pa.asarray(hosts[0], device=device), pa.asarray(hosts[1].astype("f"), device=device).astype(dtype)]
        for mask in masks:
            turned = pa.asarray(mask.mT, copy=True).mT
            for given in (mask, mask[:1, :, :1], mask[:, :1], mask[0, 0], mask[..., :1], turned, mask[..., ::-1]):
                check((q, k, v), grad, given, causal=given is mask)


def test_great_numbers_in_masks(device):
    """A query all of whose keys have the same great negative number: its weights are bounded, here and in PyTorch."""
    for dtype, head, values in (("float32", 8, (-1e9, -1e30)), ("bfloat16", 64, (-1e9, -1e30))):
        arrays = [drawn((1, 1, 70, head), dtype, device, n) for n in range(4)]
        for value in values:
            mask = np.zeros((70, 70), "f")
            mask[:, :5] = value  # all that the first queries see
            mask = pa.asarray(mask, device=device).astype(dtype)
            out, sums = pa.nn.attention(*arrays[:3], mask, causal=True, return_logsumexp=True)
            grads = pa.nn.attention_backward(arrays[3], *arrays[:3], out, sums, mask, causal=True)
            for x in (out, *grads):
                assert np.abs(pa.asnumpy(x).astype("f")).max() < 1e3
            assert np.abs(pa.asnumpy(grads[0]).astype("f")[..., 5:, :]).max() < 20  # of those that see others


def test_refused():
    q = pa.zeros((2, 3, 4), dtype=pa.float32)
    with pytest.raises(TypeError, match="one floating type, got float32, float64, float32; cast"):
        pa.nn.attention(q, q.astype(pa.float64), q)
    with pytest.raises(TypeError, match="mask is of bool or of float32"):
        pa.nn.attention(q, q, q, pa.zeros((3, 3), dtype=pa.int64))
    with pytest.raises(ValueError, match="heads of one size"):
        pa.nn.attention(q, q[..., :3], q)
    with pytest.raises(ValueError, match="don't broadcast"):
        pa.nn.attention(q, pa.zeros((5, 3, 4), dtype=pa.float32), pa.zeros((5, 3, 4), dtype=pa.float32))
    with pytest.raises(ValueError, match=r"mask broadcasts to .* here to \(..., 3, 3\), got shape \(5, 3\)"):
        pa.nn.attention(q, q, q, pa.ones((5, 3), dtype=bool))
    with pytest.raises(ValueError, match=r"of q, k, v and mask without the last two axes, shapes .* don't broadcast"):
        pa.nn.attention(q, q, q, pa.ones((5, 3, 3), dtype=bool))
    with pytest.raises(TypeError, match="scale is a number, got str 'x'"):
        pa.nn.attention(q, q, q, scale="x")
    with pytest.raises(ValueError, match="q has two axes or more"):
        pa.nn.attention(q[0, 0], q, q)
    with pytest.raises(ValueError, match="don't fit the memory of a block"):
        pa.nn.attention(*(pa.zeros((1, 1, 40000), dtype=pa.float32),) * 3)
    out, logsumexp = pa.nn.attention(q, q, q, return_logsumexp=True)
    with pytest.raises(ValueError, match="logsumexp is float32 of shape"):
        pa.nn.attention_backward(q, q, q, q, out, logsumexp[0])
