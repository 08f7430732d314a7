"""What a compiled graph calls and stores."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
import sympy
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils._sympy.printers import PythonPrinter  # noqa: E402

from pyarray.torch.backend import compile_graph, observing_backend  # noqa: E402
from pyarray.torch.index import Digits, reshaped  # noqa: E402
from pyarray.torch.sizes import expressions  # noqa: E402


@pytest.fixture(autouse=True)
def afresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function):
    programs = []
    return torch.compile(function, backend=observing_backend(programs.append), dynamic=True), programs


def test_cheap_nodes_are_computed_anew():
    """A node that two kernels need is stored by neither."""

    def function(a, b):
        kept = torch.where(a > 0, a, 0.0)
        return kept.sum(1), (kept * b).sum(0)

    ours, programs = compiled(function)
    for n in (6, 3):
        a, b = torch.randn(2, n, 9)
        torch.testing.assert_close(ours(a, b), function(a, b))
    assert len(programs[0].kernels) == 2
    assert [len(k.text.outputs) for k in programs[0].kernels.values()] == [1, 1]


def test_a_chain_of_views_is_one_call():
    def function(x):
        return torch.sort(x.view(x.shape[0], 4, 2).transpose(1, 2)[..., 1:].unsqueeze(0)).values

    ours, programs = compiled(function)
    for x in (torch.randn(5, 8), torch.randn(7, 9)[1:, 1:].contiguous(), torch.randn(1, 8)):
        torch.testing.assert_close(ours(x), function(x))
    assert programs[0].text.count("reinterpret_tensor(") == 1


@pytest.mark.slow
def test_parts_of_a_split_view_are_read_by_kernels():
    """The split itself runs nowhere: neither may what it splits be a view that only it would make."""

    def function(x):
        first, rest = x.pow(2)[..., 0].split([1, x.shape[0] - 1])
        return torch.bmm(rest, rest.transpose(1, 2)).relu(), first

    ours, _ = compiled(function)
    for n in (4, 6):
        x = torch.randn(n, 3, 5, 2)
        torch.testing.assert_close(ours(x), function(x))


def test_part_of_axes_that_were_merged():
    """The loop over the part is shorter than the axis, so it isn't the product of the merged ones."""

    def function(x):
        flat = x.sigmoid().reshape(-1)[:-2]
        return flat > flat.new_full((), 0.5)

    ours, _ = compiled(function)
    for shape in ((2, 3, 4), (4, 3, 5)):
        x = torch.randn(shape).transpose(0, 1)
        torch.testing.assert_close(ours(x), function(x))


@st.composite
def shapes_of_one_size(draw):
    """Two to four shapes with the same number of elements."""
    factors = draw(st.lists(st.sampled_from([2, 3, 4]), max_size=4))
    shapes = []
    for _ in range(draw(st.integers(2, 4))):
        edges = sorted(draw(st.lists(st.integers(0, len(factors)), max_size=3)))
        parts = np.split(np.array(draw(st.permutations(factors)), int), edges)
        shapes.append(tuple(int(part.prod()) for part in parts))
    return shapes


@given(shapes=shapes_of_one_size())
@example(shapes=[(4, 6), (8, 3)])
@examples(60)
def test_an_index_through_reshapes_is_that_of_the_same_element(shapes):
    """Addresses alone don't show it: an index too large on one axis may be the address of the right element."""
    digits = Digits()
    indices = [tuple(digits.add(n) for n in expressions(shapes[0]))]
    for before, after in itertools.pairwise(shapes):
        indices.append(reshaped(digits, indices[-1], expressions(before), expressions(after)))
    indices = [digits.current(index) for index in indices]
    written = ", ".join(f"({''.join(f'{PythonPrinter().doprint(x)}, ' for x in index)})" for index in indices)
    computed = eval(f"lambda {', '.join(map(str, digits.sizes))}: [{written}]")  # `subs` takes much longer
    for values in np.ndindex(*map(int, digits.sizes.values())):
        found = [tuple(map(int, index)) for index in computed(*values)]
        elements = {int(np.ravel_multi_index(f, shape)) for f, shape in zip(found, shapes, strict=True)}
        assert len(elements) == 1


