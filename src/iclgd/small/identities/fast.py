"""Layers whose state learns as they read, as they are trained, against the learner that each of them is."""

import torch
from torch import Tensor

from iclgd.small import fast, learners
from iclgd.small.construct import learning_layer
from iclgd.small.fast import RULES
from iclgd.small.identities.drawn import F64, apart, problem, source, whole
from iclgd.small.models import Transformer
from iclgd.small.theorems.fast_weights import by_autograd, diagonal_steps, inner, proximal, squared
from iclgd.tasks.regression import Episodes

TIME = 21  # not a multiple of a mini-batch


def _drawn(seed: int) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
    """Keys, values, queries and gates of one head; keys of length about one."""
    g = source(seed)
    dk, dv = whole(3, 8, g), whole(2, 5, g)
    keys, queries = torch.randn(2, TIME, dk, generator=g, dtype=F64) / dk**0.5
    gates = dict(zip(("rate", "decay"), torch.rand(2, TIME, generator=g, dtype=F64), strict=True))
    more = {"start": torch.randn(dv, dk, generator=g, dtype=F64), "penalty": torch.rand((), generator=g, dtype=F64)}
    return keys, torch.randn(TIME, dv, generator=g, dtype=F64), queries, gates | more


def _learned(rule: str, keys: Tensor, values: Tensor, gates: dict[str, Tensor]) -> list[Tensor]:
    """The state after each pair, by the learner that the rule is said to be."""
    rates = gates["rate"]
    if rule == "mesa":
        return [learners.ridge(keys[:t], values[:t], gates["penalty"]) for t in range(1, len(keys) + 1)]
    if rule == "longhorn":
        return proximal(keys, values, rates)
    decays = gates["decay"] if rule == "gated-delta" else None
    start, many = (gates["start"], fast.MINIBATCH) if rule == "ttt" else (None, 1)
    return by_autograd(keys, values, rates, squared, decays, start, many)


def fast_weight_layers(seed: int) -> dict[str, float]:
    """What every layer answers, on the way and at the end, against its learner: autograd, least squares, ridge."""
    keys, values, queries, gates = _drawn(seed)
    found = {}
    for name, rule in RULES.items():
        own, asked = fast.read(rule, keys, values, queries, queries, {gate: gates[gate] for gate in rule.gates})
        states = _learned(name, keys, values, gates)
        wanted = torch.stack([s @ q for s, q in zip(states, queries, strict=True)])
        assert own is not None
        found[name] = max(apart(own, wanted), apart(asked, queries @ states[-1].T))
    return found


def longhorn_as_built(seed: int) -> dict[str, float]:
    """What Longhorn's public code answers, which keeps of k kᵀ the diagonal, against the proximal step.

    ``residual`` is relative to the step's answers; ``one dimension`` the same where keys have one, and a diagonal is
    all there is.
    """
    keys, values, queries, gates = _drawn(seed)

    def off(keys: Tensor, queries: Tensor) -> float:
        built, step = (rule(keys, values, gates["rate"]) for rule in (diagonal_steps, proximal))
        given, wanted = (torch.stack([s @ q for s, q in zip(states, queries, strict=True)]) for states in (built, step))
        return float((given - wanted).norm() / wanted.norm())

    return {"residual": off(keys, queries), "one dimension": off(keys[:, :1], queries[:, :1])}


def learning_layers(seed: int) -> dict[str, float]:
    """The layer of the linear lab with x for keys and −y for values answers as its learner does on (x, y)."""
    p = problem(seed, batch=1, dy=1)
    dx, dy, demos = p.sizes
    chosen = {"rate": 0.3, "decay": 0.9, "penalty": 0.2, "start": 0.0}
    found = {}
    for name, rule in RULES.items():
        params = learning_layer(dx, dy, {gate: chosen[gate] for gate in rule.gates})
        answer = Transformer(dx, dy, 1, 1, name).predict(params, Episodes(p.x, p.y, p.query, p.query[..., :dy]))
        sizes = {gate: torch.full((demos,), value, dtype=F64) for gate, value in chosen.items()}
        sizes |= {"penalty": torch.tensor(0.2, dtype=F64), "start": torch.zeros(dy, dx, dtype=F64)}
        state = _learned(name, p.x[0], p.y[0], sizes)[-1]
        found[name] = apart(answer[0], p.query[0] @ state.T)
    return found


def learning_is_linear_attention(seed: int) -> dict[str, float]:
    """Test-time training, mini-batches and a trained start included, is linear attention on its error signals.

    The signals are what autograd gives for the values; ``own values`` is how far linear attention on the values
    themselves is from it.
    """
    keys, values, queries, gates = _drawn(seed)
    states = _learned("ttt", keys, values, gates)
    before = [gates["start"], *states[:-1]]
    signals = []
    for t, (k, v, rate) in enumerate(zip(keys, values, gates["rate"], strict=True)):
        error = before[t - t % fast.MINIBATCH] @ k
        signals.append(rate * (v - error))
    trained = queries @ states[-1].T
    plain = by_autograd(keys, values, gates["rate"], inner)[-1]
    attended = queries @ gates["start"].T + (queries @ keys.T) @ torch.stack(signals)
    return {
        "residual": apart(attended, trained),
        "own values": float((queries @ (gates["start"] + plain).T - trained).norm() / trained.norm()),
    }


def qwen_is_gated_delta(seed: int) -> dict[str, float]:
    """The gated delta rule of transformers' Qwen3-Next, token by token and in chunks, against SGD by autograd.

    It computes in float32 and divides queries by √dk. Refuses where transformers has no such code.
    """
    from iclgd.small.theorems.qwen import gated_delta_rules

    keys, values, queries, gates = _drawn(seed)
    states = _learned("gated-delta", keys, values, gates)
    wanted = torch.stack([s @ q for s, q in zip(states, queries, strict=True)]) / keys.shape[-1] ** 0.5
    found = gated_delta_rules(keys, values, queries, gates["rate"], gates["decay"])
    return {name: apart(answer.double(), wanted) for name, answer in found.items()}
