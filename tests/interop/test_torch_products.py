"""Matrix products in `torch.compile(f, backend="pyarray")`: ours with what is behind them, or torch's."""

from __future__ import annotations

import pytest
from compile_cache import artifact_count
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

import pyarray.torch  # noqa: E402
from pyarray.kernels.matmul.gemm_text import KERNEL  # noqa: E402
from pyarray.torch import product_cost  # noqa: E402
from pyarray.torch.backend import observing_backend  # noqa: E402
from pyarray.torch.fusion_group import ProductGroup  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10, torch.bfloat16: 4e-2, torch.float16: 4e-3}


@pytest.fixture(autouse=True)
def afresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def force(monkeypatch, ours):
    monkeypatch.setattr(product_cost, "choose", lambda facts: (ours, "as the test asks"))


def compiled(function, dynamic=True):
    programs = []
    return torch.compile(function, backend=observing_backend(programs.append), dynamic=dynamic), programs


def products(programs):
    """The operators of each product of ours, in order."""
    return [
        [n.target.name().partition("::")[2].partition(".")[0] for n in group.nodes]
        for program in programs
        for group in program.groups.values()
        if isinstance(group, ProductGroup)
    ]


def close(got, want):
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    tolerance = TOLERANCE[want.dtype]
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


ACTIVATIONS = {
    "none": lambda x: x,
    "relu": torch.relu,
    "gelu": functional.gelu,
    "gelu of tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "scaled": lambda x: x * 0.25 - 1,
    "leaky": lambda x: functional.leaky_relu(x, 0.1),
    "clamped": lambda x: x.clamp(-0.5, 0.5),
}


def mm(a, b, bias):
    return a[0] @ b[0]


def addmm(a, b, bias):
    return torch.addmm(bias, a[0], b[0], beta=0.5, alpha=2)


def linear(a, b, bias):
    return functional.linear(a, b[0].T, bias)


def bmm(a, b, bias):
    return torch.bmm(a, b)


def baddbmm(a, b, bias):
    return torch.baddbmm(bias, a, b, beta=2)


FORMS = (mm, addmm, linear, bmm, baddbmm)
sizes = st.sampled_from((1, 2, 3, 5, 8, 17, 33))


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@examples(4)
@given(data=st.data())
def test_a_product_and_what_is_behind_it(monkeypatch, device, data):
    """Any shapes, strides and types: both choices give what torch gives."""
    draw = data.draw
    form, name = draw(st.sampled_from(FORMS)), draw(st.sampled_from(sorted(ACTIVATIONS)))
    dtype = draw(st.sampled_from((torch.float32, torch.float64, torch.bfloat16)))
    batch, m, n, k = (draw(sizes) for _ in range(4))

    def matrix(rows, columns):
        shape = (batch, columns, rows) if draw(st.booleans()) else (batch, rows, columns)
        x = torch.randn(*shape[:-1], shape[-1] * 2, device=device).to(dtype)
        x = x[..., ::2] if draw(st.booleans()) else x[..., shape[-1] :]
        return x if shape[1:] == (rows, columns) else x.mT

    a, b = matrix(m, k), matrix(k, n)
    bias = torch.randn(n, device=device).to(dtype)
    residual = draw(st.sampled_from(("none", "same", "row", "column")))
    shape = form(a, b, bias).shape
    cut = {"none": (1,), "same": shape, "row": shape[-1:], "column": (*shape[:-1], 1)}[residual]
    rest = torch.randn(cut, device=device).to(dtype)

    def function(a, b, bias, rest):
        found = ACTIVATIONS[name](form(a, b, bias))
        return found if residual == "none" else found + rest

    want = function(a, b, bias, rest)
    for ours in (True, False):
        torch._dynamo.reset()
        force(monkeypatch, ours)
        run, programs = compiled(function, dynamic=draw(st.booleans()))
        close(run(a, b, bias, rest), want)
        assert len(products(programs)) == ours


# Where the products are torch's, what is behind them is a kernel as behind any operator: few are enough.
TRAINED = [(name, True) for name in ACTIVATIONS] + [("gelu", False), ("leaky", False)]


