"""Public functions are declared once, in their chapter; what is derived from that agrees with it."""

import inspect

import numpy as np

import pyarray as pa
from pyarray.api.core import registry
from pyarray.array import numpy_functions


def public(name):
    """The function of this name in the package, or in `linalg`."""
    return inspect.unwrap(getattr(pa, name) if hasattr(pa, name) else getattr(pa.linalg, name))


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
