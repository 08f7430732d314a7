"""Keywords that a function doesn't have: every error names the nearest one that is there."""

import functools
import inspect
import pickle
import types

import numpy as np
import pytest

import pyarray as pa
from pyarray import keywords as keywords_of

A = pa.asarray(np.arange(6.0).reshape(2, 3))
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def keywords(function):
    """Names that calls may use; none where the function takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return []
    return [p.name for p in parameters if p.kind in NAMED and p.name != "self"]


def functions():
    """All public functions with keywords, but those of the kernel language."""
    for module in (pa, pa.linalg, pa.fft, pa.random):
        for name in sorted(getattr(module, "__all__", dir(module))):
            found = getattr(module, name)
            public = not name.startswith("_") and isinstance(found, types.FunctionType)
            ours = public and f"{found.__module__}.".startswith("pyarray.")
            ours = ours and not found.__module__.startswith("pyarray.lang")
            if ours and keywords(found):
                yield pytest.param(found, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("function", list(functions()))
def test_the_nearest_keyword_is_named(function):
    longest = max(keywords(function), key=len)
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    with pytest.raises(TypeError, match=rf"has no keyword '{longest}{longest[-1]}'; .*\b{longest}\b"):
        function(*[None] * kinds.count(inspect.Parameter.POSITIONAL_ONLY), **{longest + longest[-1]: 1})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pa.sum(A, dtpye=1),
         "sum() has no keyword 'dtpye'; did you mean 'dtype'? "
         "It takes axis, dtype, keepdims, out, initial, where"),
        (lambda: pa.add(A, A, where=True),
         "add() has no keyword 'where'; choose with pyarray.where(mask, result, other); it takes out"),
        (lambda: pa.sqrt(A, outt=A), "sqrt() has no keyword 'outt'; did you mean 'out'? It takes out"),
        (lambda: pa.sum(x=A),
         "sum() has no keyword 'x': give x by position; it takes axis, dtype, keepdims, out, initial, where"),
        (lambda: A.sum(axs=0),
         "sum() has no keyword 'axs'; did you mean 'axis'? "
         "It takes axis, dtype, keepdims, out, initial, where"),
        (lambda: A.reshape(6, copi=True),
         "reshape() has no keyword 'copi'; did you mean 'copy'? It takes order, copy"),
        (lambda: A.astype("f4", casting="safe"),
         "astype() has no keyword 'casting'; cast with astype, which casts everything; it takes dtype, copy"),
        (lambda: np.nanmean(A, where=True),
         "nanmean() has no keyword 'where'; replace what is to be left out first, with "
         "pyarray.where(mask, x, neutral); it takes axis, dtype, keepdims, out"),
        (lambda: pa.random.default_rng(1).normal(sze=3),
         "normal() has no keyword 'sze'; did you mean 'size'? It takes loc, scale, size, dtype, device"),
    ],
)  # fmt: skip
def test_messages(call, message):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == message


def test_an_error_of_the_function_itself_is_left_alone():
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        pa.sum(A, axis="x")


def test_signatures_pickles_and_numpy_names_stay():
    assert list(inspect.signature(pa.add).parameters) == ["x1", "x2", "out"]
    assert list(inspect.signature(pa.zeros).parameters) == ["shape", "dtype", "order", "device"]
    for function in (pa.add, pa.zeros, pa.sum, pa.linalg.norm, pa.fft.fft):
        assert pickle.loads(pickle.dumps(function)) is function


def test_only_the_language_s_own_functions_are_left_alone():
    """Also where a name has `lang` or `pyarray` in it."""

    def function(*, here=None):
        pass

    for module, wrapped in (("pyarray.lang.markers", False), ("pyarray.language", True), ("pyarrays", False)):
        function.__module__ = module
        namespace = {"__name__": module, "function": function}
        keywords_of.install(namespace)
        assert (namespace["function"] is not function) == wrapped
        assert module != "pyarrays" or keywords_of.checked(function) is function
        function = types.FunctionType(function.__code__, {}, "function")
        function.__kwdefaults__ = {"here": None}


def test_a_function_is_wrapped_once():
    def function(*, here=None):
        pass

    function.__module__ = "pyarray.testing"
    made = keywords_of.checked(function)
    assert made is keywords_of.checked(function) is keywords_of.checked(made)
    other = functools.wraps(function)(lambda **options: 3)
    other.__module__ = "pyarray.testing"
    assert keywords_of.checked(other)(here=1) == 3