@pytest.mark.parametrize(("name", "ours"), TRAINED)
@pytest.mark.slow
def test_training(monkeypatch, name, ours):
    """Results and gradients at several sizes."""
    force(monkeypatch, ours)
    model = nn.Sequential(nn.Linear(6, 9), nn.Linear(9, 5, bias=False))

    def function(x):
        return model[1](ACTIVATIONS[name](model[0](x)) + x.sum())

    run, programs = compiled(function)
    for n in (7, 3, 1):
        x, found = torch.randn(2, n, 6, requires_grad=True), []
        for call in (function, run):
            y = call(x)
            found.append((y, *torch.autograd.grad((y * y).sum(), [x, *model.parameters()])))
        for got, want in zip(*reversed(found), strict=True):
            close(got, want)
    assert bool(products(programs)) == ours


def test_one_artifact_for_all_sizes(monkeypatch):
    force(monkeypatch, True)
    run, programs = compiled(lambda a, b, c: torch.tanh(a @ b + c) + c)
    counts = []
    for n in (5, 2, 9, 40, 17):
        a, b, c = torch.randn(n, n + 1), torch.randn(n + 1, 2 * n + 3), torch.randn(n, 2 * n + 3)
        close(run(a, b, c), torch.tanh(a @ b + c) + c)
        counts.append(artifact_count([KERNEL]))
    assert counts == counts[:1] * 5
    assert products(programs) == [["mm", "add", "tanh", "add"]]


ENDS = {
    "two users": (lambda a, b: (torch.relu(p := a @ b), p), ["mm"]),
    "a diamond": (lambda a, b: functional.silu(a @ b).sum(0), ["mm", "sigmoid", "mul"]),
    "a reduction": (lambda a, b: torch.relu(a @ b).sum(), ["mm", "relu"]),
    "another type": (lambda a, b: torch.relu(a @ b).double() * 2, ["mm", "relu"]),
    "a mask": (lambda a, b: torch.relu(a @ b) > 0, ["mm", "relu"]),
    "a type between": (lambda a, b: (a @ b).double().tanh().float(), ["mm", "_to_copy", "tanh", "_to_copy"]),
    "many arrays": (lambda a, b: (a @ b) + a + b * a.exp() + b, ["mm", "add", "add"]),
    "a size": (lambda a, b: torch.relu(a @ b) * a.shape[0], ["mm", "relu"]),
    "transposed": (lambda a, b: torch.relu((a @ b).T) + 1, ["mm", "relu", "add"]),
    "a part": (lambda a, b: torch.relu(torch.sigmoid(a @ b)[1:, ::2]), ["mm", "sigmoid"]),
    "its own square": (lambda a, b: (p := a @ b) * p + 1, ["mm", "mul", "add"]),
    "itself twice": (lambda a, b: torch.relu(a @ a.T), ["mm", "relu"]),
    "an axis that is cut": (
        lambda a, b: torch.relu(a @ b).view(2, -1, a.shape[1]) * a[None, : a.shape[0] // 2],
        ["mm", "relu"],
    ),
}


FIXED = ("a size", "a part", "transposed", "an axis that is cut")  # where the graph has sizes


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dynamic"), [(name, True) for name in ENDS] + [(name, False) for name in FIXED])
def test_where_a_last_step_ends(monkeypatch, name, dynamic):
    """Its nodes are those whose values nothing else needs."""
    force(monkeypatch, True)
    function, nodes = ENDS[name]
    if name == "a size" and not dynamic:
        nodes = [*nodes, "mul"]
    run, programs = compiled(function, dynamic)
    a, b = torch.randn(6, 6), torch.randn(6, 6)
    got, want = run(a, b), function(a, b)
    for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)
    assert [[n.replace("convert_element_type", "_to_copy") for n in p] for p in products(programs)] == [nodes]


@pytest.mark.slow
def test_operands_that_are_views(monkeypatch):
    """They are read where they are; reshapes that may copy are torch's."""
    force(monkeypatch, True)

    def function(x, w):
        q, k = (x.view(x.shape[0], -1, 2, 4) + 1).permute(2, 0, 1, 3).unbind(0)
        return torch.bmm(q, k.transpose(1, 2)), x.T.reshape(-1, 3) @ w.expand(3, 3), x[1] @ x[0].view(-1, 1)

    run, programs = compiled(function)
    x, w = torch.randn(6, 24), torch.randn(3, 1)
    for got, want in zip(run(x, w), function(x, w), strict=True):
        close(got, want)
    assert len(products(programs)) >= 2


