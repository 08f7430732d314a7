"""NumPy's own functions that don't depend on the device: names and kinds of dtypes, printing, index expressions."""

from __future__ import annotations

import numpy as np

__all__ = [
    "base_repr", "binary_repr", "byte", "cdouble", "complexfloating", "csingle", "double", "errstate",
    "euler_gamma", "floating", "format_float_positional", "format_float_scientific", "generic",
    "get_printoptions", "geterr", "half", "index_exp", "inexact", "int_", "intc", "integer", "intp",
    "iterable", "long", "longlong", "ndindex", "number", "printoptions", "s_", "set_printoptions", "seterr",
    "short", "signedinteger", "single", "typename", "ubyte", "uint", "uintc", "uintp", "ulong", "ulonglong",
    "unsignedinteger", "ushort",
]  # fmt: skip

byte, short, intc, int_, intp = np.byte, np.short, np.intc, np.int_, np.intp
long, longlong = np.long, np.longlong
ubyte, ushort, uintc, uint, uintp = np.ubyte, np.ushort, np.uintc, np.uint, np.uintp
ulong, ulonglong = np.ulong, np.ulonglong
half, single, double, csingle, cdouble = np.half, np.single, np.double, np.csingle, np.cdouble
# for issubdtype
generic, number, integer, inexact = np.generic, np.number, np.integer, np.inexact
signedinteger, unsignedinteger = np.signedinteger, np.unsignedinteger
floating, complexfloating = np.floating, np.complexfloating
euler_gamma = np.euler_gamma
# one setting for both libraries
set_printoptions, get_printoptions, printoptions = np.set_printoptions, np.get_printoptions, np.printoptions
base_repr, binary_repr, typename = np.base_repr, np.binary_repr, np.typename
format_float_positional, format_float_scientific = np.format_float_positional, np.format_float_scientific
index_exp, s_, ndindex, iterable = np.index_exp, np.s_, np.ndindex, np.iterable
errstate, seterr, geterr = np.errstate, np.seterr, np.geterr  # of what NumPy computes: kernels don't warn
