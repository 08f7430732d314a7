"""A size of 1 after others: Dynamo traces again, and nothing is compiled where that is the same program."""

from __future__ import annotations

import pytest
from compile_cache import artifact_count

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

from pyarray.torch import backend, fused_kernel, graph_reuse  # noqa: E402


@pytest.fixture(autouse=True)
def afresh():
    torch._dynamo.reset()
    torch.manual_seed(1)


@pytest.fixture
def compiled(monkeypatch):
    """Called with sizes one after the other: how many graphs and kernels were compiled up to each."""
    made = []
    program = backend.Program

    def counted(*args):
        made.append(args)
        return program(*args)

    monkeypatch.setattr(backend, "Program", counted)

    def run(function, draw, sizes):
        call = torch.compile(function, backend=backend.pyarray, dynamic=True)
        counts = []
        for n in sizes:
            inputs = draw(n)
            torch.testing.assert_close(call(*inputs), function(*inputs))
            counts.append((len(made), artifact_count(fused_kernel._kernels.values())))
        return counts

    return run


def attention(x):
    q = x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)
    later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    seen = (q @ q.transpose(-1, -2)).masked_fill(later, float("-inf")).softmax(-1) @ q
    return x + seen.transpose(1, 2).reshape(x.shape)


def rotated(x):
    angles = torch.arange(x.shape[1])[:, None] * torch.arange(4)
    a, b = x[..., :4], x[..., 4:]
    return torch.cat([a * angles.cos() - b, b * angles.sin() + a], -1)


def normalized(x):
    centred = x - x.mean((0, 1), keepdim=True)
    return functional.layer_norm(x, (8,)) + functional.normalize(centred, dim=1) / x.shape[0]


SAME = {
    "copies that are views": (attention, lambda n: (torch.randn(3, n, 8),)),
    "ranges of sizes": (rotated, lambda n: (torch.randn(n, 2 * n, 8)[:, ::2],)),
    "reductions over an element": (normalized, lambda n: (torch.randn(n, 6, 8),)),
    "broadcast axes": (
        lambda x, y: (x * y).std(0, correction=0),
        lambda n: (torch.randn(n, 4), torch.randn(n, 1)),
    ),
    "strides of an element": (lambda x: (x * 2).sum(0), lambda n: (torch.randn(n, 7, 3)[:, 1:],)),
    "the last of an axis": (lambda x: x[:, -1] * x[:, 0], lambda n: (torch.randn(4, n),)),
    "equal in the first call": (
        lambda x, y: (x / x.shape[0]).sum(0) / x.shape[1] - y.sum() / y.shape[0],
        lambda n: (torch.randn(n, 5), torch.randn(5 if n == 5 else n + 3, 3)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAME)
def test_the_same_program_is_compiled_once(compiled, name):
    counts = compiled(*SAME[name], (5, 1, 3, 1))
    assert len(set(counts)) == 1


def written(x):
    y = x.exp()
    z = y.t().reshape(-1)  # of one row it is y's memory
    y.mul_(2)
    return y, z + 1


OTHER = {
    "the function asks": (lambda x: x * 2 if x.shape[0] == 1 else x * 3, lambda n: (torch.randn(n, 4),)),
    "a rank": (lambda x: x.squeeze(0).sum(0) * 2, lambda n: (torch.randn(n, 4),)),
    "broadcast by one": (lambda x, y: x * 2 + y, lambda n: (torch.randn(5, 4), torch.randn(n, 4))),
    "steps": (lambda x: torch.linspace(0, 1, x.shape[0]) + x, lambda n: (torch.randn(n),)),
    "corners": (
        lambda x, y: functional.interpolate(x, size=y.shape[0], mode="linear", align_corners=True),
        lambda n: (torch.randn(1, 2, 7), torch.randn(n)),
    ),
    "fewer than are asked for": (lambda x: x[-2:] * 2, lambda n: (torch.randn(n, 3),)),
    "memory of another": (written, lambda n: (torch.randn(n, 4),)),
}


@pytest.mark.parametrize("name", OTHER)
def test_what_is_another_program_with_one_element(compiled, name):
    compiled(*OTHER[name], (5, 1, 3, 1) if name != "broadcast by one" else (5, 1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)

    def forward(self, x):
        return torch.relu(self.norm(self.inner(x)) + x)


def perceptron():
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 3), nn.LogSoftmax(-1))


@pytest.mark.slow
@pytest.mark.parametrize(("make", "shape"), [(Block, (4, 4, 4)), (perceptron, (8,))])
def test_training(make, shape):
    model = make()
    call = torch.compile(model, backend=backend.pyarray, dynamic=True)
    counts = []
    for n in (shape[0], 6, 1, 3, 1):  # first a batch as large as another size
        x = torch.randn(n, *shape)
        found = []
        state = {name: value.clone() for name, value in model.state_dict().items()}
        for function in (call, model):
            model.load_state_dict(state)
            model.zero_grad()
            y = function(x)
            (y * y).sum().backward()
            found.append((y.detach(), *(p.grad.clone() for p in model.parameters()), *model.buffers()))
            found[-1] = tuple(v.clone() for v in found[-1])
        torch.testing.assert_close(*found, rtol=1e-3, atol=1e-4)
        counts.append(artifact_count(fused_kernel._kernels.values()))
    assert len(set(counts)) == 1


@pytest.mark.slow
def test_how_torch_computes_a_convolution_is_no_other_program(monkeypatch):
    """Some versions of torch guard that the batch isn't 1 when they choose; here all do."""
    choose = torch._C._select_conv_backend

    def asking(x, *rest, **named):
        bool(x.shape[0] > 1)
        return choose(x, *rest, **named)

    monkeypatch.setattr(torch._C, "_select_conv_backend", asking)
    test_training(Block, (4, 4, 4))


def test_gradients_are_another_program(compiled):
    x = torch.randn(5, 3, requires_grad=True)
    call = torch.compile(lambda x: (x * 2).sin(), backend=backend.pyarray, dynamic=True)
    with torch.no_grad():
        call(x)
    y = call(x[:1])
    assert y.requires_grad
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0][:1], 2 * torch.cos(2 * x[:1]))


