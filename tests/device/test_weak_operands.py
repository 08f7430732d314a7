"""Functions of numbers that are no elements: parameters, literals and loop indices are computed in float64."""

import inspect

import numpy as np
import pytest

import pyarray as pa
from pyarray.api.standard.elementwise import UFUNCS
from pyarray.lang.parse import function_from_text

scipy = pytest.importorskip("scipy.special")
OF_ARRAYS = ("logsumexp", "softmax", "log_softmax")
OF_SCIPY = sorted(set(pa.special.__all__) - set(OF_ARRAYS))
# NumPy has no rsqrt, and its reciprocal of an integer is one
FURTHER = {"rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x}
MARKS = {"__pyarray_builtin__", "__pyarray_func__"}  # of what kernels may call
IN_KERNELS = [name for name in sorted(UFUNCS) if MARKS & set(dir(getattr(pa, name, None)))]
CASES = [("pa", name) for name in IN_KERNELS if hasattr(np, name) or name in FURTHER]
CASES += [("pa.special", name) for name in OF_SCIPY]


def _forms(module, name):
    """Calls of a function with each kind of weak operand: text in a kernel, and their arguments on the host."""
    parameters = inspect.signature(getattr(pa.special, name)).parameters if module == "pa.special" else ()
    count = len(parameters) - 1 if parameters else UFUNCS[name].arity
    forms = [("n", 3), ("i", 5), ("3", 3)], [("m", 2), ("m", 2), ("j", 2)]
    if module != "pa" or set(UFUNCS[name].kinds) & set("fc"):
        forms[0].extend([("x", 0.7), ("0.7", 0.7), ("z", 2.9)])
        forms[1].extend([("1.7", 1.7), ("y", 1.7), ("v[0]", 1.7)])
    return list(zip(*forms[:count], strict=True))


def test_functions_of_weak_operands(device):
    lines, expected = [], []
    for module, name in CASES:
        theirs = getattr(scipy, name) if module == "pa.special" else FURTHER.get(name) or getattr(np, name)
        for operands in _forms(module, name):
            lines.append(f"out[{len(lines)}] = {module}.{name}({', '.join(text for text, _ in operands)})")
            with np.errstate(all="ignore"):
                expected.append(theirs(*[value for _, value in operands]))
    head = "def k(out, v, x: float, y: float, z: float, n: int, m: int):\n    for i in range(5, 6):\n"
    inner = "        for j in range(2, 3):\n"
    text = head + inner + "".join(f"            {line}\n" for line in lines)
    out = pa.zeros(len(lines), device=device)
    kernel = pa.kernel(function_from_text("k", text, {"pa": pa}))
    kernel(out, pa.asarray([1.7], device=device), 0.7, 1.7, 2.9, 3, 2)
    wrong = [
        (line, found, wanted)
        for line, found, wanted in zip(lines, out.tolist(), expected, strict=True)
        if not np.isclose(found, wanted, rtol=1e-14, atol=1e-16, equal_nan=True)
    ]
    assert wrong == []
