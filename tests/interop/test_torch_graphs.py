"""What `torch.compile(f, backend="pyarray")` leaves to torch: results are torch's, never a wrong number. A
sample of the drawn graphs of tests/torch_graphs runs too."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pyarray.torch import explain  # noqa: E402
from pyarray.torch.backend import pyarray  # noqa: E402
from tests.torch_graphs.compare import difference  # noqa: E402
from tests.torch_graphs.draw import SYMBOLS, Drawing, Graph, Input, Step  # noqa: E402
from tests.torch_graphs.gradients import gradients  # noqa: E402
from tests.torch_graphs.run import check  # noqa: E402
from tests.torch_graphs.unusual import change  # noqa: E402


@pytest.fixture(autouse=True)
def afresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def same(function, *given, dynamic=True):
    """Both ways, on inputs of their own."""
    theirs, ours = ([x.clone() if isinstance(x, torch.Tensor) else x for x in given] for _ in range(2))
    wanted = function(*theirs)
    made = torch.compile(function, backend=pyarray, dynamic=dynamic)(*ours)
    equal(made, wanted)
    equal(ours, theirs)


def equal(made, wanted):
    if isinstance(wanted, torch.Tensor):
        assert (made.dtype, made.layout, made.requires_grad) == (
            wanted.dtype, wanted.layout, wanted.requires_grad,
        )  # fmt: skip
        if wanted.layout == torch.strided and not wanted.is_quantized and not wanted.is_nested:
            assert made.stride() == wanted.stride()
        made, wanted = (x.detach().to_dense() if x.layout != torch.strided else x.detach() for x in (made, wanted))
        torch.testing.assert_close(made, wanted, equal_nan=True)
    elif isinstance(wanted, (list, tuple)):
        for a, b in zip(made, wanted, strict=True):
            equal(a, b)
    else:
        assert made == wanted


@pytest.mark.slow
def test_drawn_graphs_are_eager_torchs():
    report = check(6, seed=2024, dynamo=0.0)
    assert report.graphs == 6
    assert report.calls >= 6
    assert not report.differences, "\n".join(report.differences)


@pytest.mark.slow
def test_a_drawn_graph_through_dynamo():
    report = check(1, seed=3, dynamo=1.0)
    assert report.calls >= 1
    assert not report.differences, "\n".join(report.differences)


def test_inputs_whose_elements_share_memory_are_drawn_unchanged():
    sizes = dict(zip(SYMBOLS, (4, 5, 6, 7), strict=True))
    for seed in range(300):
        d = Drawing(random.Random(seed), sizes)
        d.input()
        if d.inputs[0].layout == "expanded":
            change(d)
            assert not d.steps


@pytest.mark.parametrize(
    "op", [torch.ge, torch.lt, torch.eq, torch.clamp_min, torch.clamp_max, torch.add, torch.bitwise_and]
)
@pytest.mark.parametrize(("dtype", "number"), [(torch.uint8, -2), (torch.int8, 300), (torch.uint8, 256)])
def test_numbers_out_of_a_dtypes_range(op, dtype, number):
    x = torch.arange(7, dtype=dtype)
    try:
        op(x, number)
    except RuntimeError:
        return  # torch refuses it, too
    same(lambda x: (op(x, number), x * 2), x)


@pytest.mark.parametrize("given", [(), (-0.5,), (-0.5, 1.0), (-1.0, 0.5)])
def test_arguments_with_their_default(given):
    same(lambda x: (torch.nn.functional.hardtanh(x, *given), x + 1), torch.randn(40) * 2)


def test_any_of_bytes_is_a_byte():
    same(lambda x: -torch.any(x, 0), torch.tensor([[0, 3], [0, 0]], dtype=torch.uint8))


def test_the_sign_of_nan():
    same(lambda x: torch.sign(x) + 1, torch.tensor([float("nan"), -0.0, 0.0, 2, -float("inf")]))


@pytest.mark.slow
def test_the_mean_of_var_mean_is_nan_where_infinities_are():
    inf = float("inf")
    x = torch.tensor([[1.0, inf, 3.0], [inf, -inf, 2.0], [inf, 1.0, 2.0], [1.0, 2.0, 6.0]])
    same(lambda x: (*torch.var_mean(x, 1), *torch.var_mean(x, 0), torch.std(x, 1)), x)
    same(lambda x: torch.var_mean(x, 1, correction=0), torch.tensor([[inf], [2.0]]))


def test_numbers_before_tensors_and_the_nan_of_fmax():
    x, y = torch.tensor([1.5, float("nan"), 3, -2, 0]), torch.tensor([float("nan"), 2, -1, 4, 0])
    k = torch.arange(5)

    def function(x, y, k):
        made = 2**x, torch.remainder(3.0, x), torch.fmax(x, y), torch.fmin(x, y)
        return *made, +x, torch.true_divide(k, 3), 5 & k

    same(function, x, y, k)
    assert not explain(function, x, y, k).eager


def test_rows_of_one_element_beside_what_is_stored_of_each():
    def function(x):
        y = torch.ne(x, -0.5).to(torch.int32).unsqueeze(-1) / -2
        return torch.gt(y, 1.0), torch.log_softmax(y, 0), y.round()

    same(function, torch.tensor(2.0, dtype=torch.float64))


@pytest.mark.slow
def test_a_kernel_that_an_earlier_node_of_it_keeps_from_a_later_one():
    # `a` and `a * m` are one kernel, so r * w can't be one with b * r, which needs `a`.
    def function(x, y, z, v, w):
        a = torch.where(x <= 0, 0.0, z)
        total, b = a.sum(0), (a * (y - 1)).sum(0)
        r = (v + 1e-3).rsqrt()
        m = r * w
        return a * m, b * r, total

    same(function, *(torch.randn(4, 3) for _ in range(3)), torch.rand(3), torch.rand(3))


def test_a_product_that_adds_what_a_reshape_cut():
    def function(x):
        y = torch.tanh(x).reshape(x.shape[0] * x.shape[2], x.shape[1])
        return torch.addmm(y, y @ y.t(), y, alpha=0.5)

    same(function, torch.randn(5, 4, 6).transpose(0, 1))


@pytest.mark.slow
def test_indices_that_count_from_the_end():
    def function(x, m):
        near, far = x.shape[0] - m.shape[0], m.shape[0] - x.shape[0]
        return x[near:] + 1, x[far] * 2, x[-2] * 3, x[-2:-1] + 1, x[-3::2] * x[-1]

    compiled = torch.compile(function, backend=pyarray, dynamic=True)
    for n, m in ((9, 4), (7, 3), (4, 7), (5, 8), (12, 11)):
        x, y = torch.arange(float(n)), torch.zeros(m)
        equal(compiled(x, y), function(x, y))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128, torch.complex32])
def test_complex(dtype):
    x = torch.randn(5, 4).to(dtype)
    same(lambda x: (x + x.conj(), x.real * 2, x.abs() if dtype != torch.complex32 else x.imag + 1), x)


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.float8_e4m3fn, torch.float8_e5m2])
def test_dtypes_of_no_row(dtype):
    x = torch.arange(6).to(dtype)
    same(lambda x: (x.float() * 2, x.view(2, 3).to(torch.int32) + 1), x)


def test_sparse():
    x = torch.eye(5).to_sparse()
    same(lambda y: torch.sparse.mm(x, y * 2) + 1, torch.randn(5, 3))


def test_quantised():
    x = torch.quantize_per_tensor(torch.randn(8), 0.1, 0, torch.qint8)
    compiled = torch.compile(lambda x: x.dequantize() * 2 + 1, backend=pyarray)
    equal(compiled(x), x.dequantize() * 2 + 1)


def test_nested():
    x = torch.nested.nested_tensor([torch.randn(3, 2), torch.randn(5, 2)], layout=torch.jagged)
    compiled = torch.compile(lambda x: (x * 2 + 1).values(), backend=pyarray)
    equal(compiled(x), (x * 2 + 1).values())


def test_a_tensor_with_the_negative_bit():
    x = torch.randn(4, 3, dtype=torch.complex64)
    negative = x.conj().imag
    assert negative.is_neg()
    compiled = torch.compile(lambda x: (x * 2, x.sum(0), x + 1), backend=pyarray)
    equal(compiled(negative), (negative * 2, negative.sum(0), negative + 1))


@pytest.mark.slow
def test_gradients_with_the_negative_or_conjugate_bit():
    """Kernels read memory; whether a gradient comes negated isn't known when they are compiled."""
    x = torch.randn(4, 3)
    z = torch.complex(x, x + 1)
    for function, given, tangents in (
        (lambda x: (x * 2 + 1).sin(), x, (x, torch._neg_view(x), z.conj().imag)),
        (lambda z: torch.view_as_real(z * 2).sin()[..., 1], z, (x, torch._neg_view(x))),
        (lambda z: z * 2, z, (z, z.conj(), torch._neg_view(z), torch._neg_view(z).conj())),
    ):
        compiled = torch.compile(function, backend=pyarray, dynamic=True)
        given = given.clone().requires_grad_()
        for tangent in tangents:
            found, wanted = (torch.autograd.grad(f(given), given, tangent)[0] for f in (compiled, function))
            torch.testing.assert_close(found, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("trained", [False, True])
def test_results_with_the_negative_or_conjugate_bit(trained):
    def function(z):
        negative = torch._neg_view(torch.view_as_real(z * 2))
        conjugate = (z + 1).conj()
        return (
            negative.select(-1, 1), negative.select(-1, 0) + 1, negative.flatten(), negative[1:].mT, conjugate.T,
            conjugate.reshape(2, -1), conjugate * 2, torch._neg_view(conjugate).unsqueeze(0), z.conj()[1:],
        )  # fmt: skip

    compiled = torch.compile(function, backend=pyarray, dynamic=True)
    for n in (4, 6):
        z = torch.randn(n, 3, dtype=torch.complex64).requires_grad_(trained)
        found, wanted = compiled(z), function(z)
        torch.testing.assert_close(found, wanted)
        if trained:
            totals = (sum((x.abs() ** 2).sum() for x in results) for results in (found, wanted))
            torch.testing.assert_close(*(torch.autograd.grad(total, z)[0] for total in totals))


@pytest.mark.slow
def test_sizes_that_depend_on_data():
    same(lambda x: (x.nonzero() + 1, x[x > 0] * 2, (x > 0).sum() + 1), torch.randn(4, 5))
    same(lambda x: torch.unique(x * 2) + 1, torch.tensor([1.0, 2, 2, 3]))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.nonzero() + 1, (x.nonzero() * 2).sum(0), x[x > 0] * 2),
        lambda x: x * x.sum().item() + x.max().item(),
        lambda x: ((x * x.max().to(torch.int64).item())[:, None] + x).sum(1),
        lambda x: torch.zeros(int(x.abs().max().item()) + 2) + 1,
        lambda x: torch.arange(x.nonzero().shape[0]) * 2 + x.nonzero().shape[0],
        lambda x: x + x.abs().max().to(torch.int64).item() // 2,
        lambda x: (x * 2)[x.abs().max().to(torch.int64).item() // 8 :] + 1,
    ],
)
def test_numbers_that_depend_on_data_inside_a_graph(function):
    config = torch._dynamo.config
    with config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(function, backend=pyarray, dynamic=True, fullgraph=True)
        for shape in ((5, 4), (6, 7)):
            x = torch.arange(-3.0, shape[0] * shape[1] - 3).reshape(shape) % 6 - 2
            equal(compiled(x), function(x))


