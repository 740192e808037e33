"""Layers whose weights are written down, not trained: each is exactly one of the learners.

Every function returns ``Weights`` for ``attention``, and the last one parameters for ``fast``. Separate tokens for x
and y are in ``interleaved``, layers that learn one token after another in ``recurrent``.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.small.attention import Weights

F64 = torch.float64


def blocks(dx: int, dy: int, xx: Tensor, xy: Tensor, yx: Tensor, yy: Tensor) -> Float[Tensor, "dim dim"]:
    """[[xx, xy], [yx, yy]], where a 0-dimensional entry stands for that multiple of the identity (or for zero)."""

    def block(entry: Tensor, rows: int, columns: int) -> Tensor:
        if entry.ndim:
            if entry.shape != (rows, columns):
                raise Refusal(
                    f"a block of shape {tuple(entry.shape)} does not fit {dx} inputs and {dy} outputs; "
                    f"it has to be {(rows, columns)}."
                )
            return entry
        return entry * torch.eye(rows, columns, dtype=entry.dtype)

    top = torch.cat([block(xx, dx, dx), block(xy, dx, dy)], 1)
    return torch.cat([top, torch.cat([block(yx, dy, dx), block(yy, dy, dy)], 1)])


def _stack(*layers: tuple[Tensor, Tensor]) -> Weights:
    """Layers of one head each."""
    return Weights(torch.stack([qk for qk, _ in layers])[:, None], torch.stack([pv for _, pv in layers])[:, None])


ZERO, ONE = torch.zeros((), dtype=F64), torch.ones((), dtype=F64)


def gd_layer(dx: int, dy: int, rate: float, start: Float[Tensor, "dy dx"] | None = None) -> Weights:
    """One step of GD from W₀ for any number of outputs; the same layer again is the next step (von Oswald, prop. 1).

    Kᵀ Q = [[I, 0], [0, 0]] and P V = η [[0, 0], [W₀, −I]].
    """
    begin = ZERO if start is None else rate * start.to(F64)
    rate_ = torch.tensor(rate, dtype=F64)
    return _stack((blocks(dx, dy, ONE, ZERO, ZERO, ZERO), blocks(dx, dy, ZERO, ZERO, begin, -rate_)))


def gdpp_layers(dx: int, dy: int, rates: Float[Tensor, " step"], curvatures: Float[Tensor, " step"]) -> Weights:
    """GD++: P V = diag(−γ, …, −γ, −η), one layer a step."""
    key = blocks(dx, dy, ONE, ZERO, ZERO, ZERO)
    pairs = zip(rates.to(F64), curvatures.to(F64), strict=True)
    return _stack(*((key, blocks(dx, dy, -curvature, ZERO, ZERO, -rate)) for rate, curvature in pairs))


def preconditioned_layer(matrix: Float[Tensor, "dx dx"], dy: int = 1) -> Weights:
    """One step of preconditioned GD: Kᵀ Q = [[A, 0], [0, 0]], P V = [[0, 0], [0, −I]] (Ahn 2023, Zhang 2023)."""
    dx = matrix.shape[0]
    return _stack((blocks(dx, dy, matrix.to(F64), ZERO, ZERO, ZERO), blocks(dx, dy, ZERO, ZERO, ZERO, -ONE)))


def kernel_layer(dx: int, dy: int, rate: float) -> Weights:
    """One step of functional GD under a kernel's attention (Cheng 2024): the weights of ``gd_layer`` at W₀ = 0."""
    return gd_layer(dx, dy, rate)


def four_scalar_layers(dx: int, scalars: Float[Tensor, "step 4"]) -> Weights:
    """Two heads with diagonal matrices; ``scalars`` are w_xx, w_xy, w_yx, w_yy of each layer (Vladymyrov 2024)."""
    by_x, by_y = blocks(dx, 1, ONE, ZERO, ZERO, ZERO), blocks(dx, 1, ZERO, ZERO, ZERO, ONE)
    pv = [
        torch.stack([blocks(dx, 1, xx, ZERO, ZERO, yx), blocks(dx, 1, xy, ZERO, ZERO, yy)])
        for xx, xy, yx, yy in scalars.to(F64)
    ]
    return Weights(torch.stack([by_x, by_y]).expand(len(pv), -1, -1, -1), torch.stack(pv))


def softmax_pair(dx: int, dy: int, rate: float, epsilon: float) -> Weights:
    """Two softmax heads, [softmax(εs) − softmax(−εs)] / 2ε, tending to centred linear attention with error O(ε²).

    (1/N) Σ_i v_i (s_i − s̄): a GD step on inputs of which the demonstrations' mean was taken, not the GD step itself.
    """
    if epsilon <= 0:
        raise Refusal(f"the two heads need a positive epsilon to differ by, not {epsilon}.")
    key = blocks(dx, dy, epsilon * ONE, ZERO, ZERO, ZERO)
    value = blocks(dx, dy, ZERO, ZERO, ZERO, torch.tensor(-rate / (2 * epsilon), dtype=F64))
    return Weights(torch.stack([key, -key])[None], torch.stack([value, -value])[None])


def learning_layer(dx: int, dy: int, gates: dict[str, float]) -> dict[str, Tensor]:
    """A layer of ``fast`` whose state learns y from x: key and query are x, the value is −y.

    ``gates`` has what each of the rule's parameters is for every token: a rate or decay in (0, 1), a penalty; ``start``
    is that multiple of the identity, from labels that are 0.
    """
    x, y = blocks(dx, dy, ONE, ZERO, ZERO, ZERO), blocks(dx, dy, ZERO, ZERO, ZERO, -ONE)
    params = {"key": x, "query": x, "pv": y}
    for name, value in gates.items():
        number = torch.tensor(value, dtype=F64)
        if name in ("rate", "decay"):
            params[name] = torch.cat([torch.zeros(dx + dy, dtype=F64), number.logit()[None]])
        else:
            params[name] = number.log() if name == "penalty" else number * torch.eye(dx + dy, dtype=F64)
    return {name: one[None, None] for name, one in params.items()}
