"""Kernels as operators of torch: schemas, results, gradients, graphs, batches, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyarray as pa

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

F32, F64 = pa.float32, pa.float64


@pa.kernel
def scale(x: pa.BufferView[F32], factor: float, y: pa.BufferView[F32]):
    for i in range(y.size):
        y[i] = x[i] * factor


@pa.kernel
def scale_backward(grad_y: pa.BufferView[F32], factor: float, grad_x: pa.BufferView[F32]):
    for i in range(grad_x.size):
        grad_x[i] = grad_y[i] * factor


@pa.kernel
def affine(y, x, a, b):
    for i in range(y.size):
        y[i] = x[i] * a + b


@pa.kernel
def affine_2d(y, x, a, b):
    for i, j in pa.ndrange(y.shape[0], y.shape[1]):
        y[i, j] = x[i, j] * a + b


@pa.kernel
def affine_0d(y, x, a, b):
    y[()] = x[()] * a + b


@pa.kernel
def split(x: pa.ndarray[F64, 1], low: pa.ndarray[F64, 1], high: pa.ndarray[pa.int64, 1]):
    for i in range(low.size):
        low[i] = x[i] - math_floor(x[i])
    for i in range(high.size):
        high[i] = pa.int64(math_floor(x[i]))


@pa.func
def math_floor(x):
    return pa.floor(x)


@pa.kernel
def weighted(x: pa.ndarray[F64, 1], w: pa.ndarray[F64, 1], total: pa.ndarray[F64, 0], power: int = 1):
    for i in range(x.size):
        pa.atomic_add(total, (), x[i] ** power * w[i])


@pa.kernel
def weighted_backward(
    grad_total: pa.ndarray[F64, 0],
    x: pa.ndarray[F64, 1],
    w: pa.ndarray[F64, 1],
    grad_x: pa.ndarray[F64, 1],
    grad_w: pa.ndarray[F64, 1],
    power: int,
):
    for i in range(grad_x.size):
        grad_x[i] = grad_total[()] * w[i] * power * x[i] ** (power - 1)
    for i in range(grad_w.size):
        grad_w[i] = grad_total[()] * x[i] ** power


@pa.kernel
def masked(x: pa.ndarray[F32, 1], mask: pa.ndarray[pa.bool, 1] = None, shift: pa.float32 = 1.0):
    for i in range(x.size):
        if mask is None or mask[i]:
            x[i] += shift


@pa.autotune(configs=[pa.Config(TILE=1), pa.Config(TILE=2)])
@pa.kernel
def tuned(x: pa.BufferView[F32], y: pa.BufferView[F32], TILE: pa.constexpr):
    for i in range(y.size):
        y[i] = 3 * x[i] + 0 * TILE


scaled = pa.torch.op(scale, "tests::scaled", out={"y": "x"}, backward=scale_backward)
scale_into = pa.torch.op(scale, "tests::scale_into")
both = pa.torch.op(split, "tests::split", out={"high": "x", "low": "x"})
dot = pa.torch.op(
    weighted, "tests::dot", out={"total": lambda x, w, power=1: x.new_zeros(())}, backward=weighted_backward
)
add_masked = pa.torch.op(masked, "tests::masked")
tripled = pa.torch.op(tuned, "tests::tripled", out={"y": "x"})


# ---- schemas


def test_schemas_say_who_writes_what():
    assert str(scaled._schema) == "tests::scaled(Tensor x, float factor) -> Tensor"
    assert str(scale_into._schema) == "tests::scale_into(Tensor x, float factor, Tensor(a2!) y) -> ()"
    assert str(both._schema) == "tests::split(Tensor x) -> (Tensor, Tensor)"
    assert str(dot._schema) == "tests::dot(Tensor x, Tensor w, SymInt power=1) -> Tensor"
    text = "tests::masked(Tensor(a0!) x, Tensor? mask=None, float shift=1.) -> ()"
    assert str(add_masked._schema) == text
    assert str(tripled._schema) == "tests::tripled(Tensor x) -> Tensor"
    backward = torch.ops.tests.dot_backward.default._schema
    assert [a.name for a in backward.arguments if a.alias_info] == ["grad_x", "grad_w"]


@pa.kernel
def all_kinds(x, n: pa.uint8, k: int, f: pa.float16, b: bool, c: pa.complex64, *, T: pa.constexpr, s="a"):
    for i in range(x.size):
        x[i] += n + k + f + b + T


def test_schemas_of_numbers_and_examples():
    with pytest.raises(TypeError, match=r"'x' has no annotation.* annotate it, or pass args=\{'x': ...\}"):
        pa.torch.op(all_kinds, "tests::all_kinds")
    given = {"x": torch.ones(1), "T": 3}
    made = pa.torch.op(all_kinds, "tests::all_kinds", args=given)
    numbers = 'SymInt n, SymInt k, float f, bool b, complex c, *, int T, str s="a"'
    assert str(made._schema) == f"tests::all_kinds(Tensor(a0!) x, {numbers}) -> ()"
    x = torch.zeros(2, dtype=torch.float64)
    made(x, 1, 2, 3.0, True, 1j, T=4)
    assert x.tolist() == [11, 11]


# ---- results


def tensors(dtype, ndim):
    """Tensors of small integers: views with offsets and steps, transposed, empty, repeated, negated."""

    def build(shape, step, kind):
        size = 1
        for n in shape:
            size *= n * step
        base = torch.arange(size + 1, dtype=torch.float64).remainder(7).to(dtype)[1:]
        x = base.reshape([n * step for n in shape])[tuple(slice(None, None, step) for _ in shape)]
        if kind == "transposed":
            x = x.T
        if kind == "expanded" and shape:
            x = x[:1].expand(x.shape) if shape[0] else x
        return torch._neg_view(x) if kind == "negated" else x

    shapes = st.tuples(*[st.integers(0, 4)] * ndim)
    kinds = st.sampled_from(["plain", "transposed", "expanded", "negated"])
    return st.builds(build, shapes, st.integers(1, 2), kinds)


DTYPES = [torch.float32, torch.float64, torch.int32, torch.complex64]
NAMES = {0: affine_0d, 1: affine, 2: affine_2d}
EXAMPLES = {n: (torch.ones((1,) * n), torch.ones((1,) * n), 1, 1) for n in NAMES}
AFFINE = {n: pa.torch.op(k, f"tests::affine_{n}", args=EXAMPLES[n]) for n, k in NAMES.items()}
NEW_AFFINE = {
    n: pa.torch.op(k, f"tests::new_affine_{n}", args=EXAMPLES[n], out={"y": "x"}) for n, k in NAMES.items()
}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_results_are_those_of_torch(data):
    dtype, ndim = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(list(NAMES)))
    x = data.draw(tensors(dtype, ndim))
    a, b = data.draw(st.integers(-3, 3)), data.draw(st.integers(-3, 3))
    expected = x * a + b
    made = NEW_AFFINE[ndim](x, a, b)
    assert made.is_contiguous()
    assert (made.dtype, made.tolist()) == (dtype, expected.tolist())
    into = torch.empty_like(x) if data.draw(st.booleans()) else torch.zeros_like(x).T.contiguous().T
    before = into._version
    assert AFFINE[ndim](into, x, a, b) is None
    assert into.tolist() == expected.tolist()
    assert into._version > before
    own = x.clone()
    AFFINE[ndim](own, own, a, b)
    assert own.tolist() == expected.tolist()


def test_several_results_and_the_annotations_dtype():
    high, low = both(torch.tensor([1.25, -0.5], dtype=torch.float64))
    assert (high.dtype, high.tolist(), low.tolist()) == (torch.int64, [1, -1], [0.25, 0.5])


def test_what_the_kernel_does_not_write_is_0():
    @pa.kernel
    def some(x: pa.ndarray[F32, 1], y: pa.ndarray[F32, 1]):
        for i in range(x.size // 2):
            y[2 * i] = x[i]

    made = pa.torch.op(some, "tests::some", out={"y": "x"})
    for _ in range(3):
        torch.full((6,), 9.0)  # what freed memory may hold
        assert made(torch.ones(6)).tolist() == [1, 0, 1, 0, 1, 0]


def test_optional_arguments():
    x = torch.zeros(3)
    add_masked(x)
    add_masked(x, torch.tensor([True, False, True]), shift=2)
    add_masked(x, mask=torch.tensor([False, True, False]))
    assert x.tolist() == [3, 2, 3]
    assert torch.ops.tests.dot(*[torch.arange(3.0, dtype=torch.float64)] * 2, power=2).item() == 9


def test_tuned_kernels_and_checked_ones():
    assert tripled(torch.arange(3.0)).tolist() == [0, 3, 6]
    with pa.debug(), pytest.raises(pa.BoundsError, match=r"kernel.scale.*'x'"):
        scale_into(torch.ones(2), 1.0, torch.ones(3))


def test_a_failing_kernel_names_the_line_of_the_call():
    with pa.debug(), pytest.raises(pa.BoundsError) as caught:
        scale_into(torch.ones(2), 1.0, torch.ones(3))
    assert caught.value.launch[0] == __file__


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: scaled(torch.ones(2, dtype=torch.float64), 1.0), TypeError, "array of float64"),
        (lambda: scaled(torch.ones(2, 2), 1.0), TypeError, "2-D array of shape"),
        (lambda: scaled(torch.ones(4)[::2], 1.0), TypeError, "BufferView, which is contiguous"),
        (lambda: scaled(torch.ones(2)), RuntimeError, "missing value for argument 'factor'"),
        (lambda: scaled(torch.ones(2), 1.0, factr=2), RuntimeError, "expected at most 2 argument"),
        (lambda: scaled(torch.ones(2), "a"), RuntimeError, "type 'float' for argument 'factor'"),
        (lambda: scaled(torch.eye(2).to_sparse(), 1.0), NotImplementedError, "SparseCPU"),
        (
            lambda: AFFINE[1](torch.ones(1).expand(3), torch.ones(3), 1, 1),
            ValueError,
            "this array is read-only",
        ),
        (
            lambda: dot(*[torch.ones(2, dtype=torch.float64)] * 2, power=2**63),
            RuntimeError,
            "type 'int' for argument 'power'",
        ),
    ],
)
def test_wrong_arguments_are_told_as_kernels_and_operators_tell(call, error, text):
    with pytest.raises(error, match=text):
        call()


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
    with pytest.raises(
        ValueError, match=r"tests::scale_into\(\): 'x' is a tensor that requires grad.*detach"
    ):
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


def test_a_rule_for_batches_of_ones_own():
    def rule(info, in_dims, x, factor):
        assert in_dims == (0, None)
        return flat(x.reshape(-1), factor).reshape(x.shape), 0

    flat = pa.torch.op(scale, "tests::flat", out={"y": "x"}, vmap=rule)
    x = torch.rand(3, 4)
    assert torch.equal(torch.vmap(flat, in_dims=(0, None))(x, 2.0), 2 * x)


# ---- definitions


def test_a_name_defined_again_runs_the_new_kernel():
    def make(n):
        @pa.kernel
        def times(x: pa.ndarray[F32, 1], y: pa.ndarray[F32, 1]):
            for i in range(y.size):
                y[i] = x[i] * n

        return pa.torch.op(times, "tests::times", out={"y": "x"})

    first, second = make(2), make(3)
    assert first is second
    x = torch.ones(2)
    assert first(x).tolist() == [3, 3]
    assert torch.vmap(first)(torch.ones(2, 2)).tolist() == [[3, 3], [3, 3]]
    with torch.inference_mode():
        assert torch.compile(first, backend="aot_eager")(x).tolist() == [3, 3]
    with pytest.raises(ValueError, match=r"'tests::times' is defined as .* for the life of the process"):
        pa.torch.op(scale, "tests::times")


def test_a_kernel_that_does_more_for_other_types_is_told():
    @pa.kernel
    def clear(x, y):
        for i in range(y.shape[0]):
            if x.ndim == 2:
                x[i, 0] = 0
            y[i] = 1

    made = pa.torch.op(clear, "tests::clear", args=(torch.ones(2), torch.ones(2)))
    made(torch.ones(2), torch.ones(2))
    with pytest.raises(RuntimeError, match=r"the kernel writes 'x', .*: define it with args=.* pa.InOut"):
        made(torch.ones(2, 2), torch.ones(2))


class Pair:
    pass


@pa.kernel
def no_tensor(y: pa.Out[pa.ndarray[F32, 1]], n: int):
    for i in range(y.size):
        y[i] = n


@pa.kernel
def with_pair(x: pa.ndarray[F32, 1], t: tuple[int, int]):
    for i in range(x.size):
        x[i] = t[0]


@pa.kernel
def keyword_array(x: pa.ndarray[F32, 1], *, y: pa.ndarray[F32, 1]):
    for i in range(x.size):
        x[i] = y[i]


@pa.kernel
def infinite(x: pa.ndarray[F32, 1], most: float = float("inf")):
    for i in range(x.size):
        x[i] = min(x[i], most)


@pa.kernel
def no_rank(x: pa.ndarray[F32]):
    for i in range(x.shape[0]):
        x[i] = 1


REFUSED = [
    ((scale, "scaled"), {}, ValueError, "name of an op is 'namespace::name', got 'scaled'"),
    ((lambda x: x, "tests::a"), {}, TypeError, "expected what pa.kernel or pa.autotune makes, got function"),
    ((with_pair, "tests::a"), {}, TypeError, "'t' is a structure, .*; write a kernel that takes its fields"),
    ((keyword_array, "tests::a"), {}, TypeError, "'y' is an array and keyword-only.*; make it positional"),
    ((infinite, "tests::a"), {}, TypeError, "the default inf of 'most' can't be written .*; leave it out"),
    ((no_rank, "tests::a"), {}, TypeError, r"says a rank; annotate it, or pass args=\{'x': torch.empty"),
    ((no_tensor, "tests::a"), {"out": {"y": lambda n: None}}, ValueError, "it takes no tensor"),
    ((scale, "tests::a"), {"out": {"x": "y"}}, ValueError, "out has 'x'; the kernel writes y"),
    ((scale, "tests::a"), {"out": {"y": "factor"}}, ValueError, "like 'factor', and the tensors .* are x"),
    ((scale, "tests::a"), {"out": {"y": 3}}, TypeError, "out of 'y' is the name of a parameter or a"),
    ((scale, "tests::a"), {"args": (1,)}, TypeError, "args is a tuple of examples for x, factor, y, got 1"),
    ((scale, "tests::a"), {"args": {"z": 1}}, TypeError, "args has 'z'; the parameters are x, factor, y"),
    ((scale, "tests::a"), {"backward": scale_backward}, ValueError, "writes its argument 'y'"),
    ((scale, "tests::a"), {"out": {"y": "x"}, "backward": 3}, TypeError, "a kernel or a function, got 3"),
    (
        (scale, "tests::a"),
        {"out": {"y": "x"}, "backward": split},
        TypeError,
        "has a parameter 'low'; it reads",
    ),
]


@pytest.mark.parametrize(("given_", "named", "error", "text"), REFUSED)
def test_definitions_that_are_refused(given_, named, error, text):
    with pytest.raises(error, match=text):
        pa.torch.op(*given_, **named)
    assert not hasattr(torch.ops.tests, "a")


def test_a_function_that_makes_no_tensor_is_told():
    made = pa.torch.op(scale, "tests::no_result", out={"y": lambda x, factor: np.empty(3)})
    with pytest.raises(TypeError, match="the function in out for 'y' gives a new tensor, got ndarray"):
        made(torch.ones(3), 1.0)
