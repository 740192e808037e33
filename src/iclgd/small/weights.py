"""Weights of attention layers laid side by side: the scale symmetry removed, distance, interpolation."""

from iclgd.small.attention import Weights


def normalised(weights: Weights, dx: int) -> Weights:
    """The scale symmetry (c·qk, pv/c) removed layer by layer: the mean of qk's first dx diagonal entries becomes 1."""
    scale = weights.qk.diagonal(dim1=-2, dim2=-1)[..., :dx].mean(-1)[..., None, None]
    return Weights(weights.qk / scale, weights.pv * scale)


def weight_distance(a: Weights, b: Weights, dx: int) -> float:
    """Relative distance of normalised weights, over what one layer's answer depends on: qk's x columns, pv's y rows."""
    total = 0.0
    for name, of_a, of_b in zip(Weights._fields, normalised(a, dx), normalised(b, dx), strict=True):
        part = (..., slice(None), slice(0, dx)) if name == "qk" else (..., slice(dx, None), slice(None))
        total += float((of_a[part] - of_b[part]).square().sum()) / float(of_b[part].square().sum())
    return (total / 2) ** 0.5


def interpolated(a: Weights, b: Weights, dx: int, share: float) -> Weights:
    """(1 − share) a + share b after normalising both (von Oswald 2023, fig. 2: share ½)."""
    pairs = zip(normalised(a, dx), normalised(b, dx), strict=True)
    return Weights(*((1 - share) * p + share * q for p, q in pairs))
