"""Text of `explain` of a fused function: a line for each kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from .plan import Environment, Plan, Step

_UNSEEN = "copied first, since no strides show it in that shape"
_SHORT = "copied first, since axes are cut in ways that don't fit: divisions of the index would take longer"
_DIVIDED = "found by divisions of the index, since axes are cut in ways that don't fit"


def report(name: str, plan: Plan, steps: Sequence[Step], environment: Environment, arguments: Sequence[str]) -> str:
    """The kernels of a call whose arrays are called `arguments`."""
    count = len(steps)
    lines = [f"{name}: {count} kernel{'s' * (count != 1)}"]
    for number, step in enumerate(steps, 1):
        names = [plan.name_of(leaf, arguments, steps) for leaf, _ in step.lowering.operands]
        lines.append(f"{number}. {_computed(step, environment)}; reads {', '.join(dict.fromkeys(names))}")
        if step.reductions and number < count:
            lines.append("   ends here: what follows needs the whole result of the reduction")
        elif number < count:
            lines.append("   ends here: the results that follow have another shape")
        for what, operands in ((_UNSEEN, step.unseen), (_SHORT, step.short), (_DIVIDED, step.divided)):
            if operands:
                lines.append(f"   {what}: {', '.join(dict.fromkeys(names[k] for k in sorted(operands)))}")
    return "\n".join(lines)


def _computed(step: Step, environment: Environment) -> str:
    what = _counted(step.lowering.operations) or "nothing more"
    if not step.reductions:
        return f"elementwise: {what}"
    first = step.reductions[0]
    reduced = _counted([r.op.name for r in step.reductions])
    over = f"{reduced} over axes {first.axes} of {environment.shape(first.source)}"
    return f"rows: {over}, and {what}" if step.rows else f"{over}, of {what}"


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{n} x {name}" if n > 1 else name for name, n in Counter(names).items())
