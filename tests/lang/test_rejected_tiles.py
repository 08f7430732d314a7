"""What kernels can't do with tiles, one program per message."""

import linecache

import numpy as np
import pytest

import pyarray as pa
from pyarray.errors import CompileError

HEAD = """
@pa.kernel
def k(c, r, n: int):
    for i, j in pa.tiles(c, (4, 4)):
        t = c[i, j]
"""


def load(text):
    path = f"<{hash(text)}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := {"pa": pa, "np": np, "load": load})
    return space["k"]


def refused(text, message):
    c, r = pa.ones((9, 9), dtype=pa.float32), pa.ones(9, dtype=pa.float32)
    with pytest.raises(CompileError, match=message):
        load(text)(c, r, 3)


IN_LOOP = {
    "c[i, j] = t - t.max(axis=1)": r"tiles of \(i, j\) and \(i\) don't broadcast.*\n.*\n.*\n.*write m\[:, None\]",
    "c[i, j] = c[i, i[:, None]]": "an index has no axis of size 1",
    "c[i, j] = t[:, :, None].sum(2) * i": r"tiles of \(i, j\) and \(i\) don't broadcast",
    "c[i, j] = t[:, None, None, :]": r"a tile of \(i, 1, 1, j\) can't be stored into elements of \(i, j\)",
    "c[i, j] = t[:, :, :]": "3 axes of a tile of float32",
    "r[i] = t": "a tile of .i, j. can't be stored into elements of .i.|don't broadcast",
    "c[i, j] = c[i, :]": r"an access by tiles has no slices.*\n.*\n.*\nname the axis",
    "c[i] = t": "1 indices for a 2-D contiguous array.*\n.*\n.*\nan access by tiles has an index for each axis",
    "r[0] = t[0, 0]": "of a tile no elements are taken",
    "r[i] = t @ t": "'@' is not defined for tiles of .i, j. and .i, j.",
    "c[i, j] = t @ 2": "'@' takes two tiles, got an int64",
    "c[i, j] = pa.matmul(t)": "matmul.. takes two tiles, got 1",
    "c[i, j] = pa.matmul(t, t.T, axis=1)": "takes two tiles and dtype=",
    "c[i, j] = t.astype(3)": "expected a dtype",
    "c[i, j] = t.astype()": "astype.. takes a dtype",
    "c[i, j] = t[:, None] * t[:, :, None]": "a tile has each tile index once, this one has 'j' twice|don't broadcast",
    "x = i[:, None] * i": "tiles of .i. .*don't broadcast|has each tile index once",
    "if t > 0: pass": r"expected a number, got a tile of bool of \(i, j\).*\n.*\n.*\ncombine its elements",
    "while t.max() > 0: pass": "evaluated once, and not under a condition.*\n.*\n.*\nassign it to a variable",
    "r[i] = t.max() if n else t.min()": "evaluated once, and not under a condition",
    "b = n > 0 and t.max() > 0": "evaluated once, and not under a condition",
    "i = 3": "'i' is a tile index here and something else elsewhere",
    "t = t.T": "'t' is a tile of float32 of .i, j. and here a tile of float32 of .j, i.",
    "t = 3": "'t' is a .* and here a",
    "for k in pa.tiles(n, 4): x = r[k]\n        for k in pa.tiles(n, 4): x = r[k]": (
        r"'x' is a tile of float32 of \(k\) in two loops over tiles"
    ),
    "x = (t, t)": "'x' can't hold a tuple with tiles",
    "x = r[i:3]": "expected a number, got a tile index 'i'.*\n.*\n.*\nits .start, .stop and .size are numbers",
    "for k in range(i): pass": "expected a number, got a tile index 'i'",
    "x = 1 if i else 2": "expected a number, got a tile index 'i'",
    "x = t.sum(axis=i)": "an axis is a constant, got a tile index 'i'",
    "print(i)": "a tile index 'i' can't be shown by a kernel",
    "x = pa.tiles(n, 4).sum()": "loop over tiles",
    "x = pa.copyto(r[i], 1)": "nothing",
    "x = i.length": "a tile index has no attribute 'length'.*\n.*\n.*\nthere are start, stop and size",
    "x = t.strides": "a tile has no attribute 'strides'.*\n.*\n.*\nthere are shape",
    "x = pa.zeros((i, 4))": "the shape of a tile is made of tile indices",
    "x = pa.empty((i, j))": "empty.. makes no tiles",
    "x = pa.zeros((i, j), order=1)": "zeros.. of tiles has no argument 'order'",
    "x = pa.full(i)": "full.. takes a shape and a value",
    "x = pa.zeros((i, j), 3)": "zeros.. takes a dtype, got",
    "x = pa.zeros((i, j), pa.float32, 3)": "zeros.. of tiles takes a shape and a dtype",
    "x = t.sum(axis=2)": "axis 2 is out of range for a tile",
    "x = t.sum(axis=(0, -2))": "axis -2 of a tile of float32 of .i, j. is given twice",
    "x = t.sum(axis=n)": "an axis is a constant",
    "x = t.sum(where=t > 0)": "sum.. of tiles takes a tile, axis=, keepdims= and dtype=.*\n.*\n.*\nchoose elements by",
    "x = t.max(axis=1, initial=0)": "max.. of tiles takes a tile, axis= and keepdims=",
    "x = t.cumsum(axis=1, keepdims=True)": "cumsum.. of tiles takes a tile, axis= and dtype=",
    "x = sum(t)": "sum.. of Python takes one axis, got a tile.*\n.*\n.*\nwrite t.sum",
    "x = max(t, axis=1)": "max.. of Python doesn't compare tiles",
    "x = float(t)": r"'float' takes no tiles.*\n.*\n.*\n.*write t.astype\(float\)",
    "x = load(t)": "'load' is a plain Python function.*\n.*\n.*\ndecorate it with @pa.func",
    "x = t.squeeze(0)": "squeeze.. removes axes of size 1",
    "x = t.transpose(0)": r"\(0,\) is no order of the axes of a tile",
    "x = t.swapaxes(0)": "an axis is a constant, got nothing",
    "x = t.swapaxes(0, 5)": "axis 5 is out of range for 2 axes",
    "x = r[i].mT": "a tile has no attribute 'mT'|takes no",
    "x = pa.matrix_transpose(r[i])": "a matrix has two axes, got a tile",
    "x = t.clip(1, 2, 3)": "clip.. of tiles takes a tile and min=, max=",
    "x = pa.full_like(t)": "full_like.. of tiles takes a tile, a value and dtype=",
    "x = pa.full_like(t, t)": "full_like.. takes a number, got a tile",
    "x = pa.arange(i.start, i.stop)": "makes no local arrays.*\n.*\n.*\n.*a tile index is the tile of its numbers",
    "x = t if n else t.sum(axis=1)": "evaluated once, and not under a condition",
    "x = t if n else c[i, 0]": "a condition chooses between a tile of float32 of .i, j. and a tile of float32 of .i.",
    "x = t if n else 0": "a condition chooses between a tile .* and an int64",
    "x = 0 < t < 3": "a chain of comparisons is of numbers, not of tiles.*\n.*\n.*\n.*0 < t. & .t < 3",
    "x = t > 0 and t < 3": "of tiles, 'and', 'or' and 'not' are & | and ~",
    "x = not t > 0": "of tiles, 'and', 'or' and 'not' are & | and ~",
    "r[i] = r[r[i] > 0]": "an index is a tile of integers, got a tile of bool.*\n.*\n.*\nselect by pa.where",
    "r[i] = r[i * 1.0]": "an index is a tile of integers, got a tile of float64.*\n.*\n.*\nwrite pa.int64",
    "t[0, 0] = 3": "expected an array, got a tile.*\n.*\n.*\ntiles are values: write t = pa.where",
    "t[:] += 3": "expected an array, got a tile.*\n.*\n.*\ntiles are values: write t = pa.where",
    "for q in i: pass": "a loop runs over range.*\n.*\n.*\n.*range.i.start, i.stop.",
    "s: pa.float64 = t": "a declaration is of a number, got a tile.*\n.*\n.*\nwrite t = pa.float64",
    "x = t.argmax()": "argmax.. of a tile of float32 of .i, j. takes one axis",
    "x = t.cumsum()": "cumsum.. of a tile of float32 of .i, j. takes one axis",
    "x = (t * 1j).max(axis=1)": "max.. of tiles is not defined for complex",
    "c[i, j] = t * 1j": "a complex.* can't be stored in an array of float32",
    "x = min(t, t)": "min.. of Python doesn't compare tiles",
    "x = pa.sort(t)": "'sort' takes no tiles",
    "x = pa.where(t > 0, t, r)": "expected a tile or a number, got a 1-D",
    "pa.atomic_add(c, i, t)": "1 indices for a 2-D",
    "pa.atomic_xor(c, (i, j), t)": "atomic_xor.. is not defined for float32",
    "pa.atomic_add(n, i, t)": "atomic_add.. takes an array, indices and a value",
    "pa.copyto(t, t)": "copyto.. stores into elements of an array, got a",
    "pa.copyto(c[i, j], t, casting=1)": "copyto.. takes elements, a tile and where=",
    "x = pa.tiles(n, 4)": "tiles are looped over, or one tile of one axis is unpacked",
    "for k in pa.tiles(n, n): pass": "the size of a tile is a constant from 1 on",
    "for k in pa.tiles(n, 0): pass": "the size of a tile is a constant from 1 on, got 0",
    "for k in pa.tiles(n, 10**6): pass": "a tile of 1000000 elements doesn't fit a block",
    "for k in pa.tiles(c, 4): pass": "tiles.. of 2 axes takes as many sizes of a tile, got 1",
    "for k in pa.tiles(c, (4, 4)): pass": "these tiles need 2 names",
    "for k in pa.tiles(n): pass": "tiles.. takes an array or sizes, and the sizes of a tile",
    "def f(x): return x\n        c[i, j] = f(t)": "'f' takes no tiles: it is defined in a kernel",
    "for k in pa.tiles(n, 99):\n            for l in pa.tiles(n, 99): x = t[:, None, None] * l": "don't broadcast",
    "for k in pa.tiles(n, 500):\n            for l in pa.tiles(n, 500): x = k[:, None] * l": "and 131072 is the most",
}  # fmt: skip


