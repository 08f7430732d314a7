"""What the backend leaves out while torch takes a graph apart, and what is as before when it has."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from torch._guards import TracingContext  # noqa: E402

from pyarray.torch.backend import observing_backend  # noqa: E402


@pytest.fixture(autouse=True)
def anew():
    torch._dynamo.reset()
    yield
    gc.enable()


@pytest.mark.parametrize("running", [True, False])
def test_collections_go_on_if_they_ran(running):
    seen = []
    call = torch.compile(lambda x: x.sin() + 1, backend=observing_backend(lambda _: seen.append(gc.isenabled())))
    if not running:
        gc.disable()
    call(torch.ones(3, 4))
    assert seen == [False]
    assert gc.isenabled() is running


def test_collections_go_on_behind_an_error():
    def refused(program):
        raise ValueError("no program is wanted")

    call = torch.compile(lambda x: x.sin() + 1, backend=observing_backend(refused))
    with pytest.raises(Exception, match="no program is wanted"):
        call(torch.ones(3, 4))
    assert gc.isenabled()


@pytest.mark.parametrize(("layers", "kept"), [(1, False), (6, True)])
def test_results_are_noted_where_graphs_repeat_themselves(layers, kept):
    """And torch's setting is as before."""
    seen, modes = [], []

    def observer(program):
        modes.append(TracingContext.get().fake_mode)
        seen.append(modes[-1].cache_enabled)

    def f(x):
        for _ in range(layers):
            x = torch.tanh(x * 2) - x.sigmoid()
        return x

    call = torch.compile(f, backend=observing_backend(observer), dynamic=True)
    x = torch.randn(5, 7)
    torch.testing.assert_close(call(x), f(x))
    assert seen == [kept]
    assert modes[0].cache_enabled


@pytest.mark.slow
def test_training_loads_no_kernels_of_inductor():
    """They take most of a second."""
    code = (
        "import sys, torch\n"
        "from pyarray.torch.backend import pyarray\n"
        "call = torch.compile(lambda x: (x * 2).tanh(), backend=pyarray, dynamic=True)\n"
        "call(torch.ones(3, 4, requires_grad=True)).sum().backward()\n"
        "print(sorted({'torch._inductor.lowering', 'torch._inductor.scheduler'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
