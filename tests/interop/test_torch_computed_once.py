"""Functions that aren't rounded correctly: on CPUs their vector and scalar forms have other last bits, so a value that
is needed twice must have been computed once."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pyarray.torch.backend import pyarray as backend  # noqa: E402

FUNCTIONS = {
    "atan2": lambda v: torch.atan2(v, v.abs() + 1),
    "log1p": lambda v: torch.log1p(v.abs()),
    "sinh": torch.sinh,
    "sigmoid": torch.sigmoid,
    "erf": torch.erf,
    "pow": lambda v: torch.pow(v.abs(), v.abs()),
    "tanh": torch.tanh,
    "exp": torch.exp,
    "log": lambda v: torch.log(v.abs()),
}
TRUE = {
    "rows": lambda x: (x == torch.amax(x, -1, keepdim=True)).any(-1).all(),
    "columns": lambda x: (x == torch.amax(x, 0, keepdim=True)).any(0).all(),
    "transposed": lambda x: (torch.amax(x, 0)[:, None] == x.T).any(1).all(),
    "all": lambda x: (x == torch.amax(x)).any(),
    "flipped": lambda x: (x.flip(0) == torch.amax(x, 0)).any(0).all(),
    "reversed": lambda x: (x.flip(-1) == torch.amax(x, -1, keepdim=True)).any(-1).all(),
    "two orders": lambda x: (torch.amax(x, 0) == torch.amax(x.flip(0), 0)).all(),
    "one row": lambda x: torch.isnan(torch.var(x[:1], 0, correction=1)).all(),
    "one column": lambda x: (torch.var(x[:, :1], 1, correction=0) == 0).all(),
    "three passes": lambda x: ((x - x.mean(-1, keepdim=True)).amax(-1) == x.amax(-1) - x.mean(-1)).all(),
}
SHAPES = [(1, 13), (5, 13), (2, 33), (7, 1001), (1003, 5), (1, 10003)]


@pytest.mark.parametrize("case", TRUE)
@pytest.mark.parametrize("turn", range(2))
@pytest.mark.slow
def test_an_element_equals_itself(case: str, turn: int) -> None:
    k = list(TRUE).index(case)
    name = list(FUNCTIONS)[(5 * turn + k) % len(FUNCTIONS)] if turn else list(FUNCTIONS)[k % 3]
    compiled = torch.compile(lambda v: TRUE[case](FUNCTIONS[name](v)), backend=backend, dynamic=True)
    generator = torch.Generator().manual_seed(k)
    for dtype in (torch.float32, torch.float64):
        for shape in SHAPES:
            with torch.no_grad():
                assert compiled(torch.randn(shape, generator=generator).to(dtype) * 3), (case, name, shape, dtype)


@pytest.mark.parametrize("name", ["atan2", "log1p", "erf"])
def test_values_made_of_ranges(name: str) -> None:
    def function(v: torch.Tensor) -> torch.Tensor:
        x = FUNCTIONS[name](torch.arange(v.shape[0], dtype=torch.float64) / 7).reshape(-1, 1)
        return ((x + v * 0).amax(0) == x.amax()).all() & (x.amax(1) == x.flip(0).reshape(-1).flip(0)).all()

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for n in (5, 13, 1001):
        assert compiled(torch.zeros(n, 3, dtype=torch.float64)), n


@pytest.mark.slow
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["atan2", "log1p"])
def test_the_gradient_of_a_maximum_goes_to_an_element(name: str, dim: int) -> None:
    def function(v: torch.Tensor) -> torch.Tensor:
        return torch.amax(FUNCTIONS[name](v), dim).sum()

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for shape in ((13, 13), (5, 33), (33, 1001)):
        v = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
        (found,) = torch.autograd.grad(compiled(v), v)
        (wanted,) = torch.autograd.grad(function(v), v)
        torch.testing.assert_close(found, wanted)