@pytest.mark.parametrize("statement", IN_LOOP)
def test_in_a_loop_over_tiles(statement):
    refused(f"{HEAD}        {statement}\n", IN_LOOP[statement])


KERNELS = {
    "    if r[0] > 0:\n        for i in pa.tiles(r, (4,)): r[i] = 0": "stands at the top level of a kernel",
    "    (i,) = pa.tiles(n, 4)": "a tile index belongs to an iteration of a parallel loop",
    "    for i, j in pa.tiles(c, (4, 4)): r[i] = c[i, j].sum(axis=1)": "store different values into one element of 'r'",
    "    for i, j in pa.tiles(c, (256, 128)):\n        (k,) = pa.tiles(n, 128)\n        c[i, j] = c[i, k] @ c[k, j]": (
        "bytes, and 61440 is the most.*\n.*\n.*\nchoose smaller tile sizes"
    ),
}


@pytest.mark.parametrize("body", KERNELS)
def test_kernels(body):
    refused(f"@pa.kernel\ndef k(c, r, n: int):\n{body}\n", KERNELS[body])


FUNCTIONS = {
    "    if n > 0:\n        return t\n    return t * 2": "a function of tiles returns at its end alone",
    "    return f(t, n)": "'f' calls itself",
    "    return t": None,
}


