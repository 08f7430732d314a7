"""Launches for observers without a kernel behind them, and other processes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import pyarray as pa
from pyarray.driver.base import get_device
from pyarray.jit.kernel import Variant
from pyarray.jit.launch_state import Launch, observe
from pyarray.jit.signature import array_type
from pyarray.lang.pipeline import Program


class _Artifact:
    key = "made up"


def observed(args, run, given=None, device="cpu"):
    """A launch of `name -> (array, direction)` as observers see it; `run` stands for the kernel."""
    params = tuple((name, array_type(a._key)) for name, (a, _) in args.items())
    directions = {name: how for name, (_, how) in args.items()}
    program = Program("made_up", "", "made_up", params, directions, (), ())
    variant = Variant(program, _Artifact(), lambda *_: None, get_device(device), (), False)
    observe(Launch("made_up", variant, given or {name: a for name, (a, _) in args.items()}, run))


def recorded(folder, args, device="cpu"):
    """The launch of `observed` out of its dump."""
    with pa.dump(folder):
        observed(args, lambda: None, device=device)
    return pa.load_dump(folder)[0]


def same_bits(a, b):
    """Whether two arrays have the same shape and bits."""
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def run_python(code, *arguments, **environment):
    """Another process with a program, or a file of one."""
    program = [code] if isinstance(code, Path) else ["-c", code]
    return subprocess.run(
        [sys.executable, *program, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
