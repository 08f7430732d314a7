"""Fast paths of ufuncs: generated functions, remembered by type or by layout, that allocate and launch.

Two tables, both keyed by values that say all there is to know, so that nothing in them can be stale. By
*types*: contiguous operands of one shape, whatever the shape. By *layouts* (types, shapes and strides):
everything else; there only addresses and numbers change from call to call. A short way either declines before
anything has run, by giving None, or does it all; what it declines goes through `ufunc.call`, which also says
what is wrong.

The keys are complete: an array's type key has dtype, rank, device, whether strided, read-only or marked; a
Python number is passed at the launch and only its type is in the key, but where its value decides what is
computed (`_value_matters`). Addresses are read at each call, so that sharing memory is tested there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, Protocol

from ... import shapes
from ...array import STRIDED, empty, ndarray, unchecked_array
from ...array_marks import MARKED
from ...buffer_view import BufferView
from ...jit.launch_state import fast_path_table, launch_state
from ...kernels.elementwise.elementwise import bound_map_launch, map_kernel
from ...keywords import checked, refuse
from ...lang.builtins import FUNCTIONS
from ...memory.buffer import Buffer
from ...typing import ArrayLike
from .ufunc import POWERS, PYTHON, STRIDES, Ufunc, call, is_operand_type, result_like

LAYOUTS = 4096  # of one function; then its table starts anew

_TYPES = """
def fast_path({operands}{out}):
    shape = {like}._shape
    device = {like}._buffer.device
    size = {like}._size{tests}
    {target}
    if failure := launch({to}, {operands}):
        report(failure, launch)
    return {to}
"""
_FRESH = "out = unchecked_array(allocate(device, size * itemsize), shape, strides[shape], size, dtype, key)"
_LAYOUT = """
def fast_path({operands}{out}):
    device = {like}._buffer.device{tests}
    {target}
    launch({addresses})
    return {to}