@pytest.mark.slow
def test_aliasing_inputs():
    def function(x, y):
        y.mul_(2)
        return x + 1, y.sum()

    compiled = torch.compile(function, backend=pyarray, dynamic=True)
    for a, b in ((slice(None), slice(None)), (slice(0, 6), slice(3, 9)), (slice(0, 4), slice(4, 8))):
        ours, theirs = torch.arange(9.0), torch.arange(9.0)
        equal(compiled(ours[a], ours[b]), function(theirs[a], theirs[b]))
        equal(ours, theirs)


def test_inputs_that_need_gradients_in_inference_mode():
    x = torch.randn(4, 3, requires_grad=True)
    compiled = torch.compile(lambda x: (x * 2).softmax(-1), backend=pyarray)
    with torch.inference_mode():
        equal(compiled(x), (x * 2).softmax(-1))
    with torch.no_grad():
        equal(compiled(x), (x * 2).softmax(-1))
    compiled(x).sum().backward()
    assert x.grad is not None


@pytest.mark.slow
def test_inputs_that_are_changed():
    def function(x, y):
        x.add_(y)
        y[1:] = x[:-1] * 2
        x.t_()
        return x + 1, x

    same(function, torch.randn(4, 4), torch.randn(4, 4))
    same(lambda x: (x.zero_(), x.view(-1)[::2].fill_(3), x * 2)[2], torch.randn(3, 4))


