"""Layers that are learners: von Oswald 2023, Ahn 2023, Cheng 2024, Vladymyrov 2024, and what order does to them."""

import torch
from torch import Tensor

from iclgd.metrics.functions import half_square
from iclgd.small import attention, construct, learners
from iclgd.small.attention import Weights
from iclgd.small.identities.drawn import F64, Problem, apart, problem, whole
from iclgd.small.kernels import KERNELS
from iclgd.small.theorems import interleaved


def through(weights: Weights, p: Problem, depth: int = 1, start: Tensor | None = None, kind: str = "linear") -> Tensor:
    """The tokens after the layers."""
    return attention.states(attention.tokens(p.x, p.y, p.query, start), p.x.shape[-2], weights, depth, kind)[-1]


def gd_layer(seed: int) -> dict[str, float]:
    """One layer from any W₀: the demonstrations' tokens become (x, y − ΔW x), the query's minus its answer."""
    p = problem(seed)
    dx, dy, demos = p.sizes
    start = p.normal(dy, dx)
    out = through(construct.gd_layer(dx, dy, p.rate, start), p, 1, start)
    w = learners.gd(p.x, p.y, p.rate, 1, start)
    moved = torch.cat([p.x, p.y - learners.predict(w - start, p.x)], -1)
    answer = learners.predict(w, p.query)
    return {
        "every token": apart(out[:, :demos], moved),
        "test token": apart(attention.answer(out, demos, dy), answer),
        "moves": float((out[:, :demos, dx:] - p.y).abs().max()),
    }


def gd_lowers_loss(seed: int) -> dict[str, float]:
    """The share of 200 draws in which a step of rate 1/λ lowers the demonstrations' loss, λ the largest of S."""
    g = problem(seed).generator
    x = torch.rand(200, whole(3, 12, g), whole(2, 8, g), generator=g, dtype=F64) * 2 - 1
    y = torch.randn(*x.shape[:-1], 1, generator=g, dtype=F64)
    rate = 1 / torch.linalg.matrix_norm(x.mT @ x / x.shape[-2], 2)[:, None, None]
    w = learners.gd(x, y, rate)

    def losses(answers: Tensor) -> Tensor:
        return torch.stack([half_square(a, b) for a, b in zip(answers, y, strict=True)])

    fell = losses(learners.predict(w, x)) < losses(torch.zeros_like(y))
    return {"share": float(fell.double().mean())}


def k_layers(seed: int) -> dict[str, float]:
    """The same layer twenty times is twenty steps."""
    p = problem(seed)
    dx, dy, demos = p.sizes
    start = p.normal(dy, dx)
    out = through(construct.gd_layer(dx, dy, p.rate, start), p, 20, start)
    w = learners.gd(p.x, p.y, p.rate, 20, start)
    return {"residual": apart(attention.answer(out, demos, dy), learners.predict(w, p.query))}


def gdpp_layers(seed: int) -> dict[str, float]:
    """Layers with curvatures are GD++, in the answer and in where the inputs go."""
    p = problem(seed)
    dx, dy, demos = p.sizes
    rates, curvatures = torch.rand(2, 4, generator=p.generator, dtype=F64)
    out = through(construct.gdpp_layers(dx, dy, rates, curvatures), p, 4)
    w = learners.gdpp(p.x, p.y, rates, curvatures)
    moved = p.x
    for curvature in curvatures:
        moved = moved @ (torch.eye(dx, dtype=F64) - curvature * attention.moment(moved))
    return {
        "residual": apart(attention.answer(out, demos, dy), learners.predict(w, p.query)),
        "inputs": apart(out[:, :demos, :dx], moved),
    }


def preconditioned_layer(seed: int) -> dict[str, float]:
    """A matrix in the place of the rate (Ahn 2023)."""
    p = problem(seed)
    dx, dy, demos = p.sizes
    matrix = p.normal(dx, dx) / dx
    out = through(construct.preconditioned_layer(matrix, dy), p)
    w = learners.preconditioned(p.x, p.y, matrix)
    return {"residual": apart(attention.answer(out, demos, dy), learners.predict(w, p.query))}


def kernel_layers(seed: int) -> dict[str, float]:
    """Attention with a kernel is gradient descent in its function space, for every kernel there is (Cheng 2024)."""
    p = problem(seed)
    dx, dy, demos = p.sizes
    found = 0.0
    for kind, kernel in KERNELS.items():
        rate = p.rate if kind == "linear" else 0.3
        out = through(construct.kernel_layer(dx, dy, rate), p, 5, kind=kind)
        answer = learners.functional_gd(p.x, p.y, p.query, kernel, rate, 5)
        found = max(found, apart(attention.answer(out, demos, dy), answer))
    return {"residual": found}


