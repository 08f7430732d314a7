"""Torch tensors that are more than memory: fake or conjugated ones, gradients, and autograd's version counter.

Nothing here imports torch: whoever has a tensor has imported it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeGuard

_DETACHED = ".detach(), or call this under torch.no_grad()"
# a test that a tensor has a state in which its memory isn't its values -> what to write, and why
_STATES: tuple[tuple[Callable[[Any], bool], str, str], ...] = (
    (lambda x: bool(x.requires_grad), "it requires grad, and no gradient flows through here", _DETACHED),
    (lambda x: bool(x.is_nested), "it is nested", ".unbind(), a list of tensors"),
    (lambda x: str(x.layout) != "torch.strided", "its elements don't lie in strides", ".to_dense()"),
    (lambda x: bool(x.is_conj()), "it is to be conjugated when it is read", ".resolve_conj()"),
    (lambda x: bool(x.is_neg()), "it is to be negated when it is read", ".resolve_neg()"),
    (lambda x: bool(x.is_quantized), "it is quantized", ".dequantize()"),
    (lambda x: x.device.type == "meta", "it is on the meta device, without elements", ""),
)


def is_tensor(x: Any) -> TypeGuard[Any]:
    """Whether it is a tensor of torch."""
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return kind is not None and isinstance(x, kind)


def is_recorded(x: Any) -> bool:
    """Whether autograd records what is done with a tensor: not under `torch.no_grad()` and its like."""
    return bool(x.requires_grad) and bool(sys.modules["torch"].is_grad_enabled())


def check_values(x: Any) -> None:
    """Raises `BufferError` for a tensor that exports memory which isn't its values, or drops a gradient."""
    if x.is_neg() or is_dual(x):
        raise refused(x, None)


def refused(x: Any, error: Exception | None) -> BufferError:
    """Why a tensor can't be exported, and what to write. `error` is what torch said."""
    if error is None and not x.is_neg():
        why = "it carries a forward gradient, and none flows through here"
        instead = "its primal, torch.autograd.forward_ad.unpack_dual(x).primal"
        return BufferError(f"the tensor can't be shared: {why}; pass {instead}")
    for test, why, instead in _STATES:
        try:
            if test(x):
                advice = f"pass x{instead}" if instead else "pass one with memory"
                return BufferError(f"the tensor can't be shared: {why}; {advice}")
        except Exception:  # of a wrapper that doesn't know the question
            continue
    return BufferError(
        f"the tensor can't be shared: {error}; if it stands for other tensors, as under torch.vmap and fake "
        "tensors do, call this outside"
    )


def plain_export(x: Any) -> Callable[[Any], Any] | None:
    """What `x.__dlpack__` calls for a versioned capsule when it has asked all it asks, where the answers are
    known: that takes a tenth of the time. None where they aren't."""
    torch = sys.modules["torch"]
    if type(x) is not torch.Tensor or x.requires_grad or x.is_conj() or x.layout is not torch.strided:
        return None
    return getattr(torch._C, "_to_dlpack_versioned", None)


def exchange_facts(kind: type) -> tuple[Any, Any, dict[str, Any]] | bool | None:
    """How `csrc/core/foreign.c` asks what is no tensor's memory, for a class with DLPack's table of C functions: what
    raises versions, whether gradients are recorded, the module of forward gradients. False of tensors of other classes,
    which may be anything; None of what is no class of tensors."""
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    if torch is None or tensor is None or not issubclass(kind, tensor):
        return None
    if kind is not tensor and kind is not torch.nn.Parameter:
        return False
    return torch._C._increment_version, torch.is_grad_enabled, vars(torch.autograd.forward_ad)


def counter(x: Any) -> Callable[[], None]:
    """A function that tells autograd that the tensor is written, so that it refuses what it kept of it."""
    return functools.partial(sys.modules["torch"].autograd.graph.increment_version, x)


def gpu_stream(x: Any) -> tuple[tuple[int, int], int] | None:
    """DLPack's device of a tensor on torch's current GPU, and the handle of torch's current stream there.
    None for any other tensor, and where torch doesn't tell."""
    torch = sys.modules["torch"]
    calls, index = torch._C, x.get_device()
    ask = getattr(calls, "_cuda_getCurrentRawStream", None)
    if ask is None or not x.is_cuda or calls._cuda_getDevice() != index:
        return None
    return (2 if torch.version.hip is None else 10, index), ask(index)


def is_dual(x: Any) -> bool:
    """Whether a tensor carries a forward gradient."""
    forward = sys.modules.get("torch.autograd.forward_ad")
    if forward is None or getattr(forward, "_current_level", -1) < 0:
        return False
    return forward.unpack_dual(x).tangent is not None
