"""Autograd for operators: the kernel at the Autograd dispatch key, and a backward that is a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._library.autograd import Info, make_autograd_impl
from torch.autograd import forward_ad

from pyarray.tensors import is_dual

from .op_schema import Argument

_keys: Any = torch._C.DispatchKey
_DENSE = (_keys.CPU, _keys.CUDA)
_below: Any = torch._C._after_ADInplaceOrView_keyset
_any_requires_grad: Any = torch._C._any_requires_grad
GRAD = "grad_"  # what names of gradients begin with


def autograd_kernel(
    op: str, overload: Any, runs: Sequence[Callable[..., Any]], backward: Any, setup_context: Any
) -> Callable[..., Any]:
    """What autograd's dispatch keys run. `runs` are for memory on the CPU and on GPUs: plain tensors go
    there directly, since another pass through the dispatcher takes as long as a launch. All others, and
    those whose gradients are recorded, take torch's own way."""
    torch_impl = make_autograd_impl(overload, Info(backward, setup_context))
    cpu, gpu = runs
    mutable = overload._schema.is_mutable

    def autograd(keys: Any, *args: Any, **kwargs: Any) -> Any:
        if forward_ad._current_level >= 0:
            _refuse_forward(op, overload, args)
        if torch.is_grad_enabled() and _any_requires_grad(*args):
            if backward is None:
                raise ValueError(_no_backward(op, overload, args, mutable))
        else:
            key = (keys & _below).highestPriorityTypeId()
            if key == _DENSE[0]:
                return cpu(*args, **kwargs)
            if key == _DENSE[1]:
                return gpu(*args, **kwargs)
        return torch_impl(keys, *args, **kwargs)

    return autograd


def _refuse_forward(op: str, overload: Any, args: Sequence[Any]) -> None:
    """Raises `ValueError` for a tensor with a forward gradient, which would be lost."""
    for a, x in zip(overload._schema.arguments, args, strict=False):
        if isinstance(x, torch.Tensor) and is_dual(x):
            what = f"{a.name!r} carries a forward gradient, as under torch.func.jvp, which no op has"
            instead = "its primal, torch.autograd.forward_ad.unpack_dual(x).primal"
            raise ValueError(f"{op}(): {what}; pass {instead}, or take gradients by backward()")


def _no_backward(op: str, overload: Any, args: Sequence[Any], mutable: bool) -> str:
    names = [a.name for a in overload._schema.arguments]
    grads = (isinstance(x, torch.Tensor) and x.requires_grad for x in args)
    name = next(n for n, needs in zip(names, grads, strict=False) if needs)
    if mutable:
        why, how = "the op writes its arguments", "define the op with out=... and backward=..."
    else:
        why, how = "the op has no backward", "define it with backward=..."
    what = f"{name!r} is a tensor that requires grad, and {why}"
    return f"{op}(): {what}; pass .detach() of it, call it under torch.no_grad(), or {how}"


class Backward:
    """The gradients as a kernel computes them. Its parameters go by their names: `grad_y` is read, for a
    result `y`; arguments and results of the forward go by their own names; `grad_x` is written, for an
    argument `x`. `launch` is that kernel as an operator. `takes`: it is an adjoint, which sets what it reads of
    `grad_y` to 0, and so gets copies."""

    launch: Any
    kernel: Any

    def __init__(
        self,
        op: str,
        arguments: Sequence[Argument],
        forward: Sequence[Argument],
        results: Sequence[str],
        examples: Mapping[str, Any],
        takes: bool = False,
    ):
        self.op, self.examples, self.takes = op, examples, takes
        self.inputs, self.results = [a for a in forward if a.name not in results], list(results)
        names = [a.name for a in self.inputs]
        tensors = [a.name for a in self.inputs if a.direction is not None]
        self.grads_in = [GRAD + r for r in results]
        self.grads_out = {a.name: a for a in arguments if a.name.removeprefix(GRAD) in tensors}
        self.grads_out = {n: a for n, a in self.grads_out.items() if n.startswith(GRAD) and n not in names}
        self.saved = [a.name for a in arguments if a.name in (*names, *results)]
        expected_names = {*self.grads_in, *self.grads_out, *self.saved}
        for a in arguments:
            if a.name not in expected_names:
                raise TypeError(f"op {op!r}: backward has a parameter {a.name!r}; {self._expected()}")
            taken = takes and a.name in self.grads_in
            if not taken and a.written != (a.name in self.grads_out):
                how = "writes" if a.written else "doesn't write"
                raise TypeError(f"op {op!r}: backward {how} {a.name!r}; {self._expected()}")
        self.order = [a.name for a in arguments]

    def _expected(self) -> str:
        read = [*self.grads_in, *(a.name for a in self.inputs), *self.results]
        written = [GRAD + a.name for a in self.inputs if a.direction is not None]
        return f"it reads some of {', '.join(read)} and writes some of {', '.join(written)}"

    def setup_context(
        self,
        ctx: Any,
        inputs: Sequence[Any],
        output: Any,
        keyword_only_inputs: Mapping[str, Any] | None = None,
    ) -> None:
        """Saves the tensors that the backward kernel reads. Raises `ValueError` for an argument that requires grad
        and that it has no gradient for."""
        positional = [a.name for a in self.inputs if not a.keyword_only]
        values = dict(zip(positional, inputs, strict=True)) | dict(keyword_only_inputs or {})
        values |= dict(zip(self.results, output if len(self.results) > 1 else (output,), strict=True))
        for name, needs in zip(positional, ctx.needs_input_grad, strict=False):
            if needs and GRAD + name not in self.grads_out:
                what = f"{name!r} is a tensor that requires grad, and backward has no {GRAD + name!r}"
                raise ValueError(f"{self.op}(): {what}; pass .detach() of it")
        tensors = [n for n in self.saved if isinstance(values[n], torch.Tensor)]
        ctx.save_for_backward(*(values[n] for n in tensors))
        ctx.tensors = tensors
        ctx.numbers = {n: values[n] for n in self.saved if n not in tensors}
        like = {n: values[n.removeprefix(GRAD)] for n in self.grads_out}
        ctx.like = {n: None if x is None else (x.shape, x.dtype, x.device) for n, x in like.items()}

    def __call__(self, ctx: Any, *grads: torch.Tensor) -> tuple[Any, ...]:
        values = dict(zip(ctx.tensors, ctx.saved_tensors, strict=True)) | ctx.numbers
        for name, grad in zip(self.grads_in, grads, strict=True):
            form = torch.contiguous_format
            copied = None if grad is None else grad.clone(memory_format=form) if self.takes else grad.contiguous()
            values[name] = copied
        for name, argument in ctx.like.items():
            make = torch.empty if self.grads_out[name].direction == "OUT" else torch.zeros
            values[name] = None if argument is None else make(argument[0], dtype=argument[1], device=argument[2])
        self.launch(**{name: values[name] for name in self.order})
        positional = [a.name for a in self.inputs if not a.keyword_only]
        return tuple(values[GRAD + n] if GRAD + n in self.grads_out else None for n in positional)


def examples(arguments: Sequence[Argument], args: Any) -> dict[str, Any]:
    """Examples for a backward's parameters, from those of the forward."""
    if args is None:
        return {}
    named = dict(args) if isinstance(args, Mapping) else None
    if named is None:
        named = {a.name: x for a, x in zip(arguments, args, strict=True)}
    arrays = {a.name for a in arguments if a.direction is not None}
    return named | {GRAD + n: x for n, x in named.items() if n in arrays}
