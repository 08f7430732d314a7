"""Runs the CPU kernels of compiled graphs on torch's OpenMP threads.

OpenMP's threads look for work for milliseconds after each operator of torch's. In a graph, where operators
and kernels alternate, a team of our own would find the processors taken by them, and take theirs in turn.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

import torch

from ..driver.base import get_device

_process = os.getpid()


@cache
def share_threads() -> None:
    """From now on CPU kernels run on torch's OpenMP threads. The pool's workers are used if torch's OpenMP lacks
    libgomp's functions, and in the child of a fork, which has no OpenMP threads."""
    team = _team() if os.getpid() == _process else None
    if team is not None:
        driver: Any = get_device("cpu").driver
        driver.use_team(team)


def _team() -> int | None:
    """Address of the function by which torch's compiled code runs a parallel region. It is looked for as the
    system does it for torch: first among what all of the program sees, then in the libraries torch needs."""
    for path in (None, torch._C.__file__):
        function = getattr(ctypes.CDLL(path), "GOMP_parallel", None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value
    return None
