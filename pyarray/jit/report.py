"""Bounds errors and warnings, reported at the line of the user's launch."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ..driver.failure import Failure
from ..errors import BoundsError, EndlessLoopError, Frame, KernelAssertionError
from ..lang.bounds_checks import Site
from ..lang.messages import text_of
from ..lang.parse import is_internal as is_internal

INDEX, STEP0, SHAPE = 1, 4, 5  # of the kinds in csrc/device/pa_check.h; the others are of sub-views


def caller() -> tuple[str, int] | None:
    """Path and line of the user's call: the nearest frame outside this package, and outside torch, through
    which the call of an operator goes."""
    frame = sys._getframe(1)
    while frame is not None:
        of_torch = str(frame.f_globals.get("__name__")).startswith("torch.")
        if not of_torch and not is_internal(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


def warn_of_changes(kernel: Any, captured: str, parameter: Any, times: int) -> None:
    """A number that changes from launch to launch costs a compile each time."""
    parameter = parameter if isinstance(parameter, str) and parameter.isidentifier() else "x"
    name, source = kernel.__name__, kernel.source_text
    path, line = caller() or (source.path, source.first_line)
    warnings.warn_explicit(
        f"kernel {name!r} is compiled again whenever {captured} changes, {times} times by now: it is a "
        "captured value, compiled in as a constant; pass it as a parameter, "
        f"def {name}(..., {parameter})",
        RuntimeWarning, path, line,
    )  # fmt: skip


def launch_checked(kernel: str, variant: Any, args: Iterable[Any]) -> None:
    """Runs a variant. Raises the error of its first failure."""
    failure = variant.launch(*args)
    if failure:
        raise_failure(kernel, variant.program.sites, failure)


def raise_bounds(kernel: str, sites: Sequence[Site], failure: Failure) -> NoReturn:
    """Raise the error of an access."""
    site = sites[failure.site]
    names, frames = set(site.argument), frames_at(site)
    view = site.view
    for number in failure.frames:  # innermost call first
        call = sites[number]
        passed, views = dict(call.roots), dict(call.views)
        if view is None:  # it is a parameter there: the caller says of what
            view = next((views[name] for name in sorted(names) if views.get(name) is not None), None)
        names = {outer for name in names for outer in passed.get(name, (name,))}
        frames = [*frames_at(call), *frames]
    argument = " or ".join(sorted(names))  # one, unless a variable was set to a view of this or that array
    tid = max(failure.tid, 0)  # what stands outside the loops runs once, as the thread 0
    launch = caller()
    index = failure.index % (1 << 64) if site.unsigned else failure.index
    index = index if site.from_end is None else site.from_end
    fields: dict[str, Any] = {
        "kernel": kernel, "argument": argument, "axis": site.axis, "index": index,
        "extent": failure.extent, "offset": failure.offset, "size": failure.size, "tid": tid,
        "frames": tuple(frames), "launch": launch,
    }  # fmt: skip
    where, comma = f"kernel[{kernel}] tid={tid}, argument {argument!r}", ""
    if view is not None:  # with axes of its own
        comma, what = ",", f"view {view!r}" if view else "a view"
        where = f"kernel[{kernel}] tid={tid}, {what} of argument {argument!r}"
    if site.kind == "step":
        head = f"range step 0: kernel[{kernel}] tid={tid}: a step is negative or positive"
    elif site.kind == "sizes":
        what = f"ndrange of 2**63 iterations or more: kernel[{kernel}] tid={tid}"
        head = f"{what}: the product of the sizes must be below 2**63"
    elif site.kind == "local":
        name = f"{view!r}, " if view else ""
        where = f"kernel[{kernel}] tid={tid}, {name}axis {site.axis}"
        head = f"local array out of range: {where}: got index {index} (axis extent {failure.extent})"
    elif failure.kind == INDEX:
        what = "BufferView" if site.ndim == 1 else "ndarray"
        extent = "" if site.ndim == 1 else f", axis extent {failure.extent}"
        view = f"(offset={failure.offset}, size={failure.size}{extent})"
        head = f"{what} out of range: {where}{comma} axis {site.axis}: got index {index} {view}"
    elif failure.kind == STEP0:
        head = f"slice step 0: {where}{comma} axis {site.axis}"
    elif failure.kind == SHAPE:
        request = "a negative size, or 2**63 elements or more" if index < 0 else f"{index} elements"
        head = f"reshape: {where}: a view of size {failure.extent} has no shape of {request}"
    else:
        head = (
            f"sub-view out of range: {where}: got sub-view offset={failure.index}, size={failure.size} "
            f"of a view of size {failure.extent} (offset={failure.offset})"
        )
    raise BoundsError(with_frames(head, frames, launch), **fields)


def with_frames(head: str, frames: Sequence[Frame], launch: tuple[str, int] | None) -> str:
    """A message with the kernel's call stack and the place of the launch."""
    lines = [head, "Callstack:"]
    for depth, frame in enumerate(frames, 1):
        lines.append(f"{'  ' * depth}{frame.function} ({os.path.basename(frame.path)}:{frame.line})")
    if launch is not None:
        lines.append(f"Launched at {os.path.basename(launch[0])}:{launch[1]}")
    return "\n".join(lines)


def frames_of(sites: Sequence[Site], failure: Failure) -> tuple[Frame, ...]:
    """The call stack of a failure, outermost first."""
    numbers = (failure.site, *failure.frames)
    return tuple(frame for n in reversed(numbers) for frame in frames_at(sites[n]))


def frames_at(site: Site) -> list[Frame]:
    """The function that has a site, and those inlined into it around the site, outermost first."""
    loc, inlined = site.loc, list[Frame]()
    while loc.caller is not None:
        name, call = loc.caller
        inlined.insert(0, Frame(name, loc.path, loc.line))
        loc = call
    return [Frame(site.function, loc.path, loc.line), *inlined]


def raise_endless(kernel: str, sites: Sequence[Site], failure: Failure) -> NoReturn:
    """Raise the error of a `while` loop that took too many turns."""
    tid, launch, frames = max(failure.tid, 0), caller(), frames_of(sites, failure)
    head = (
        f"endless loop: kernel[{kernel}] tid={tid}: this while loop took more than {failure.extent} turns "
        "(PYARRAY_DEBUG_TURNS)"
    )
    fields = {"kernel": kernel, "turns": failure.index, "tid": tid, "frames": frames, "launch": launch}
    raise EndlessLoopError(with_frames(head, frames, launch), **fields)


def raise_assertion(kernel: str, sites: Sequence[Site], failure: Failure) -> NoReturn:
    """Raise the error of an assertion."""
    words = (failure.index, failure.extent, failure.offset, failure.size)
    text, values = text_of(sites[failure.site].text, words)
    tid, launch, frames = max(failure.tid, 0), caller(), frames_of(sites, failure)
    head = f"assertion failed: kernel[{kernel}] tid={tid}: {text}"
    fields = {"kernel": kernel, "text": text, "values": values, "tid": tid, "frames": frames, "launch": launch}
    raise KernelAssertionError(with_frames(head, frames, launch), **fields)


def raise_failure(kernel: str, sites: Sequence[Site], failure: Failure) -> NoReturn:
    """Raise the error of this record. Sites are those of the running source, so the lines are today's."""
    raiser = {"while": raise_endless, "assert": raise_assertion}.get(sites[failure.site].kind, raise_bounds)
    raiser(kernel, sites, failure)
