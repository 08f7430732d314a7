"""Text of `explain` of a fused function: a line for each kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .plan import Environment, Plan, Step

_UNSEEN = "copied first, since no strides show it in that shape"
_SHORT = "copied first, since axes are cut in ways that don't fit: divisions of the index would take longer"
_DIVIDED = "found by divisions of the index, since axes are cut in ways that don't fit"


def report(name: str, plan: Plan, steps: Sequence[Step], environment: Environment, arguments: Sequence[str]) -> str:
    """The kernels of a call whose arrays are called `arguments`."""
    count = len(steps)
    lines = [f"{name}: {count} kernel{'s' * (count != 1)}"]
    for number, step in enumerate(steps, 1):
        read = dict.fromkeys(plan.name_of(leaf, arguments) for leaf, _ in step.lowering.operands)
        lines.append(f"{number}. {_computed(step, environment)}; reads {', '.join(read)}")
        if step.reduction is not None and number < count:
            lines.append("   ends here: what follows needs the whole result of the reduction")
        elif number < count:
            lines.append("   ends here: the results that follow have another shape")
        names = [plan.name_of(leaf, arguments) for leaf, _ in step.lowering.operands]
        for what, operands in ((_UNSEEN, step.unseen), (_SHORT, step.short), (_DIVIDED, step.divided)):
            if operands:
                lines.append(f"   {what}: {', '.join(dict.fromkeys(names[k] for k in sorted(operands)))}")
    return "\n".join(lines)


def _computed(step: Step, environment: Environment) -> str:
    counted = Counter(step.lowering.operations)
    what = ", ".join(f"{n} x {op}" if n > 1 else op for op, n in counted.items()) or "nothing more"
    if (reduction := step.reduction) is None:
        return f"elementwise: {what}"
    shape = environment.shape(reduction.source)
    return f"{reduction.op.name} over axes {reduction.axes} of {shape}, of {what}"
