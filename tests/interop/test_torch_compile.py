"""pyarray under `torch.compile`: the graph ends where it is called, and the results are right."""

import subprocess
import sys

import numpy as np
import pytest

import pyarray as pa

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")


@pa.kernel
def double(v):
    for i in range(v.size):
        v[i] = 2 * v[i]


@pa.autotune(configs=[pa.Config(TILE=1), pa.Config(TILE=2)])
@pa.kernel
def tuned(v, TILE: pa.constexpr):
    for i in range(v.size):
        v[i] = 3 * v[i] + 0 * TILE


@pa.fuse
def fused(x):
    return x * 2 + 1


@pa.kernel
def add_to(o, v, n: int):
    for i in range(n):
        o[i] += v[i]


@pa.func
def half(x):
    return x / 2


class Model:
    by = 3

    @pa.kernel
    def apply(self, v):
        for i in range(v.size):
            v[i] = self.by * v[i]


squares = pa.ElementwiseKernel("T x", "T y", "y = x * x", "squares")
WEIGHT = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
OWN = pa.arange(3, dtype="float64")


def _written(x):
    y = x + 1
    double(y)
    tuned(y)
    return y * 2


def _assigned(x):
    a = pa.asarray(x + 1)
    a += 1
    a[0] = 5
    double(a[1:])
    return torch.from_dlpack(a) * 2


def _out(x):
    out = pa.empty(3)
    pa.exp(pa.asarray(x + 1), out=out)
    return torch.from_dlpack(out) + x


def _parameter(x):
    y = torch.zeros(3, dtype=torch.float64)
    with torch.no_grad():
        add_to(y, WEIGHT, y.shape[0])
    return y * x


def _in_place(x):
    a = OWN.copy()
    a *= x + 1
    return torch.from_dlpack(a) + x


def _checked(x):
    y = x + 1
    with pa.debug():
        double(y)
    return y * 2


def _of_a_method(x):
    y = x + 1
    Model().apply(y)
    return y * 2


CASES = {
    "kernel of a parameter": _parameter,
    "kernel in a with": _checked,
    "kernel as a method": _of_a_method,
    "function for kernels": lambda x: half(x + 1) + 1,
    "elementwise kernel": lambda x: torch.from_dlpack(squares(pa.asarray(x + 1))) + x,
    "method with a tensor": lambda x: torch.from_dlpack(OWN.dot(x + 1)) + x,
    "in-place operator with a tensor": _in_place,
    "random": lambda x: torch.from_dlpack(pa.random.default_rng(3).random(3)) + x,
    "several": lambda x: torch.from_dlpack(pa.stack(pa.meshgrid(x + 1, OWN))) + x,
    "kernel": _written,
    "asarray": lambda x: torch.from_dlpack(pa.asarray(x + 1)) + 1,
    "from_dlpack": lambda x: torch.from_dlpack(pa.from_dlpack(x + 1)) + 1,
    "fuse": lambda x: torch.from_dlpack(fused(x + 1)) + 1,
    "fuse of an array": lambda x: torch.from_dlpack(fused(OWN)) + x,
    "operator": lambda x: torch.from_dlpack(OWN + (x + 1)) + 1,
    "operator of arrays": lambda x: torch.from_dlpack(OWN * 2 - OWN) + x,
    "views": lambda x: torch.from_dlpack(OWN[1:].reshape(2, 1).T)[0, 1] + x,
    "function": lambda x: pa.sum(x + 1).item() + x,
    "method": lambda x: OWN.sum().item() + x,
    "out=": _out,
    "written": _assigned,
    "numpy": lambda x: torch.from_numpy(np.asarray(OWN)) + x,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_compiled_functions_give_what_plain_ones_give(name):
    function = CASES[name]
    x = torch.ones(3, dtype=torch.float64)
    expected = function(x)
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager")
    for _ in range(2):
        assert torch.equal(compiled(x), expected)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(function, backend="eager", fullgraph=True)(x)
    torch._dynamo.reset()


def test_nothing_waits_after_the_first_compile():
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
    assert not any(getattr(finder, "name", "").startswith("torch") for finder in sys.meta_path)


@pytest.mark.slow
def test_a_compiler_that_was_loaded_before():
    text = """
import sys, torch._dynamo.trace_rules, pyarray as pa
def f(x):
    return torch.from_dlpack(pa.asarray(x + 1)) + 1
assert torch.compile(f, backend="eager")(torch.ones(3)).tolist() == [3, 3, 3]
assert not any(getattr(finder, "name", "").startswith("torch") for finder in sys.meta_path)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_torch_is_not_imported():
    text = "import sys, pyarray; print(sorted(m for m in sys.modules if m.startswith('torch')))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[]\n", done.stderr
