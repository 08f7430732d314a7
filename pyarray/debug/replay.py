"""Replays a recorded launch: memory is rebuilt, and the program comes from the dump."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..array import array_at
from ..driver.base import Device
from ..driver.kernel_step import parse_steps
from ..jit import compile as compiler
from ..jit.launch import make_launcher
from ..jit.report import raise_failure
from ..jit.serialization import site_from_json, type_from_json
from ..memory.buffer import Buffer
from .argument import DumpedArgument, Elements
from .record import PAGE, storage_dtype
from .signature import elements_digest

UNSIGNED = "a replay runs what is in the dump; if you trust all who could write it: launch.replay(trusted=True)"
log = logging.getLogger("pyarray")


def replay(
    program: Mapping[str, Any],
    args: Mapping[str, DumpedArgument],
    number: int,
    device: Device,
    trusted: bool = False,
) -> dict[str, Elements]:
    """Launch `program` on recorded arguments; see `DumpedLaunch.replay`. Unless `trusted`, elements must have
    the digests of their records, which the caller has found signed."""
    if program.get("raw"):
        raise ValueError(
            f"launch {number} of {program['kernel']!r} can't be replayed: a RawKernel's grid isn't recorded"
        )
    named = [name for name, _ in program["params"] if "!" not in name]  # the others are the launcher's own
    live = [_recorded_argument(program["kernel"], number, args.get(name), name) for name in named]
    flags, checked = tuple(program["flags"]), program["checked"]
    steps = parse_steps(program["entry"])
    artifact = compiler.load(program["kernel"], program["text"], steps, device, flags, Counter())
    if artifact.key != program["key"]:
        what = "another compiler, processor or pyarray than it ran with; bits may differ"
        log.warning("launch %d of kernel %r is replayed with %s", number, program["kernel"], what)
    memory = _Memory(device, [a for a in live if a.kind == "array"], trusted)
    params = tuple((name, type_from_json(type_row)) for name, type_row in program["params"])
    driver = device.driver
    run = (driver.checked_launcher if checked else driver.launcher)(artifact.function)
    launch = make_launcher(params, tuple(named), run, checked, program["kernel"])
    failure = launch(*(memory.value(a) for a in live))
    driver.synchronize()
    if failure:
        raise_failure(program["kernel"], [site_from_json(row) for row in program["sites"]], failure)
    return {a.name: memory.read(a) for a in live if a.direction in ("OUT", "INOUT")}


def _recorded_argument(kernel: str, number: int, dumped: DumpedArgument | None, name: str) -> DumpedArgument:
    if dumped is None or (dumped.direction in ("IN", "INOUT") and dumped.stored("before") is None):
        raise ValueError(
            f"launch {number} of {kernel!r} can't be replayed: argument {name!r} wasn't recorded as a whole; "
            "dump with level=2, and with more max_bytes or none"
        )
    return dumped


class _Memory:
    """The blocks of a launch, rebuilt: each with its size and its offset in a page."""

    def __init__(self, device: Device, arrays: list[DumpedArgument], trusted: bool):
        self.device = device
        self._blocks: dict[int, Elements] = {}  # as the host sees them
        self._addresses: dict[int, tuple[Buffer, int]] = {}  # where they are
        self._arrays = {a.name: a for a in arrays}
        for a in arrays:
            number, size = a.facts["block"], a.facts["block_size"]
            if number not in self._blocks:
                buffer = Buffer.allocate(device, size + PAGE)
                self._addresses[number] = buffer, buffer.ptr + (a.facts["block_page"] - buffer.ptr) % PAGE
                self._blocks[number] = np.zeros(size, np.uint8)
            elements = a.stored("before")
            if elements is not None and not trusted and elements_digest(elements) != a.stages["before"]["sha256"]:
                raise ValueError(f"the elements of {a.name!r} aren't those that were recorded: {UNSIGNED}")
            if elements is not None and elements.size:
                window = self._window(a, elements.shape)
                window[...] = elements.view(window.dtype)
        for number, block in self._blocks.items():
            device.driver.copy_in(self._addresses[number][1], _address(block), block.nbytes)

    def _window(self, a: DumpedArgument, shape: tuple[int, ...]) -> Elements:
        block = self._blocks[a.facts["block"]]
        words = storage_dtype(a.element).newbyteorder("=")
        return np.ndarray(shape, words, block, a.facts["place"] if block.size else 0, a.strides)

    def value(self, a: DumpedArgument) -> Any:
        """The argument as a launcher takes it."""
        if a.kind == "scalar":
            return a.before
        if a.kind == "address":
            return self._end(self._arrays[a.facts["argument"]], a.facts["end"])
        buffer, start = self._addresses[a.facts["block"]]
        array = array_at(buffer, start + a.facts["place"], a.shape, a.strides, a.element, True)
        # reports count from the base's first element, wherever that was
        first = array._ptr - (a.start_offset or 0) * a.element.itemsize
        array._base = array_at(buffer, first, (), (), a.element, True)
        return array

    def _end(self, a: DumpedArgument, end: str) -> int:
        start = self._addresses[a.facts["block"]][1]
        return start + (a.facts["block_size"] if end == "high" else 0)

    def read(self, a: DumpedArgument) -> Elements:
        """What is in an array now."""
        block = self._blocks[a.facts["block"]]
        self.device.driver.copy_out(_address(block), self._addresses[a.facts["block"]][1], block.nbytes)
        window = self._window(a, a.shape)
        return np.array(window, order="C").view(a.element.numpy)


def _address(block: Elements) -> int:
    return block.__array_interface__["data"][0]
