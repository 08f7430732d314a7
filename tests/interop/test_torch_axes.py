"""Reductions of compiled graphs along no axis, of numbers along one, and of a narrower dtype: eager torch's."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

OF_NO_AXES = {
    "sum": lambda x: x.sum(0),
    "sum, kept": lambda x: x.sum(-1, keepdim=True),
    "sum of another dtype": lambda x: (x * 2).sum(0, dtype=torch.float64),
    "mean": lambda x: x.mean(0),
    "amax": lambda x: x.amax(0) + 1,
    "any": lambda x: (x > 0).any(0),
    "all": lambda x: (x > 0).all(-1),
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(-1) - 1,
    "logsumexp": lambda x: x.logsumexp(0),
    "var": lambda x: x.var(0, correction=0),
    "squeeze": lambda x: x.squeeze(0) + 1,
    "cosine similarity": lambda x: torch.nn.functional.cosine_similarity(x, x, dim=0),
}


@pytest.mark.parametrize("name", OF_NO_AXES)
def test_an_axis_of_a_number(name):
    function, x = OF_NO_AXES[name], torch.tensor(2.0)
    torch._dynamo.reset()
    got = torch.compile(function, backend="pyarray")(x)
    want = function(x)
    assert torch.equal(got, want)
    assert got.dtype == want.dtype


@pytest.mark.parametrize("dims", [[], ()])
@pytest.mark.parametrize("kept", [False, True])
def test_lists_of_no_axes(dims, kept):
    x = torch.tensor([[1.0, -1], [-1, 1]])

    def functions(x):
        at = x > 0
        return torch.any(at, dims, keepdim=kept), torch.all(at, dims, keepdim=kept), torch.sum(x, dims, keepdim=kept)

    torch._dynamo.reset()
    for got, want in zip(torch.compile(functions, backend="pyarray")(x), functions(x), strict=True):
        assert torch.equal(got, want)


def test_sums_of_a_narrower_dtype_and_roots_of_halves():
    wide, half = torch.tensor([1e5, -1e5, 1.0]), torch.tensor([-float("inf"), -0.0, 4.0, 2.0], dtype=torch.float16)

    def functions(wide, half):
        return wide.sum(dtype=torch.float16), half**0.5, half**-0.5

    torch._dynamo.reset()
    for got, want in zip(torch.compile(functions, backend="pyarray")(wide, half), functions(wide, half), strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
