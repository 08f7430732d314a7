"""Kernels compiled ahead, without a launch and without their device: types in, a saved kernel out.

A type becomes an example argument on `null:0`, which is bound as an argument of a launch is: so structures,
constants, annotations and errors are the same."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, get_args, get_origin

import numpy as np

from .. import config
from ..annotations import ArrayAnnotation, Direction, In, field_annotations, field_names, is_plain, is_structure
from ..array import empty, ndarray
from ..driver.base import cores
from ..driver.targets import Target, find_target
from ..dtypes import DType
from ..lang.pipeline import Program
from ..structured_array import empty as empty_records
from ..structured_dtypes import StructuredAnnotation
from . import compile as compiler
from . import saved
from .binding import BoundArguments
from .pytree import Pytree
from .save import file_of
from .signature import Parameter, field_annotation
from .variants import Origin

_SMALL = 2  # elements along one axis of an example: one would be contiguous in any layout


@dataclass(frozen=True, eq=False)
class AheadArtifact:
    """The binary of an `AheadVariant`, and its name on disk."""

    key: str
    binary: bytes


@dataclass(frozen=True, eq=False)
class AheadVariant:
    """What `save.file_of` reads of a variant."""

    program: Program
    artifact: AheadArtifact
    origin: Origin
    flags: tuple[str, ...]
    checked: bool
    pytree: Pytree
    types: tuple[Any, ...]


class Compilable:
    """What kernels compile ahead for; the base of `Kernel`."""

    __name__: str
    debug: bool | None
    declared_types: tuple[Any, ...] = ()  # as `kernel(types=...)` says them

    def compile(self, /, *types: Any, target: Any, debug: bool | None = None, **named: Any) -> saved.SavedKernel:
        """Compile for arguments of these types, without a launch and without the device.

        Parameters
        ----------
        *types, **named : type or argument
            For each parameter a type (`pa.ndarray[pa.float32, 2]`, `pa.BufferView[pa.int64]`, `pa.float32`, `int`,
            a dataclass), or an argument to take the type of, on any device. Of a `constexpr` parameter, the
            value. Default: the types that the kernel declares, by `types=` or by its annotations.
        target : str or list of str
            `"sm_90"` (NVIDIA), `"gfx942"` (AMD), `"cpu"` (any processor of this architecture of the last ten years),
            `"cpu:native"` (this one).
        debug : bool, optional
            With bounds checks. Default: as the kernel says, else without.

        Returns
        -------
        SavedKernel
            It has `save(path)`, for `pa.load_kernel`, and can be called where its device is.

        Raises
        ------
        DeviceError
            Without a compiler for the target; it says what is missing.
        CompileError
            As a launch does.
        TypeError
            For what is no type of a parameter, or says too little, as an array without its rank.
        ValueError
            For a target that there is not.
        """
        signatures = [(types, named)] if types or named else None
        return compile_ahead(self, signatures, find_targets(target), debug)


def find_targets(names: Any) -> list[Target]:
    """The targets of one name or of a list of them. Raises as `find_target`, and `ValueError` for an empty list."""
    if isinstance(names, (str, Mapping)) or not isinstance(names, Iterable):
        return [find_target(names)]
    targets = list(dict.fromkeys(map(find_target, names)))
    if not targets:
        raise ValueError("target is an empty list; name at least one, like 'sm_90', 'gfx942' or 'cpu'")
    return targets


def compile_ahead(
    kernel: Any,
    signatures: Sequence[tuple[Any, Any]] | None,
    targets: Sequence[Target],
    debug: bool | None,
    constants: Mapping[str, Any] | None = None,
) -> saved.SavedKernel:
    """A kernel compiled for each signature (types by position and by name; None: those that it declares) and each
    target. `constants` are values of parameters that callers of the result leave out. See `Compilable.compile`."""
    checked = bool(kernel.debug if debug is None else debug)
    if kernel.debug not in (None, checked):
        how = "with" if kernel.debug else "without"
        raise ValueError(f"kernel {kernel.__name__!r} is always {how} bounds checks; leave debug out")
    if config.get("PYARRAY_RUN_ONLY"):
        names = ", ".join(target.name for target in targets)
        raise RuntimeError(f"PYARRAY_RUN_ONLY=1 forbids compiling {kernel.__name__!r} for {names}; run without it")
    signatures = declared(kernel) if signatures is None else signatures
    if constants:
        signatures = [(types, {**named, **constants}) for types, named in signatures]
    lowered = list(_lowered(kernel, signatures, targets, checked))
    with ThreadPoolExecutor(max(1, min(cores(), len(lowered))), thread_name_prefix="pyarray-compile") as pool:
        variants = list(pool.map(lambda job: _compiled(kernel, checked, *job), lowered))
    path = f"the kernel {kernel.__name__!r}, compiled ahead,"
    return saved.kernel_of(file_of(kernel, variants, constants or {}), path)


def _lowered(
    kernel: Any, signatures: Iterable[tuple[Any, Any]], targets: Sequence[Target], checked: bool
) -> Iterator[tuple[Target, BoundArguments, Program]]:
    """A program for each target and each distinct tuple of types."""
    known = set()
    for types, named in signatures:
        for args in examples(kernel, types, named):
            bound = kernel.bind(args)
            bound.check_scalars()
            bound.types()  # says which argument is none
            for target in targets:
                key = target.name, bound.key(checked)
                if key in known:
                    continue
                known.add(key)
                program = kernel._lowered(bound, checked, target.kind)
                bound.check_writeable(program)
                yield target, bound, program


def _compiled(kernel: Any, checked: bool, target: Target, bound: BoundArguments, program: Program) -> AheadVariant:
    binary, fingerprint = target.compile(program.text, kernel.flags)
    key = compiler.key_for(program.text, program.steps, fingerprint, kernel.flags)
    origin = Origin(target.kind, target.target, target.machine, fingerprint)
    artifact = AheadArtifact(key, binary)
    return AheadVariant(program, artifact, origin, kernel.flags, checked, bound.pytree, bound.leaf_types())


# ---- types


def check_types(what: str, types: Any) -> tuple[Any, ...]:
    """The `types` that a user declared for `what`. Raises `TypeError` unless they are a list of tuples or
    dictionaries, each with a type for each parameter."""
    if isinstance(types, (str, Mapping)) or not isinstance(types, Iterable):
        raise TypeError(f"types of {what} is a list of tuples, one for each signature, got {types!r}")
    listed = tuple(types)
    for item in listed:
        if not isinstance(item, (tuple, list, Mapping)):
            example = "types=[(pa.ndarray[pa.float32, 1], pa.float32)]"
            raise TypeError(f"types of {what} is a list of tuples, got {item!r} in it; write for example {example}")
    return listed


def declared(kernel: Any) -> list[tuple[Any, Any]]:
    """The signatures that a kernel declares: its `types`, else its annotations. Raises `TypeError` where these say too
    little."""
    if kernel.declared_types:
        return [((), item) if isinstance(item, Mapping) else (item, {}) for item in kernel.declared_types]
    return [((), {})]


def examples(kernel: Any, types: Sequence[Any], named: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The arguments that stand for types, in the order of the parameters: once if all of them have one layout, else
    with all arrays contiguous, and with all strided."""
    name, parameters = kernel.__name__, kernel.parameters
    try:
        given = kernel.call_signature().bind_partial(*types, **named).arguments
    except TypeError as error:
        expected = ", ".join(p.name for p in parameters)
        raise TypeError(f"{name}.compile(): {error}; it has the parameters ({expected})") from None
    makers = [_Examples(name, strided) for strided in (False, True)]
    calls = [tuple(make.argument(p, given) for p in parameters) for make in makers]
    return calls if makers[1].used else calls[:1]


