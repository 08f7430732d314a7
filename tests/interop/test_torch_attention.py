"""`pa.torch.attention` next to torch's own, with gradients, and in compiled functions."""

import pytest

torch = pytest.importorskip("torch")

import pyarray as pa  # noqa: E402

theirs = torch.nn.functional.scaled_dot_product_attention


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).requires_grad_()


@pytest.mark.parametrize("causal", [False, True])
def test_as_torch_with_gradients(causal):
    q, k, v = drawn(2, 3, 6, 8), drawn(2, 3, 7, 8), drawn(2, 3, 7, 8)
    out, expected = pa.torch.attention(q, k, v, causal=causal), theirs(q, k, v, is_causal=causal)
    torch.testing.assert_close(out, expected)
    grad = torch.ones_like(out) / 3
    found, known = (torch.autograd.grad(x, (q, k, v), grad) for x in (out, expected))
    torch.testing.assert_close(found, known)


def test_masks():
    q, k, v = drawn(1, 2, 5, 8), drawn(1, 2, 4, 8), drawn(1, 2, 4, 8)
    mask = torch.ones(5, 4, dtype=torch.bool).tril()
    mask[2] = False
    torch.testing.assert_close(pa.torch.attention(q, k, v, mask, scale=0.5), theirs(q, k, v, mask, scale=0.5))
    with pytest.raises(ValueError, match="mask requires grad"):
        pa.torch.attention(q, k, v, torch.zeros(5, 4, requires_grad=True))


@pytest.mark.slow
def test_the_graph_of_a_compiled_function_keeps_it():
    def step(q, k, v):
        return pa.torch.attention(q * 2, k, v).relu().sum()

    q, k, v = drawn(1, 2, 5, 8), drawn(1, 2, 4, 8), drawn(1, 2, 4, 8)
    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v), step(q, k, v))
    found, known = (torch.autograd.grad(f(q, k, v), (q, k, v)) for f in (compiled, step))
    torch.testing.assert_close(found, known)


def test_what_is_no_tensor():
    q = drawn(1, 2, 3, 4)
    for operands, found in (((None, q, q), "q is a tensor, got NoneType"), ((q, q, 1.0), "v is a tensor, got float")):
        with pytest.raises(TypeError, match=found):
            pa.torch.attention(*operands)
    with pytest.raises(TypeError, match="mask is a tensor, got ndarray"):
        pa.torch.attention(q, q, q, pa.ones((3, 3), dtype="float32"))
    with pytest.raises(ValueError, match="two axes or more"):
        pa.torch.attention(*[torch.tensor(1.0)] * 3)
