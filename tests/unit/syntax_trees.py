"""The syntax trees of source files, which several tests look through."""

import ast
import functools


@functools.cache
def nodes(path):
    """All nodes of a Python file, the module's first."""
    return tuple(ast.walk(ast.parse(path.read_text())))
