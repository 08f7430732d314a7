"""What type checkers take the annotations of kernels for: a dtype is Python's number of its kind, `In`, `Out`
and `InOut` are the array inside, a `constexpr` is anything."""

import builtins
from typing import Annotated, Any, TypeAlias, TypeVar

bool_: TypeAlias = builtins.bool
int8: TypeAlias = int
int16: TypeAlias = int
int32: TypeAlias = int
int64: TypeAlias = int
uint8: TypeAlias = int
uint16: TypeAlias = int
uint32: TypeAlias = int
uint64: TypeAlias = int
bfloat16: TypeAlias = float
float16: TypeAlias = float
float32: TypeAlias = float
float64: TypeAlias = float
complex64: TypeAlias = complex
complex128: TypeAlias = complex

_Array = TypeVar("_Array")
In = Annotated[_Array, "IN"]
Out = Annotated[_Array, "OUT"]
InOut = Annotated[_Array, "INOUT"]
constexpr: TypeAlias = Any