def four_scalar_layers(seed: int) -> dict[str, float]:
    """Two diagonal heads a layer are four numbers (Vladymyrov 2024)."""
    p = problem(seed, dy=1)
    dx, _, demos = p.sizes
    scalars = 0.2 * p.normal(3, 4)
    out = through(construct.four_scalar_layers(dx, scalars), p, 3)
    answer = learners.four_scalars(p.x, p.y, p.query, scalars)
    return {"residual": apart(attention.answer(out, demos, 1), answer)}


def linear_state(seed: int) -> dict[str, float]:
    """Any linear layers move all tokens of a prompt by one matrix, which the second moment gives (Vladymyrov 2024).

    ``fit`` is what is left of the tokens when the best one matrix is fitted to them by least squares.
    """
    p = problem(seed, queries=12)
    dx, dy, demos = p.sizes
    weights = Weights(*(0.3 * p.normal(4, 3, dx + dy, dx + dy) for _ in range(2)))
    state = attention.tokens(p.x, p.y, p.query)
    out = attention.states(state, demos, weights, 4)[-1]
    by_moment = attention.query_states(attention.moment(state[:, :demos]), state[:, demos:], weights, 4)[-1]
    matrix = torch.linalg.lstsq(state, out).solution
    return {"residual": apart(by_moment, out[:, demos:]), "fit": apart(state @ matrix, out)}


def separate_tokens(seed: int) -> dict[str, float]:
    """Inputs and labels as separate tokens: a copying layer, then descent (von Oswald 2023, prop. 2)."""
    p = problem(seed, queries=1)
    dx, dy, demos = p.sizes
    start = p.normal(dy, dx)
    state = interleaved.interleave(p.x, p.y, p.query[:, 0], start=start)
    copied = attention.states(state, 2 * demos + 1, interleaved.copy_layer(dx, dy, demos), 1, "softmax", True)[-1]
    layer = interleaved.descent_layer(dx, dy, demos, p.rate, start=start)
    out = attention.states(copied, 2 * demos + 1, layer, 3)[-1]
    w = learners.gd(p.x, p.y, p.rate, 3, start)
    return {"residual": apart(-out[:, -1:, dx : dx + dy], learners.predict(w, p.query))}


def softmax_pair(seed: int) -> dict[str, float]:
    """Two softmax heads tend to centred linear attention: the slope of the error's logarithm in ε's."""
    p = problem(seed)
    dx, dy, demos = p.sizes
    middle = p.x.mean(-2, keepdim=True)
    step = p.rate * p.y.mT @ (p.x - middle) / demos
    sizes = torch.tensor([0.08, 0.04, 0.02, 0.01], dtype=F64)
    errors = []
    for size in sizes.tolist():
        out = through(construct.softmax_pair(dx, dy, p.rate, size), p, kind="softmax")
        errors.append(float((attention.answer(out, demos, dy) - learners.predict(step, p.query)).abs().max()))
    gaps = torch.tensor(errors, dtype=F64).log()
    return {"slope": float((gaps[0] - gaps[-1]) / (sizes[0] / sizes[-1]).log())}


def order(seed: int) -> dict[str, float]:
    """What another order of the demonstrations changes in the answer: full-batch GD, layers, layers that are causal."""
    p = problem(seed)
    dx, dy, demos = p.sizes
    mixed = p._replace(x=p.x.flip(-2), y=p.y.flip(-2))

    def change(answers: list[Tensor]) -> float:
        return apart(answers[0], answers[1])

    weights = Weights(*(0.3 * p.normal(2, 2, dx + dy, dx + dy) for _ in range(2)))
    state = [attention.tokens(q.x, q.y, q.query) for q in (p, mixed)]
    return {
        "full batch": change([learners.predict(learners.gd(q.x, q.y, p.rate, 5), p.query) for q in (p, mixed)]),
        "linear attention": change([through(weights, q, 2)[:, demos:] for q in (p, mixed)]),
        "causal": change([attention.states(s, demos, weights, 2, causal=True)[-1][:, demos:] for s in state]),
    }


def codes_layer(seed: int) -> dict[str, float]:
    """The constructed layer does a gradient step on labelled codes of words of a regular language."""
    from iclgd.small.languages.prepare import Data, prepare

    data = prepare(Data.of({"language": "a*bc*", "encoder": "pca", "seeds": (seed,)}))
    ((_, test),) = data.tasks(10, True)
    p = problem(seed)
    drawn = test.draw(20, p.generator, queries=3)
    x, y, query = (part.double() for part in drawn[:3])
    dx, demos = x.shape[-1], x.shape[-2]
    rate = 1 / float(torch.linalg.matrix_norm(attention.moment(x), 2).max())
    out = through(construct.gd_layer(dx, 1, rate), Problem(x, y, query, p.generator))
    w = learners.gd(x, y, rate)
    return {"residual": apart(attention.answer(out, demos, 1), learners.predict(w, query))}
