"""Saved kernels: compiled variants in a file, which a process without the source can load and launch.

A file is two lines of text, then the texts and binaries of the variants. The first line has a digest of all
that follows it, the second is the manifest (JSON). Nothing in it is executed but the binaries.
"""

from __future__ import annotations

import enum
import hashlib
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..array import ndarray
from ..driver.base import Device
from ..driver.kernel_step import format_steps, parse_steps
from ..dtypes import BY_NAME, DType, named_dtype
from ..errors import DeviceError
from ..lang.emit_views import struct_fields
from ..lang.ir import ArrayType, ScalarType, Static
from ..lang.pipeline import Program
from . import compile as compiler
from . import foreign_arrays
from .argument_errors import Binder
from .atomic_file import replace_file
from .binding import BoundArguments
from .launch import launcher_of, written_by
from .launch_state import Launch, launch_state, observe, observed
from .pytree import Pytree, Struct
from .report import launch_checked
from .serialization import extents_from_json, site_from_json, site_to_json, type_from_json, type_to_json
from .signature import Constant, Parameter, Signature, Unread, as_argument, signature_of
from .variants import Variant

SCHEMA = 1
MAGIC = b"pyarray kernel "
_PYTHON = {kind.__name__: kind for kind in (bool, int, float, complex)}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), enum.Enum)
_PART = re.compile(r"\.(\w+)|\[(\d+)\]")

log = logging.getLogger("pyarray")


# ---- writing


def manifest(kernel: Any) -> dict[str, Any]:
    """See `Kernel.manifest`."""
    return _manifest(kernel, _variants_of(kernel))


def _variants_of(kernel: Any) -> list[Variant]:
    """The variants as they are now: other threads may compile more meanwhile."""
    variants = list(kernel._variants)
    if not variants:
        what = f"kernel {kernel.__name__!r} has nothing to save before its first launch"
        raise RuntimeError(f"{what}: types come with the arguments")
    return variants


def _manifest(kernel: Any, variants: Sequence[Variant]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kernel": kernel.__name__,
        "debug": kernel.debug,
        "parameters": [_parameter_row(p) for p in kernel.parameters],
        "variants": [_variant_row(kernel.__name__, v) for v in variants],
    }


def _parameter_row(p: Parameter) -> dict[str, Any]:
    row: dict[str, Any] = {"name": p.name, "keyword_only": p.keyword_only}
    if isinstance(p.default, (bool, int, float, str)) or p.default is None:
        row["default"] = p.default
    return row


def _variant_row(kernel: str, v: Variant) -> dict[str, Any]:
    program, driver = v.program, v.device.driver
    if program.lines:
        raise TypeError(f"kernel {kernel!r} can't be saved: it prints, by texts that are in this process")
    return {
        "device": v.device.kind,
        "target": driver.target(),
        "machine": driver.machine(),
        "interface": compiler.interface(),
        "toolchain": driver.compiler().fingerprint,
        "artifact": v.artifact.key,
        "entry": format_steps(program.steps),
        "debug": v.checked,
        "flags": list(v.flags),
        "text_sha256": hashlib.sha256(program.text.encode()).hexdigest(),
        "binary_sha256": hashlib.sha256(v.artifact.binary).hexdigest(),
        "structures": [row for item in v.pytree.items for row in _structure_rows(item)],
        "leaves": [_leaf_row(kernel, v, p, kind) for p, kind in zip(v.pytree.leaves, v.types, strict=True)],
        "directions": program.directions,
        "params": [[name, type_to_json(kind)] for name, kind in program.params],
        "sites": [site_to_json(site) for site in program.sites],
        "extents": [asdict(extent) for extent in program.extents],
    }


def _structure_rows(item: Any) -> Iterator[dict[str, Any]]:
    if isinstance(item, Struct):
        yield {
            "path": item.name,
            "class": item.kind.__qualname__,
            "names": list(item.names),
            "count": len(item.items),
        }
        for part in item.items:
            yield from _structure_rows(part)


def _leaf_row(kernel: str, v: Variant, p: Parameter, kind: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"name": p.name, "direction": v.program.directions.get(p.name)}
    if isinstance(kind, (ArrayType, ScalarType)):
        row |= type_to_json(kind)
        if p.scalar:
            row["annotation"] = p.annotation.name if isinstance(p.annotation, DType) else p.annotation.__name__
    elif isinstance(p.annotation, Unread):
        row |= {"kind": "unread"}
    else:
        row |= {"kind": "constant", "value": _constant(kernel, p.name, kind.value)}
    live = dict(v.program.params)
    row["slots"] = _slots(live[p.name], v.checked) if p.name in live else []
    return row