def test_what_stays_torchs(monkeypatch):
    force(monkeypatch, True)
    cases = {
        "a tensor is empty": (torch.ones(3, 0), torch.ones(0, 2)),
        "torch.int64": (torch.ones(2, 2).long(), torch.ones(2, 2).long()),
        "torch.complex64": (torch.ones(2, 2) + 1j, torch.ones(2, 2) + 1j),
    }
    for why, (a, b) in cases.items():
        torch._dynamo.reset()
        found = pyarray.torch.explain(torch.mm, a, b)
        assert not any(products(found.programs))
        assert why in str(found)
        torch.testing.assert_close(compiled(torch.mm)[0](a, b), a @ b)


def test_large_products(monkeypatch):
    """From there on the tuner may choose the blocks."""
    force(monkeypatch, True)
    run, _ = compiled(lambda a, b, c: torch.relu(a @ b + c))
    a, b, c = torch.randn(400, 401), torch.randn(401, 399), torch.randn(399)
    torch.testing.assert_close(run(a, b, c), torch.relu(a @ b + c), rtol=1e-3, atol=1e-3)


def test_in_debug_mode(monkeypatch):
    force(monkeypatch, True)
    run, _ = compiled(lambda a, b: torch.relu(a.T @ b) * 2 + b)
    a, b = torch.randn(5, 5), torch.randn(5, 9)[:, ::2]
    with pyarray.debug():
        close(run(a, b), torch.relu(a.T @ b) * 2 + b)


def test_a_factor_of_zero_leaves_nans_out(monkeypatch):
    force(monkeypatch, True)
    run, programs = compiled(lambda c, a: torch.addmm(c, a, a, beta=0))
    a, c = torch.randn(3, 3), torch.full((3, 3), float("nan"))
    close(run(c, a), a @ a)
    assert products(programs) == [["addmm"]]


@pytest.mark.parametrize("ours", [True, False])
def test_explain(monkeypatch, ours):
    force(monkeypatch, ours)
    text = str(pyarray.torch.explain(lambda a: torch.relu(a @ a), torch.ones(4, 4)))
    assert "as the test asks" in text
    assert ("kernel product_mm_relu: product" in text) == ours
    assert ("torch: aten.mm.default (1)" in text) != ours


def predicted(kind, dtype, size, steps=0, threads=2):
    problem = product_cost.ProductProblem(torch.device(kind), dtype, 1, size, size, size, steps, threads)
    return product_cost.choose(problem)


@pytest.mark.parametrize("amx", [False, True])
def test_the_choice(amx, monkeypatch):
    """Ours where a call costs more than its work, and where rows aren't aligned for cuBLAS."""
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        found = [predicted("cpu", dtype, n)[0] for n in (1, 32, 512, 1024)]
        assert found == [True, True, False, False]
    assert not predicted("cpu", torch.float32, 80)[0]
    assert predicted("cpu", torch.float32, 80, 1)[0]
    assert "predicted 2 us here, 4.5 us by torch" in predicted("cpu", torch.float32, 1)[1]
    assert predicted("cpu", torch.float16, 512)[0] != amx
    found = [predicted("cpu", torch.float32, n, threads=1)[0] for n in (32, 512)]
    assert found == [True, False]
    assert "of torch.float32 are faster" in predicted("cuda", torch.float32, 32)[1]
    if torch.version.hip is None:
        assert [predicted("cuda", torch.bfloat16, n)[0] for n in (33, 4095, 4096)] == [False, True, False]
    assert not predicted("cuda", torch.float32, 4095)[0]


def test_the_choice_is_by_traced_sizes(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    for n, ours in ((16, True), (700, False)):
        torch._dynamo.reset()
        a = torch.randn(n, n)
        run, programs = compiled(lambda a: torch.relu(a @ a))
        torch.testing.assert_close(run(a), torch.relu(a @ a), rtol=1e-3, atol=1e-3)
        assert len(products(programs)) == ours
