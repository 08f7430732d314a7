"""Public functions are declared once, in their chapter; what is derived from that agrees with it."""

import importlib
import inspect
import pkgutil

import numpy as np

import pyarray as pa
from pyarray.api import numpy as numpy_chapters
from pyarray.api import standard
from pyarray.api.core import registry
from pyarray.array import numpy_functions


def public(name):
    """The function of this name in the package, or in `linalg`."""
    return inspect.unwrap(getattr(pa, name) if hasattr(pa, name) else getattr(pa.linalg, name))


def test_every_chapter_is_in_the_package():
    """A chapter that the package doesn't import has no public functions, and nobody misses them."""
    loaded = {chapter.__name__ for chapter in registry.chapters()}
    for package in (standard, numpy_chapters):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            chapter = importlib.import_module(module.name)
            assert module.name in loaded or not hasattr(chapter, "__all__"), module.name


def test_calls_that_are_made_ahead_call_what_declares_them():
    assert len(registry.common_calls) > 100
    for call in registry.common_calls:
        assert call.text.partition("(")[0] in registry.functions(), call
        assert isinstance(getattr(pa, call.dtype), type), call


def test_every_function_of_a_chapter_is_public():
    functions = registry.functions()
    assert len(functions) > 300
    for name, function in functions.items():
        assert public(name) is inspect.unwrap(function), name


def test_a_name_is_declared_in_one_chapter_or_means_the_same_in_all():
    found = {}
    for chapter in registry.chapters():
        assert len(chapter.__all__) == len(set(chapter.__all__)), chapter.__name__
        for name in chapter.__all__:
            assert found.setdefault(name, getattr(chapter, name)) is getattr(chapter, name), name


def test_numpys_functions_come_to_those_of_the_same_name():
    functions = registry.functions()
    known = {n for n, f in functions.items() if f.__module__ != "pyarray.api.numpy.files"}
    for name in known & {n for n, f in vars(np).items() if callable(f)}:
        assert name in numpy_functions, name
    for name, function in numpy_functions.items():
        if name in known and inspect.unwrap(function).__module__ != "pyarray.api.methods.numpy_names":
            assert inspect.unwrap(function) is public(name), name


def test_methods_are_public_functions_of_the_namespace():
    assert len(registry.methods) > 20
    for name, function in registry.methods.items():
        assert vars(pa.ndarray)[name].__doc__.startswith(f"`pyarray.{function.__name__}`"), name
        assert name == "trace" or inspect.unwrap(getattr(pa, name)) is inspect.unwrap(function), name