def test_a_function_of_elements_that_returns_two():
    text = f"@pa.func\ndef f(x: pa.float32):\n    return x, x\n{HEAD}        a = f(t)\n"
    refused(text, "a function that is called for each element returns a number.*\n.*\n.*\nleave out the annotations")


@pytest.mark.parametrize("body", FUNCTIONS)
def test_functions(body):
    text = f"@pa.func\ndef f(t, n):\n{body}\n{HEAD}        c[i, j] = f(t, n)\n"
    if FUNCTIONS[body] is None:
        load(text)(pa.ones((9, 9), dtype=pa.float32), pa.ones(9, dtype=pa.float32), 3)
    else:
        refused(text, FUNCTIONS[body])


def test_a_function_that_returns_nothing():
    text = f"@pa.func\ndef f(c, i, j):\n    c[i, j] = 3\n{HEAD}        x = f(c, i, j)\n"
    refused(text, "f.. returns nothing.*\n.*\n.*\nwrite the call as a statement")


def test_no_gradients():
    kernel = load(f"{HEAD}        c[i, j] = t * 2\n")
    c, r = pa.ones((9, 9), dtype=pa.float32), pa.ones(9, dtype=pa.float32)
    with pytest.raises(CompileError, match="a loop over tiles has no gradient"):
        kernel.grad(c, r, 3, grad_c=pa.ones_like(c))
