"""Saved kernels: variants in a file that `save` wrote, which a process without the source can load and launch."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..array import ndarray
from ..driver.base import Device
from ..driver.kernel_step import parse_steps
from ..dtypes import BY_NAME
from ..errors import DeviceError
from ..lang.gradient.adjoint import PREFIX
from ..lang.ir import ArrayType, Static
from ..lang.pipeline import Program
from ..structured_array import StructuredArray
from . import compile as compiler
from . import foreign_arrays
from .argument_errors import Binder
from .atomic_file import replace_file
from .binding import BoundArguments
from .gradient import attached_gradients, check_arrays
from .launch import launcher_of
from .launch_state import Launch, launch_state, observe, observed
from .pytree import Pytree
from .report import launch_checked
from .save import MAGIC, SCHEMA, WrittenDefault, constant_text
from .serialization import extents_from_json, line_from_json, site_from_json, type_from_json
from .signature import Constant, Parameter, Signature, Unread, as_argument, signature_of
from .variants import Variant

_PYTHON = {kind.__name__: kind for kind in (bool, int, float, complex)}
_PART = re.compile(r"\.(\w+)|\[(\d+)\]")

log = logging.getLogger("pyarray")


def load_kernel(path: str | os.PathLike[str]) -> SavedKernel:
    """The kernel that `Kernel.save` or `Kernel.compile` wrote to the file `path`: a callable for the types it was
    compiled for.

    Neither its source nor a compiler is needed where the binaries fit this machine; elsewhere their texts
    are compiled at the first launch, and the logger `pyarray` says so. Binaries are code: load only files
    that you would run. Raises `ValueError` for a file that is damaged or no saved kernel.

    >>> import os, tempfile, pyarray as pa
    >>> @pa.kernel
    ... def double(v):
    ...     for i in range(v.size):
    ...         v[i] = 2 * v[i]
    >>> a = pa.ones(3)
    >>> double(a)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     double.save(os.path.join(folder, "double"))
    ...     again = pa.load_kernel(os.path.join(folder, "double"))
    >>> again(a)
    >>> a.tolist()
    [4.0, 4.0, 4.0]
    """
    return kernel_of(Path(path).read_bytes(), os.fspath(path))


def kernel_of(data: bytes, path: str) -> SavedKernel:
    """The kernel of a file's contents; `path` is what errors call it."""
    first, _, body = data.partition(b"\n")
    if not first.startswith(MAGIC):
        raise ValueError(f"{path} is no saved kernel; Kernel.save writes them")
    schema, _, digest = first.removeprefix(MAGIC).decode(errors="replace").partition(" ")
    if schema != str(SCHEMA):
        raise ValueError(f"{path} has schema {schema!r}, this pyarray reads {SCHEMA}; save it anew")
    if hashlib.sha256(body).hexdigest() != digest:
        raise ValueError(f"the saved kernel {path} is damaged: its digest doesn't match; save it anew")
    head, _, blobs = body.partition(b"\n")
    return SavedKernel(json.loads(head), blobs, data)