def test_a_digit_that_was_made_anew_is_the_same():
    """sympy keeps a part of its symbols: an equal one needn't be the same object."""
    digits = Digits()
    whole = digits.add(expressions((6,))[0])
    sympy.core.cache.clear_cache()
    again = sympy.Symbol(whole.name, integer=True, nonnegative=True)
    assert again is not whole
    digits.split(again, expressions((2,))[0])
    assert [int(n) for n in digits.sizes.values()] == [3, 2]
    assert not digits.current((whole,))[0].free_symbols & digits.replaced.keys()


@pytest.mark.slow
def test_changed_inputs_are_stored_by_the_kernel():
    def function(x, seen, n):
        seen.add_(x.sum(0))
        n += 1
        return x * 2

    def again(x, seen, n):
        old = seen * 3
        seen.copy_(x.sum(0))
        return x.T @ old[:, None].expand(-1, 4)[: x.shape[0]] + n

    def returned(x, seen, n):
        new = seen.mul_(2)
        return (new[-2:] + n)[::2], new

    for f, copies in ((function, 0), (again, None), (returned, 0)):
        ours, programs = compiled(f)
        for n in (4, 6):
            x, seen, count = torch.randn(n, n), torch.randn(n), torch.tensor(3)
            mine, its = (seen.clone(), count.clone()), (seen.clone(), count.clone())
            torch.testing.assert_close(ours(x, *mine), f(x, *its))
            torch.testing.assert_close(mine, its)
        if copies is not None:
            assert sum(str(node.target).startswith("aten.copy_") for node in programs[0].eager) == copies


@pytest.mark.slow
def test_axes_whose_sizes_may_be_0_merge():
    """The strides of a convolution's result are products of `max(1, n)`."""

    def function(x, w):
        return torch.conv2d(x, w).relu() + 1

    ours, programs = compiled(function)
    w = torch.randn(2, 3, 3, 3)
    for n in (6, 5):
        x = torch.randn(2, 3, n, n)
        torch.testing.assert_close(ours(x, w), function(x, w))
    (kernel,) = programs[0].kernels.values()
    assert len(kernel.text.loops) == 1
    tuples = re.findall(r"_n\d+ = (\(.*\))", programs[0].text)
    assert tuples
    assert all(programs[0].text.count(sizes) == 1 for sizes in tuples)


@pytest.mark.slow
def test_windows_of_a_pool_are_written_out():
    def function(x):
        return torch.nn.functional.max_pool2d(x * 2, (2, 3), (2, 1), return_indices=True)

    ours, programs = compiled(function)
    for shape in ((2, 3, 7, 8), (1, 3, 4, 5)):
        x = torch.randn(shape)
        x[0, 0, :2, 0], x[0, 1] = float("nan"), float("-inf")
        for found, wanted in zip(ours(x), function(x), strict=True):
            torch.testing.assert_close(found, wanted, equal_nan=True)
    assert not programs[0].eager


def test_columns_are_summed_where_their_elements_are_stored():
    def function(x, y):
        kept = torch.where(y > 0, x, 0.0)
        return kept, kept.sum(0), kept.sum(0) * 2

    ours, programs = compiled(function)
    for n, m in ((6, 9), (2100, 3), (5, 1100)):
        x, y = torch.randn(2, n, m)
        torch.testing.assert_close(ours(x, y), function(x, y), rtol=1e-5, atol=1e-3)
    first, *_ = programs[0].kernels.values()
    assert first.text.schedule == "columns"
    assert len(first.text.outputs) >= 2


@pytest.mark.parametrize("shape", [(1, -1), (-1, 1)])
def test_columns_are_neither_rows_of_one_element_nor_one_column(shape):
    def function(x):
        return (x > 0).view(shape).any(0)

    ours, programs = compiled(function)
    for n in (6, 9):
        x = torch.randn(n)
        assert torch.equal(ours(x), function(x))
    assert "columns" not in [k.text.schedule for k in programs[0].kernels.values()]


@pytest.mark.slow
def test_results_take_the_memory_of_dead_operands():
    def function(x, w):
        y = torch.sort(x @ w).values @ w  # a product that a kernel reads last
        z = x @ w.T
        return torch.softmax(y.relu() + 1, -1), z, z.T + z

    ours, programs = compiled(function)
    for n in (40, 64):
        x, w = torch.randn(2, n, n)
        torch.testing.assert_close(ours(x, w), function(x, w))
    assert ".data_ptr()" in programs[0].text


