"""What a comparison found, in one sentence that is never stronger than its intervals."""

from iclgd.labs.compare.view import Comparison
from iclgd.report.numbers import number


def answer(comparison: Comparison) -> str:
    """Reading against training, learner by learner, beside the nulls and the untrained model that are as alike."""
    spec = comparison.spec
    first = next((c for c in spec.metrics if c.make().by == "layer"), None)
    if first is None:
        return ""
    parts = []
    for choice in {c.kind: c for c in spec.trained}.values():
        labels = {"init": spec.init[0], "learner": choice.label, "metric": first.label}
        own = comparison.estimate(spec.task, spec.position, **labels)
        if own.mean != own.mean:
            parts.append(f"{choice.label} diverged")
            continue
        rivals = {}
        for null in comparison.known("null"):
            found = comparison.estimate(spec.task, spec.position, null=null, **labels)
            rivals[null] = found.mean
        for init in spec.init[1:]:
            rivals[f"{init} weights"] = comparison.estimate(spec.task, spec.position, **{**labels, "init": init}).mean
        above = [f"{name} {number(value)}" for name, value in rivals.items() if value >= own.low]
        beside = f"not told apart from {', '.join(above)}" if above else "above every null and untrained baseline"
        parts.append(f"{choice.label} {number(own.mean)}, {beside}")
    return f"{first.make().title} of reading and training: {'; '.join(parts)}."
