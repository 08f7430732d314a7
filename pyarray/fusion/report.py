"""Text of `explain` of a fused function: a line for each kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .plan import Environment, Plan, Run, Step
from .tracing import Reduce

_UNSEEN = "copied first, since no strides show it in that shape"
_SHORT = "copied first, since axes are cut in ways that don't fit: divisions of the index would take longer"
_DIVIDED = "found by divisions of the index, since axes are cut in ways that don't fit"


def report(name: str, plan: Plan, run: Run, environment: Environment, arguments: Sequence[str]) -> str:
    """The kernels of a call whose arrays are called `arguments`."""
    count = len(run.steps)
    lines = [f"{name}: {count} kernel{'s' * (count != 1)}"]
    for number, (step, reduction) in enumerate(zip(run.steps, plan.ends(run), strict=True), 1):
        read = dict.fromkeys(plan.name_of(leaf, arguments) for leaf, _ in step.lowering.operands)
        lines.append(f"{number}. {_computed(step, reduction, environment)}; reads {', '.join(read)}")
        if reduction is not None and number < count:
            lines.append("   ends here: what follows needs the whole result of the reduction")
        elif reduction is None and number < count:
            lines.append("   ends here: the results that follow have another shape")
        names = [plan.name_of(leaf, arguments) for leaf, _ in step.lowering.operands]
        unseen = {k for k, position in enumerate(step.positions) if position is None} - {*step.short}
        for what, operands in ((_UNSEEN, unseen), (_SHORT, step.short), (_DIVIDED, step.divided)):
            if operands:
                lines.append(f"   {what}: {', '.join(dict.fromkeys(names[k] for k in sorted(operands)))}")
    return "\n".join(lines)


def _computed(step: Step, reduction: Reduce | None, environment: Environment) -> str:
    counted = Counter(step.lowering.operations)
    what = ", ".join(f"{n} x {op}" if n > 1 else op for op, n in counted.items()) or "nothing more"
    if reduction is None:
        return f"elementwise: {what}"
    shape = environment.shape(reduction.source)
    return f"{reduction.op.name} over axes {reduction.axes} of {shape}, of {what}"
