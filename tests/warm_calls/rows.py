"""Rows of public functions that the differential test leaves out since NumPy has nothing to compare with, of kernels
and of fused functions. `OMITTED` says why others have no row here either."""

from __future__ import annotations

import copy
import inspect
import math
import operator
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from differential.draw import Draw, dtypes_of
from differential.rows import Row
from differential.rows.base import Arguments, function

import pyarray as pa

from . import kernels

FURTHER: list[Row] = []
Drawing = Callable[[Draw], Arguments]


def row(names: str, draw: Drawing, kinds: str = "biufc", ours: Any = None, shares: bool = True) -> None:
    """Rows of functions; `ours` is what is called, if not what the name says."""
    for name in names.split():
        call = ours or function(pa, name)
        FURTHER.append(Row(name, draw, dtypes_of(kinds), "exact", call, call, shares))


def one(least: int = 0, most: int = 3, values: str = "any", **options: Sequence[Any]) -> Drawing:
    """One operand, and some of these options."""
    return lambda d: ((d.array(d.shape(least, most), values=values, ours=True),), d.options(**options))


def two(values: str = "few", least: int = 0, most: int = 3) -> Drawing:
    """Two operands that broadcast."""

    def draw(d: Draw) -> Arguments:
        shape = d.shape(least, most)
        return (d.array(shape, values=values), d.array(d.broadcastable(shape), values=values)), {}

    return draw


# ---- views and facts

_ATTRIBUTES = "T mT real imag shape strides size ndim itemsize nbytes dtype device byte_offset base flags"
for _name in _ATTRIBUTES.split():
    row(f"ndarray.{_name}", one(), ours=operator.attrgetter(_name))
row("ndarray.data", one(), ours=lambda x: (x.data.shape, x.data.strides, x.data.readonly, x.data.tobytes()))
row("ndarray.__len__", one(), ours=len)
row("ndarray.view", lambda d: ((d.array(d.shape(), ours=True), d.one_of(("int16", "uint8", d.dtype))), {}))
row("ndarray.subview", lambda d: ((d.array(d.shape(1, 1), ours=True), d.integer(0, 3), d.integer(0, 4)), {}))
row("ndarray.setflags", one(write=(True, False)))
row("ndarray.resize", lambda d: ((d.array(d.shape(), ours=True), d.shape()), d.options(refcheck=(False,))))
row("ndarray.grad", one(), "f", ours=operator.attrgetter("grad"))
row("ndarray.attach_grad", one(), "f", ours=lambda x: (x.attach_grad(), x.grad, x[...].grad), shares=False)
row("ndarray.mark_static", lambda d: ((d.array(d.shape(1), ours=True), d.one_of((None, 0, -1))), {}))
row("ndarray.assume", lambda d: ((d.array(d.shape(1), ours=True), 0), {"multiple_of": d.integer(1, 3)}))
row("shape size ndim iterable isscalar iscomplexobj isrealobj isfortran asfortranarray", one())
row("can_cast", lambda d: ((d.array(d.shape()), d.one_of(d.dtypes)), {}))
row("result_type min_scalar_type common_type", two())
row("may_share_memory shares_memory", lambda d: (tuple(d.array(d.shape(), values="few") for _ in range(2)), {}))
row("tril_indices_from triu_indices_from", one(2, 2, k=(1, -1)))
row("diag_indices_from", lambda d: ((d.array((d.integer(0, 5),) * 2),), {}))

# ---- elements, text, copies, exchange

for _kind in (bool, int, float, complex, operator.index, round, math.ceil, math.floor, math.trunc):
    row(f"ndarray.__{_kind.__name__}__", one(most=1, values="finite"), ours=_kind)
