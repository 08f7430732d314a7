"""Indices that are taken for an iteration's own belong to it alone, for all sizes; those that people write are."""

import random
from itertools import product

import pytest

from pyarray.dtypes import float64, int64, uint8
from pyarray.errors import CompileError
from pyarray.jit.kernel import from_text
from pyarray.lang import ir, markers
from pyarray.lang.pipeline import analyse

LOOPS = {
    "for i in range(m):": ("i",),
    "for i in range(1, m + 1):": ("i",),
    "for i in range(0, m, 2):": ("i",),
    "for i, j in ndrange(m, n):": ("i", "j"),
    "for i, j in ndrange(m, 3):": ("i", "j"),
}
NUMBERS = {"m": (1, 2, 5), "n": (1, 2, 3), "c": (0, 1, 4)}
INNER = {"": ((),), "for k in range(n):": (("k", "n"),), "for k in range(3):": (("k", "3"),)}


def text_of(loop, inner, stores, ndim):
    index = [f"y[{s}]" for s in stores]
    body = [f"{'    ' * (3 if inner else 2)}{s} = x[0]\n" for s in index]
    middle = f"        {inner}\n" if inner else ""
    return f"def k(x, y, m, n, c):\n    {loop}\n{middle}{''.join(body)}"


def is_taken(loop, inner, stores, ndim):
    """Whether the stores are shown to be of elements of their own."""
    k = from_text("k", text_of(loop, inner, stores, ndim), {"ndrange": markers.ndrange})
    numbers = [(name, ir.ScalarType(int64, True)) for name in "mnc"]
    arrays = [("x", ir.ArrayType(float64, 1, False)), ("y", ir.ArrayType(float64, ndim, False))]
    gradients = [(f"grad_{name}", kind) for name, kind in arrays]
    try:
        analyse(k.source_text, [*arrays, *numbers], gradients=gradients)
    except CompileError:
        return False
    return True


def meets(loop, inner, stores):
    """Whether two iterations store into one element, for some of the numbers."""
    for values in product(*NUMBERS.values()):
        space = dict(zip(NUMBERS, values, strict=True))
        head = loop.removeprefix("for ").removesuffix(":").split(" in ")[1]
        ranges = head[head.index("(") + 1 : -1].split(", ")
        if head.startswith("ndrange"):
            iterations = list(product(*(range(eval(r, {}, space)) for r in ranges)))
        else:
            iterations = [(i,) for i in range(*(eval(r, {}, space) for r in ranges))]
        owners = {}
        for iteration in iterations:
            local = space | dict(zip(LOOPS[loop], iteration, strict=True))
            for k in range(eval(inner[len("for k in range(") : -2], {}, space)) if inner else (0,):
                for s in stores:
                    at = eval(s, {}, local | {"k": k})
                    if owners.setdefault(at, iteration) != iteration:
                        return True
    return False


def drawn_index(rng, variables, inner):
    names = [*variables, *(["k"] if inner else [])]
    terms = []
    for _ in range(rng.randrange(1, 4)):
        factor = rng.choice(("", "2 * ", "3 * ", "n * ", "m * ", "-1 * ", "m * n * ", "c * "))
        terms.append(f"{factor}{rng.choice(names)}")
    if rng.random() < 0.4:
        terms.append(rng.choice(("1", "c", "n", "i // 2", "i % 3")))
    return " + ".join(terms)


@pytest.mark.parametrize("seed", range(40))
def test_drawn_indices(seed):
    rng = random.Random(seed)
    for _ in range(25):
        loop, inner, ndim = rng.choice(list(LOOPS)), rng.choice(list(INNER)), rng.choice((1, 1, 2))
        draw = lambda: ", ".join(drawn_index(rng, LOOPS[loop], inner) for _ in range(ndim))  # noqa: E731, B023
        stores = [draw() for _ in range(rng.choice((1, 1, 2)))]
        if is_taken(loop, inner, stores, ndim):
            assert not meets(loop, inner, stores), text_of(loop, inner, stores, ndim)


@pytest.mark.parametrize(
    ("loop", "inner", "stores", "ndim"),
    [
        ("for i in range(m):", "", ["i"], 1),
        ("for i in range(m):", "", ["m - 1 - i"], 1),
        ("for i in range(m):", "", ["2 * i", "2 * i + 1"], 1),
        ("for i in range(1, m + 1):", "", ["i + c"], 1),
        ("for i in range(0, m, 2):", "", ["i"], 1),
        ("for i in range(m):", "for k in range(n):", ["i * n + k"], 1),
        ("for i in range(m):", "for k in range(n):", ["n * m - 1 - (i * n + k)"], 1),
        ("for i in range(m):", "for k in range(3):", ["3 * i + k", "3 * i + 2 - k"], 1),
        ("for i, j in ndrange(m, n):", "", ["i * n + j"], 1),
        ("for i, j in ndrange(m, 3):", "for k in range(n):", ["(i * 3 + j) * n + k"], 1),
        ("for i, j in ndrange(m, n):", "for k in range(3):", ["j, i * 3 + k"], 2),
        ("for i, j in ndrange(m, n):", "", ["i + 1, j", "i + 1, j"], 2),
        ("for i in range(m):", "for k in range(n):", ["i, k", "i, 0"], 2),
    ],
)
def test_indices_that_are_taken(loop, inner, stores, ndim):
    assert not meets(loop, inner, stores)
    assert is_taken(loop, inner, stores, ndim)


@pytest.mark.parametrize(
    "body",
    [
        "for k in range(5): y[3 * i + k] = x[0]\n        for k in range(3): y[3 * i + k] = x[0]",
        "for k in range(3): y[3 * i + k] = x[0]\n        for k in range(5): y[3 * i + k] = x[0]",
        "if uint8(i) == 0: y[0] = x[i]",
        "if bool(i): y[0] = x[i]",
        "if (i > 3) == 1: y[0] = x[i]",
    ],
)
def test_what_only_looks_like_an_element_of_its_own(body):
    """Loops of several ranges over one variable, and casts that make different numbers equal."""
    k = from_text("k", f"def k(x, y, m):\n    for i in range(m):\n        {body}\n", {"uint8": uint8})
    arrays = [(name, ir.ArrayType(float64, 1, False)) for name in "xy"]
    gradients = [(f"grad_{name}", kind) for name, kind in arrays]
    with pytest.raises(CompileError, match="two iterations may store into one element of 'y'"):
        analyse(k.source_text, [*arrays, ("m", ir.ScalarType(int64, True))], gradients=gradients)
