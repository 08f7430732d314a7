"""Kernels as operators of torch: schemas, results, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa

torch = pytest.importorskip("torch")
from torch_ops import (  # noqa: E402
    F32,
    add_masked,
    affine,
    affine_0d,
    affine_2d,
    both,
    dot,
    scale,
    scale_backward,
    scale_into,
    scaled,
    split,
    tripled,
)

from pyarray.torch import op_calls  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


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


DTYPES = [torch.float32, torch.bfloat16, torch.int32, torch.complex64]
NAMES = {0: affine_0d, 1: affine, 2: affine_2d}
EXAMPLES = {n: (torch.ones((1,) * n), torch.ones((1,) * n), 1, 1) for n in NAMES}
AFFINE = {n: pa.torch.op(k, f"tests::affine_{n}", args=EXAMPLES[n]) for n, k in NAMES.items()}
NEW_AFFINE = {n: pa.torch.op(k, f"tests::new_affine_{n}", args=EXAMPLES[n], out={"y": "x"}) for n, k in NAMES.items()}


@given(st.data())
@examples(30)
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
        (
            lambda: NEW_AFFINE[1](torch.ones(2).to(torch.complex32), 1, 1),
            ValueError,
            "'y' is a Tensor that can't be used",
        ),
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


@pa.kernel
def one_name(self: pa.ndarray[F32, 1], input: pa.ndarray[F32, 1]):
    for i in range(self.size):
        self[i] = input[i]


REFUSED = [
    ((one_name, "tests::a"), {}, TypeError, "'self' and 'input' are one name to torch's inductor"),
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


def test_functions_that_make_no_new_tensor_are_told():
    made = pa.torch.op(scale, "tests::no_result", out={"y": lambda x, factor: np.empty(3)})
    with pytest.raises(TypeError, match="the function in out for 'y' gives a new tensor, got ndarray"):
        made(torch.ones(3), 1.0)
    made = pa.torch.op(scale, "tests::no_result", out={"y": lambda x, factor: x[:2]})
    x = torch.ones(3)
    with pytest.raises(ValueError, match="and this is the memory of an argument; copy it"):
        made(x, 2.0)
    assert x.tolist() == [1, 1, 1]


# ---- streams


def test_kernels_run_in_torchs_current_stream(monkeypatch):
    """The device without memory stands for a GPU, whose streams are entered and left."""
    device, seen = pa.get_device("null"), []
    driver = device.driver
    monkeypatch.setattr(driver, "enter_stream", lambda stream: seen.append(("in", stream)))
    monkeypatch.setattr(driver, "leave_stream", lambda stream, before: seen.append(("out", stream)))

    class OnGpu(torch.Tensor):
        is_cuda = True

        def get_device(self):
            return 5

    monkeypatch.setitem(op_calls._devices, 5, device)
    run = op_calls.in_torch_stream(lambda *args: seen.append("run"))
    for handle in (driver.current_stream(), 77):
        monkeypatch.setattr(op_calls, "_torch_stream", lambda index, h=handle: h if index == 5 else None)
        run(torch.ones(2), torch.ones(2).as_subclass(OnGpu), 3)
    assert seen == ["run", ("in", 77), "run", ("out", 77)]