def test_exponentials_are_kept_where_the_result_will_be():
    """But not in the memory of an operand that is read once more."""

    def function(x, w):
        return torch.softmax(x @ w, -1) * 3

    def again(x, w):
        y = x @ w
        return torch.softmax(y, -1) * y

    for f in (function, again):
        ours, programs = compiled(f)
        for n in (40, 33):
            x, w = torch.randn(2, n, n)
            torch.testing.assert_close(ours(x, w), f(x, w))
        kernels = [k.text for k in programs[0].kernels.values() if k.text.schedule == "rows"]
        assert all(text.text.count("exp(") == 1 for text in kernels)
        assert all(text.early is (f is again) for text in kernels)


def test_what_is_broadcast_to_many_is_computed_once():
    def function(x):
        places = torch.arange(x.shape[1])[:, None] * torch.arange(x.shape[2])
        return x * places.float().cos()

    ours, programs = compiled(function)
    for n in (6, 3):
        x = torch.randn(8, n, 9)
        torch.testing.assert_close(ours(x), function(x))
    assert sum("cos(" in k.text.text for k in programs[0].kernels.values()) == 1
    assert len(programs[0].kernels) == 2


@torch.library.custom_op("pyarray_tests::numbered", mutates_args=())
def numbered(x: torch.Tensor) -> torch.Tensor:
    return x + torch.arange(x.numel()).reshape(x.shape)


@numbered.register_fake
def _(x):  # as some of torch's own operators do with an expanded operand
    return x.new_empty_strided(x.shape, (0, *x.stride()[1:]))


def test_results_of_operators_have_all_their_elements():
    def function(x):
        y = numbered(x)
        return y * 2, y.t()[1:], y.diagonal() + 1

    ours, _ = compiled(function)
    for n in (6, 3):
        x = torch.randn(4, n)
        for found, wanted in zip(ours(x), function(x), strict=True):
            assert torch.equal(found, wanted)
            assert found.stride() == wanted.stride()


@pytest.mark.slow
def test_graphs_of_more_nodes_than_python_has_frames():
    """Here the cosines' reader stands behind them all."""

    def function(x):
        for _ in range(1100):
            x = torch.mm(x, x)
        return x * torch.arange(x.shape[1]).cos()

    x = torch.eye(4)
    module = make_fx(function, tracing_mode="fake")(x)
    (given,) = module.graph.find_nodes(op="placeholder")
    found = compile_graph(module, [given.meta["val"]])([x])
    torch.testing.assert_close(found, function(x))


@pytest.mark.slow
def test_operands_of_concatenations_are_stored_where_they_belong():
    """Where kernels compute all of them and nobody else reads them; each is a part of the result's memory."""

    def function(x, y):
        row = (x.exp() - y).sum(1, keepdim=True)
        both = torch.cat([x * 2 + y, row, torch.relu(y)], 1)
        turned = torch.cat([(x - y).t().cos(), (x + y).t().sin()], -1)
        return both * 3, turned, torch.cat([row.sum(0), both.sum(0)])

    ours, programs = compiled(function)
    for shape in ((5, 7), (9, 7), (1, 7), (2, 3), (0, 7)):
        x, y = torch.randn(2, *shape)
        for found, wanted in zip(ours(x, y), function(x, y), strict=True):
            torch.testing.assert_close(found, wanted)
    called = [str(node.target) for node in programs[0].eager]
    assert called == ["aten.cat.default"], programs[0].text  # the second, of views of what kernels compute


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (torch.cat([x + 1, x * 2]), x + 1),
        lambda x: torch.cat([x + 1, x]),
        lambda x: torch.cat([y := x + 1, y]),
        lambda x: torch.cat([(x + 1).int(), x * 2]),
        lambda x: torch.cat([x + 1, x * 2]).add_(1),
        lambda x: torch.cat([torch.ones_like(x), x * 2]).relu(),
    ],
    ids=["returned", "an input", "twice", "types", "changed", "constants"],
)
def test_other_concatenations(function):
    ours, _ = compiled(function)
    for n in (5, 3, 1):
        x = torch.randn(n, 3)
        torch.testing.assert_close(ours(x), function(x))