def test_outputs_that_are_not_contiguous():
    same(
        lambda x: ((x * 2).t(), (x + 1)[:, ::2], (x * 3).expand(2, *x.shape), x.t(), x, x.flip(1) - 1),
        torch.randn(4, 6).t(),
    )


def test_no_elements_and_no_axes():
    for shape in ((0,), (0, 3), (3, 0), ()):
        same(lambda x: (x * 2 + 1, x.sum(), (x > 0).all(), x.exp().prod()), torch.randn(shape))


def test_meta_tensors():
    compiled = torch.compile(lambda x: x * 2 + 1, backend=pyarray)
    made = compiled(torch.empty(3, 4, device="meta"))
    assert made.shape == (3, 4)
    assert made.device.type == "meta"


@pytest.mark.slow
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1), (0, 2, 1)])
def test_results_of_norms_have_eagers_strides(order):
    """A view of them is possible where eager's is."""
    x = torch.randn(4, 5, 6).permute(order)
    functional, width = torch.nn.functional, x.shape[-1]
    same(lambda x: functional.layer_norm(x, (width,)).view(-1), x)
    same(lambda x: functional.group_norm(x, 1).view(-1), x)
    same(lambda x: functional.softmax(x, 1) - functional.log_softmax(x, 0), x)


def test_the_comparison_knows_that_gradients_cancel():
    """Each group has one element, so its gradient is 0; eager torch's is what rounding leaves."""

    def norm(x):
        return torch.nn.functional.group_norm(torch.cat([x, x], 1), 2, eps=0.1)

    given = Input((("a",), ()), torch.float64, "plain", (0, 1), 1, False)
    graph = Graph([given], [Step("norm", lambda s, x: norm(x), [0], True)], [1], {"a": (0, 0)})

    def reported(slope):
        return gradients(graph, {"a": 40}, lambda x: [norm(x)], lambda x: [x * slope], "cpu")

    assert not reported(0)
    assert reported(1e-12)
    assert reported(math.inf)