"""
_FRESH_LAYOUT = "out = unchecked_array(allocate(device, nbytes), shape, strides, size, dtype, key)"
_DECLINE = """
    if {}:
        return None"""


def _guards(names: Sequence[str], like: str, shapes_too: bool) -> str:
    """The text of tests that the other arrays are on the device of `like`, and have its shape."""
    text = ""
    for name in names:
        if name != like:
            test = f"{name}._buffer.device is not device"
            text += _DECLINE.format(f"{name}._shape != shape or {test}" if shapes_too else test)
    return text


def _by_types(ufunc: Ufunc, operands: Sequence[Any], out: ndarray | None, in_place: bool) -> Callable[..., Any] | None:
    """The fast path for operands of these types whose arrays are contiguous and have one shape; None if there is
    none."""
    names = ("x", "y")[: len(operands)]
    arrays = {n: x for n, x in zip(names, operands, strict=True) if isinstance(x, ndarray)}
    like, first = next(iter(arrays.items()))
    domain = ufunc.domain(operands)
    if first._size < 2 or domain is None or _value_matters(ufunc, operands, (int, float)):
        return None  # what has one element was computed as 0-d: another kernel
    dtype = ufunc.dtype_of_result(domain)
    result = first if in_place else out
    if result is not None and result._dtype is not dtype:
        return None
    target = empty(first._shape, dtype, first.device) if result is None else result
    flat = [
        x._view(0, (x._size,), (x._dtype.itemsize,)) if isinstance(x, ndarray) else type(x)(1)
        for x in (target, *operands)
    ]
    patterns = tuple([(0,) if isinstance(x, ndarray) else None for x in operands])
    kernel = map_kernel(ufunc.op, domain, 1, patterns, first._buffer.device.driver.grid)
    to = like if in_place else "out"
    checked = [*arrays, *(["out"] if out is not None else [])]
    tests = _guards(checked, like, shapes_too=True)
    for n, x in arrays.items() if result is not None else ():
        if n != to:  # the very same elements may be written as they are read, others not
            width = max(x._dtype.itemsize, dtype.itemsize)
            allowed = "gap and " if x._dtype.itemsize == dtype.itemsize else ""
            tests += _DECLINE.format(f"{allowed}-size * {width} < gap < size * {width}").replace(
                "if ", f"gap = {n}._ptr - {to}._ptr\n    if ", 1
            )
    text = _TYPES.format(
        operands=", ".join(names), out=", out" if out is not None else "", like=like, tests=tests, to=to,
        target=_FRESH if result is None else "",
    )  # fmt: skip
    scope: dict[str, Any] = {
        "launch": kernel.variant(tuple(flat), checked=False).launch, "report": kernel._report,
        "allocate": Buffer.allocate, "unchecked_array": unchecked_array, "strides": STRIDES[dtype.itemsize],
        "itemsize": dtype.itemsize, "dtype": dtype, "key": target._key,
    }  # fmt: skip
    return _compiled(ufunc, text, scope)


def _by_layout(ufunc: Ufunc, operands: Sequence[Any], out: ndarray | None) -> Callable[..., Any] | None:
    """The fast path for arrays of these types, shapes and strides; None if there is none."""
    names = ("x", "y")[: len(operands)]
    arrays = {n: x for n, x in zip(names, operands, strict=True) if isinstance(x, ndarray)}
    like, first = next(iter(arrays.items()))
    domain = ufunc.domain(operands)
    if domain is None or _value_matters(ufunc, operands, (int,)):
        return None
    dtype = ufunc.dtype_of_result(domain)
    target = result_like(list(arrays.values()), dtype, first.device) if out is None else out
    launch = bound_map_launch(ufunc.op, domain, target, operands)
    if launch is None:
        return None
    tests = _guards([*arrays, *(["out"] if out is not None else [])], like, shapes_too=False)
    if out is not None:
        low, high = _bounds(out)
        for n, x in arrays.items():
            x_low, x_high = _bounds(x)
            same = (x._shape, x._strides, x.itemsize) == (out._shape, out._strides, out.itemsize)
            test = f"{low - x_high} < {n}._ptr - out._ptr < {high - x_low}"
            tests += _DECLINE.format(f"{n}._ptr != out._ptr and {test}" if same else test)
    addresses = ["out._ptr", *(f"{n}._ptr" if n in arrays else n for n in names)]
    text = _LAYOUT.format(
        operands=", ".join(names), out=", out" if out is not None else "", like=like, tests=tests, to="out",
        target=_FRESH_LAYOUT if out is None else "", addresses=", ".join(addresses),
    )  # fmt: skip
    scope: dict[str, Any] = {
        "launch": launch, "allocate": Buffer.allocate, "unchecked_array": unchecked_array, "nbytes": target.nbytes,
        "shape": target._shape, "strides": target._strides, "size": target._size, "dtype": dtype,
        "key": target._key,
    }  # fmt: skip
    return _compiled(ufunc, text, scope)


def _bounds(x: ndarray) -> tuple[int, int]:
    return shapes.byte_bounds(x._shape, x._strides, x._dtype.itemsize)


def _value_matters(ufunc: Ufunc, operands: Sequence[Any], kinds: tuple[type, ...]) -> bool:
    """Whether a call depends on an operand's value: negative integer exponents are errors, and some exponents have
    a function of their own."""
    return ufunc.name == "pow" and type(operands[1]) in kinds


def _compiled(ufunc: Ufunc, text: str, scope: dict[str, Any]) -> Callable[..., Any]:
    exec(compile(text, f"<pyarray {ufunc.name}>", "exec"), scope)
    return scope["fast_path"]


# a number that packing refuses: `call` says what is wrong
_REFUSED = (struct.error, OverflowError, TypeError)


class _FastPaths:
    """The fast paths of one ufunc, by types and by layouts."""

    __slots__ = ("layouts", "types", "ufunc")

    def __init__(self, ufunc: Ufunc):
        self.ufunc = ufunc
        # Of one ufunc: by mode, type keys (dtype, rank, device, marks) and numbers' types; layouts by shapes
        # and strides, too. Addresses and numbers are passed at each call, which tests that operands that
        # overlap the result may do so.
        self.types = fast_path_table()
        self.layouts = fast_path_table()

    def run(self, operands: tuple[Any, ...], out: ndarray | None, in_place: bool) -> ndarray:
        """Calls by the fast path of the operands' layout; the general call if there is none, after which one is
        made."""
        if _value_matters(self.ufunc, operands, (int, float)) and operands[1] in POWERS:
            x = operands[0]
            plain = (out is None or in_place) and type(x) in _ARRAYS and x._dtype.kind == "f"
            return POWERS[operands[1]].function(x, out=out) if plain else call(self.ufunc, operands, out)
        layout_key = None
        if launch_state.key is False and all(type(x) in _ARRAYS or type(x) in PYTHON for x in operands):
            arguments = operands if out is None or in_place else (*operands, out)
            layout_key = tuple([(x._key, x._shape, x._strides) if type(x) in _ARRAYS else type(x) for x in arguments])
            if fast_path := self.layouts.get(layout_key):
                try:
                    result = fast_path(*operands) if out is None else fast_path(*operands, out)
                    if result is not None:
                        return result
                except _REFUSED:
                    pass
        result = call(self.ufunc, operands, out)
        if layout_key is not None and any(type(x) in _ARRAYS for x in operands):
            self.learn(layout_key, operands, out, in_place)
        return result

    def learn(self, layout_key: Any, operands: tuple[Any, ...], out: ndarray | None, in_place: bool) -> None:
        """Makes a fast path for calls like this one: by types, or by layout when the layout comes for the second
        time."""
        arrays = [x for x in (*operands, out) if isinstance(x, ndarray)]
        if any(x._key & MARKED for x in arrays):
            return
        alike = all(not x._key & STRIDED and x._shape == arrays[0]._shape for x in arrays)
        types = (False, *[x._key if isinstance(x, ndarray) else type(x) for x in (*operands, out)])
        if alike and types not in self.types:
            fast_path = _by_types(self.ufunc, operands, None if in_place else out, in_place)
            if fast_path is not None:
                self.types[types] = fast_path
                return
        if layout_key not in self.layouts:
            if len(self.layouts) >= LAYOUTS:
                self.layouts.clear()
            self.layouts[layout_key] = None
        elif self.layouts[layout_key] is None:
            self.layouts[layout_key] = _by_layout(self.ufunc, operands, out) or False


_ARRAYS = frozenset((ndarray, BufferView))
_NOTHING = type(None)


class UfuncFunction(Protocol):
    """An elementwise function for type checkers: a call, and the methods of NumPy's ufuncs."""

    __name__: str

    def __call__(self, *operands: ArrayLike, out: ndarray | None = None) -> ndarray: ...
    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: ndarray | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> ndarray: ...
    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: ndarray | None = None) -> ndarray: ...
    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: ndarray | None = None
    ) -> ndarray: ...
    def outer(self, x1: Any, x2: Any, /, *, out: ndarray | None = None) -> ndarray: ...
    def at(self, a: ndarray, indices: Any, b: Any = None, /) -> None: ...


