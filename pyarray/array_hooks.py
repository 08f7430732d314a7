"""Operations that arrays get from modules above: the table that these fill, and NumPy's two protocols.

`operations` maps a name to the function that computes; `kernels/`, `api/` and the modules after this one
fill it:

| name | called as |
|---|---|
| `assign` | `assign(dst, src)`: src is an array that broadcasts, or a Python scalar; overlap as in NumPy |
| `astype` | `astype(a, dtype)`: a fresh array |
| `contiguous` | `contiguous(a)`: `a`, or a C-contiguous copy |
| `take`, `put` | `take(a, key)`, `put(a, key, value)`: key as between the brackets, not a basic one |
| `nonzero` | `nonzero(mask)`: a tuple of index arrays |
| `any` | `any(a)`: 0-d bool array |
| `asarray`, `assigned`, `asnumpy`, `to_device` | see `array_convert` |
| `from_dlpack` | see `dlpack` |
| `cuda_interface`, `from_cuda_interface` | see `cuda_interface` |

`numpy_functions` maps NumPy's name of a function (`"add"`, `"linalg.norm"`) to ours, for `numpy.add(a, b)`
on arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pyarray.keywords import INSTEAD, translate_arguments
from pyarray.lazy import import_now

operations: dict[str, Callable[..., Any]] = {}
numpy_functions: dict[str, Callable[..., Any]] = {}


class Tracer:
    """Stands for an array while a function is traced (`fusion/fuse.py`). `_dtype` is its element type."""

    _dtype: Any
    _weak_type: Any = None
    dtype: Any
    _reduce: Any
    _broadcast: Any

    def _as_array(self) -> Any:
        """Itself: what `asarray` returns."""
        return self

    def _compute(self, op: Any, domain: Any, dtype: Any, operands: Any, out: Any) -> Any:
        """What `api.core.ufunc.compute` returns."""
        raise TypeError("a tracer means something only while its function is traced")


class ScalarTracer(Tracer):
    """Stands for a Python number of the type `_weak_type`; as an array it is a 0-d one."""


# functions of NumPy that come here for their like= alone
_MADE_LIKE = frozenset({
    "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "arange", "empty", "eye", "full",
    "identity", "ones", "tri", "zeros",
})  # fmt: skip
# what NumPy may pass on to methods of ufuncs
_OPTIONS = {
    "__call__": ("dtype", "casting", "where", "subok"),
    "outer": ("dtype", "casting"),
    "reduce": ("axis", "dtype", "keepdims", "initial", "where"),
    "accumulate": ("axis", "dtype"),
    "reduceat": ("axis", "dtype"),
}


def operation(name: str) -> Callable[..., Any]:
    """The operation `name`. Raises `RuntimeError` if no module has registered it."""
    try:
        return operations[name]
    except KeyError:
        raise RuntimeError(f"operation {name!r} is provided by pyarray as a whole; import pyarray first") from None


def is_foreign(x: Any) -> bool:
    """Whether it is an array of a library other than NumPy that gives others its memory, or a class of such
    arrays."""
    exports = hasattr(x, "__dlpack__") or hasattr(x, "__cuda_array_interface__")
    return exports and not isinstance(x, (np.ndarray, np.generic))


def on_several_devices(name: str, arguments: Iterable[tuple[str, Any]]) -> ValueError:
    """The error of a call of `name` whose arguments, called so, are arrays of more than one device. Of very
    many arguments it lists the first on each device."""
    arguments = list(arguments)
    first = {a.device: (what, a) for what, a in reversed(arguments)}
    shown = arguments if len(arguments) <= 8 else reversed(first.values())
    where = ", ".join(f"{what} on {a.device}" for what, a in shown)
    return ValueError(f"{name}(): all arrays must be on one device, got {where}; move them with .to_device(...)")


def call_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__`: `numpy.add(a, b, out=c)` and `numpy.add.reduce(a)`. Raises `TypeError` for what has
    no equal here."""
    name = ufunc.__name__
    out = kwargs.pop("out", None)
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    full = name if method == "__call__" else f"{name}.{method}"
    operands = [_on_device(self, item) for item in inputs]
    options = {key: value for key, value in kwargs.items() if value is not None or key == "axis"}
    function = numpy_functions.get(name) or _special(name)
    if function is None:
        raise _missing(full, "ufunc")
    if method != "__call__":
        if method == "at" and operands[0] is not inputs[0] and self.device.code:
            what = f"the array that it changes is NumPy's, and the other operands are on {self.device}"
            raise TypeError(f"numpy.{full}: {what}; pass what pyarray.asnumpy gives of these")
        if not hasattr(function, method):
            raise _missing(full, "ufunc")
        function = getattr(function, method)
    refused = [key for key in options if key not in _OPTIONS.get(method, ())]
    if refused:
        what = INSTEAD.get(refused[0], "it takes out= and no other keyword")
        raise TypeError(f"numpy.{full} of pyarray arrays takes no {refused[0]}=; {what}")
    if method not in ("__call__", "outer"):
        result = function(*operands, **options)
        return result if out is None else _store_out(out, result)
    where = options.get("where", True)
    if where is not True and out is None:
        raise TypeError(
            f"numpy.{full} of pyarray arrays takes where= with out= alone, whose other elements stay; else "
            "choose with pyarray.where(mask, result, other)"
        )
    if "dtype" in options:
        operands, results = _cast(ufunc, operands, options["dtype"], str(options.get("casting", "same_kind")))
        result = function(*operands)
        if isinstance(result, tuple):
            result = tuple(operation("astype")(x, kind) for x, kind in zip(result, results, strict=True))
        elif result.dtype != results[0]:
            result = operation("astype")(result, results[0])
    else:
        result = function(*operands)
    return result if out is None else _store_out(out, result, where)


