"""Common subexpression elimination: nodes of a graph that compute the same become one, and no others do."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from pyarray.torch.backend import observing_backend  # noqa: E402
from pyarray.torch.common_subexpressions import eliminate_common_subexpressions  # noqa: E402

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def anew():
    torch._dynamo.reset()
    torch.manual_seed(0)


def merged(function, *inputs):
    """How many nodes of each operator are left, by name."""
    module = make_fx(function, tracing_mode="symbolic")(*inputs)
    eliminate_common_subexpressions(module.graph)
    module.graph.lint()
    module.recompile()
    want, got = function(*inputs), module(*inputs)
    torch.testing.assert_close(got, want, equal_nan=True)
    names = [n.target.__name__.partition(".")[0] for n in module.graph.nodes if n.op == "call_function"]
    return {name: names.count(name) for name in names}


def test_equal_nodes_become_one():
    def table(x):
        places = torch.arange(x.shape[-1], dtype=torch.float32)
        return torch.cos(places[:, None] * 0.5)

    counts = merged(lambda x, y: x @ table(x) + y @ table(x), torch.randn(3, 8), torch.randn(3, 8))
    assert counts["arange"] == counts["mul"] == counts["cos"] == 1
    assert counts["mm"] == 2


def test_results_of_an_operator_with_several():
    counts = merged(lambda x: torch.max(x, 1)[0] * torch.max(x, 1)[1], torch.randn(3, 8))
    assert (counts["max"], counts["getitem"]) == (1, 2)


@pytest.mark.parametrize(
    ("a", "b", "name"),
    [
        (lambda x: x + 1, lambda x: x + 1.0, "add"),
        (lambda x: x * 0.0, lambda x: x * -0.0, "mul"),
        (lambda x: x.sum(0), lambda x: x.sum(1), "sum"),
        (lambda x: x.sum(1), lambda x: x.sum(1, dtype=torch.float64), "sum"),
        (lambda x: torch.clamp(x, min=0.5), lambda x: torch.clamp(x, max=0.5), "clamp"),
        (lambda x: x[:3].sum(), lambda x: x[1:4].sum(), "slice"),
    ],
)
def test_other_arguments_are_other_nodes(a, b, name):
    assert merged(lambda x: a(x) - b(x), torch.randn(8, 8))[name] == 2
    assert merged(lambda x: a(x) - a(x).cos(), torch.randn(8, 8))[name] == 1


def test_random_numbers_stay_apart():
    module = make_fx(lambda x: torch.rand_like(x) - torch.rand_like(x))(torch.randn(100))
    eliminate_common_subexpressions(module.graph)
    module.recompile()
    assert module(torch.randn(100)).abs().min() > 0


def test_memory_without_values_stays_apart():
    def f(x):
        a, b = torch.empty_like(x), torch.empty_like(x)
        return aten.copy_(a, x) + aten.copy_(b, -x)

    assert merged(f, torch.randn(5))["empty_like"] == 2


def test_writes_stand_between():
    """Equal operators on both sides of a write read other values."""

    def f(x):
        before = x * 2
        x.copy_(before + 1)
        return before - x * 2

    module = make_fx(f)(torch.ones(4))
    eliminate_common_subexpressions(module.graph)
    module.recompile()
    assert module(torch.ones(4)).tolist() == f(torch.ones(4)).tolist() == [-4.0] * 4


def test_sizes_that_depend_on_data_stay_apart():
    def f(x):
        return torch.nonzero(x).sum() + torch.nonzero(x).sum()

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        call = torch.compile(f, backend=observing_backend(None), dynamic=True, fullgraph=True)
        for x in (torch.tensor([1, 0, 2]), torch.tensor([0, 0, 3, 1])):
            assert call(x) == f(x)


@pytest.mark.parametrize("trained", [False, True])
def test_results_that_are_returned_have_memory_of_their_own(trained):
    call = torch.compile(lambda x: (x.sin(), x.sin(), x.sin() + 1), backend=observing_backend(None), dynamic=True)
    x = torch.randn(6, 7, requires_grad=trained)
    a, b, c = call(x)
    want = x.detach().sin()
    with torch.no_grad():
        a.zero_()
    torch.testing.assert_close(b.detach(), want)
    torch.testing.assert_close(c.detach(), want + 1)


@pytest.mark.slow
def test_gradients_of_equal_nodes():
    def f(x):
        return (torch.tanh(x) * 2).sum(1) + (torch.tanh(x) * 3).sum(1)

    programs = []
    call = torch.compile(f, backend=observing_backend(programs.append), dynamic=True)
    for n in (5, 1, 9):
        x = torch.randn(n, 4, requires_grad=True)
        want, got = (torch.autograd.grad(g(x).sum(), x) for g in (f, call))
        torch.testing.assert_close(got, want)
    texts = ["\n".join(k.text.text for k in p.kernels.values()) for p in programs]
    assert [text.count("tanh(") for text in texts[:2]] == [1, 1]
