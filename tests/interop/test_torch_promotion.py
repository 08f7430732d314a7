"""Operands of several dtypes in compiled graphs are rounded where eager torch rounds them."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

_NAMES = (
    "add",
    "sub",
    "mul",
    "true_divide",
    "maximum",
    "eq",
    "ne",
    "lt",
    "ge",
    "remainder",
    "fmod",
    "copysign",
)
FUNCTIONS = {name: getattr(torch, name) for name in (*_NAMES, "logical_and", "logical_or", "logical_xor")}
FUNCTIONS |= {
    "floor_divide": torch.floor_divide,
    "div, floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div, trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
}
SWAPPED = {f"{name}, swapped": lambda x, y, f=f: f(y, x) for name, f in FUNCTIONS.items()}
NUMBERS = (357.77, 0.1, 70000.0, 1e-9, 5003, -3.3333, True)
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def elements(dtype, device, *more):
    made = torch.Generator().manual_seed(1)
    x = torch.cat([torch.rand(200, generator=made) * 1000 + 1, torch.randn(200, generator=made)])
    return torch.cat([x, torch.tensor([*more, 0.0, -0.0])]).to(dtype).to(device)


def check(functions, *operands):
    """All functions that torch has for the operands, in one graph, against each alone."""
    wanted = {}
    for name, function in functions.items():
        try:
            wanted[name] = function(*operands)
        except (TypeError, RuntimeError):
            continue  # of a number on the left, for one

    def together(*given):
        return [functions[name](*given) for name in wanted]

    assert len(wanted) >= 10
    torch._dynamo.reset()
    compiled = torch.compile(together, backend="pyarray", dynamic=False)
    for (name, want), got in zip(wanted.items(), compiled(*operands), strict=True):
        assert want.dtype == got.dtype, name
        wrong = (~((want == got) | (torch.isnan(want) & torch.isnan(got)))).nonzero().flatten()
        assert not wrong.numel(), (name, operands, want[wrong][:4], got[wrong][:4])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.slow
def test_numbers(dtype, device):
    for number in NUMBERS:
        check(FUNCTIONS, elements(getattr(torch, dtype), device, number), number)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("other", ["int16", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_operands_without_dimensions(dtype, other, device):
    for number in (357.77, 70000.0, 5003):
        y = torch.tensor(number, dtype=torch.float64).to(getattr(torch, other)).to(device)
        check(FUNCTIONS | SWAPPED, elements(getattr(torch, dtype), device, number), y)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("other", ["int16", "int32", "int64"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_integers(dtype, other, device):
    x = elements(getattr(torch, dtype), device)
    y = torch.arange(x.numel(), device=device) * 37 - 5003
    check(FUNCTIONS | SWAPPED, x, y.to(getattr(torch, other)))


@pytest.mark.parametrize("device", DEVICES)
def test_larger_integers_without_dimensions(device):
    # 2 ** 16 is 0 as an int16, which is what torch computes in
    x = torch.arange(-3, 4, dtype=torch.int16, device=device)
    check(FUNCTIONS | SWAPPED, x, torch.tensor(1 << 16, dtype=torch.int32, device=device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_quotients_rounded_to_whole_numbers(dtype, device):
    """Eager torch rounds each step of theirs to halves."""
    made = torch.Generator().manual_seed(2)
    a, b = (torch.randn(5000, generator=made).mul(scale).to(dtype).to(device) for scale in (30, 3))
    for mode in ("floor", "trunc"):
        compiled = torch.compile(lambda x, y, mode=mode: torch.div(x, y, rounding_mode=mode) + 1, backend="pyarray")
        assert torch.equal(compiled(a, b), torch.div(a, b, rounding_mode=mode) + 1), mode
    compiled = torch.compile(lambda x, y: (x // y, x % y), backend="pyarray")
    for got, want in zip(compiled(a, b), (a // b, a % b), strict=True):
        assert torch.equal(got, want)