class _Examples:
    """Makes arguments of types; `used` says whether one of them has the layout that was asked for, and would have had
    another one."""

    def __init__(self, kernel: str, strided: bool):
        self.kernel, self.strided, self.used = kernel, strided, False

    def argument(self, p: Parameter, given: Mapping[str, Any]) -> Any:
        if p.name in given:
            value = given[p.name]
            return value if p.constant or not _is_type(value) else self.of(p.name, value)
        if p.default is not inspect.Parameter.empty:
            return p.default
        if p.annotation is None or p.constant:
            what = "is a constant, whose value is part of the code" if p.constant else "has no annotation"
            raise TypeError(f"{self._where(p.name)} {what}; {self._advice}")
        return self.of(p.name, p.annotation)

    def _where(self, path: str) -> str:
        return f"{self.kernel}.compile(): {path!r}"

    @property
    def _advice(self) -> str:
        return "pass a type for each parameter, or declare them: @pa.kernel(types=[(pa.ndarray[pa.float32, 1], ...)])"

    def of(self, path: str, kind: Any) -> Any:
        """An argument of a type."""
        if get_origin(kind) is tuple:
            return tuple(self.of(f"{path}[{k}]", item) for k, item in enumerate(get_args(kind)))
        if is_structure(kind):
            return self.structure(path, kind)
        resolved = field_annotation(kind)
        if isinstance(resolved, StructuredAnnotation):
            return self.records(path, resolved)
        if isinstance(resolved, ArrayAnnotation):
            return self.array(path, resolved)
        if isinstance(resolved, DType):
            return np.zeros((), resolved.numpy)[()]
        if any(resolved is number for number in (bool, int, float, complex)):
            return resolved(0)
        raise TypeError(f"{self._where(path)} can't have the type {kind!r}; {self._advice}")

    def array(self, path: str, kind: ArrayAnnotation) -> ndarray:
        if kind.dtype is None or kind.ndim is None:
            lacks = "dtype" if kind.dtype is None else "rank"
            raise TypeError(f"{self._where(path)} is {kind!r}, which has no {lacks}; write pa.ndarray[pa.float32, 2]")
        if not kind.ndim:
            return empty((), dtype=kind.dtype, device="null:0")
        sizes = kind.sizes or (None,) * kind.ndim
        long = [axis for axis, n in enumerate(sizes) if n is None or n >= _SMALL]
        strided = self.strided and not kind.view and bool(long) and 0 not in sizes
        self.used |= strided
        shape = [_SMALL if n is None and axis == long[-1] else 1 if n is None else n for axis, n in enumerate(sizes)]
        if not strided:
            return empty(tuple(shape), dtype=kind.dtype, device="null:0")
        shape[long[-1]] *= 2
        every_other = (slice(None),) * long[-1] + (slice(None, None, 2),)
        return empty(tuple(shape), dtype=kind.dtype, device="null:0")[every_other]

    def records(self, path: str, kind: StructuredAnnotation) -> Any:
        if kind.ndim is None:
            raise TypeError(f"{self._where(path)} is {kind!r}, which has no rank; write pa.ndarray[{kind.layout}, 1]")
        return empty_records((_SMALL,) * kind.ndim, kind.layout, "null:0")

    def structure(self, path: str, kind: type) -> Any:
        annotations, defaults = field_annotations(kind), inspect.signature(kind).parameters
        known = {name: annotation for name, annotation in annotations.items() if _has_values(annotation)}
        others = [name for name in field_names(kind) if name not in known]
        if not is_plain(kind) or any(defaults[name].default is inspect.Parameter.empty for name in others):
            what = f"{self._where(path)} can't be made from the fields of {kind.__name__} and their types"
            raise TypeError(f"{what}; pass an example of it, with arrays on 'null:0'")
        return kind(**{name: self.of(f"{path}.{name}", known[name]) for name in field_names(kind) if name in known})


def _has_values(annotation: Any) -> bool:
    """Whether an annotation of a field says what its values are for a kernel: a text or a function is compiled in."""
    return is_structure(annotation) or field_annotation(annotation) is not None


def _is_type(value: Any) -> bool:
    """Whether a value stands for arguments of a type. Texts and other classes are arguments, which are compiled in."""
    if (
        isinstance(value, (ArrayAnnotation, StructuredAnnotation, Direction, DType, np.dtype))
        or get_origin(value) is tuple
    ):
        return True
    if not isinstance(value, type):
        return False
    numbers = any(value is number for number in (bool, int, float, complex))
    return numbers or issubclass(value, (np.generic, ndarray, In)) or is_structure(value)
