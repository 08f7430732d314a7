"""The default batching rule of an operator under `torch.vmap`: a loop over the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .op_schema import Argument


def loop(
    op: str, overload: Any, fake: Callable[..., Any], inputs: Sequence[Argument], results: int
) -> Callable[..., Any]:
    """The rule of an operator without one of its own, as torch.library.register_vmap takes it. What is
    written must have the batch's dimension; results have it first. `fake` makes them and computes nothing."""

    def rule(info: Any, in_dims: Any, *args: Any, **kwargs: Any) -> Any:
        rows = []
        for a, x, dim in zip(inputs, args, in_dims, strict=False):
            if a.written and dim is None and x is not None:
                what = f"{a.name!r} is written for each element of the batch and has no dimension for it"
                raise ValueError(f"{op}() under torch.vmap: {what}; expand and copy it, and name its in_dim")
            moved = None if dim is None or x is None else x.movedim(dim, 0)
            rows.append((x, moved if moved is None or a.written else moved.contiguous()))
        made = []
        for k in range(info.batch_size):
            made.append(overload(*(x if moved is None else moved[k] for x, moved in rows), **kwargs))
        if results == 0:
            return None, None
        if not made:
            one = (x if moved is None else moved.new_empty(moved.shape[1:]) for x, moved in rows)
            made.append(fake(*one, **kwargs))
        each = [made] if results == 1 else list(zip(*made, strict=True))
        stacked = tuple(torch.stack(list(r))[: info.batch_size] for r in each)
        return (stacked[0], 0) if results == 1 else (stacked, (0,) * results)

    return rule