def _slots(kind: Any, checked: bool) -> list[str]:
    """Names of a parameter's slots: each has 8 bytes, and all parameters' stand in order."""
    if isinstance(kind, ArrayType):
        return [name for _, name in struct_fields(kind, checked)]
    return ["re", "im"] if kind.dtype.kind == "c" else ["value"]


def _constant(kernel: str, name: str, value: Any) -> str:
    """What was compiled in, in words that are the same in each process. Raises `TypeError` where there are
    none."""
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(_constant(kernel, name, item) for item in value)})"
    if (row := named_dtype(value)) is not None:
        return f"dtype {row}"
    if isinstance(value, _PLAIN):
        return f"{type(value).__qualname__} {value!r}"
    what = f"kernel {kernel!r} can't be saved: {name!r} was compiled in with {value!r}"
    raise TypeError(f"{what}, and only numbers, texts, dtypes, None and tuples of these can be written down")


def save(kernel: Any, path: str | os.PathLike[str]) -> None:
    """See `Kernel.save`. The file appears as a whole, or not at all."""
    variants = _variants_of(kernel)
    head, blobs, at = _manifest(kernel, variants), [], 0
    for row, v in zip(head["variants"], variants, strict=True):
        for name, data in (("text", v.program.text.encode()), ("binary", v.artifact.binary)):
            row[name] = [at, len(data)]
            blobs.append(data)
            at += len(data)
    body = json.dumps(head).encode() + b"\n" + b"".join(blobs)
    first = MAGIC + f"{SCHEMA} {hashlib.sha256(body).hexdigest()}\n".encode()
    replace_file(Path(path), first + body)


# ---- reading


