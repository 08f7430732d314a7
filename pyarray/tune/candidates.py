"""The candidate configs of a call, and its default."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from ..errors import AutotuneError
from ..jit.kernel import Kernel
from ..jit.signature import Parameter
from ..lang.markers import constexpr
from .config import Config, check_configs, check_constant, check_shapes
from .tuned_call import TunedCall


class Candidates:
    """`configs` are a list, or a function of the arguments; `prune` and `default` as `autotune` has them."""

    def __init__(self, kernel: Kernel, configs: Any, prune: Any, default: Any):
        self.kernel, self.default = kernel, default
        self._configs, self._prune = configs, prune

    @property
    def asks(self) -> bool:
        """Whether a function of the arguments has a say."""
        return self.default is not None or self._prune is not None or callable(self._configs)

    def tuned(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """The parameters that candidates set; where they come from a function, all `constexpr` ones that
        aren't in `key`. Raises `ValueError` for one that is."""
        name, parameters = self.kernel.__name__, self.kernel.parameters
        if callable(self._configs):
            names = {p.name for p in parameters if p.annotation is constexpr} - set(key)
        else:
            names = {n for c in check_configs(name, self._configs, parameters) for n in c.values}
        names_set = tuple(p.name for p in parameters if p.name in names)
        both = [n for n in names_set if n in key]
        if both:
            raise ValueError(f"{name}: {both[0]!r} is in key and is set by candidates")
        return names_set

    def first(self) -> dict[str, Any]:
        """Constants of the first of them, by name: some that the kernel can be typed with. Raises `TypeError`
        where they come from a function of the arguments."""
        return self.first_config().values

    def first_config(self) -> Config:
        """The first of them. Raises as `first`."""
        if callable(self._configs):
            what = "its candidates come from a function of the arguments"
            raise TypeError(f"{self.kernel.__name__}: {what}; pass the kernel without the tuner, .kernel")
        return check_configs(self.kernel.__name__, self._configs, self.kernel.parameters)[0]

    def of(self, call: TunedCall) -> tuple[Config, ...]:
        """Those that agree with what the caller has set. Raises `AutotuneError` for none."""
        name, configs, parameters = self.kernel.__name__, self._configs, self.kernel.parameters
        if callable(configs):
            computed: Any = configs(dict(call.args)) if _takes_one(configs) else configs()
        else:
            computed = configs
        listed = check_configs(name, computed, parameters)
        agreeing = tuple(c for c in listed if call.is_compatible(c))
        if not agreeing:
            if listed and call.complete(Config()):
                return (Config(),)
            shown = ", ".join(f"{n}={v!r}" for n, v in call.overrides.items())
            why = f"none of the {len(listed)} has {shown}" if listed else "configs gave none"
            raise AutotuneError(f"{name}: no candidates: {why}")
        if self._prune is None:
            return agreeing
        left = self._prune(list(agreeing), dict(call.args))
        if isinstance(left, (Config, str, Mapping)) or not isinstance(left, Iterable):
            raise TypeError(f"{name}: prune(configs, args) gives a list of pa.Config, got {left!r}")
        pruned = tuple(c for c in check_configs(name, left, parameters) if call.is_compatible(c))
        if not pruned:
            raise AutotuneError(f"{name}: no candidates: prune left none of {len(agreeing)}")
        return pruned

    def default_of(self, call: TunedCall, tuned: tuple[str, ...]) -> Config | None:
        """The default for these arguments; None without one, and for one that the caller overrules. Raises
        `TypeError` for what is no `Config`, `ValueError` for a name that is no parameter or one that is
        left out."""
        if self.default is None:
            return None
        name, parameters = self.kernel.__name__, self.kernel.parameters
        config = self.default(*call.positional, **call.keywords)
        if config is None:
            return None
        if not isinstance(config, Config):
            raise TypeError(f"{name}: default(...) gives a pa.Config or None, got {config!r}")
        constants = {p.name: p for p in parameters if p.name in tuned}
        check_shapes(name, (config,), [p.name for p in parameters])
        for set_ in config.values:
            check_constant(name, config, set_, constants, parameters)
        if not call.is_compatible(config):
            return None
        if not call.complete(config):
            missing = [n for n in constants if n not in config.values]
            raise ValueError(f"{name}: default(...) gives {config!r}, which doesn't set {missing[0]!r}")
        return config


def is_size(p: Parameter) -> bool:
    """Whether candidates or a default may depend on it: arrays and whole numbers. Others change from call to
    call."""
    number = p.scalar and (p.annotation is int or getattr(p.annotation, "kind", "") in ("i", "u"))
    return number or not (p.scalar or p.structure or p.annotation is constexpr)


def _takes_one(function: Callable[..., Any]) -> bool:
    try:
        return bool(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return False


def refuse_gradient(tuned: Any) -> NoReturn:
    """Raises `TypeError`: an adjoint is another kernel, and what is best for one says nothing of the other."""
    name, chosen = tuned.__name__, "".join(f", {parameter}=..." for parameter in tuned.tuned)
    what = f"the tuned kernel {name!r} has no gradient: candidates are measured by what the kernel computes"
    raise TypeError(f"{what}; call {name}.kernel.grad(...{chosen})")