row("ndarray.item", lambda d: ((d.array(d.shape(), ours=True), *[d.integer(-1, 3)] * d.integer(0, 1)), {}))
row("ndarray.__iter__", one(), ours=list)
row("ndarray.flat", one(), ours=lambda x: [*x.flat])
row("ndenumerate", one(most=2), ours=lambda x: [*pa.ndenumerate(x)])
row("ndarray.__repr__ array_repr array_str array2string", one(), ours=repr)
row("ndarray.__format__", one(most=0), ours=format)
row("ndarray.__bytes__", one(), ours=bytes)
row("ndarray.__reduce__", one(), ours=lambda x: pickle.loads(pickle.dumps(x)))
row("ndarray.__copy__", one(), ours=copy.copy)
row("ndarray.__deepcopy__", one(), ours=copy.deepcopy)
row("asnumpy ndarray.get", one())
row("ndarray.__array__", one(dtype=("float32",)))
row("from_dlpack", one(copy=(True, None)))
row("ndarray.__dlpack_device__", one(), ours=lambda x: x.__dlpack_device__())
row("ndarray.to_device", one(), ours=lambda x: x.to_device(x.device))
row("ndarray.__array_ufunc__", two(), ours=np.add)
row("ndarray.__array_function__", one(1), ours=lambda x: (np.concatenate([x, x]), np.sum(x)))
row("get_array_module", two(), ours=lambda x, y: pa.get_array_module(x, y).__name__)

# ---- functions of Python's functions, of polynomials, with an order of their own

row("apply_along_axis", one(1, 2, "few"), "if", lambda x: pa.apply_along_axis(lambda v: v + 1, 0, x))
row("apply_over_axes", one(1, 3, "few"), "if", lambda x: pa.apply_over_axes(pa.sum, x, [0]))
row("piecewise", one(values="few"), "if", lambda x: pa.piecewise(x, [x > 0], [lambda v: v * 2, 1]))
row("in1d", two("few", 1, 1), "biuf")
row("row_stack", lambda d: (([d.array((4,)), d.array((4,))],), {}))
row("ndarray.ptp", one(1, values="few"), "iuf")
row("roots poly", lambda d: ((d.array((d.integer(1, 5),), values="positive"),), {}), "f")
row("polydiv", lambda d: ((d.array((5,), values="positive"), d.array((3,), values="positive")), {}), "f")
row("polyfit", lambda d: ((d.array((6,), values="unit"), d.array((6,), values="unit"), 2), {}), "f")
row("argpartition ndarray.argpartition ndarray.partition", lambda d: ((d.array((9,), values="few", ours=True), 3), {}))
row(
    "nn.attention",
    lambda d: ((d.array((2, 5, 4)), d.array((2, 3, 4)), d.array((2, 3, 4))), d.options(causal=(True,))),
    "f",
)
row("nn.grouped_matmul", lambda d: ((d.array((5, 4)), d.array((2, 4, 3)), [2, 5]), {}), "f")
row(
    "nn.grouped_matmul_backward",
    lambda d: ((d.array((5, 3)), d.array((5, 4)), d.array((2, 4, 3)), [2, 5]), {}),
    "f",
)
row("einsum_path", lambda d: (("ij,jk", d.array((3, 4)), d.array((4, 2))), {}), "f")

# ---- arrays of nothing: on the device of an operand


def _made(name: str) -> Callable[..., Any]:
    make = operator.attrgetter(name)(pa)
    takes = "device" in inspect.signature(make).parameters
    return lambda like, *args, **options: make(*args, **options, **({"device": like.device} if takes else {}))


def made(names: str, draw: Callable[[Draw], tuple[Any, ...]], **options: Sequence[Any]) -> None:
    """Rows of functions that make arrays: of these arguments."""
    for name in names.split():
        row(name, lambda d: ((d.array((1,), ours=True), *draw(d)), d.options(**options)), "f", _made(name))


_DTYPES = ("int16", "float32", "bool")
made("zeros ones", lambda d: (d.shape(),), dtype=(*_DTYPES, "complex64"), order=("F",))
made("full", lambda d: (d.shape(), d.one_of((1, 2.5, True, -0.0))), dtype=_DTYPES)
made("arange", lambda d: (d.integer(-3, 3), d.integer(-3, 20), d.one_of((1, 2, 0.5))), dtype=_DTYPES[:2])
made("linspace geomspace", lambda d: (d.integer(1, 3), d.integer(4, 9), d.integer(0, 9)), endpoint=(False,))
made("logspace", lambda d: (0, d.integer(1, 3), d.integer(0, 9)), base=(2.0,))
made("eye", lambda d: (d.integer(0, 5), d.one_of((None, 3))), k=(1, -1), dtype=_DTYPES)
made("identity", lambda d: (d.integer(0, 5),), dtype=_DTYPES)
made("tri", lambda d: (d.integer(0, 5), d.integer(0, 5)), k=(1, -1))
made("indices", lambda d: (d.shape(most=2),), sparse=(True,))
made("bartlett blackman hamming hanning fft.fftfreq fft.rfftfreq", lambda d: (d.integer(1, 9),))
made("kaiser", lambda d: (d.integer(0, 9), 3.0))
made("diag_indices", lambda d: (d.integer(0, 5),))
made("tril_indices triu_indices", lambda d: (d.integer(0, 5),), k=(1, -1))
made("mask_indices", lambda d: (d.integer(1, 5), pa.triu))
made("fromfunction", lambda d: (lambda i, j: i + 2 * j, (3, d.integer(0, 4))))
made("fromiter", lambda d: (list(range(d.integer(0, 5))), d.one_of(_DTYPES[:2])))
made("frombuffer fromstring", lambda d: (d.one_of((b"abcdefgh", bytes(16))), d.one_of(_DTYPES[:2])))
made("broadcast_shapes", lambda d: (d.shape(), d.shape()))
made("promote_types", lambda d: (d.one_of(_DTYPES), d.one_of(_DTYPES)))
made("isdtype", lambda d: (d.one_of(d.dtypes), "real floating"))
made("issubdtype iinfo finfo", lambda d: (d.one_of(_DTYPES),))

