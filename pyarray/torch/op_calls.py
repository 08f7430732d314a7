"""The generated implementations of an operator: one that launches the kernel, and one for fake tensors."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from pyarray import dlpack
from pyarray.driver.base import Device
from pyarray.driver.stream import Stream
from pyarray.jit.kernel import Kernel

from .fused_kernel import device_of
from .op_schema import MISSING, WRITTEN, Argument

_memory = getattr(torch._C, "_to_dlpack_versioned", None)  # what __dlpack__ calls after its questions
_torch_stream: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_shares: Any = getattr(torch._C, "_is_alias_of")  # noqa: B009  (typed nowhere)
_devices: dict[int, Device] = {}  # a memo, by torch's index


def array(x: torch.Tensor) -> Any:
    """An array on the memory of a dense tensor, even if it requires grad. Streams aren't synchronized, and
    autograd isn't told of writes. A tensor that can't be an array is returned as it is, so that the kernel raises
    the error."""
    try:
        return dlpack.from_dlpack(x.detach() if _memory is None else _memory(x))
    except BufferError:
        return x


class ResultAllocator:
    """Allocates the result for the kernel's parameter `argument`, as `out` says (`given`)."""

    def __init__(self, op: str, argument: Argument, rule: Any):
        self.op, self.argument, self.given = op, argument, rule
        self.dtype = None if argument.dtype is None else getattr(torch, str(argument.dtype))
        self.make = torch.empty_like if argument.direction == "OUT" else torch.zeros_like

    def like(self, x: torch.Tensor) -> torch.Tensor:
        """A tensor of the shape of `x`: zeros, unless the kernel writes every element."""
        return self.make(x, dtype=self.dtype, memory_format=torch.contiguous_format)

    def from_function(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        result = self.given(*args, **kwargs)
        what = f"op {self.op!r}: the function in out for {self.argument.name!r} gives a new tensor"
        if not isinstance(result, torch.Tensor):
            raise TypeError(f"{what}, got {type(result).__name__}")
        if any(isinstance(x, torch.Tensor) and _shares(result, x) for x in args):
            raise ValueError(f"{what}, and this is the memory of an argument; copy it")
        return result


class SchemaCheck:
    """Checks, after the kernel was compiled for new types, that it writes the arrays that the schema says: one
    schema is for all types."""

    def __init__(self, op: str, kernel: Kernel, arguments: Sequence[Argument], results: Mapping[str, Any]):
        self.op, self.kernel, self.arguments, self.results = op, kernel, arguments, results
        self.checked_misses = kernel.counts["misses"]

    def check(self) -> None:
        """Raises `RuntimeError` for an array that the kernel writes otherwise than the schema says."""
        self.checked_misses = self.kernel.counts["misses"]
        signature = self.kernel.signature
        for a in self.arguments:
            now = signature[a.name].direction if a.name in signature else a.direction
            if a.name in self.results:
                wrong = a.direction == "OUT" and now == "INOUT"
                what = "writes only a part of" if wrong else ""
            else:
                wrong, what = now in WRITTEN and not a.written, "writes"
            if wrong:
                text = f"op {self.op!r}: for these types the kernel {what} {a.name!r}, and for those that it "
                text += "was defined with it didn't; its results here are wrong"
                raise RuntimeError(f"{text}: define it with args=... of these types, or declare pa.InOut")


def functions(
    op: str, kernel: Any, arguments: Sequence[Argument], out: Mapping[str, Any], schema_check: SchemaCheck
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(the implementation, the one for fake tensors), both with the operator's parameters."""
    scope: dict[str, Any] = {
        "_pa_kernel": kernel, "_pa_array": array, "_pa_schema_check": schema_check,
        "_pa_counts": schema_check.kernel.counts,
        "_pa_bump_version": torch.autograd.graph.increment_version,
    }  # fmt: skip
    inputs = [a for a in arguments if a.name not in out]
    passed = ", ".join(f"{a.name}={a.name}" if a.keyword_only else a.name for a in inputs)
    allocations = []
    for name, rule in out.items():
        allocator = ResultAllocator(op, next(a for a in arguments if a.name == name), rule)
        scope[f"_pa_new_{name}"] = allocator.like if isinstance(rule, str) else allocator.from_function
        allocations.append(f"{name} = _pa_new_{name}({rule if isinstance(rule, str) else passed})")
    head = _parameters(inputs, scope)
    result = f"return {', '.join(out)}" if out else "return None"
    launch = ", ".join(f"{a.name}={_value(a, out)}" if a.keyword_only else _value(a, out) for a in arguments)
    run = [
        *allocations,
        *_version_bumps([a for a in inputs if a.written]),
        f"_pa_kernel({launch})",
        "if _pa_counts['misses'] != _pa_schema_check.checked_misses: _pa_schema_check.check()",
        result,
    ]
    return _defined(op, "run", head, run, scope), _defined(op, "fake", head, [*allocations, result], scope)


def in_torch_stream(run: Callable[..., Any]) -> Callable[..., Any]:
    """`run` in torch's current stream of the device that the tensors are on."""

    def run_in_stream(*args: Any, **kwargs: Any) -> Any:
        index = next(x.get_device() for x in args if isinstance(x, torch.Tensor) and x.is_cuda)
        device = _devices.get(index) or _devices.setdefault(index, device_of(torch.device("cuda", index)))
        handle = _torch_stream(index)
        if device.driver.current_stream() == handle:
            return run(*args, **kwargs)
        with Stream.of(handle, device):
            return run(*args, **kwargs)

    return run_in_stream


def _parameters(inputs: Sequence[Argument], scope: dict[str, Any]) -> str:
    parts = []
    for a in inputs:
        if a.keyword_only and "*" not in parts:
            parts.append("*")
        has_default = a.default is not MISSING
        if has_default:
            scope[f"_pa_default_{a.name}"] = a.default
        parts.append(f"{a.name}=_pa_default_{a.name}" if has_default else a.name)
    return ", ".join(parts)


def _value(a: Argument, out: Mapping[str, Any]) -> str:
    if a.direction is None:
        return a.name
    maybe = a.optional and a.name not in out
    return f"None if {a.name} is None else _pa_array({a.name})" if maybe else f"_pa_array({a.name})"


def _version_bumps(written: Sequence[Argument]) -> list[str]:
    required = ", ".join(a.name for a in written if not a.optional)
    lines = [f"_pa_bump_version(({required},))"] if required else []
    return lines + [f"if {a.name} is not None: _pa_bump_version({a.name})" for a in written if a.optional]


def _defined(op: str, name: str, head: str, lines: Sequence[str], scope: dict[str, Any]) -> Callable[..., Any]:
    text = f"def {name}({head}):\n" + "".join(f"    {line}\n" for line in lines)
    path = f"<pyarray op {op} {name}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), scope)
    function: Callable[..., Any] = scope[name]
    return function
