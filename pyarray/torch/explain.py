"""`explain`: a report of the kernels and the torch operators that a compiled function consists of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree

from .backend import observing_backend
from .fused_kernel import FusedKernel, compiles
from .fusion_group import ProductGroup
from .program import Program


@dataclass
class Explanation:
    """What `explain` found. Printing it gives the report.

    Attributes
    ----------
    programs : list
        One for each graph: forward before backward.
    compiles : int
        How often a compiler ran for fused kernels of graphs in this process so far. Products are the
        library's own kernel, which eager calls share.
    """

    programs: list[Program] = field(default_factory=list)
    compiles: int = 0

    @property
    def kernels(self) -> list[FusedKernel]:
        """All fused kernels."""
        return [k for p in self.programs for k in p.kernels.values()]

    @property
    def eager(self) -> list[str]:
        """The names of operators that stay torch's, one for each node."""
        return [str(n.target) for p in self.programs for n in p.eager]

    @property
    def eager_fraction(self) -> float:
        """The part of the graphs' operators that stay torch's."""
        fused = sum(len(g.nodes) for p in self.programs for g in p.groups.values())
        return len(self.eager) / max(fused + len(self.eager), 1)

    def __str__(self) -> str:
        lines = list[str]()
        for number, program in enumerate(self.programs, 1):
            lines.append(f"graph {number}: {len(program.kernels)} kernels, {len(program.eager)} operators of torch")
            lines += [_kernel_line(program, name) for name in program.kernels]
            reasons = Counter((str(n.target), program.fusion.eager.get(n, "it gives no tensor")) for n in program.eager)
            lines += [f"  torch: {name} ({count}): {why}" for (name, why), count in reasons.items()]
        lines.append(
            f"compiled in this process: {self.compiles}; operators that stay torch's: {self.eager_fraction:.0%}"
        )
        return "\n".join(lines)


def _kernel_line(program: Program, name: str) -> str:
    kernel, group = program.kernels[name], program.groups[name]
    operators = Counter(str(n.target).removeprefix("aten.").partition(".")[0] for n in group.nodes)
    what = ", ".join(f"{n}" if count == 1 else f"{n} ({count})" for n, count in operators.items())
    divided = [a.name for a in kernel.text.inputs if a.flat is not None]
    line = f"  kernel {kernel.text.name}: {kernel.text.schedule}, {len(kernel.text.loops)} loops: {what}"
    if isinstance(group, ProductGroup):
        return f"{line}; {group.why}"
    splits = len(group.digits.replaced)
    line += f"; axes cut {splits} times" if splits else ""
    return line + (f"; {', '.join(divided)} read with // and %, since axes don't divide each other" if divided else "")


def explain(function: Callable[..., Any], *args: Any, dynamic: bool | None = True, **kwargs: Any) -> Explanation:
    """Compile a function for these arguments, and say what it becomes.

    Parameters
    ----------
    function : callable or torch.nn.Module
        What `torch.compile` takes.
    *args, **kwargs
        Its arguments. It is called once; where a result requires grad, gradients are computed and dropped.
    dynamic : bool or None, default True
        As `torch.compile` takes it.

    Returns
    -------
    Explanation
        Its `kernels`, `eager`, `eager_fraction` and `compiles`; printed, a line for each.

    Examples
    --------
    >>> import torch, pyarray.torch
    >>> found = pyarray.torch.explain(lambda x: torch.softmax(x, -1) * 2, torch.ones(3, 5))
    >>> len(found.kernels), found.eager
    (1, [])
    """
    explanation = Explanation()
    backend = observing_backend(explanation.programs.append)
    result = torch.compile(function, backend=backend, dynamic=dynamic)(*args, **kwargs)
    leaves = [x for x in _pytree.tree_leaves(result) if isinstance(x, torch.Tensor) and x.requires_grad]
    inputs = [x for x in _pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    if isinstance(function, torch.nn.Module):
        inputs += list(function.parameters())
    leaves_of_inputs = [x for x in inputs if x.requires_grad and x.is_leaf]
    if leaves and leaves_of_inputs:
        torch.autograd.grad([x.sum() for x in leaves], leaves_of_inputs, allow_unused=True)
    explanation.compiles = compiles()
    return explanation
