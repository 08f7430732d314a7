"""What a traced function (`fuse.py`) must not do, since it runs once: draw random numbers, and compute with
arrays that are no arguments, whose elements may differ at the next call."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

from ..array import ndarray
from ..jit.launch_state import Launch, launch_state, observing
from ..memory.buffer import Buffer
from .tracing import Trace


class _Running(threading.local):
    trace: Trace | None = None


_running = _Running()


@contextmanager
def tracing(trace: Trace, captured: Mapping[Buffer, str]) -> Iterator[None]:
    """This thread runs the function inside the block. `captured` is the memory of arrays that it has by name,
    and what it calls them."""

    def observe(launch: Launch) -> None:
        for x in launch.args.values():
            if isinstance(x, ndarray) and x._buffer in captured:
                refuse_while_tracing(
                    f"what is computed of {captured[x._buffer]} alone, which is no argument, would be "
                    "computed once, while the function is traced",
                    "compute it outside and pass the array as an argument",
                )
        launch.run()

    before, _running.trace = _running.trace, trace
    try:
        with observing(observe) if launch_state.observer is None else nullcontext():  # blocks don't nest
            yield
    finally:
        _running.trace = before


def refuse_while_tracing(what: str, instead: str) -> None:
    """Raises `CompileError` where this thread traces a function: for what may differ from call to call."""
    if (trace := _running.trace) is not None:
        trace.is_explained = True
        trace.fail(what, instead)
