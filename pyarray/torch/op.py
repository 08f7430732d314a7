"""`pa.torch.op`: registers a kernel as a custom operator of torch."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from pyarray.jit.kernel import Gradient, Kernel
from pyarray.tune.tuned import Tuned

from . import op_autograd, op_calls, op_schema, op_vmap
from .op_schema import Argument

_libraries: dict[str, torch.library.Library] = {}  # by operator, which ends with its library
_rules: dict[str, Callable[..., Any]] = {}  # by operator, for torch.vmap


def op(
    kernel: Any,
    name: str,
    *,
    out: Mapping[str, str | Callable[..., torch.Tensor]] | None = None,
    backward: Any = None,
    setup_context: Callable[..., None] | None = None,
    vmap: Callable[..., Any] | None = None,
    args: Any = None,
) -> Any:
    """Make a kernel an operator of torch, `torch.ops.namespace.name.default`, which `torch.compile` and
    `torch.export` keep in their graphs. Arrays become tensors, numbers `int`, `float`, `bool` or `complex`.
    Which tensors are written follows from the kernel. On GPUs it runs in torch's current stream.

    Parameters
    ----------
    kernel : kernel or tuned kernel
    name : str
        `namespace::name`. Defining a name again replaces what it runs; the schema has to be the same.
    out : dict, optional
        Parameters that the kernel writes, which become results, in this order. To each: the name of the
        parameter whose shape and dtype it has (the dtype is the annotation's where there is one), and 0 where
        the kernel doesn't write; or a function of the operator's arguments that gives a new tensor.
    backward : kernel or function, optional
        `kernel.grad`, or another kernel, whose parameters go by their names: it reads `grad_y` for a result `y`, and
        arguments and results by their own names; it writes `grad_x` for an argument `x`. A function,
        `backward(ctx, *grads)`, and `setup_context(ctx, inputs, output)` are as `torch.library.register_autograd`
        takes them.
    vmap : function, optional
        As `torch.library.register_vmap` takes it. Default: a call for each element of the batch.
    args : tuple or dict, optional
        Examples of the kernel's arguments, all in order or some by name, where annotations don't say types.

    Raises
    ------
    TypeError
        For parameters that no operator takes (structures, keyword-only arrays), and types that nobody says.
    ValueError
        For a name without a namespace or of another schema, and an `out` that the kernel doesn't write. When
        it is called: without `backward`, for a tensor that requires grad, where gradients are recorded.

    >>> import torch, pyarray as pa
    >>> @pa.kernel
    ... def scale(x: pa.BufferView[pa.float32], factor: float, y: pa.BufferView[pa.float32]):
    ...     for i in range(y.size):
    ...         y[i] = x[i] * factor
    >>> scaled = pa.torch.op(scale, "doctest::scaled", out={"y": "x"})
    >>> scaled(torch.ones(3), 2.0)
    tensor([2., 2., 2.])
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", name):
        raise ValueError(f"the name of an op is 'namespace::name', got {name!r}")
    return _define_op(name, kernel, dict(out or {}), backward, setup_context, vmap, args)


def _define_op(
    name: str, kernel: Any, out: dict[str, Any], backward: Any, setup_context: Any, vmap: Any, args: Any
) -> Any:
    arguments = op_schema.arguments_of(name, kernel, args)
    results = _checked_out(name, arguments, out)
    inputs = [a for a in arguments if a.name not in results]
    if not any(a.direction for a in inputs):
        what = "it takes no tensor, so torch can't say on which device it runs"
        raise ValueError(f"op {name!r}: {what}; take the result's memory as an argument, without out=")
    by_kernel = isinstance(backward, (Kernel, Tuned))
    _check_backward(name, kernel, backward, setup_context, by_kernel, inputs)
    gradient = _kernel_backward(name, backward, arguments, results, args) if by_kernel else None
    overload, redefined = _defined(name, op_schema.schema(name, inputs, len(results)))
    if gradient is not None:
        gradient.launch = op(gradient.kernel, f"{name}_backward", args=gradient.examples)
        backward, setup_context = gradient, gradient.setup_context
    plain, _ = op_schema.plain_kernel(name, kernel)
    schema_check = op_calls.SchemaCheck(name, plain, arguments, results)
    run, fake = op_calls.functions(name, kernel, arguments, results, schema_check)
    runs = run, op_calls.in_torch_stream(run)
    autograd = op_autograd.autograd_kernel(name, overload, runs, backward, setup_context)
    _rules[name] = vmap or op_vmap.loop(name, overload, fake, inputs, len(results))
    _register(name, runs, fake, autograd, redefined)
    return overload


def _checked_out(
    name: str, arguments: Sequence[Argument], out: Mapping[str, Any]
) -> dict[str, str | Callable[..., torch.Tensor]]:
    """`out`, checked. Raises `ValueError` for a parameter that the kernel doesn't write and for the name of one that
    is no tensor, `TypeError` for a rule that is neither a name nor a function."""
    by_name = {a.name: a for a in arguments}
    for result, rule in out.items():
        if result not in by_name or not by_name[result].written:
            written = ", ".join(a.name for a in arguments if a.written) or "no array"
            raise ValueError(f"op {name!r}: out has {result!r}; the kernel writes {written}")
        if not isinstance(rule, str):
            if not callable(rule):
                what = f"the name of a parameter or a function that gives a new tensor, got {rule!r}"
                raise TypeError(f"op {name!r}: out of {result!r} is {what}")
            continue
        tensors = [a.name for a in arguments if a.direction and a.name not in out and not a.optional]
        if rule not in tensors:
            what = f"out has {result!r} like {rule!r}, and the tensors that are always passed are"
            raise ValueError(f"op {name!r}: {what} {', '.join(tensors) or 'none'}; or give a function")
    return dict(out)


def _check_backward(
    name: str, kernel: Any, backward: Any, setup_context: Any, by_kernel: bool, inputs: Sequence[Argument]
) -> None:
    if backward is None and setup_context is None:
        return
    if not by_kernel and not callable(backward):
        raise TypeError(f"op {name!r}: backward is a kernel or a function, got {backward!r}")
    if by_kernel and setup_context is not None:
        raise TypeError(f"op {name!r}: setup_context is for a backward that is a function, not a kernel")
    written = [a.name for a in inputs if a.written]
    if isinstance(backward, Gradient) and backward.of is not kernel:
        what = f"its backward is the gradient of another kernel, {backward.of.__name__!r}"
        raise ValueError(f"op {name!r}: {what}; pass that of its own, kernel.grad")
    if written:
        what = f"it writes its argument {written[0]!r}, and gradients don't flow through that"
        raise ValueError(f"op {name!r} has a backward: {what}; make it a result with out={{{written[0]!r}: ...}}")


def _kernel_backward(
    name: str, kernel: Any, arguments: Sequence[Argument], results: Mapping[str, Any], args: Any
) -> op_autograd.Backward:
    """A backward that is a kernel, without its operator: graphs keep it as one of its own."""
    backward_name = f"{name}_backward"
    examples = op_autograd.examples(arguments, args)
    is_adjoint = isinstance(kernel, Gradient)
    if is_adjoint:
        kernel = Gradient(kernel.of, tuple(op_autograd.GRAD + n for n in _floating(arguments, examples)))
    names = {p.name for p in op_schema.plain_kernel(backward_name, kernel)[0].parameters}
    tensors = {n: x for n, x in examples.items() if n in names}
    parameters = op_schema.arguments_of(backward_name, kernel, tensors)
    made = op_autograd.Backward(name, parameters, arguments, list(results), tensors, is_adjoint)
    made.kernel = kernel
    return made


def _floating(arguments: Sequence[Argument], examples: Mapping[str, Any]) -> list[str]:
    """The tensors that have gradients, in order; those without a dtype are of float32."""
    dtypes = {a.name: a.dtype or getattr(examples.get(a.name), "dtype", None) for a in arguments if a.direction}
    return [name for name, dtype in dtypes.items() if dtype is None or getattr(dtype, "is_floating_point", False)
            or getattr(dtype, "kind", "") == "f"]  # fmt: skip


def _defined(name: str, schema: str) -> tuple[Any, bool]:
    """The operator of this schema, and whether it was there before. Raises `ValueError` for a name that is
    taken."""
    namespace, _, op_name = name.partition("::")
    redefined = name in _libraries
    if not redefined:
        library = torch.library.Library(namespace, "FRAGMENT")
        try:
            library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        except RuntimeError as error:
            raise ValueError(f"op {name!r} can't be defined as {schema}: {error}") from None
        _libraries[name] = library
    overload = getattr(getattr(torch.ops, namespace), op_name).default
    expected = str(torch._C.parse_schema(f"{namespace}::{schema}"))
    if str(overload._schema) != expected:
        what = f"is defined as {overload._schema}, for the life of the process, and this is {expected}"
        raise ValueError(f"op {name!r} {what}; take another name")
    return overload, redefined


def _register(
    name: str, runs: Sequence[Callable[..., Any]], fake: Callable[..., Any], autograd: Any, redefined: bool
) -> None:
    library, op_name = _libraries[name], name.partition("::")[2]
    with warnings.catch_warnings():
        if redefined:  # torch warns once per process of the first kernel that is replaced
            warnings.simplefilter("ignore")
        for key, run in zip(("CPU", "CUDA"), runs, strict=True):
            library.impl(op_name, run, key, allow_override=redefined)
        library.impl(op_name, autograd, "Autograd", with_keyset=True, allow_override=redefined)
        torch.library.register_fake(name, fake, lib=library, allow_override=redefined)
    if not redefined:
        torch.library.register_vmap(name, lambda *a, **k: _rules[name](*a, **k), lib=library)