@pytest.mark.slow
def test_a_changed_row_keeps_the_strides():
    x, row = torch.randn(4, 5, 6).permute(2, 0, 1), torch.randn(6, 5)
    for k in (1, -1):
        same(lambda x, row, k=k: (x * 2).select_scatter(row, 1, k).permute(1, 2, 0).view(-1), x, row)


def test_a_product_with_a_zero_is_eagers():
    """Its later part alone is infinite."""
    x = torch.full((6000, 3), 1.5)
    x[0] = 0
    same(lambda x: (x * 1.0).prod(0), x)


def reported(graph, sizes, made):
    return difference(graph, sizes, graph.run(graph.made(sizes, "cpu")), made, "cpu")


def test_the_comparison_knows_how_many_terms_a_softmax_adds():
    given = Input((("a",),), torch.float64, "plain", (0,), 1, False)
    step = Step("log_softmax", lambda s, x: torch.log_softmax(x, 0), [0], True, along=(0,))
    graph, sizes = Graph([given], [step], [1], {"a": (0, 0)}), {"a": 50000}
    (x,) = graph.made(sizes, "cpu")
    exact = x - math.log(math.fsum(x.exp().tolist()))
    assert not reported(graph, sizes, [exact])
    assert not reported(graph, sizes, [exact * (1 + 4e-15)])
    assert reported(graph, sizes, [exact * (1 + 1e-12)])


