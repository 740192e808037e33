"""What is measured on a seed's held-out episodes: every learner by itself, and how near it is to the trained layers."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from iclgd.metrics.functions import Predict, View, half_square, likeness, view
from iclgd.results import Array, array
from iclgd.small import construct
from iclgd.small.attention import Weights
from iclgd.small.languages.membership import accuracy
from iclgd.small.languages.references import References
from iclgd.small.train import Params
from iclgd.tasks.regression import Episodes

TRAINED = "trained"  # the layers, among the learners
BYPASS = "trained, no attention"  # the same layers with pv = 0: what the MLP before them answers by itself


def comparisons(
    learners: Mapping[str, Predict], layers: Predict, held: Episodes, mixed: Episodes, views: Mapping[str, View]
) -> list[Array]:
    """Every learner's numbers; ``mixed`` are the held-out episodes with their labels shuffled.

    Of the trained layers and of each learner: accuracy and loss. Of each learner: the cosine of its sensitivities to
    those of the layers, and of predictions the correlation over all queries and the mean squared difference (mse).
    """
    everyone = {TRAINED: layers, **learners}
    seen = {
        False: {name: views[name] if name in views else view(learner, held) for name, learner in everyone.items()},
        True: {name: view(learner, mixed) for name, learner in everyone.items()},
    }
    return [
        array(value, part="learner", learner=name, quantity=quantity, shuffled=mixed_)
        for mixed_, known in seen.items()
        for name in everyone
        for quantity, value in _numbers(known[TRAINED], known[name], held, name != TRAINED).items()
    ]


def _numbers(layers: View, learner: View, held: Episodes, other: bool) -> dict[str, float]:
    found = {
        "accuracy": accuracy(learner.answer, held.target),
        "loss": float(half_square(learner.answer, held.target)),
    }
    if other:
        alike = likeness(layers, learner, held.query)
        found |= {
            "cosine": alike.cosine,
            "correlation": correlation(layers.answer, learner.answer),
            "mse": alike.spd,
        }
    return found


def correlation(a: Tensor, b: Tensor) -> float:
    """Pearson's, over all answers; nan where one of them never changes."""
    a, b = (x.double().flatten() - x.double().mean() for x in (a, b))
    return float(a @ b / (a.norm() * b.norm()))


def watched(layers: Predict, held: Episodes, views: Mapping[str, View]) -> dict[tuple[str, str], float]:
    """The same during training, by learner and quantity."""
    seen = view(layers, held)
    found = {
        (TRAINED, "accuracy"): accuracy(seen.answer, held.target),
        (TRAINED, "loss"): float(half_square(seen.answer, held.target)),
    }
    for name, learner in views.items():
        alike = likeness(seen, learner, held.query)
        found |= {(name, "mse"): alike.spd, (name, "cosine"): alike.cosine}
    return found


def as_preconditioner(weights: Weights, dx: int) -> tuple[Tensor, Tensor]:
    """A trained layer's answer is (bᵀ A + r) x_q plus a term in S alone, with b = (1/N) Σ y x and y² = 1.

    With p the label row of pv and Q the x columns of qk: A = −(p_y Q_xx + p_x Q_yxᵀ), and r = −p_y Q_yx answers without
    looking at any label.
    """
    q, p = weights.qk[0, 0][:, :dx], weights.pv[0, 0][dx]
    return -(p[dx] * q[:dx] + torch.outer(p[:dx], q[dx])), -p[dx] * q[dx]


def matrices(layers: Params, tuned: References) -> list[Array]:
    """One layer on codes: qk and pv, constructed and trained, and how alike they are as preconditioners."""
    if tuned.matrix is None:
        return []
    dx = len(tuned.matrix)
    learned = Weights(layers["qk"], layers["pv"])
    every = {
        "gd": construct.gd_layer(dx, 1, tuned.rate),
        "preconditioned gd": construct.preconditioned_layer(tuned.matrix, 1),
        TRAINED: learned,
    }
    mine = as_preconditioner(learned, dx)[0]
    shown = [
        array(value[0, 0].float(), "row", "column", part="weights", learner=name, matrix=matrix)
        for name, weights in every.items()
        for matrix, value in weights._asdict().items()
    ]
    return [
        *shown,
        array(_alike(mine, tuned.matrix.float()), part="weights", quantity="cosine to the best preconditioner"),
        array(_alike(mine, torch.eye(dx)), part="weights", quantity="cosine to a multiple of the identity"),
    ]


def kept(tuned: References, encoder: Mapping[str, np.ndarray]) -> list[Array]:
    """What a page needs to answer about words that are typed into it: the encoder, and what learners were tuned to."""
    numbers = {name: array(value, *_axes(value), part="kept", quantity=name) for name, value in tuned.kept.items()}
    coder = [array(value, *_axes(value), part="kept", encoder=name) for name, value in encoder.items()]
    return [*numbers.values(), *coder] if encoder else []


def _axes(value: "np.ndarray | Tensor | float") -> tuple[str, ...]:
    return ("row", "column")[: np.ndim(value)]


def _alike(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum() / (a.norm() * b.norm()))