class SavedKernel:
    """A kernel from a file, or for one; made by `load_kernel` and `Kernel.compile`. Call it as the kernel was
    called; it returns nothing."""

    def __init__(self, row: dict[str, Any], blobs: bytes, data: bytes):
        self.__name__, self._data = row["kernel"], data
        self._manifest = row
        self.saved_variants = [_SavedVariant(self.__name__, v, blobs) for v in row["variants"]]
        self._bind = Binder(self.__name__, [_parameter(p) for p in row["parameters"]])

    def __repr__(self) -> str:
        return f"<saved kernel {self.__name__}, {len(self.saved_variants)} variants>"

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        saved, bound = self._find(self._with_gradients(self._bind(args, kwargs)))
        bound.check_scalars()
        variant = saved.variant(bound.device())
        bound.check_writeable(variant.program)
        check_arrays(self.__name__, bound, variant.program)
        named, directions = bound.named, variant.program.directions
        foreign_arrays.upload(self.__name__, bound.copied, named, directions)
        if observed():
            run = partial(launch_checked, self.__name__, variant, tuple(bound.slots()))
            observe(Launch(self.__name__, variant, named, run))
        else:
            launch_checked(self.__name__, variant, bound.slots())
        foreign_arrays.download(bound.copied, named, directions)

    def _with_gradients(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments; if this is an adjoint, with the gradients that arrays carry where none is passed."""
        if all(saved.program.overwritten is None for saved in self.saved_variants):
            return arguments
        missing = {name for name, value in arguments.items() if value is None and name.startswith(PREFIX)}
        own = {name: arguments.get(name.removeprefix(PREFIX)) for name in missing}
        return arguments | {name: attached_gradients(value) for name, value in own.items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, for `load_kernel`. The file appears as a whole, or not at all."""
        replace_file(Path(path), self._data, 0o644)

    def _find(self, arguments: dict[str, Any]) -> tuple[_SavedVariant, BoundArguments]:
        """The variant that fits best: of the arrays' kind of device, with a binary that runs on it, and no more
        general than need be."""
        checked = self._manifest["debug"] if self._manifest["debug"] is not None else launch_state.debug
        best, least = None, (True, True, 0)
        for saved in self.saved_variants:
            if saved.checked == checked and (fitting := saved.bind(arguments)) is not None:
                bound, generality = fitting
                device = bound.device()
                distance = saved.row["device"] != device.kind, not saved.runs_on(device), generality
                if best is None or distance < least:
                    best, least = (saved, bound), distance
                if distance == (False, False, 0):
                    break
        if best is not None:  # if it was made for another kind of device, its error will say so
            return best
        got = ", ".join(f"{name}: {_described(value)}" for name, value in arguments.items())
        listing = "".join(f"\n  {saved.describe()}" for saved in self.saved_variants)
        with_checks = " with bounds checks" if checked else ""
        raise TypeError(
            f"the saved kernel {self.__name__!r} has no variant{with_checks} for {got}; there are:{listing}"
        )

    def manifest(self) -> dict[str, Any]:
        """As `Kernel.manifest`."""
        hidden = ("text", "binary")
        variants = [{k: x for k, x in v.items() if k not in hidden} for v in self._manifest["variants"]]
        return {**self._manifest, "variants": variants}

    @property
    def signature(self) -> Signature:
        """As `Kernel.signature`, of the last variant in the file."""
        last = self.saved_variants[-1]
        return signature_of(last.program, last.pytree.named(last.types))

    def source(self) -> str:
        """Text of the last variant in the file."""
        return self.saved_variants[-1].program.text


def _parameter(row: dict[str, Any]) -> Parameter:
    plain = Parameter(row["name"], None, keyword_only=row["keyword_only"])
    return replace(plain, default=_default(row["default"])) if "default" in row else plain


def _default(row: Any) -> Any:
    """The default of which `save` wrote the row."""
    if not isinstance(row, dict):
        return row
    ((how, value),) = row.items()
    if how == "tuple":
        return tuple(map(_default, value))
    if how == "number":
        return np.frombuffer(bytes.fromhex(value[1]), BY_NAME[value[0]].numpy)[0]
    return complex(*value) if how == "complex" else WrittenDefault(value)


def _described(value: Any) -> str:
    value = value if isinstance(value, np.ndarray) else as_argument(value)
    if isinstance(value, (ndarray, np.ndarray)):
        layout = "contiguous" if value.flags.c_contiguous else "strided"
        return f"{value.ndim}-D {layout} array of {value.dtype}"
    return _constant_text(value) or type(value).__name__


class _SavedVariant:
    """One variant of a file."""

    def __init__(self, kernel: str, row: dict[str, Any], blobs: bytes):
        self.kernel, self.row, self.checked = kernel, row, row["debug"]
        self.text, self.binary = (blobs[at : at + size] for at, size in (row["text"], row["binary"]))
        # By device: pytree, types, text and mode are the file's own.
        self._variants: dict[Device, Variant] = {}
        self.pytree = Pytree(tuple(Parameter(leaf["name"], _annotation(leaf)) for leaf in row["leaves"]))
        self.types = tuple(map(_leaf_type, row["leaves"]))
        self.program = self._program()

    def _program(self) -> Program:
        row = self.row
        params = tuple((name, _leaf_type(kind)) for name, kind in row["params"])
        sites = tuple(map(site_from_json, row["sites"]))
        specs = {
            p.name: k.specializations
            for p, k in zip(self.pytree.leaves, self.types, strict=True)
            if isinstance(k, ArrayType)
        }
        text, directions = self.text.decode(), row["directions"]
        further = {
            "extents": tuple(map(extents_from_json, row.get("extents", ()))),
            "checked": row.get("returns_failures", self.checked),
            "lines": tuple(map(line_from_json, row.get("lines", ()))),
            "overwritten": frozenset(row["overwritten"]) if "overwritten" in row else None,
        }
        return Program(self.kernel, text, parse_steps(row["entry"]), params, directions, sites, (), specs, **further)

    def bind(self, arguments: dict[str, Any]) -> tuple[BoundArguments, int] | None:
        """The leaves of the arguments, and how many of them the variant takes in a more general form; None if they
        aren't of its types."""
        try:
            if not all(_fits(s, _read(s["path"], arguments)) for s in self.row["structures"]):
                return None
            leaves = [_read(leaf["name"], arguments) for leaf in self.row["leaves"]]
            values, copied = foreign_arrays.import_arguments(self.kernel, self.pytree.leaves, leaves)
        except (AttributeError, LookupError, TypeError):
            return None
        bound = BoundArguments(self.kernel, self.pytree, values, copied)
        for leaf, value in zip(self.row["leaves"], values, strict=True):
            if leaf["kind"] == "constant" and _constant_text(value) != leaf["value"]:
                return None
        try:
            types = bound.leaf_types()
        except TypeError:
            return None
        pairs = [(a, b, x) for a, b, x in zip(types, self.types, values, strict=True) if not isinstance(b, Static)]
        fits = all(a == b or _is_general(a, b, x) for a, b, x in pairs)
        return (bound, sum(a != b for a, b, _ in pairs)) if fits else None

    def runs_on(self, device: Device) -> bool:
        """Whether its binary runs on the device: elsewhere its text is compiled."""
        row = self.row
        same = (device.kind, compiler.interface()) == (row["device"], row["interface"])
        return same and device.driver.runs(row["target"], row["machine"])

    def variant(self, device: Device) -> Variant:
        """The variant on this device. Raises `DeviceError` where neither its binary fits nor a compiler is
        there."""
        variant = self._variants.get(device)
        if variant is None:
            variant = self._variants.setdefault(device, self._load(device))
        return variant

    def _load(self, device: Device) -> Variant:
        flags = tuple(self.row["flags"])
        artifact = self._opened(device) or self._compiled(device, flags)
        names = tuple(p.name for p in self.pytree.leaves)
        options = {"kernel": self.kernel, "extents": self.program.extents}
        launch = launcher_of(self.program, artifact.function, device, names, self.checked, **options)
        return Variant(self.program, artifact, launch, device, flags, self.checked, None, self.pytree, self.types)

    def _opened(self, device: Device) -> compiler.Artifact | None:
        """Its binary, loaded; None where that was made for something else, or needs newer system libraries."""
        if not self.runs_on(device):
            return None
        try:
            return compiler.open_binary(device, self.binary, self.program.steps, self.row["artifact"])
        except DeviceError as error:
            log.warning("the binary of the saved kernel %r can't be loaded: %s", self.kernel, error)
            return None

    def _compiled(self, device: Device, flags: tuple[str, ...]) -> compiler.Artifact:
        row, driver = self.row, device.driver
        origin = f"was made for {row['device']} {row['machine']}"
        if device.kind != row["device"]:
            raise DeviceError(f"the saved kernel {self.kernel!r} {origin}, and the arrays are on {device}")
        what = f"the binary of the saved kernel {self.kernel!r} {origin}, and this is {driver.machine()}"
        log.warning("%s, or the runtime is of another release: its text is compiled here", what)
        try:
            program = self.program
            return compiler.load(self.kernel, program.text, program.steps, device, flags, Counter())
        except DeviceError as error:
            raise DeviceError(f"{what}; its text would have to be compiled here: {error}") from error

    def describe(self) -> str:
        """Parameters and their types, in words."""
        words = []
        for leaf, kind in zip(self.row["leaves"], self.types, strict=True):
            if leaf["kind"] in ("array", "number"):
                specs = "".join(f", {x}" for x in getattr(kind, "specializations", ()))
                words.append(f"{leaf['name']}: {kind}{specs}")
            elif leaf["kind"] == "constant":
                words.append(f"{leaf['name']}: {leaf['value']}")
        return ", ".join(words) + (" (with bounds checks)" if self.checked else "")


def _is_general(given: Any, saved: Any, value: Any) -> bool:
    """Whether a variant for arrays `saved` takes `value` of type `given`, too: it reads strides at each launch. Sizes
    that were declared are compared, whatever the array pins."""
    if not (isinstance(given, ArrayType) and isinstance(saved, ArrayType)):
        return False
    same = (given.dtype, given.ndim) == (saved.dtype, saved.ndim)
    layouts = saved.strided or not given.strided
    if not (same and layouts):
        return False
    declared = [spec for spec in saved.specializations if spec.size is not None and spec.stride is None]
    others = tuple(spec for spec in saved.specializations if spec not in declared)
    fits = saved.specializations == given.specializations or others in ((), given.specializations)
    return fits and all(value.shape[spec.axis] == spec.size for spec in declared)


def _fits(structure: dict[str, Any], value: Any) -> bool:
    if structure["names"]:
        for name in structure["names"]:
            _part(value, name)
        return True
    return isinstance(value, tuple) and len(value) == structure["count"]


def _read(path: str, arguments: dict[str, Any]) -> Any:
    """`p.inner.v` or `t[0]` of the arguments."""
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    value = arguments[name]
    for attribute, item in _PART.findall(path[len(name) :]):
        value = _part(value, attribute) if attribute else value[int(item)]
    return value


def _part(value: Any, name: str) -> Any:
    """A field of a dataclass or an object, or of an array of records its view."""
    records = isinstance(value, StructuredArray) or (isinstance(value, np.ndarray) and value.dtype.names is not None)
    return value[name] if records else getattr(value, name)


def _constant_text(value: Any) -> str | None:
    try:
        return constant_text("", "", value)
    except TypeError:
        return None


def _annotation(leaf: dict[str, Any]) -> Any:
    if "annotation" in leaf:
        return _PYTHON.get(leaf["annotation"]) or BY_NAME[leaf["annotation"]]
    return {"constant": Constant(object), "unread": Unread(object)}.get(leaf["kind"])


def _leaf_type(leaf: dict[str, Any]) -> Any:
    return type_from_json(leaf) if leaf["kind"] in ("array", "number") else Static(leaf.get("value"))