def test_the_comparison_knows_what_may_be_0():
    """The rest of a difference of equal numbers, divided by itself."""
    given = Input((("a",),), torch.float64, "plain", (0,), 1, False)
    steps = [
        Step("centred", lambda s, x: torch.where(x == 0, 1e-17, x), [0], True),
        Step("div", lambda s, x: x / x, [1], False),
    ]
    graph, sizes = Graph([given], steps, [2], {"a": (0, 0)}), {"a": 99}
    (x,) = graph.made(sizes, "cpu")
    made = torch.where(x == 0, math.nan, torch.ones_like(x))
    assert made.isnan().any()
    assert not reported(graph, sizes, [made])
    assert reported(graph, sizes, [torch.full_like(made, math.nan)])


def test_the_comparison_moves_negative_numbers_too():
    given = Input((("a",),), torch.float32, "plain", (0,), 1, False)
    steps = [
        Step("-1", lambda s, x: torch.full_like(x, -1), [0], False),
        Step("tan", lambda s, x: torch.tan(x), [1], True),
        Step("tan", lambda s, x: torch.tan(x), [2], True),
    ]
    graph, sizes = Graph([given], steps, [3], {"a": (0, 0)}), {"a": 99}
    once = torch.tan(torch.full((99,), -1.0))
    beside = torch.tan(torch.nextafter(once, torch.zeros(())))
    assert not reported(graph, sizes, [beside])
    assert reported(graph, sizes, [beside * 1.001])


def test_the_comparison_knows_that_a_product_and_a_sum_may_be_rounded_once():
    given = Input((("a",),), torch.float32, "plain", (0,), 1, False)
    steps = [
        Step("large", lambda s, x: torch.where(torch.arange(x.shape[0]) == 0, 2.0**63, 0), [0], False),
        Step("aten::add [_, _; {'alpha': 3}]", lambda s, x: torch.where(x == 0, 1, -(2.0**38)), [1], True),
    ]
    graph, sizes = Graph([given], steps, [2], {"a": (0, 0)}), {"a": 9999}
    made = torch.ones(9999)
    made[0] = 0
    assert not reported(graph, sizes, [made])
    assert reported(graph, sizes, [made * 2.0**50])


def test_the_comparison_knows_that_a_function_of_whole_numbers_cancels():
    """1 + erf(-1.4), which eager torch itself rounds in two ways."""
    given = Input((("a",),), torch.int64, "plain", (0,), 1, False)
    gelu = torch.nn.functional.gelu
    step = Step("gelu", lambda s, x: gelu(x.clamp(-2, -1).float()), [0], True)
    graph, sizes = Graph([given], [step], [1], {"a": (0, 0)}), {"a": 99}
    exact = gelu(graph.made(sizes, "cpu")[0].clamp(-2, -1).double())
    assert not reported(graph, sizes, [(exact + 4e-7).float()])
    assert reported(graph, sizes, [(exact + 1e-4).float()])
