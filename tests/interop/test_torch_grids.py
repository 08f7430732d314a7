"""What the backend makes for GPUs, run by the CPU: texts of grids are kernels as any other."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

from pyarray.torch import fusion_group  # noqa: E402
from pyarray.torch.backend import observing_backend  # noqa: E402


@pytest.fixture(autouse=True)
def grids(monkeypatch):
    monkeypatch.setattr(fusion_group, "_HOSTS", set())
    torch._dynamo.reset()
    torch.manual_seed(0)


def forms(model, draw, sizes=(16, 3, 1)):
    """The forms of the kernels of a model that is trained, and compared with torch."""
    programs, parameters = [], list(model.parameters())
    call = torch.compile(model, backend=observing_backend(programs.append), dynamic=True)
    for n in sizes:
        x = draw(n).requires_grad_()
        model.zero_grad()
        want, got = ((y := f(x), *torch.autograd.grad((y * y).mean(), [x, *parameters])) for f in (model, call))
        torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-6)
    return [[k.text.schedule for k in p.kernels.values()] for p in programs[:2]]


@pytest.mark.slow
def test_few_long_rows_are_cut():
    """Statistics of a few channels: pieces, whose results another kernel reads."""
    model = nn.Sequential(nn.Conv2d(2, 4, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
    forward, backward = forms(model, lambda n: torch.randn(n + 1, 2, 9, 17))
    assert forward.count("pieces") == 1
    assert "rows" not in forward
    assert "rows" not in backward


@pytest.mark.slow
def test_many_rows_are_teams():
    model = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 24), nn.GroupNorm(3, 24), nn.SiLU())
    forward, _ = forms(model, lambda n: torch.randn(20 * n, 24))
    assert forward.count("rows") == 2
    assert "pieces" not in forward


def test_moments_lose_nothing():
    """Where the mean is far from 0, too."""
    x = torch.randn(300, 70) + 1000
    call = torch.compile(lambda x: functional.layer_norm(x, (70,)), backend=observing_backend(None))
    want = functional.layer_norm(x.double(), (70,)).float()
    torch.testing.assert_close(call(x), want, rtol=1e-4, atol=2e-4)


def test_constants_of_one_row():
    x = torch.full((300, 70), 3.25)
    call = torch.compile(lambda x: torch.var_mean(x, 1), backend=observing_backend(None))
    var, mean = call(x)
    assert (var == 0).all()
    assert (mean == 3.25).all()