def make_function(ufunc: Ufunc, foreign: bool = False) -> Any:
    """The public function of a ufunc. `foreign`: it returns NotImplemented for operands that operators must
    leave to others."""
    function = _make_unary(ufunc) if ufunc.arity == 1 else _make_binary(ufunc, foreign)
    function.__name__ = function.__qualname__ = ufunc.name
    function.__doc__ = ufunc.doc
    function.__module__ = "pyarray"
    # in the body operands are any objects, whose class is looked at first
    operands = ("x",) if ufunc.arity == 1 else ("x1", "x2")
    function.__annotations__ |= {**dict.fromkeys(operands, "ArrayLike"), "return": "ndarray"}
    checked(function)
    # in kernels it is the language's own function, or the ufunc's expression
    if ufunc.name in FUNCTIONS:
        function.__pyarray_builtin__ = ufunc.name  # type: ignore[attr-defined]
    else:
        function.__pyarray_func__ = ufunc.function.__pyarray_func__  # type: ignore[attr-defined]
    for method in ("reduce", "accumulate", "reduceat", "outer", "at") if ufunc.arity == 2 else ("at",):
        setattr(function, method, _method(function, ufunc, method))
    return function


# the methods of ufuncs: name -> function of the function, its `Ufunc` and the arguments; `ufunc_methods` fills it
UFUNC_METHODS: dict[str, Callable[..., Any]] = {}


def _method(made: Callable[..., Any], ufunc: Ufunc, name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        return UFUNC_METHODS[name](made, ufunc, *args, **options)

    call.__name__, call.__qualname__ = name, f"{ufunc.name}.{name}"
    call.__doc__ = f"`{name}` as NumPy's ufuncs have it, of this function."
    setattr(call, "__wrapped__", MethodType(getattr(UfuncFunction, name), made))  # noqa: B010  (its signature)
    return call


def _make_unary(ufunc: Ufunc) -> Callable[..., Any]:
    paths = _FastPaths(ufunc)
    types = paths.types

    def function(x: Any, /, *, out: ndarray | None = None, **unknown: Any) -> Any:
        if unknown:
            refuse(function, unknown)
        kind = type(x)
        if (kind is ndarray or kind is BufferView) and out is None:
            fast_path = types.get((launch_state.key, x._key, _NOTHING))
            if fast_path is not None and (result := fast_path(x)) is not None:
                return result
        return paths.run((x,), out, False)

    return function


def _make_binary(ufunc: Ufunc, foreign: bool) -> Callable[..., Any]:
    paths = _FastPaths(ufunc)
    types = paths.types

    def function(x1: Any, x2: Any, /, *, out: ndarray | None = None, **unknown: Any) -> Any:
        if unknown:
            refuse(function, unknown)
        t1, t2 = type(x1), type(x2)
        k1 = x1._key if t1 is ndarray or t1 is BufferView else t1
        k2 = x2._key if t2 is ndarray or t2 is BufferView else t2
        try:
            if out is None:
                fast_path = types.get((launch_state.key, k1, k2, _NOTHING))
                if fast_path is not None and (result := fast_path(x1, x2)) is not None:
                    return result
            elif type(out) in _ARRAYS:
                fast_path = types.get((launch_state.key, k1, k2, out._key))
                if fast_path is not None and (result := fast_path(x1, x2, out)) is not None:
                    return result
        except _REFUSED:
            pass
        if foreign and not ((type(k1) is int or is_operand_type(t1)) and (type(k2) is int or is_operand_type(t2))):
            return NotImplemented
        return paths.run((x1, x2), out, False)

    return function


def make_in_place(ufunc: Ufunc) -> Callable[..., Any]:
    """The method behind `x1 += x2`."""
    paths = _FastPaths(ufunc)
    types = paths.types

    def method(self: ndarray, other: Any) -> Any:
        kind = type(other)
        k2 = other._key if kind is ndarray or kind is BufferView else kind
        if (fast_path := types.get((launch_state.key, self._key, k2, self._key))) is not None:
            try:
                if fast_path(self, other) is not None:
                    return self
            except _REFUSED:
                pass
        self._check_writeable()
        if not is_operand_type(kind):
            return NotImplemented
        return paths.run((self, other), self, True)

    return method
