"""`Config`, one candidate of a tuned kernel, and the checks of its names and values."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtypes import named_dtype
from ..errors import with_article
from ..jit.compile import checked_flags
from ..jit.signature import Parameter
from ..lang.launch_shape import UNSHAPED, LaunchShape, Numbers, launch_shape
from ..lang.markers import constexpr

_RESERVED = ("flags", "pre_hook", "threads", "per_thread")


class Config:
    """A candidate: values of a kernel's `constexpr` parameters, by name, and how it is compiled. Immutable,
    hashable, equal to another of the same values. NumPy's scalars become Python's numbers.

    `flags` are further flags for the compiler, or one. `threads` and `per_thread` are those of `pa.kernel`, and
    replace them. `pre_hook(args)` is called before each run of a search, with all arguments by name; such a
    candidate can't be written down. Raises `TypeError` for what is no flag, no function, no number, and for a
    value that can't be hashed, `ValueError` for numbers that a block can't have.

    >>> Config(block=64, threads=128)
    Config(block=64, threads=128)
    >>> Config.from_dict(Config(block=64).to_dict()) == Config(block=64)
    True
    """

    __slots__ = ("_identity", "_values", "flags", "pre_hook", "shape")

    shape: LaunchShape
    flags: tuple[str, ...]
    pre_hook: Callable[[dict[str, Any]], None] | None
    _values: dict[str, Any]
    _identity: tuple[Any, ...]

    def __init__(
        self,
        *,
        flags: Iterable[str] = (),
        pre_hook: Callable[[dict[str, Any]], None] | None = None,
        threads: Numbers = None,
        per_thread: Numbers = None,
        **values: Any,
    ):
        checked, shape = checked_flags("a Config", flags), launch_shape("a Config", threads, per_thread)
        if pre_hook is not None and not callable(pre_hook):
            raise TypeError(f"the pre_hook of a Config is a function of the arguments, got {pre_hook!r}")
        values = {n: v.item() if isinstance(v, np.generic) else v for n, v in values.items()}
        identity = (tuple(sorted((n, _tagged(v)) for n, v in values.items())), checked, pre_hook, shape)
        try:
            hash(identity)
        except TypeError:
            shown = ", ".join(f"{n}={v!r}" for n, v in values.items())
            raise TypeError(f"the values of a Config are constants, that can be hashed: got {shown}") from None
        fields = {"flags": checked, "pre_hook": pre_hook, "shape": shape, "_values": values, "_identity": identity}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Config can't be changed; make another: Config({name}={value!r}, ...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Config can't be changed")

    @property
    def values(self) -> dict[str, Any]:
        """The constants by name: a copy."""
        return dict(self._values)

    @property
    def threads(self) -> Numbers:
        """Threads of a block: of all parallel loops, or of each. None: as the kernel has it."""
        return self.shape.threads

    @property
    def per_thread(self) -> Numbers:
        """Iterations of a thread, in the same way."""
        return self.shape.per_thread

    def without_shape(self) -> Config:
        """The candidate without `threads` and `per_thread`."""
        return _rebuilt(self._values, self.flags, self.pre_hook, UNSHAPED)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        parts = [f"{n}={v!r}" for n, v in (self._values | self.shape.given()).items()]
        parts += [f"flags={self.flags!r}"] if self.flags else []
        parts += [f"pre_hook={self.pre_hook!r}"] if self.pre_hook else []
        return f"Config({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._values, self.flags, self.pre_hook, self.shape)

    def to_dict(self) -> dict[str, Any]:
        """For JSON. Raises `ValueError` for what JSON would change or lose: a hook, a tuple, a function."""
        if self.pre_hook is not None:
            raise ValueError(f"{self!r} has a pre_hook, which can't be written down; give the tuner a pre_hook")
        for name, value in self._values.items():
            plain = type(value) in (bool, int, str, type(None))
            if not plain and not (type(value) is float and math.isfinite(value)):
                raise ValueError(
                    f"{self!r} can't be written down: {name} is {with_article(type(value).__name__)}, which JSON would "
                    "change; use numbers, texts, bools or None"
                )
        return {"values": dict(self._values), "flags": list(self.flags), **self.shape.given()}

    @staticmethod
    def from_dict(row: Any) -> Config:
        """What `to_dict` gave. Raises `ValueError` for anything else."""
        try:
            values, flags = row["values"], row["flags"]
            if not isinstance(flags, list) or set(values) & set(_RESERVED):
                raise TypeError
            shape = {name: row.get(name) for name in ("threads", "per_thread")}
            config = Config(flags=flags, **shape, **values)
            config.to_dict()
            return config
        except (TypeError, KeyError, ValueError):
            raise ValueError(f"expected the dictionary of a Config, got {row!r}") from None

    def identity(self) -> str | None:
        """What the candidate is called on disk: equal in every process for equal values. None if a value has
        no such name."""
        if self.pre_hook is not None:
            return None
        try:
            named = {name: _named(value) for name, value in self._values.items()}
        except TypeError:
            return None
        shape = [self.shape.given()] if self.shape != UNSHAPED else []
        text = json.dumps([named, list(self.flags), *shape], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _rebuilt(values: Mapping[str, Any], flags: tuple[str, ...], pre_hook: Any, shape: LaunchShape) -> Config:
    return Config(flags=flags, pre_hook=pre_hook, **shape.given(), **values)


def _tagged(value: Any) -> Any:
    """As a value to compare: 1, 1.0 and True differ, so do 0.0 and -0.0, and NaN is NaN."""
    return type(value).__qualname__, repr(value) if isinstance(value, (float, complex)) else value


def _named(value: Any) -> Any:
    """As JSON, with its type. Raises `TypeError` for what has no lasting name."""
    if type(value) in (bool, int, float, complex, str, bytes, type(None)):
        return [type(value).__name__, repr(value)]
    if (row := named_dtype(value)) is not None:
        return ["dtype", row.name]
    if type(value) is tuple:
        return ["tuple", [_named(item) for item in value]]
    raise TypeError


# ---- names


def suggestion(name: str, known: Iterable[str]) -> str:
    """ "; did you mean 'block'?" for a misspelt name, or what there is."""
    names = list(known)
    same = [known for known in names if known.lower() == name.lower()]
    close = same or difflib.get_close_matches(name, names, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(map(repr, names)) or 'none'}"


def check_names(what: str, names: Any, known: Sequence[str]) -> tuple[str, ...]:
    """The list of parameter names that `what` was given. Raises `TypeError` for what is no list of names and
    `ValueError` for a name that is none or comes twice."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{what} is a list of parameter names, got {names!r}")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(f"{what} is a list of parameter names, got {name!r} in it")
        if name not in known:
            raise ValueError(f"{what} names {name!r}, which is no parameter{suggestion(name, known)}")
        if listed.count(name) > 1:
            raise ValueError(f"{what} names {name!r} twice; name it once")
    return listed


