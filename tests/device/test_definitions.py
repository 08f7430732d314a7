"""Where kernels may be defined: files, exec, notebook cells, closures, classes, stdin; how they travel."""

import copy
import functools
import inspect
import linecache
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from kernel_tools import on

import pyarray as pa

BODY = "@pa.kernel\ndef k(v):\n    for i in range(v.size):\n        v[i] = {}\n"


def run(kernel, device):
    v = on(device, np.zeros(2))
    kernel(v)
    return pa.asnumpy(v).tolist()


def test_exec_without_text_says_what_to_do(device):
    space = {"pa": pa}
    exec(BODY.format(1), space)
    for _ in range(2):
        with pytest.raises(pa.CompileError) as caught:
            run(space["k"], device)
        assert str(caught.value) == (
            "the source of 'k' (<string>:1) can't be found: Python keeps no text of functions typed at the "
            "plain prompt, read from stdin, or passed to exec() or -c.\n"
            "Put the function in a file or a notebook cell, or register the text with linecache."
        )


def test_exec_with_text(device):
    for value in (1, 2):  # the same name, another text
        text, path = BODY.format(value), "<my generated code>"
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        space = {"pa": pa}
        exec(compile(text, path, "exec"), space)
        assert run(space["k"], device) == [value] * 2


def test_notebook_cells(device):
    """IPython compiles a cell under a name of its own and puts its text into linecache, with a time."""
    kernels = []
    for number, value in enumerate((3, 4)):
        text, path = BODY.format(value), f"/tmp/ipykernel_1/{number}.py"
        linecache.cache[path] = (len(text), time.time(), text.splitlines(keepends=True), path)
        linecache.checkcache = functools.partial(_kept, linecache.checkcache, path)
        try:
            space = {"pa": pa}
            exec(compile(text, path, "exec"), space)
            kernels.append(space["k"])
        finally:
            linecache.checkcache = linecache.checkcache.args[0]
    assert [run(k, device) for k in kernels] == [[3, 3], [4, 4]]


def _kept(check, path, filename=None):
    entry = linecache.cache.get(path)
    check(filename)
    if entry is not None:
        linecache.cache[path] = entry


@pytest.mark.parametrize("way", ["-", "-c"])
def test_stdin_and_command_line(way):
    text = "import pyarray as pa\n" + BODY.format(1) + "k(pa.zeros(2))\n"
    args = [sys.executable, "-"] if way == "-" else [sys.executable, "-c", text]
    done = subprocess.run(args, input=text if way == "-" else "", capture_output=True, text=True)
    if sys.version_info >= (3, 13) and way == "-c":
        assert done.returncode == 0
        return
    assert done.returncode == 1
    assert "the source of 'k' (<st" in done.stderr
    assert "Put the function in a file or a notebook cell" in done.stderr


def test_closures_with_values_of_their_own(device):
    def make(n):
        @pa.func
        def plus(x):
            return x + n

        @pa.kernel
        def k(v):
            for i in range(v.size):
                v[i] = plus(n)

        def change(value):
            nonlocal n
            n = value

        return k, change

    made = [make(n) for n in (1, 2)]
    assert [run(k, device) for k, _ in made] == [[2, 2], [4, 4]]
    made[0][1](5)
    assert [run(k, device) for k, _ in made] == [[10, 10], [4, 4]]


def test_a_name_without_a_value_yet(device):
    def make():
        @pa.kernel
        def k(v):
            for i in range(v.size):
                v[i] = later

        with pytest.raises(pa.CompileError, match="'later' has no value yet"):
            run(k, device)
        later = 6
        return k

    assert run(make(), device) == [6, 6]


def test_lambdas(device):
    first, second = pa.func(lambda x: x + 1), pa.func(lambda x: x * 10)  # one line, two of them

    @pa.kernel
    def k(v):
        for i in range(v.size):
            v[i] = first(second(1))

    assert run(k, device) == [11, 11]
    with pytest.raises(pa.CompileError, match="a lambda returns a value, and a kernel returns nothing"):
        run(pa.kernel(lambda v: v[0]), device)


@pa.kernel
@pa.kernel(debug=True)
def twice(v):
    for i in range(v.size):
        v[i + 1 - 1] = 8


@pa.func
@pa.func
def doubled(x):
    return 2 * x


@pa.func
@pa.kernel
def both(v):
    for i in range(v.size):
        v[i] = doubled(9)


def test_decorated_twice(device):
    assert run(twice, device) == [8, 8]
    assert twice.debug is None
    assert run(pa.kernel(pa.kernel(doubled).__wrapped__ and both), device) == [18, 18]


