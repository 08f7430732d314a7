"""The tuning key: what the best config depends on, as plain data; never an identity, address or device
number."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..array import ndarray
from ..driver.base import Device
from ..driver.kernel_step import format_steps
from ..dtypes import named_dtype
from ..errors import CompileError, DeviceError
from ..jit import compile as compiler
from ..jit.binding import BoundArguments
from ..lang.ir import static_key
from .restore import is_part_of

ALIGNMENTS = (128, 64, 32, 16)  # bytes that vector loads and cache lines ask for
GUARANTEED_ALIGNMENT = 16  # that every allocation has, NumPy's and torch's too: more than that is chance, and in no key
_MAX_ENTRIES = 256
MISSING = "missing"  # in the place of what can't be said: such a key equals no whole one


@dataclass(frozen=True)
class TuningKey:
    """`group` is all of the key but the values of the parameters that the tuner's `key` names: `sizes`. Both
    are plain data; `digest` names the whole, `group_digest` the group."""

    group: Mapping[str, Any]
    sizes: Mapping[str, Any]

    @property
    def digest(self) -> str:
        return digest_of([self.group, self.sizes])

    @property
    def group_digest(self) -> str:
        return digest_of(self.group)


def digest_of(data: Any) -> str:
    """Hash of plain data."""
    text = json.dumps(data, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def plain_data(value: Any) -> Any:
    """A declared key argument: its shape if it has one, else the dtype, else the value with its type, so that
    2, 2.0, True and "2" differ."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return ["shape", *(int(n) for n in shape)]
    if isinstance(value, ndarray):
        return ["shape"]
    if (row := named_dtype(value)) is not None:
        return ["dtype", row.name]
    if hasattr(value, "item") and hasattr(value, "dtype"):
        return [str(value.dtype), repr(value.item())]
    if type(value) is tuple:
        return ["tuple", *(plain_data(item) for item in value)]
    if type(value) in (bool, int, float, complex, str, bytes, type(None)):
        return [type(value).__name__, repr(value)]
    return [type(value).__name__, f"{value.__module__}.{getattr(value, '__qualname__', '')}"]


def layout_class(a: ndarray) -> dict[str, Any]:
    """Of an array: dtype, stride pattern, alignment of its first element (up to `GUARANTEED_ALIGNMENT`) and of its rows
    (which follows from strides, so that it is no chance). Numbers in the pattern are elements: 0 and ±1,
    other steps are "+" and "-". Axes of size 1 have no steps."""
    steps = ["1" if n <= 1 else _step(s, a._dtype.itemsize) for n, s in zip(a._shape, a._strides, strict=True)]
    far = sorted(abs(s) for s, step in zip(a._strides, steps, strict=True) if step in "+-")
    inner = any(step in ("1", "-1") and n > 1 for n, step in zip(a._shape, steps, strict=True))
    pitch = math.gcd(*far[0 if inner else 1 :])  # the least step is between elements, the others between rows
    properties = {
        "dtype": str(a._dtype),
        "steps": " ".join(steps),
        "base": alignment(a._ptr % GUARANTEED_ALIGNMENT or GUARANTEED_ALIGNMENT),
    }
    return properties | {"rows": alignment(pitch)} if pitch else properties


def _step(stride: int, itemsize: int) -> str:
    names = {0: "0", itemsize: "1", -itemsize: "-1"}
    return names.get(stride) or ("+" if stride > 0 else "-")


def alignment(number: int) -> int:
    """The largest of `ALIGNMENTS` that divides an address or a stride; 1 for none."""
    return next((n for n in ALIGNMENTS if number % n == 0), 1)


# A device's model and driver don't change while a process runs.
@functools.cache
def device_properties(device: Device) -> dict[str, Any]:
    """The model: two devices of one model have equal properties. They are read once, since that takes time."""
    driver = device.driver
    return {
        "kind": device.kind,
        "model": driver.name() or MISSING,
        "target": driver.target(),
        "machine": driver.machine(),
        "memory": driver.memory_info()[1] >> 28,  # quarters of a GiB: what is usable varies a little
        "threads": driver.properties()["threads"],
        "driver": str(driver.properties().get("driver", "")),
    }