# ---- kernels and fused functions


def _launched(*more: Callable[[Draw], Any], arrays: int = 1, rank: int = 1) -> Drawing:
    """An array that is written, `arrays` of its shape that are read, and further arguments."""

    def draw(d: Draw) -> Arguments:
        shape = d.shape(rank, rank)
        reads = [d.array(shape, values="positive") for _ in range(arrays)]
        return (d.array(shape, values="positive", write=True), *reads, *(make(d) for make in more)), {}

    return draw


def _factor(d: Draw) -> Any:
    return d.one_of((2, 0.5, True, 3.0, np.float32(0.25), np.int16(2)))


row("kernel.scaled", _launched(_factor), "iuf", kernels.scaled)
row("kernel.typed", _launched(_factor), "f", kernels.typed)
row("kernel.combined", _launched(lambda d: d.integer(0, 3), arrays=2), "iuf", kernels.combined)
row("kernel.planes", _launched(rank=2), "iuf", kernels.planes)
row("kernel.chosen", _launched(lambda d: None, lambda d: d.one_of(("sum", "twice"))), "iuf", kernels.chosen)
row("kernel.of_pairs", _launched(lambda d: d.one_of((1, 2)), arrays=2), "iuf",
    lambda out, x, y, power: kernels.of_pairs(out, kernels.Pair(x, y), power))  # fmt: skip
row("fuse.polynomial", lambda d: (two()(d)[0], d.options(s=(2, 3.0, -1))), "iuf", kernels.polynomial)
row("fuse.moments", one(1, values="few"), "iuf", kernels.moments)
row("fuse.normalized", lambda d: (one(1, values="few")(d)[0], d.options(t=(2, 3.0, -1))), "iuf", kernels.normalized)
row("fuse.compared", two(), "iuf", kernels.compared)

_REASONS = {
    "writes or reads files, or prints for people": (
        "save savez savez_compressed savetxt load loadtxt genfromtxt fromfile ndarray.tofile base_repr binary_repr "
        "format_float_positional format_float_scientific typename"
    ),
    "sets or tells the state of the process": (
        "get_printoptions set_printoptions printoptions seterr geterr get_device get_default_device "
        "set_default_device default_device show_config cache_info get_default_memory_pool transfer_info "
        "current_stream synchronize debug"
    ),
    "is the kernel language or a tool of kernels": (
        "kernel func fuse autotune ndrange tiles unordered atomic_add atomic_and atomic_cas atomic_exchange "
        "atomic_max atomic_min atomic_or atomic_sub atomic_xor dump dump_tag load_dump load_kernel capture "
        "cost_analysis gemm rng quaternion.conjugate quaternion.from_axis_angle quaternion.identity "
        "quaternion.inverse quaternion.multiply quaternion.normalize quaternion.rotate quaternion.slerp "
        "quaternion.to_matrix"
    ),
    "has contents that are arbitrary": "empty empty_like",
    "takes what another call returned": "nn.attention_backward",
    "is no call with an array's elements": (
        "ndarray.__array_namespace__ ndarray.__class_getitem__ ndarray.__getattr__ ndarray.__delitem__ "
        "ndarray.__dlpack__"
    ),
}
OMITTED = {name: reason for reason, names in _REASONS.items() for name in names.split()}