def _special(name: str) -> Any:
    """The function of `pyarray.special`, for the ufuncs of SciPy: imported when one is called. None for another
    name."""
    module = import_now("pyarray.special")
    return getattr(module, name) if name in module.__all__ else None


def _cast(ufunc: Any, operands: list[Any], dtype: Any, casting: str) -> tuple[list[Any], list[Any]]:
    """The operands as NumPy casts them for a result of `dtype`, and the dtypes of the results. Raises
    `TypeError` where `casting` doesn't allow it."""
    asarray = operation("asarray")
    kinds = [type(x) if type(x) in (int, float, complex) else asarray(x)._dtype.numpy for x in operands]
    chosen = ufunc.resolve_dtypes(
        (*kinds, *(None,) * ufunc.nout),
        signature=(*(None,) * ufunc.nin, *(np.dtype(dtype),) * ufunc.nout),
        casting=casting,
    )
    cast = [asarray(x, kind) for x, kind in zip(operands, chosen, strict=False)]
    return cast, list(chosen[ufunc.nin :])


def call_function(self: Any, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`__array_function__`: `numpy.concatenate([a, b])`. Raises `TypeError` for what has no equal here."""
    roots = [base for base in type(self).__mro__ if base is not object]
    if not all(issubclass(kind, (np.ndarray, *roots)) for kind in types):
        return NotImplemented
    module = function.__module__.removeprefix("numpy").removeprefix(".")
    name = f"{module}.{function.__name__}" if module in ("linalg", "fft") else function.__name__
    if name not in numpy_functions:
        raise _missing(name, "function")
    ours, out = numpy_functions[name], kwargs.pop("out", None)
    if name in _MADE_LIKE and kwargs.get("device") is None:
        kwargs["device"] = self.device
    dtype = kwargs.get("dtype")
    if isinstance(dtype, (list, dict)) or getattr(dtype, "names", None):
        # dask asks with `numpy.empty_like` whether records have all of NumPy's functions
        raise TypeError(f"numpy.{name}() makes no structured array here; call pyarray.{name}()")
    if kwargs:
        args, kwargs = translate_arguments(ours, function, args, kwargs)
    result = ours(*args, **kwargs)
    return result if out is None else _store_out(out, result)


def _on_device(self: Any, item: Any) -> Any:
    return operation("asarray")(item, device=self.device) if isinstance(item, (np.ndarray, np.generic)) else item


def _store_out(out: Any, result: Any, where: Any = True) -> Any:
    target = operation("asarray")(out, copy=False) if isinstance(out, np.ndarray) else out
    numpy_functions["copyto"](target, result, where=where)
    return out


def _missing(name: str, what: str) -> TypeError:
    return TypeError(
        f"numpy.{name} has no pyarray {what}; call it on NumPy arrays: numpy.{name}(pyarray.asnumpy(a), ...)"
    )