def test_other_decorators(device):
    def logged(f):
        @functools.wraps(f)
        def wrapper(*args):
            return f(*args)

        return wrapper

    def plain(v):
        for i in range(v.size):
            v[i] = 1

    message = "'plain' is wrapped by another decorator, whose text would be compiled; put this decorator"
    for decorate in (pa.kernel, pa.func):
        with pytest.raises(TypeError, match=message):
            decorate(logged(plain))
    assert run(logged(pa.kernel(plain)), device) == [1, 1]


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_decorators_of_classes_the_wrong_way_round(kind):
    for decorate in (pa.kernel, pa.func):
        message = rf"expected a Python function, got a {kind.__name__}; put @{kind.__name__} above this"
        with pytest.raises(TypeError, match=message):
            decorate(kind(lambda v: v))


def test_what_is_no_plain_function(device):
    @pa.kernel
    async def waits(v):
        v[0] = 1

    def generates(v):
        yield v[0]

    with pytest.raises(pa.CompileError, match=r"'waits' .* is an 'async def'.*\nkernels are plain functions"):
        run(waits, device)
    with pytest.raises(pa.CompileError, match="'yield' is not part of the kernel language"):
        run(pa.kernel(generates), device)
    for bad in (3, len, int, functools.partial(generates)):
        with pytest.raises(TypeError, match="expected a Python function, got"):
            pa.kernel(bad)


def test_parameters_that_cannot_be():
    def stars(v, *rest):
        pass

    def named(v, **options):
        pass

    for function, name in ((stars, r"\*rest"), (named, r"\*options")):
        with pytest.raises(pa.CompileError, match=rf"'{name}' is not part of .*(\n.*)*name each parameter"):
            pa.kernel(function)(pa.zeros(1))


def test_a_grid_is_refused():
    @pa.kernel
    def k(v):
        for i in range(v.size):
            v[i] = 1

    with pytest.raises(TypeError, match=r"'k' takes no grid, got \[\(4, 32\)\]; call k\(\.\.\.\): each iteration"):
        k[4, 32](pa.zeros(3))


def test_defaults_and_keywords(device):
    @pa.kernel
    def k(v, x=1.5, *, y: float = 2.0, n: pa.constexpr = 3, deep: pa.constexpr = (1, (2, "a"))):
        for i in range(v.size):
            v[i] = x * y * n + deep[1][0]

    v = on(device, np.zeros(1))
    for _ in range(2):
        for args, keywords, expected in (
            ((), {}, 1.5 * 2 * 3 + 2),
            ((2,), {}, 2 * 2 * 3 + 2),
            ((), {"y": 3}, 1.5 * 3 * 3 + 2),
            ((4.0,), {"n": 5}, 4 * 2 * 5 + 2),
            ((), {"deep": (0, (7,))}, 1.5 * 2 * 3 + 7),
        ):
            k(v, *args, **keywords)
            assert v[0].item() == expected
    for call, message in (
        (lambda: k(), r"^k\(\) missing 1 required positional argument: 'v'"),
        (lambda: k(v, 1, 2), r"^k\(\) takes from 1 to 2 positional arguments but 3 were given"),
        (lambda: k(v, z=1), r"^k\(\) has no keyword 'z'.* It takes v, x, y, n, deep"),
        (lambda: k(v, v=v), r"^k\(\) got multiple values for argument 'v'"),
        (lambda: k(v, y="a"), r"^k\(\): 'y' must be a number of type float, got str"),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    assert list(inspect.signature(k.__wrapped__).parameters) == ["v", "x", "y", "n", "deep"]


# ---- copies


def test_copies_are_the_kernel_itself():
    for thing in (twice, doubled):
        assert copy.copy(thing) is copy.deepcopy(thing) is copy.deepcopy([thing])[0] is thing
        assert pickle.loads(pickle.dumps(thing)) is thing


class Holder:
    @pa.kernel
    def method(self, v):
        for i in range(v.size):
            v[i] = self.x

    def __init__(self, x):
        self.x = x


def test_methods_travel(device):
    assert pickle.loads(pickle.dumps(Holder.method)) is Holder.method
    bound = pickle.loads(pickle.dumps(Holder(4).method))
    assert run(bound, device) == [4, 4]


def test_a_misspelt_keyword(device):
    @pa.kernel
    def k(v, factor=1.0):
        for i in range(v.size):
            v[i] *= factor

    v = pa.ones(2, device=device)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"k\(\) has no keyword 'facter'; did you mean 'factor'\? It"):
            k(v, facter=2.0)
    k(v, factor=2.0)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"k\(\) has no keyword 'facter'; did you mean 'factor'\? It"):
            k(v, facter=2.0)
    assert v.tolist() == [2.0, 2.0]


def test_what_is_not_found_by_its_path_is_not_pickled():
    @pa.kernel
    def inner(v):
        pass

    anonymous = pa.func(lambda x: x)
    for thing, name in ((inner, "kernel 'inner'"), (anonymous, "function '<lambda>'")):
        with pytest.raises(pickle.PicklingError, match=f"{name} can't be pickled: .*; define it at the top"):
            pickle.dumps(thing)
