"""The precision of float32 products: exact, or with operands rounded to tf32 where a device multiplies these."""

from __future__ import annotations

from ... import config
from ..._core import clear_plans

SETTING = "PYARRAY_FLOAT32_MATMUL_PRECISION"


def checked_precision(function: str, precision: str | None) -> str | None:
    """`precision`, as an argument of a public function. Raises `ValueError` for what is none."""
    if precision is None or precision in config.PRECISIONS:
        return precision
    raise ValueError(
        f"{function}(): expected precision to be 'float32', 'tf32' or None, got {precision!r}; with None it is what "
        f"the setting {SETTING} says"
    )


def is_tf32(precision: str | None) -> bool:
    """Whether operands may be rounded to tf32: by a call's argument, or by the setting."""
    return (config.get(SETTING) if precision is None else precision) == "tf32"


def _forget(setting: str) -> None:
    """Calls that are repeated were planned with the old value."""
    if setting == SETTING:
        clear_plans()


config.watchers.append(_forget)
