"""`RawKernel` and `RawModule`: whole kernels in HIP or CUDA C++, launched with a grid of the caller's."""

from __future__ import annotations

import operator
import re
import struct
import weakref
from typing import Any

from ...array import STRIDED, WATCHED, ndarray
from ...array_hooks import on_several_devices
from ...driver.base import Device, GridLauncher, get_device
from ...driver.cc import CPP
from ...driver.kernel_step import KernelStep
from ...jit.kernel import Variant
from ...jit.launch_state import Launch, launch_state, observe, observed
from ...jit.text_kernel import TextKernel
from ...lang.dialect import DIALECTS
from ...lang.ir import ArrayType, ScalarType
from ...lang.pipeline import Program
from . import raw_signature as rs
from .text_params import check_name, check_options, host_options

BACKENDS = ("nvrtc", "hiprtc")
_DYNAMIC = re.compile(r"\bextern\s+__shared__\s[^;\[]*?(\w+)\s*\[\s*\]")


class RawKernel:
    """A kernel from HIP or CUDA C++ text that says `extern "C" __global__ void name(...)`.

    `options` go to the compilers of GPUs; of them `-D`, `-U` and `-I` count on CPUs, where blocks run as
    tasks. `backend` is what CuPy calls the compiler: "nvrtc" or "hiprtc", each of which stands for the
    device's own. `translate_cucomplex`, `enable_cooperative_groups` and `jitify` must be left off. Raises
    `CompileError` when the text names no such kernel, `ValueError` for a `backend` or feature that isn't
    there.

    >>> import pyarray as pa
    >>> add = pa.RawKernel('''
    ... extern "C" __global__ void add(const float *x, const float *y, float *z, int n)
    ... {
    ...     int i = blockDim.x * blockIdx.x + threadIdx.x;
    ...     if (i < n) z[i] = x[i] + y[i];
    ... }''', "add")
    >>> x, z = pa.arange(5, dtype="float32"), pa.empty(5, "float32")
    >>> add((1,), (256,), (x, x, z, 5))
    >>> z.tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        *,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: Any = None,
    ):
        self.name = self.__name__ = check_name(name)
        self.code, self.options, self.backend = code, check_options(name, options), backend
        check_features(
            backend,
            translate_cucomplex=translate_cucomplex,
            enable_cooperative_groups=enable_cooperative_groups,
            jitify=jitify,
        )
        rs.check_kernel(code, name)
        self._params = rs.parameters(code, name)
        flags = (*CPP, *host_options(self.options))
        self._kernel = TextKernel(name, self._program, flags=flags, grid_flags=self.options)
        # A variant has its device, its types and its text; grid and arguments are passed.
        self._launchers: weakref.WeakKeyDictionary[Variant, GridLauncher] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<RawKernel {self.name!r}>"

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
        """Run `grid` blocks of `block` threads (ints, or tuples of up to three) with `shared_mem` bytes of
        dynamic shared memory each.

        Arrays pass the address of their first element, whatever their strides; numbers are passed by value,
        in the type of the parameter where the text says it, else as CuPy does: an int as `long long`, a
        float as `double`, NumPy's scalars as they are. Nothing that the kernel does is checked, not in
        debug mode either. Raises `ValueError` for a grid, block or memory that the device doesn't have and
        for arrays on two devices, `TypeError` for arguments that the parameters in the text can't take.
        """
        try:
            key = (grid, block, shared_mem, launch_state.key, *map(_type_of, args))
            launch, pack = self._kernel.plans[key]
            slots = pack(*[a._ptr if isinstance(a, ndarray) else a for a in args])
        except (LookupError, TypeError, struct.error, OverflowError):
            self._launch_new(grid, block, args, shared_mem, launch_state.debug)
        else:
            launch(slots)

    def _launch_new(self, grid: Any, block: Any, args: Any, shared_mem: int, waited: bool) -> None:
        """Check and launch, and cache the launch for arguments of the same types. `waited`: synchronize
        afterwards."""
        launch_key = grid, block, shared_mem, waited
        grid, block = _sizes(self.name, "grid", grid), _sizes(self.name, "block", block)
        if not isinstance(args, (tuple, list)):
            raise TypeError(f"{self.name}(): args is a tuple of arguments, got {type(args).__name__}")
        values = rs.converted_arguments(self.name, self._params, args)
        device = self._device(values)
        _check_limits(self.name, device, grid, block, operator.index(shared_mem))
        names = self._names(len(values))
        kinds = tuple(
            (n, ArrayType(d, a.ndim, bool(a._key & STRIDED)) if isinstance(a, ndarray) else ScalarType(d))
            for n, (a, d) in zip(names, values, strict=True)
        )
        variant = self._kernel.variant(kinds, device)
        slots, start = rs.pack_arguments(values), self._launcher(variant)

        watched = [a for a, _ in values if isinstance(a, ndarray) and a._key & WATCHED]

        def launch(slots: bytes) -> None:
            for a in watched:
                a._buffer.before_write()
            start(grid, block, shared_mem, slots)
            if waited:
                device.driver.synchronize()  # so that a failure is raised here

        if observed():
            named = dict(zip(names, (a for a, _ in values), strict=True))
            observe(Launch(self.name, variant, named, lambda: launch(slots)))
            return
        launch(slots)
        struct_format = rs.struct_format(args, values)
        # the key has the device only as part of an array's type key, and types of numbers, which are passed
        if struct_format is not None and not watched and any(isinstance(a, ndarray) for a in args):
            self._kernel.plans.add((*launch_key, *map(_type_of, args)), (launch, struct.Struct(struct_format).pack))

    def _names(self, count: int) -> list[str]:
        names = [p.name for p in self._params or ()]
        good = len(set(names)) == len(names) and all(names)
        return names if self._params is not None and good else [f"arg{k}" for k in range(count)]

    def _device(self, values: list[tuple[Any, Any]]) -> Device:
        pairs = zip(self._names(len(values)), values, strict=True)
        arrays = [(repr(name), a) for name, (a, _) in pairs if isinstance(a, ndarray)]
        devices = {a.device for _, a in arrays}
        if len(devices) > 1:
            raise on_several_devices(self.name, arrays)
        return next(iter(devices), None) or get_device(None)

    def _launcher(self, variant: Variant) -> GridLauncher:
        launcher = self._launchers.get(variant)
        if launcher is None:
            module = variant.artifact.function.module.handle
            launcher = self._launchers[variant] = variant.device.driver.grid_launcher(module, self.name)
        return launcher

    def _program(self, kinds: tuple[tuple[str, Any], ...], target: str, debug: bool) -> Program:
        text = f'#line 1 "{self.name}: code"\n{self.code}\n'
        step = KernelStep(self.name, None)
        if DIALECTS[target].blocks:
            dynamic = "".join(f"PA_GRID_DYNAMIC({name})\n" for name in sorted(set(_DYNAMIC.findall(self.code))))
            text = f"#include <pa_grid_cpu.h>\n{text}PA_GRID_ENTRY({self.name}, {self.name})\n{dynamic}"
            step = KernelStep(f"pa_grid_{self.name}")
        directions = {n: "INOUT" if isinstance(kind, ArrayType) else "SCALAR" for n, kind in kinds}
        return Program(self.name, text, (step,), kinds, directions, (), raw=True)


def _type_of(argument: Any) -> Any:
    return argument._key if isinstance(argument, ndarray) else type(argument)


class RawModule:
    """HIP or CUDA C++ text with several kernels. `get_function(name)` returns one of them as a `RawKernel`.

    Takes what `RawKernel` takes, by keyword. Raises `ValueError` for a `path` to a binary and for
    `name_expressions`, which aren't there: kernels are those that the text declares `extern "C"`.

    >>> import pyarray as pa
    >>> module = pa.RawModule(code='extern "C" __global__ void one(int *x) { *x = 1; }')
    >>> x = pa.zeros(1, dtype="int32")
    >>> module.get_function("one")(1, 1, (x,))
    >>> x.tolist()
    [1]
    """

    def __init__(
        self,
        *,
        code: str | None = None,
        path: Any = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Any = None,
        jitify: Any = None,
    ):
        check_features(
            backend,
            translate_cucomplex=translate_cucomplex,
            enable_cooperative_groups=enable_cooperative_groups,
            jitify=jitify,
            name_expressions=name_expressions,
            path=path,
        )
        if code is None:
            raise TypeError("RawModule needs its text: RawModule(code=...)")
        self.code, self.options, self.backend = code, check_options("RawModule", options), backend

    def get_function(self, name: str) -> RawKernel:
        """The kernel of that name. Raises `CompileError` when the text has none."""
        return RawKernel(self.code, name, self.options, self.backend)


def check_features(backend: str, **features: Any) -> None:
    """Raises `ValueError` for CuPy's features that are not implemented."""
    if backend not in BACKENDS:
        raise ValueError(f"backend is one of {', '.join(map(repr, BACKENDS))}, got {backend!r}")
    for name, value in features.items():
        if value:
            raise ValueError(f"{name}={value!r} isn't supported; leave it out (see docs/guide/cpp_kernels.md)")