def check_configs(kernel: str, configs: Iterable[Any], parameters: Sequence[Parameter]) -> tuple[Config, ...]:
    """The candidates. Raises `TypeError` for what is no `Config`, and `ValueError` for a name that is no
    `constexpr` parameter, or a parameter that one sets and another neither sets nor has a default for."""
    distinct = _distinct(kernel, configs)
    constants = {p.name: p for p in parameters if p.annotation is constexpr}
    tuned = {name for config in distinct for name in config._values}
    check_shapes(kernel, distinct, [p.name for p in parameters])
    for config in distinct:
        for name in config._values:
            check_constant(kernel, config, name, constants, parameters)
    for config in distinct:  # when all names are known to be right
        missing = [n for n in tuned - set(config._values) if constants[n].default is Parameter.default]
        if missing:
            raise ValueError(
                f"{kernel}: {config!r} doesn't set {missing[0]!r}, as other candidates do, and the parameter "
                "has no default"
            )
    return distinct


def check_constant(
    kernel: str, config: Config, name: str, constants: Mapping[str, Any], parameters: Sequence[Parameter]
) -> None:
    """Raises `ValueError` unless `name` is a parameter that is compiled in."""
    if name in constants:
        return
    if any(p.name == name for p in parameters):
        what = f"{kernel}: {config!r} sets {name!r}, which is an argument of each launch"
        raise ValueError(f"{what}; annotate the parameter {name}: pa.constexpr")
    raise ValueError(f"{kernel}: {config!r} sets {name!r}, which is no parameter{suggestion(name, constants)}")


def check_shapes(kernel: str, configs: Iterable[Config], names: Sequence[str]) -> None:
    """Raises `ValueError` for a candidate that sets the launch's `threads` where the kernel has a parameter of that
    name."""
    for config in configs:
        for name in config.shape.given():
            if name in names:
                what = f"{kernel}: {name} of {config!r} is the launch's, and the kernel has a parameter {name!r}"
                raise ValueError(f"{what}; rename the parameter")


def check_spelling(kernel: str, configs: Iterable[Config], names: Sequence[str]) -> None:
    """Raises `ValueError` for a name that is none of `names`, the parameters of a kernel whose annotations
    can't be read yet."""
    configs = tuple(configs)
    check_shapes(kernel, configs, names)
    for config in configs:
        for name in config._values:
            if name not in names:
                what = f"{kernel}: {config!r} sets {name!r}, which is no parameter"
                raise ValueError(f"{what}{suggestion(name, names)}")


def listed(kernel: str, configs: Any) -> tuple[Config, ...]:
    """The candidates that a decorator was given. Raises `TypeError` for what is no list of `Config`,
    `ValueError` for an empty one."""
    distinct = _distinct(kernel, configs)
    if not distinct:
        raise ValueError(f"{kernel}: configs is empty; give at least one pa.Config")
    return distinct


def _distinct(kernel: str, configs: Any) -> tuple[Config, ...]:
    if isinstance(configs, (Config, str, Mapping)) or not isinstance(configs, Iterable):
        what = "configs is a list of pa.Config, or a function that gives one"
        raise TypeError(f"{kernel}: {what}, got {configs!r}")
    candidates = tuple(configs)
    for config in candidates:
        if not isinstance(config, Config):
            raise TypeError(f"{kernel}: a candidate is a pa.Config, got {config!r}")
    return tuple(dict.fromkeys(candidates))