def load_kernel(path: str | os.PathLike[str]) -> SavedKernel:
    """The kernel that `Kernel.save` wrote to the file `path`: a callable for the types it was compiled for.

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
    data = Path(path).read_bytes()
    first, _, body = data.partition(b"\n")
    if not first.startswith(MAGIC):
        raise ValueError(f"{os.fspath(path)} is no saved kernel; Kernel.save writes them")
    schema, _, digest = first.removeprefix(MAGIC).decode(errors="replace").partition(" ")
    if schema != str(SCHEMA):
        raise ValueError(f"{os.fspath(path)} has schema {schema!r}, this pyarray reads {SCHEMA}; save it anew")
    if hashlib.sha256(body).hexdigest() != digest:
        raise ValueError(f"the saved kernel {os.fspath(path)} is damaged: its digest doesn't match; save it anew")
    head, _, blobs = body.partition(b"\n")
    return SavedKernel(json.loads(head), blobs)


class SavedKernel:
    """A kernel from a file; made by `load_kernel`. Call it as the kernel was called; it returns nothing."""

    def __init__(self, row: dict[str, Any], blobs: bytes):
        self.__name__ = row["kernel"]
        self._manifest = row
        self._saved = [_SavedVariant(self.__name__, v, blobs) for v in row["variants"]]
        self._bind = Binder(self.__name__, [_parameter(p) for p in row["parameters"]])

    def __repr__(self) -> str:
        return f"<saved kernel {self.__name__}, {len(self._saved)} variants>"

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        saved, bound = self._find(self._bind(args, kwargs))
        bound.check_scalars()
        variant = saved.variant(bound.device())
        bound.check_writeable(variant.program)
        named, directions = bound.named, variant.program.directions
        foreign_arrays.upload(self.__name__, bound.copied, named, directions)
        if observed():
            run = partial(launch_checked, self.__name__, variant, tuple(bound.slots()))
            observe(Launch(self.__name__, variant, named, run))
        else:
            launch_checked(self.__name__, variant, bound.slots())
        foreign_arrays.download(bound.copied, named, directions)

    def _find(self, arguments: dict[str, Any]) -> tuple[_SavedVariant, BoundArguments]:
        checked = self._manifest["debug"] if self._manifest["debug"] is not None else launch_state.debug
        fitting = []
        for saved in self._saved:
            if saved.checked == checked and (bound := saved.bind(arguments)) is not None:
                if saved.row["device"] == bound.device().kind:
                    return saved, bound
                fitting.append((saved, bound))
        if fitting:  # made for another kind of device, as its error will say
            return fitting[0]
        got = ", ".join(f"{name}: {_described(value)}" for name, value in arguments.items())
        listing = "".join(f"\n  {saved.describe()}" for saved in self._saved)
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
        last = self._saved[-1]
        return signature_of(last.program, last.pytree.named(last.types))

    def source(self) -> str:
        """Text of the last variant in the file."""
        return self._saved[-1].program.text


def _parameter(row: dict[str, Any]) -> Parameter:
    plain = Parameter(row["name"], None, keyword_only=row["keyword_only"])
    return replace(plain, default=row["default"]) if "default" in row else plain


def _described(value: Any) -> str:
    value = value if isinstance(value, np.ndarray) else as_argument(value)
    if isinstance(value, (ndarray, np.ndarray)):
        layout = "contiguous" if value.flags.c_contiguous else "strided"
        return f"{value.ndim}-D {layout} array of {value.dtype}"
    return type(value).__name__


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
        extents = tuple(map(extents_from_json, row.get("extents", ())))
        steps = parse_steps(row["entry"])
        return Program(self.kernel, text, steps, params, directions, sites, (), specs, extents=extents)

    def bind(self, arguments: dict[str, Any]) -> BoundArguments | None:
        """The leaves of the arguments; None if they aren't of this variant's types."""
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
        pairs = zip(types, self.types, values, strict=True)
        same = all(a == b or _fits_declared(a, b, value) for a, b, value in pairs if not isinstance(b, Static))
        return bound if same else None

    def variant(self, device: Device) -> Variant:
        """The variant on this device. Raises `DeviceError` where neither its binary fits nor a compiler is
        there."""
        variant = self._variants.get(device)
        if variant is None:
            variant = self._variants.setdefault(device, self._load(device))
        return variant

    def _load(self, device: Device) -> Variant:
        row, driver, flags = self.row, device.driver, tuple(self.row["flags"])
        environment = (device.kind, driver.target(), driver.machine(), compiler.interface())
        if environment == (row["device"], row["target"], row["machine"], row["interface"]):
            artifact = compiler.open_binary(device, self.binary, self.program.steps, row["artifact"])
        else:
            artifact = self._compiled(device, flags)
        names = tuple(p.name for p in self.pytree.leaves)
        options = {"kernel": self.kernel, "maybe_watched": written_by(self.program), "extents": self.program.extents}
        launch = launcher_of(self.program, artifact.function, device, names, self.checked, **options)
        return Variant(self.program, artifact, launch, device, flags, self.checked, None, self.pytree, self.types)

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


def _fits_declared(kind: Any, saved: Any, value: Any) -> bool:
    """Whether an array has the sizes that the saved kernel's annotation declared."""
    if not isinstance(saved, ArrayType) or not isinstance(kind, ArrayType):
        return False
    declared = [spec for spec in saved.specializations if spec.size is not None and spec.stride is None]
    others = tuple(spec for spec in saved.specializations if spec not in declared)
    return kind == replace(saved, specializations=others) and all(value.shape[x.axis] == x.size for x in declared)


def _fits(structure: dict[str, Any], value: Any) -> bool:
    if structure["names"]:
        return all(hasattr(value, name) for name in structure["names"])
    return isinstance(value, tuple) and len(value) == structure["count"]


def _read(path: str, arguments: dict[str, Any]) -> Any:
    """`p.inner.v` or `t[0]` of the arguments."""
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    value = arguments[name]
    for attribute, item in _PART.findall(path[len(name) :]):
        value = getattr(value, attribute) if attribute else value[int(item)]
    return value


def _constant_text(value: Any) -> str | None:
    try:
        return _constant("", "", value)
    except TypeError:
        return None


def _annotation(leaf: dict[str, Any]) -> Any:
    if "annotation" in leaf:
        return _PYTHON.get(leaf["annotation"]) or BY_NAME[leaf["annotation"]]
    return {"constant": Constant(object), "unread": Unread(object)}.get(leaf["kind"])


def _leaf_type(leaf: dict[str, Any]) -> Any:
    return type_from_json(leaf) if leaf["kind"] in ("array", "number") else Static(leaf.get("value"))