def _sizes(kernel: str, what: str, value: Any) -> tuple[int, int, int]:
    """Three sizes of at least 1. Raises `TypeError` and `ValueError`."""
    sizes = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    try:
        result = tuple(operator.index(n) for n in sizes)
    except TypeError:
        raise TypeError(f"{kernel}(): {what} is an int or up to three of them, got {value!r}") from None
    if not 1 <= len(result) <= 3 or min(result) < 1:
        raise ValueError(f"{kernel}(): {what} is one to three sizes of at least 1, got {value!r}")
    x, y, z = (*result, 1, 1)[:3]
    return x, y, z


def _check_limits(
    kernel: str, device: Device, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int
) -> None:
    """Raises `ValueError` for a grid, block or shared memory beyond the device's limits."""
    properties = device.driver.properties()
    for what, sizes in (("grid", grid), ("block", block)):
        most = properties[f"{what}_sides"]
        if any(n > limit for n, limit in zip(sizes, most, strict=True)):
            raise ValueError(f"{kernel}(): {what} {sizes} is too large for {device}: at most {most}")
    threads = block[0] * block[1] * block[2]
    if threads > properties["block_threads"]:
        raise ValueError(
            f"{kernel}(): block {block} has {threads} threads, and {device} takes {properties['block_threads']} at most"
        )
    if not 0 <= shared <= properties["shared_bytes"]:
        raise ValueError(f"{kernel}(): shared_mem is 0 to {properties['shared_bytes']} bytes on {device}, got {shared}")
