"""Signs of zeros in compiled graphs: eager torch's."""

import itertools

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

VALUES = [-float("inf"), -3.0, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, float("inf")]

_ONE = (
    "ceil",
    "floor",
    "trunc",
    "round",
    "sign",
    "abs",
    "neg",
    "positive",
    "sqrt",
    "reciprocal",
    "relu",
    "square",
)
_TWO = ("add", "sub", "mul", "div", "remainder", "fmod", "copysign")  # of maxima either zero is right

UNARY = {name: getattr(torch, name) for name in _ONE} | {
    "remainder": lambda x: torch.remainder(x, 2.0),
    "remainder by -2": lambda x: torch.remainder(x, -2.0),
    "remainder of 2": lambda x: torch.remainder(2.0, x),
    "fmod": lambda x: torch.fmod(x, 2.0),
    "floor_divide": lambda x: torch.div(x, 2.0, rounding_mode="floor"),
    "trunc_divide": lambda x: torch.div(x, 2.0, rounding_mode="trunc"),
}
BINARY = {name: getattr(torch, name) for name in _TWO} | {
    "floor_divide": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
}
TYPES = ["float16", "bfloat16", "float32", "float64"]


def check(functions, *operands):
    """All of them in one graph."""

    def together(*given):
        return [function(*given) for function in functions.values()]

    compiled = torch.compile(together, backend="pyarray", dynamic=False)
    for name, want, got in zip(functions, together(*operands), compiled(*operands), strict=True):
        # the last digit of a root is the library's that torch was built with
        same = torch.isclose(want, got, rtol=4 * torch.finfo(want.dtype).eps, atol=0) & (
            torch.signbit(want) == torch.signbit(got)
        )
        wrong = (~(same | (torch.isnan(want) & torch.isnan(got)))).nonzero().flatten()
        assert not wrong.numel(), (name, [x[wrong] for x in operands], want[wrong], got[wrong])


@pytest.mark.parametrize("dtype", TYPES)
def test_of_one_operand(dtype):
    check(UNARY, torch.tensor(VALUES * 3, dtype=getattr(torch, dtype)))


@pytest.mark.parametrize("dtype", TYPES)
def test_of_two_operands(dtype):
    pairs = torch.tensor(list(itertools.product(VALUES, VALUES)), dtype=getattr(torch, dtype))
    check(BINARY, pairs[:, 0].contiguous(), pairs[:, 1].contiguous())
