"""How alike two predictors are on the same episodes, and which learner a predictor is most like."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cosine_similarity

from iclgd.errors import Refusal
from iclgd.tasks.regression import Episodes

Answer = Float[Tensor, "*batch query dy"]
Predict = Callable[[Episodes], Answer]


class View(NamedTuple):
    """What a predictor does on some episodes, computed once and compared many times."""

    answer: Answer
    sensitivity: Float[Tensor, "*batch query dy dx"]
    """∂ŷ/∂x_q: the weights of the linear predictor that it is at that query."""


class Likeness(NamedTuple):
    cosine: float
    """Mean cosine of the sensitivities (von Oswald's "model cos"), where both are other than 0; nan where none is."""
    distance: float
    """Mean norm of their difference ("model diff")."""
    prediction: float
    """Mean |ŷ_a − ŷ_b| ("preds diff")."""
    spd: float
    """E ‖ŷ_a − ŷ_b‖² (Akyürek 2023)."""
    implied: float
    """ILWD: mean ‖w_a − w_b‖², w the least-squares fit to a predictor's own answers; nan with fewer queries than dx."""


def view(predict: Predict, episodes: Episodes) -> View:
    query = episodes.query.detach().clone().requires_grad_()
    answer = predict(episodes._replace(query=query))
    rows = [
        torch.autograd.grad(answer[..., k].sum(), query, retain_graph=k + 1 < answer.shape[-1])[0]
        for k in range(answer.shape[-1])
    ]
    return View(answer.detach(), torch.stack(rows, -2))


def implied_weights(answer: Answer, query: Float[Tensor, "*batch query dx"]) -> Float[Tensor, "*batch dx dy"]:
    if query.shape[-2] < query.shape[-1]:
        raise Refusal(
            f"implied weights need at least {query.shape[-1]} queries an episode, not {query.shape[-2]}; ask more."
        )
    return torch.linalg.lstsq(query, answer).solution


def likeness(a: View, b: View, query: Float[Tensor, "*batch query dx"]) -> Likeness:
    gap, difference = a.answer - b.answer, (a.sensitivity - b.sensitivity).flatten(-2)
    implied = torch.tensor(torch.nan)
    if query.shape[-2] >= query.shape[-1]:
        implied = implied_weights(gap, query).square().sum((-2, -1)).mean()  # linear in the answers
    return Likeness(
        _cosine(a.sensitivity.flatten(-2), b.sensitivity.flatten(-2)),
        float(difference.norm(dim=-1).mean()),
        float(gap.norm(dim=-1).mean()),
        float(gap.square().sum(-1).mean()),
        float(implied),
    )


def _cosine(a: Float[Tensor, "*batch query size"], b: Float[Tensor, "*batch query size"]) -> float:
    """The mean cosine over what has a direction; nan if nothing has."""
    there = (a != 0).any(-1) & (b != 0).any(-1)
    cosine = cosine_similarity(a, b, dim=-1)
    return float(cosine.mean() if there.all() else cosine[there].mean())


def half_square(
    answer: Float[Tensor, "*batch query dy"], target: Float[Tensor, "*batch query dy"]
) -> Float[Tensor, ""]:
    """The loss of the lab: ½ E ‖ŷ − y‖²."""
    return (answer - target).square().sum(-1).mean() / 2


def loss(predict: Predict, episodes: Episodes) -> float:
    return float(half_square(predict(episodes), episodes.target).detach())


def ranking(
    subject: View, candidates: Mapping[str, View], query: Float[Tensor, "*batch query dx"]
) -> dict[str, Likeness]:
    """Likeness to every candidate, nearest in squared prediction distance first (a cosine would not see the scale)."""
    scored = {name: likeness(subject, candidate, query) for name, candidate in candidates.items()}
    return dict(sorted(scored.items(), key=lambda item: item[1].spd))
