"""The `autotune` decorator: chooses a kernel's constants by timing candidates on the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..jit.kernel import Kernel
from ..lang.markers import constexpr
from . import shipped
from .config import Config, check_names, check_spelling, listed
from .cost import check_count
from .search import Options
from .tuned import Tuned


def autotune(
    configs: Any,
    key: Iterable[str] = (),
    *,
    restore_value: Iterable[str] | None = None,
    reset_to_zero: Iterable[str] = (),
    prune: Callable[[list[Config], dict[str, Any]], Iterable[Config]] | None = None,
    warmup: int = 5,
    rep: int = 25,
    budget: float | None = None,
    default: Callable[..., Config | None] | None = None,
    artifact_name: str | None = None,
    check: Any = True,
    model: Any = None,
    pre_hook: Callable[[dict[str, Any]], Any] | None = None,
    post_hook: Callable[[dict[str, Any]], Any] | None = None,
    bench: Callable[[Callable[[], Any]], float] | None = None,
    cases: Callable[[], Iterable[Any]] | None = None,
) -> Callable[[Any], Tuned]:
    """Choose a kernel's `constexpr` parameters by timing: put above `@pa.kernel`. The first call with
    arguments of a new key runs the candidates on them, puts them back, and launches with the fastest.

    `configs` lists the candidates, or is a function that does. `key` names the parameters whose sizes or
    values matter; types, layouts, device and compiler always do. `prune(configs, args)` leaves some out,
    `default(*args)` is used instead of a search. `restore_value` names what is put back before each run
    (default: what the kernel reads and writes), `reset_to_zero` what is zeroed before every launch. `check`
    compares results, with each other or with those of a function of the same arguments, where nothing that is
    read and written goes without being put back. `model` is the number of tiles, `model(config, args)`, a
    count of `Cost` ("work", "operations"), or True: sizes never met are then decided by a fit. `warmup` and
    `rep` count runs, `budget` is seconds, `bench(fn)` says the milliseconds of `fn()`, `artifact_name` is
    what shipped choices go by, `cases()` lists arguments for `python -m pyarray tune`.

    Raises `ValueError` for a name that is no parameter, `TypeError` for what is no kernel, list or function.

    >>> @pa.autotune(configs=[pa.Config(step=1), pa.Config(step=4)], key=["v"], rep=2)
    ... @pa.kernel
    ... def double(v, step: pa.constexpr):
    ...     for i in range((v.size + step - 1) // step):
    ...         for k in range(i * step, min(v.size, (i + 1) * step)):
    ...             v[k] = 2 * v[k]
    >>> double(a := pa.ones(5))
    >>> a.tolist()
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    functions = {"prune": prune, "default": default, "pre_hook": pre_hook, "post_hook": post_hook}
    if isinstance(configs, Kernel):
        raise TypeError("autotune needs candidates: @pa.autotune(configs=[pa.Config(...), ...])")
    _check_options(functions | {"bench": bench, "cases": cases}, warmup, rep, budget, check)
    if not (model is None or isinstance(model, bool) or callable(model)):
        check_count("model", model)
    if artifact_name is not None:
        shipped.check_name(artifact_name)
    names = restore_value, reset_to_zero
    options = Options(warmup, rep, budget, check, None, (), pre_hook, post_hook, bench)
    more = prune, default, artifact_name, model or None, cases
    return lambda kernel: _tuned(kernel, configs, key, names, options, more)


def _tuned(
    kernel: Any, configs: Any, key: Any, names: tuple[Any, Any], options: Options, more: tuple[Any, ...]
) -> Tuned:
    if not isinstance(kernel, Kernel):
        raise TypeError(f"autotune stands above @pa.kernel, got {type(kernel).__name__}")
    parameters = tuple(kernel.source_text.signature.parameters)
    named = check_names("key", key, parameters)
    restore = None if names[0] is None else check_names("restore_value", names[0], parameters)
    options = replace(options, restore=restore, zeroed=check_names("reset_to_zero", names[1], parameters))
    candidates = configs if callable(configs) else listed(kernel.__name__, configs)
    tuned = Tuned(kernel, candidates, named, options, *more)
    _check_now(tuned, kernel, () if callable(candidates) else candidates)
    return tuned


def _check_options(functions: Mapping[str, Any], warmup: Any, rep: Any, budget: float | None, check: Any) -> None:
    """Raises `TypeError` and `ValueError` that say which option is wrong."""
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name} is a function, got {function!r}")
    for name, count, least in (("warmup", warmup, 0), ("rep", rep, 1)):
        if not isinstance(count, int) or isinstance(count, bool):
            raise TypeError(f"{name} is a count of runs, got {count!r}")
        if count < least:
            raise ValueError(f"{name} is a count of runs, {least} or more, got {count}")
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, (int, float))):
        raise TypeError(f"budget is seconds, got {budget!r}")
    if budget is not None and not budget >= 0:
        raise ValueError(f"budget is seconds, 0 or more, got {budget!r}")
    if not (isinstance(check, bool) or callable(check)):
        raise TypeError(f"check is True, False or a function that computes the results, got {check!r}")


def _check_now(tuned: Tuned, kernel: Kernel, configs: Iterable[Config]) -> None:
    """What can be said at the decoration. Annotations that name what is defined later are read at the first
    call."""
    try:
        parameters = kernel.parameters
    except TypeError:
        check_spelling(kernel.__name__, configs, tuple(kernel.source_text.signature.parameters))
        return
    _ = tuned.tuned  # checks the candidates
    for what, names in (
        ("restore_value", tuned.options.restore or ()),
        ("reset_to_zero", tuned.options.zeroed),
    ):
        for p in parameters:
            if p.name in names and (p.scalar or p.annotation is constexpr):
                raise ValueError(f"{kernel.__name__}: {what} names {p.name!r}, which is no array")
