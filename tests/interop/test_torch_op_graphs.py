"""Kernels as operators of torch: gradients, graphs and batches."""

import pytest

import pyarray as pa

torch = pytest.importorskip("torch")
from torch_ops import F64, add_masked, both, dot, scale, scale_into, scaled, tripled, weighted  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


# ---- gradients


def test_gradients_of_a_kernel():
    x, w = (torch.rand(5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for power in (1, 2, 3):
        assert torch.autograd.gradcheck(lambda x, w, p=power: dot(x, w, p), (x, w))
    assert torch.autograd.gradcheck(lambda x: dot(x, w.detach()), (x,))
    y = torch.ones(4, requires_grad=True)
    scaled(y, 3.0).sum().backward()  # whose gradient is expanded
    assert y.grad.tolist() == [3, 3, 3, 3]


def test_gradients_of_a_function():
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    def backward(ctx, grad):
        return scaled_by_function(grad.contiguous(), ctx.factor), None

    scaled_by_function = pa.torch.op(
        scale, "tests::by_function", out={"y": "x"}, backward=backward, setup_context=setup_context
    )
    x = torch.ones(3, requires_grad=True)
    (grad,) = torch.autograd.grad(scaled_by_function(x, 2.0).sum(), x, create_graph=True)
    assert grad.tolist() == [2, 2, 2]


def test_without_backward_a_tensor_that_requires_grad_is_refused_where_gradients_are_recorded():
    x, y = torch.ones(3, requires_grad=True), torch.zeros(3)
    with pytest.raises(ValueError, match=r"tests::scale_into\(\): 'x' is a tensor that requires grad.*detach"):
        scale_into(x, 2.0, y)
    with pytest.raises(ValueError, match=r"tests::tripled\(\): 'x' .* no backward; .*torch.no_grad\(\)"):
        tripled(x)
    with pytest.raises(RuntimeError, match="'x' is a tensor that requires grad"):
        torch.compile(lambda x: tripled(x), backend="aot_eager")(x)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            scale_into(x, 2.0, y)
            assert (y.tolist(), tripled(x).tolist(), scaled(x, 3.0).tolist()) == ([2] * 3, [3] * 3, [3] * 3)
    with torch.no_grad():
        before = x._version
        scale_into(torch.ones(3), 5.0, x)
        assert (x.tolist(), x._version > before, x.requires_grad) == ([5, 5, 5], True, True)


def test_an_argument_without_a_gradient_is_named():
    @pa.kernel
    def only_x(grad_total: pa.ndarray[F64, 0], w: pa.ndarray[F64, 1], grad_x: pa.ndarray[F64, 1]):
        for i in range(grad_x.size):
            grad_x[i] = grad_total[()] * w[i]

    out = {"total": lambda x, w, power=1: x.new_zeros(())}
    made = pa.torch.op(weighted, "tests::only_x", out=out, backward=only_x)
    x, w = (torch.ones(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    made(x, w.detach()).backward()
    assert x.grad.tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"'w' is a tensor that requires grad, .* has no 'grad_w'"):
        made(x, w)


def test_what_would_lose_a_gradient_is_refused():
    x = torch.ones(3)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        for op in (scaled, tripled):
            with pytest.raises(ValueError, match=r"'x' carries a forward gradient.* pass its primal"):
                op(dual, *(2.0,) * (op is scaled))
    with pytest.raises(ValueError, match="'x' carries a forward gradient"):
        torch.func.jvp(lambda x: scaled(x, 2.0), (x,), (x,))
    w = torch.ones(3, requires_grad=True)
    (grad,) = torch.autograd.grad((scaled(w, 2.0) ** 2).sum(), w)
    assert grad.tolist() == [8, 8, 8]
    with pytest.raises(ValueError, match=r"scaled_backward\(\): 'grad_y' is a tensor that requires grad"):
        torch.autograd.grad((scaled(w, 2.0) ** 2).sum(), w, create_graph=True)


def test_written_arguments_are_told_to_autograd():
    x, w = torch.ones(3, requires_grad=True), torch.full((3,), 5.0)
    y = (x * w).sum()
    scale_into(torch.ones(3), 2.0, w)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


# ---- graphs

CALLS = {
    "result": (scaled, lambda: (torch.rand(5), 2.0)),
    "gradient": (scaled, lambda: (torch.rand(5, requires_grad=True), 2.0)),
    "written": (scale_into, lambda: (torch.rand(5), 2.0, torch.zeros(5))),
    "two results": (both, lambda: (torch.rand(4, dtype=torch.float64),)),
    "made by a function": (dot, lambda: tuple(torch.rand(2, 4, dtype=torch.float64)) + (2,)),
    "two gradients": (dot, lambda: tuple(torch.rand(4, dtype=torch.float64).requires_grad_() for _ in "ab")),
    "left out": (add_masked, lambda: (torch.rand(3),)),
    "optional": (add_masked, lambda: (torch.rand(3), torch.tensor([True, False, True]))),
    "tuned": (tripled, lambda: (torch.rand(3),)),
}


@pytest.mark.parametrize("name", CALLS)
def test_operators_pass_torchs_own_checks(name):
    op, make = CALLS[name]
    found = torch.library.opcheck(op, make())
    assert set(found.values()) == {"SUCCESS"}


def _chain(x, n):
    y = torch.zeros_like(x)
    scale_into(x + 1, float(n), y)
    add_masked(y)
    return scaled(y, 3.0) * tripled(x.detach()), y


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_functions_keep_them_in_one_graph(backend):
    torch._dynamo.reset()
    compiled = torch.compile(_chain, backend=backend, fullgraph=True, dynamic=True)
    for size in (3, 5, 1):
        x = torch.rand(size)
        for a, b in zip(compiled(x, 2), _chain(x, 2), strict=True):
            assert torch.equal(a, b)
    x = torch.rand(4, requires_grad=True)
    torch.compile(lambda x: scaled(x * 2, 3.0).sum(), backend=backend, fullgraph=True)(x).backward()
    assert x.grad.tolist() == [6, 6, 6, 6]
    torch._dynamo.reset()


@pa.kernel
def of_constants(x: pa.ndarray[pa.float32, 1], n: int, c: pa.complex64, *, T: pa.constexpr, s="a"):
    for i in range(x.size):
        x[i] = x[i] * n + abs(c) + T


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_functions_take_all_kinds_of_numbers(backend):
    op = pa.torch.op(of_constants, "tests::of_constants", args={"T": 1})

    def f(x, t):
        y = x + 1
        op(y, x.shape[0], 1j, T=t)
        return y * 2

    torch._dynamo.reset()
    compiled = torch.compile(f, backend=backend, fullgraph=True, dynamic=True)
    for n, t in ((3, 2), (4, 2), (5, 3)):
        x = torch.rand(n)
        assert torch.equal(compiled(x, t), f(x, t))
    torch._dynamo.reset()


def test_exported_programs_hold_them():
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.rand(1, dtype=torch.float64))

        def forward(self, x):
            return dot(x * self.weight, x), both(x)

    size, module = torch.export.Dim("size", min=2), Module()
    x = torch.rand(6, dtype=torch.float64)
    program = torch.export.export(module, (x,), dynamic_shapes=({0: size},))
    assert {str(n.target) for n in program.graph.nodes} >= {"tests.dot.default", "tests.split.default"}
    again = torch.rand(9, dtype=torch.float64)
    found, expected = program.module()(again), module(again)
    assert torch.equal(found[0], expected[0])
    assert all(map(torch.equal, found[1], expected[1]))


# ---- batches


@pytest.mark.parametrize("dim", [0, 1])
def test_batches(dim):
    x = torch.rand(4, 4)
    rows = x.movedim(dim, 0)
    expected = torch.stack([scaled(row.contiguous(), 2.0) for row in rows])
    assert torch.equal(torch.vmap(scaled, in_dims=(dim, None))(x, 2.0), expected)
    d = x.double()
    high, low = torch.vmap(both, in_dims=dim)(d)
    assert torch.equal(high + low, d.movedim(dim, 0))


def test_batches_of_what_is_written():
    def f(x, y):
        scale_into(x, 2.0, y)
        return y + 1

    x, y = torch.rand(3, 4), torch.zeros(3, 4)
    assert torch.equal(torch.vmap(f)(x, y), 2 * x + 1)
    assert torch.equal(y, 2 * x)
    with pytest.raises(ValueError, match=r"'y' is written for each element of the batch"):
        torch.vmap(f, in_dims=(0, None))(x, y[0])


def test_empty_batches():
    assert torch.vmap(scaled, in_dims=(0, None))(torch.ones(0, 4), 2.0).shape == (0, 4)
    x = torch.ones(0, 4, dtype=torch.float64)
    high, low = torch.vmap(both)(x)
    assert (high.shape, high.dtype, low.shape) == ((0, 4), torch.int64, (0, 4))


def test_a_rule_for_batches_of_ones_own():
    def rule(info, in_dims, x, factor):
        assert in_dims == (0, None)
        return flat(x.reshape(-1), factor).reshape(x.shape), 0

    flat = pa.torch.op(scale, "tests::flat", out={"y": "x"}, vmap=rule)
    x = torch.rand(3, 4)
    assert torch.equal(torch.vmap(flat, in_dims=(0, None))(x, 2.0), 2 * x)
