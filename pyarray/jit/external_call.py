"""Calls of other libraries (BLAS, FFT), which observers see as launches without a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..array import ndarray
from ..driver.base import Device
from .launch_state import Launch, observe, observed


@dataclass(frozen=True)
class Code:
    """Stands for an artifact: `key` names the library."""

    key: str


@dataclass(frozen=True, eq=False)
class LibraryVariant:
    """Stands for a kernel's variant. It can't be replayed and checks no bounds."""

    device: Device
    artifact: Code
    program: None = None
    checked: bool = False


def call_library(name: str, version: str, device: Device, args: Mapping[str, Any], run: Callable[[], Any]) -> Any:
    """`run()`, an array or a tuple of them, which observers see as a launch of `name`: it reads the arrays in
    `args` and makes its results."""
    if not observed():
        return run()
    outputs: dict[str, ndarray] = {}
    results_of_run: list[Any] = []

    def compute() -> None:
        results_of_run.append(run())
        results = results_of_run[0] if isinstance(results_of_run[0], tuple) else (results_of_run[0],)
        outputs.update((f"out{k}" if len(results) > 1 else "out", x) for k, x in enumerate(results))

    code = Code(f"{name.partition('.')[0]} {version}")
    observe(Launch(name, LibraryVariant(device, code), args, compute, made=outputs))
    return results_of_run[0]