def toolchain_properties(device: Device) -> dict[str, Any]:
    """What compiles, and the settings that change what it makes, as they are now."""
    try:
        fingerprint = device.driver.compiler().fingerprint
    except DeviceError:
        fingerprint = MISSING
    return {
        "compiler": fingerprint,
        "headers": compiler.headers()[:16],
        "settings": dict(compiler.settings()),
    }


class TextHashes:
    """Hash of the text that a kernel is lowered to and of its grids, per types of the arguments: the front end
    takes some milliseconds. What the text was made with is looked at each time."""

    def __init__(self, kernel: Any):
        self._kernel = kernel
        # By types of leaves with their constants, bounds checks, kind of device, shape; captures are compared.
        self._hashes: dict[Any, tuple[str, tuple[Any, ...]]] = {}
        self.captures: tuple[Any, ...] = ()  # the Python values that were compiled in, of all texts so far

    @functools.cached_property
    def function(self) -> str:
        """Hash of the function's source, without comments and decorators: branches that the first candidate doesn't
        take count, too; a new candidate doesn't."""
        node = self._kernel.source_text.node
        body = node.body if isinstance(node.body, list) else [node.body]
        return digest_of([ast.dump(node.args), *map(ast.dump, body)])

    def digest(self, kernel: Any, bound: BoundArguments, checked: bool) -> str:
        """Of the text for these arguments, with the shape of `kernel`, one of the same source; "" where there is none,
        since it doesn't compile."""
        try:
            return self._digest(kernel, bound, checked)
        except CompileError:
            return ""

    def state(self) -> Any:
        """What the captured values are now, for this process."""
        return tuple(static_key(c.current_value()) for c in self.captures)

    def _digest(self, kernel: Any, bound: BoundArguments, checked: bool) -> str:
        key = bound.key(checked), bound.device().kind, kernel.shape
        cached = self._hashes.get(key)
        if cached is None or any(static_key(c.current_value()) != static_key(c.value) for c in cached[1]):
            program = kernel._lowered(bound, checked)
            cached = digest_of([program.text, format_steps(program.steps)]), program.captures
            if len(self._hashes) >= _MAX_ENTRIES:
                self._hashes = {}  # emptied: see `__init__`
            self._hashes[key] = cached
            self.captures = merge_captures(self.captures, program.captures)
        return cached[0]


def merge_captures(previous: Sequence[Any], new: Sequence[Any]) -> tuple[Any, ...]:
    """Captures, with newer values in the place of older ones."""
    unchanged = (c for c in previous if not any(c.owner is n.owner and c.name == n.name for n in new))
    return (*unchanged, *new)


def _function_hash(function: Callable[..., Any]) -> str:
    """A function's name, and the hash of its text where that can be read; of an object, its class's call.
    What a `partial` holds belongs to it."""
    values = ""
    while isinstance(function, functools.partial):
        values += f" {function.args!r} {function.keywords!r}"
        function = function.func
    if not hasattr(function, "__qualname__"):
        function = type(function).__call__
    name = f"{function.__module__}.{function.__qualname__}{values}"
    try:
        return f"{name} {digest_of(inspect.getsource(function))[:16]}"
    except (OSError, TypeError):
        return name


def key_of(
    kernel: Any,
    bound: BoundArguments,
    checked: bool,
    source: str,
    named: Sequence[str],
    bench: Callable[..., Any] | None,
    check: Any,
) -> TuningKey:
    """The key of a call, with bounds checks or without. `source` is the hash of the function, `named` the
    tuner's `key`: of a structure all that is in it. `bench` and `check` are the tuner's: timings
    without a check, or with another one, are not valid."""
    values = {p.name: a.item() if p.scalar and hasattr(a, "item") else a for p, a in bound.pairs}
    sizes = {path: plain_data(value) for name in named for path, value in values.items() if is_part_of(name, path)}
    group = {
        "kernel": f"{kernel.__module__}.{kernel.__qualname__}",
        "source": source,
        "wraparound": kernel.wraparound,
        "flags": list(kernel.flags),
        "debug": checked,
        "arrays": {name: layout_class(a) for name, a in values.items() if isinstance(a, ndarray)},
        "device": device_properties(bound.device()),
        "toolchain": toolchain_properties(bound.device()),
        "bench": "" if bench is None else _function_hash(bench),
        "check": _function_hash(check) if callable(check) else bool(check),
    }
    return TuningKey(group, sizes)
