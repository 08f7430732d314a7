"""What `kernel` and `fuse` make of a function of type `_Function`, for type checkers: calls take its parameters.

Arguments by position may be of any class, as arrays of other libraries and NumPy's numbers are converted; their
number is checked, and so are keywords. An argument by keyword has the class that the parameter names: types can
leave out the parameters before it, but can't replace their classes. Hence an overload for each number of them.
"""
# ruff: noqa: E501
# fmt: off

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from pyarray.array import ndarray
from pyarray.fusion.fuse import Fused
from pyarray.jit.kernel import Kernel

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Function = TypeVar("_Function", bound=Callable[..., Any], covariant=True)
_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_D = TypeVar("_D")
_E = TypeVar("_E")
_F = TypeVar("_F")
_G = TypeVar("_G")
_H = TypeVar("_H")

class TypedKernel(Kernel, Generic[_Function]):
    @overload
    def __call__(self: TypedKernel[Callable[_P, _R]], *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedKernel[Callable[Concatenate[_A, _P], _R]], a: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedKernel[Callable[Concatenate[_A, _B, _P], _R]], a: Any, b: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedKernel[Callable[Concatenate[_A, _B, _C, _P], _R]], a: Any, b: Any, c: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedKernel[Callable[Concatenate[_A, _B, _C, _D, _P], _R]], a: Any, b: Any, c: Any, d: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedKernel[Callable[Concatenate[_A, _B, _C, _D, _E, _P], _R]], a: Any, b: Any, c: Any, d: Any, e: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedKernel[Callable[Concatenate[_A, _B, _C, _D, _E, _F, _P], _R]], a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedKernel[Callable[Concatenate[_A, _B, _C, _D, _E, _F, _G, _P], _R]], a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedKernel[Callable[Concatenate[_A, _B, _C, _D, _E, _F, _G, _H, _P], _R]], a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

class TypedFused(Fused[Any], Generic[_Function]):
    @overload
    def __call__(self: TypedFused[Callable[..., _R]], *args: Any, out: ndarray | tuple[ndarray, ...], **kwargs: Any) -> _R: ...
    @overload
    def __call__(self: TypedFused[Callable[_P, _R]], *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedFused[Callable[Concatenate[_A, _P], _R]], a: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedFused[Callable[Concatenate[_A, _B, _P], _R]], a: Any, b: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedFused[Callable[Concatenate[_A, _B, _C, _P], _R]], a: Any, b: Any, c: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedFused[Callable[Concatenate[_A, _B, _C, _D, _P], _R]], a: Any, b: Any, c: Any, d: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedFused[Callable[Concatenate[_A, _B, _C, _D, _E, _P], _R]], a: Any, b: Any, c: Any, d: Any, e: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedFused[Callable[Concatenate[_A, _B, _C, _D, _E, _F, _P], _R]], a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedFused[Callable[Concatenate[_A, _B, _C, _D, _E, _F, _G, _P], _R]], a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self: TypedFused[Callable[Concatenate[_A, _B, _C, _D, _E, _F, _G, _H, _P], _R]], a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
