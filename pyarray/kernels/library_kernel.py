"""Kernels of the library that are Python functions; those whose text depends on a rank are `jit.kernel.from_text`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import jit
from ..lang.parse import source_of


def library_kernel(function: Callable[..., Any]) -> Callable[[], jit.kernel.Kernel]:
    """Called, it gives the function as a kernel, which the first call makes: an import must not. What the function
    captures is compiled in for good."""
    return functools.cache(lambda: jit.kernel.Kernel(source_of(function), None, False, (), on_global_change=None))