def test_a_graph_that_is_gone_is_compiled_again(compiled):
    assert compiled(lambda x: x * 5 - 1, lambda n: (torch.randn(n, 3),), (4,))[0][0] == 1
    torch._dynamo.reset()
    assert compiled(lambda x: x * 5 - 1, lambda n: (torch.randn(n, 3),), (1,))[0][0] == 2


def test_numbers_that_an_operator_makes_constants_are_none_of_the_first_graph(monkeypatch):
    """Which torch finds when all of it has been taken apart, and begins again; others stay inputs."""
    seen = []
    compile_graph, traced = backend.compile_graph, graph_reuse.compile_size_oblivious
    monkeypatch.setattr(graph_reuse, "compile_size_oblivious", lambda *args: seen.append("traced") or traced(*args))
    monkeypatch.setattr(
        backend, "compile_graph", lambda *args, **kw: seen.append("compiled") or compile_graph(*args, **kw)
    )

    def scaled(x, factor):
        return functional.layer_norm(x, (8,), eps=1e-4) * factor

    call = torch.compile(scaled, backend=backend.pyarray, dynamic=True)
    for n, factor in (8, 0.5), (6, 0.75), (5, 0.3):
        x = torch.randn(n, 8)
        torch.testing.assert_close(call(x, factor), scaled(x, factor))
    assert seen == ["traced", "compiled"]


def test_what_stands_in_a_loop_isnt_before_it_in_a_kernel_of_the_same_lines():
    """With a size of 1, an element needs no loop."""

    def least_of(x, y):
        least = y.min()
        below = torch.clamp_max(x, least)
        return torch.where(below == 0, least, below)

    for n in (5, 1):
        given = torch.arange(n, dtype=torch.int32) - 2, torch.arange(n).reshape(1, n)
        made = torch.compile(least_of, backend=backend.pyarray, dynamic=False)(*given)
        assert torch.equal(made, least_of(*given))
