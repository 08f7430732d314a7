"""`torch.compile(f, backend="pyarray")` against torch itself."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
from compile_cache import artifact_count

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

import pyarray.torch.backend  # noqa: E402
from pyarray.lang.emit_noalias import NO_ALIAS  # noqa: E402
from pyarray.torch import fused_kernel, product_cost  # noqa: E402
from pyarray.torch.backend import observing_backend  # noqa: E402

SIZES = (6, 9, 1)


@pytest.fixture(autouse=True)
def afresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function, programs=None, dynamic=True):
    backend = pyarray.torch.backend.pyarray if programs is None else observing_backend(programs.append)
    return torch.compile(function, backend=backend, dynamic=dynamic)


def close(ours, theirs, tolerance=None):
    ours, theirs = (x if isinstance(x, tuple) else (x,) for x in (ours, theirs))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        far = [n != 1 for n in a.shape]  # a stride of one element says nothing
        assert [*itertools.compress(a.stride(), far)] == [*itertools.compress(b.stride(), far)]
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


FUNCTIONS = {
    "wave": lambda a, b: a * b + torch.sin(a) * torch.exp(-b * b),
    "bias": lambda a, b: torch.relu(a + b[0]) * 2,
    "softmax": lambda a, b: torch.softmax(a, -1) * b,
    "softmax of columns": lambda a, b: torch.softmax(a, 0) - b,
    "logsumexp": lambda a, b: torch.logsumexp(a + b, 1),
    "layer norm": lambda a, b: functional.layer_norm(a, (a.shape[-1],), b[0], b[0]),
    "reductions": lambda a, b: (
        (a * b).sum(),
        (a + b).mean(0),
        (a - b).amax(1),
        (a > b).any(0),
        (a > b).all(),
    ),
    "variance": lambda a, b: (torch.var(a, 1), torch.std(b, 0), torch.var_mean(a)[0]),
    "views": lambda a, b: (a.view(a.shape[0], 2, -1).permute(1, 0, 2) * 2).reshape(a.shape[0], -1) + b,
    "transposed": lambda a, b: a.T + b.T * 2,
    "slices": lambda a, b: a[:, 1:-1] * b[:, :-2] + a[:, ::2].sum(1, keepdim=True),
    "masks": lambda a, b: torch.where(a > b, a, float("-inf")).softmax(-1).nan_to_num(),
    "integers": lambda a, b: (a > 0).int() + torch.arange(a.shape[1], device=a.device) * 3,
    "clamped": lambda a, b: a.clamp(-0.5, 0.5) + torch.minimum(a, b).abs() ** 3,
    "product": lambda a, b: functional.gelu(a @ b.T) + 1,
    "two outputs": lambda a, b: (a + b, (a + b).T, a),
    "loss": lambda a, b: functional.mse_loss(a, b) + functional.smooth_l1_loss(a, b),
}


HALVES = ("wave", "softmax", "layer norm", "reductions")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"), [(n, torch.float32) for n in FUNCTIONS] + [(n, torch.bfloat16) for n in HALVES]
)
def test_functions(name, dtype):
    function = FUNCTIONS[name]
    ours = compiled(function)
    for n in (6, 4, 1):
        a, b = (torch.randn(n, 8).to(dtype) for _ in range(2))
        close(ours(a, b), function(a, b), 2e-2 if dtype == torch.bfloat16 else None)


@pytest.mark.parametrize("name", ["wave", "softmax", "reductions", "views", "slices"])
@pytest.mark.slow
def test_layouts(name):
    """Operands in any strides are read where they are."""
    function = FUNCTIONS[name]
    ours = compiled(function)
    for a in (torch.randn(8, 6).T, torch.randn(6, 16)[:, ::2], torch.randn(1, 8).expand(6, 8)):
        b = torch.randn(7, 9)[1:, 1:]
        want, got = function(a, b), ours(a, b)
        for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
            assert x.shape == y.shape
            torch.testing.assert_close(x, y, equal_nan=True)


class Attention(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.norm, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.into, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width), nn.Dropout(0.1))

    def forward(self, x):
        batch, steps, width = x.shape
        parts = self.into(self.norm(x)).view(batch, steps, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        near = (q @ k.transpose(-1, -2)) / 4
        near = near.masked_fill(torch.ones(steps, steps, dtype=torch.bool).triu(1), float("-inf"))
        x = x + self.out((near.softmax(-1) @ v).transpose(1, 2).reshape(batch, steps, width))
        return x + self.mlp(self.after(x))


MODELS = {
    "attention": (Attention, lambda n: torch.randn(n, 5, 16)),
    "mlp": (
        lambda: nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 5), nn.LogSoftmax(-1)),
        lambda n: torch.randn(n, 6),
    ),
    "convolution": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), nn.SiLU(), nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3, bias=False), nn.GroupNorm(2, 8), nn.Flatten(), nn.Linear(8, 3),
        ),
        lambda n: torch.randn(n + 1, 2, 8, 8),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_training(name):
    """Results and gradients at all sizes; after the first one nothing is compiled, but for a size of 1 whose
    graph has other operators."""
    make, draw = MODELS[name]
    model, programs = make(), []
    ours, counts = compiled(model, programs), []
    for n in SIZES:
        x = draw(n)
        found = []
        for call in (model, ours):
            model.zero_grad()
            torch.manual_seed(1)
            y = call(x)
            (y * y).sum().backward()
            found.append((y, *(p.grad.clone() for p in model.parameters())))
        for a, b in zip(*found, strict=True):
            torch.testing.assert_close(b, a, rtol=2e-4, atol=2e-4)
        counts.append(artifact_count(fused_kernel._kernels.values()))
    assert counts[:-1] == counts[:1] * (len(SIZES) - 1)
    assert any(p.kernels for p in programs)


@pytest.mark.slow
def test_no_grad_and_inference():
    model = Attention().eval()
    ours, x = compiled(model), torch.randn(2, 5, 16)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            torch.testing.assert_close(ours(x), model(x))


OTHERS = {
    "complex": lambda x: (torch.view_as_complex(x.reshape(-1, 2)) * 2j).abs(),
    "data-dependent sizes": lambda x: x[x > 0].sum() + x.nonzero().shape[0],
    "sorted": lambda x: torch.sort(x, -1)[0] * 2 + torch.cumsum(x, 0),
    "random": lambda x: functional.dropout(x, 0.5) + torch.rand_like(x),
    "strided results": lambda x: torch.as_strided(x * 2, (2, 2), (1, 3)) + 1,
    "empty": lambda x: (x[:0] * 2).sum() + x[:, :0].mean(1).nan_to_num().sum(),
    "0-d": lambda x: x.sum() * 2 + x[0, 0],
    "float16": lambda x: x.half().softmax(-1).float() + x,
    "indices": lambda x: x[torch.tensor([0, 2])] * 2 + functional.embedding(torch.tensor([1, 0]), x),
    "sizes as numbers": lambda x: x * x.shape[0] + x.shape[1] / 3,
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_stays_torchs(name):
    function = OTHERS[name]
    ours = compiled(function)
    for n in (4, 6):
        x = torch.randn(n, 8)
        torch.manual_seed(2)
        want = function(x)
        torch.manual_seed(2)
        torch.testing.assert_close(ours(x), want)


def test_inputs_that_are_changed():
    def step(x, y):
        x.mul_(2).add_(y)
        y.copy_(x.T)
        return x + y

    ours, x, y = compiled(step), torch.randn(4, 4), torch.randn(4, 4)
    a, b, c, d = x.clone(), y.clone(), x.clone(), y.clone()
    torch.testing.assert_close(ours(a, b), step(c, d))
    torch.testing.assert_close((a, b), (c, d))


def test_sums_of_many_rows_keep_their_digits():
    ours = compiled(lambda x: (x * 2).sum(0))
    for shape in ((4096, 8), (50000, 3)):
        x = torch.rand(shape)
        wanted = (x.double() * 2).sum(0)
        assert ((ours(x) - wanted).abs() / wanted).max() < 4e-7


def test_inputs_that_share_memory():
    def step(x, y):
        x.add_(1)
        return x + y

    ours, x, y = compiled(step), torch.zeros(5), torch.zeros(5)
    torch.testing.assert_close(ours(x, x[:]), step(y, y[:]))


def test_the_registered_name():
    assert "pyarray" in torch._dynamo.list_backends()
    f = torch.compile(lambda x: x.cos() + 1, backend="pyarray")
    torch.testing.assert_close(f(torch.zeros(3)), torch.full((3,), 2.0))


def test_options_are_refused():
    f = torch.compile(lambda x: x + 1, backend="pyarray", options={"fast": True})
    with pytest.raises(Exception, match="takes no options, got 'fast'"):
        f(torch.zeros(3))


def test_in_debug_mode():
    f = compiled(lambda x: torch.softmax(x, -1) + x.sum(0))
    x = torch.randn(3, 5)
    with pyarray.debug():
        torch.testing.assert_close(f(x), torch.softmax(x, -1) + x.sum(0))


def test_explain(monkeypatch):
    monkeypatch.setattr(product_cost, "choose", lambda facts: (False, "as the test asks"))
    text = str(pyarray.torch.explain(lambda a, b: functional.gelu(a @ b) + b.sum(), torch.ones(4, 4), torch.ones(4, 4)))
    assert "torch: aten.mm.default (1): as the test asks" in text
    assert "gelu, sum, add" in text
    assert "compiled in this process" in text


def test_kernels_are_compiled_before_they_are_launched():
    programs = []
    x = torch.randn(5, 7, requires_grad=True)
    compiled(lambda x: (x * 3).sin().sum(1), programs)(x)
    assert len(programs) == 2
    (backward,) = programs[1].kernels.values()
    fused_kernel._compile_pool.shutdown()
    fused_kernel._compile_pool = ThreadPoolExecutor(2)
    assert backward.kernel.cache_info()["variants"] == 1
    assert backward.kernel.flags == (NO_ALIAS,)


def test_reshapes_that_fit_have_no_division():
    found = pyarray.torch.explain(lambda x: x.view(x.shape[0], 4, -1).transpose(1, 2) + 1, torch.ones(3, 8))
    text = found.kernels[0].text.text
    assert "//" not in text.replace("+ 31) // 32", "")
    assert "%" not in text


def test_reshapes_that_do_not_fit():
    """12 as 4 by 3 and as 6 by 2: no cuts of one divide those of the other."""

    def f(x, y):
        return (x.reshape(3, 4) + 1).T.reshape(6, 2) * y

    x, y = torch.arange(12.0), torch.randn(6, 2)
    found = pyarray.torch.explain(f, x, y, dynamic=False)
    assert "axes don't divide each other" in str(found)
    torch.testing.assert_close(compiled(f, dynamic=False)(x, y), f(x, y))
