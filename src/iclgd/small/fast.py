"""Layers whose state learns as they read, in the form in which they are trained: linear attention on error signals.

A state S maps keys to values and takes a step of its learner with every demonstration. All rules here but the mesa
layer's write S_t = S₀ + Σ_{i ≤ t} (α_{i+1} ⋯ α_t) u_i k_iᵀ, and their signals u solve one triangular system, so that
nothing is done one token after another (the chunked form of Yang 2024 with one chunk):

    u_t = β_t (v_t − α_t S_{t−1} k_t),        answers S_t q_t of a token, S_N q of a query behind all of them.

Linear attention is the rule without the error, u_t = v_t, and has its own form in `attention`. β_t and α_t are sigmoids
of the token, as in the papers. Departures: keys are not scaled to length one, a layer's K takes any size; there is no
convolution, no norm and no output gate; P and V are one matrix, since u is linear in the values. Longhorn's public code
keeps of k kᵀ the diagonal, so that it takes another step (`theorems.fast_weights.diagonal_steps`); here it takes the
one that it was made from. MesaNet's layer forgets and weighs what it reads as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.registry import Registry

Keys = Float[Tensor, "*batch demo dk"]
Values = Float[Tensor, "*batch demo dv"]
Asked = Float[Tensor, "*batch query dk"]
Sizes = Float[Tensor, "*#batch demo"]  # one number a token: a rate, a decay
State = Float[Tensor, "*#batch dv dk"]
Signals = Callable[[Keys, Values, Mapping[str, Tensor]], Values]

MINIBATCH = 4  # tokens of a step of TTT-linear; 16 of 2048 tokens in Sun 2024


@dataclass(frozen=True)
class Rule:
    """The learner that a layer's state is; ``gates`` names its parameters beyond keys, queries and values."""

    says: str
    gates: tuple[str, ...]
    signals: Signals | None  # None: the state is solved for, not stepped to


RULES: Registry[Rule] = Registry("rule", "iclgd linear train --help")


def kept(decays: Sizes | None, keys: Keys) -> Float[Tensor, "*#batch demo demo"]:
    """G_ti = α_{i+1} ⋯ α_t for i ≤ t, else 0: how much of what was written at i is left at t."""
    ones = torch.ones(keys.shape[-2], keys.shape[-2], dtype=keys.dtype, device=keys.device)
    if decays is None:
        return ones.tril()
    logs = decays.log().cumsum(-1)
    return (logs[..., :, None] - logs[..., None, :]).masked_fill(ones.triu(1).bool(), -torch.inf).exp()


def solved(
    keys: Keys, values: Values, rates: Sizes, decays: Sizes | None = None, minibatch: int = 1
) -> Float[Tensor, "*batch demo dv"]:
    """u with (I + β ∘ G ∘ K Kᵀ below the diagonal) U = β ∘ V; a mini-batch does not see its own steps."""
    batch = torch.arange(keys.shape[-2], device=keys.device) // minibatch
    before = (batch[:, None] > batch[None, :]).to(keys.dtype)  # which demonstrations a token's error has seen
    lower = rates[..., :, None] * (keys @ keys.mT) * kept(decays, keys) * before
    eye = torch.eye(keys.shape[-2], dtype=keys.dtype, device=keys.device)
    return torch.linalg.solve_triangular(eye + lower, rates[..., None] * values, upper=False)


def weights(keys: Keys, signals: Values, decays: Sizes | None = None) -> Float[Tensor, "*batch dv dk"]:
    """S after the last demonstration, from 0."""
    return (kept(decays, keys)[..., -1, :, None] * signals).mT @ keys


# the rules


def delta(keys: Keys, values: Values, gates: Mapping[str, Tensor]) -> Values:
    """S ← S − β ∇½‖S k − v‖² (DeltaNet, Yang 2024)."""
    return solved(keys, values, gates["rate"])


def gated_delta(keys: Keys, values: Values, gates: Mapping[str, Tensor]) -> Values:
    """S ← αS − β ∇½‖· k − v‖² at αS (gated delta networks; the linear layers of Qwen3-Next)."""
    return solved(keys, values, gates["rate"], gates["decay"])


def longhorn(keys: Keys, values: Values, gates: Mapping[str, Tensor]) -> Values:
    """S ← argmin ‖S − S_{t−1}‖² + δ‖S k − v‖²: the delta rule at the rate δ/(1 + δ‖k‖²)."""
    return solved(keys, values, proximal_rate(keys, gates["rate"]))


def proximal_rate(keys: Keys, delta: Sizes) -> Sizes:
    return delta / (1 + delta * keys.square().sum(-1))


def ttt(keys: Keys, values: Values, gates: Mapping[str, Tensor]) -> Values:
    """SGD on ½‖S k − v‖² from a trained S₀, a mini-batch a step (TTT-linear, Sun 2024, without its norm)."""
    return solved(keys, values - keys @ gates["start"].mT, gates["rate"], minibatch=MINIBATCH)


for _name, _rule in {
    "delta": Rule("SGD on ½‖S k − v‖², one demonstration a step: DeltaNet.", ("rate",), delta),
    "gated-delta": Rule("The same from a state that decays: gated DeltaNet.", ("rate", "decay"), gated_delta),
    "longhorn": Rule("The proximal step on the same loss: Longhorn.", ("rate",), longhorn),
    "ttt": Rule(f"Steps on {MINIBATCH} demonstrations each, from trained weights: TTT-linear.", ("rate", "start"), ttt),
    "mesa": Rule("Ridge regression on all that was read: the mesa layer.", ("penalty",), None),
}.items():
    RULES.add(_name, _rule)


# a layer and a stack


def read(
    rule: Rule, keys: Keys, values: Values, own: Keys | None, asked: Asked, gates: Mapping[str, Tensor]
) -> tuple[Values | None, Float[Tensor, "*batch query dv"]]:
    """S_t q_t for the demonstrations' own queries, where they are wanted, and S_N q for what is asked at the end."""
    if rule.signals is None:
        return _solved_for(keys, values, own, asked, gates["penalty"])
    signals, left, start = rule.signals(keys, values, gates), kept(gates.get("decay"), keys), gates.get("start")

    def answered(left: Tensor, queries: Tensor) -> Tensor:
        found = (left * (queries @ keys.mT)) @ signals
        return found if start is None else found + queries @ start.mT

    return None if own is None else answered(left, own), answered(left[..., -1:, :], asked)


def _solved_for(
    keys: Keys, values: Values, own: Keys | None, asked: Asked, penalty: Float[Tensor, "*#batch"]
) -> tuple[Values | None, Float[Tensor, "*batch query dv"]]:
    """G (H + λI)⁻¹ q with G = Σ v kᵀ and H = Σ k kᵀ over what was read (MesaNet 2025)."""
    eye = penalty[..., None, None] * torch.eye(keys.shape[-1], dtype=keys.dtype, device=keys.device)
    last = (values.mT @ keys @ torch.linalg.solve(keys.mT @ keys + eye, asked.mT)).mT
    if own is None:
        return None, last
    h = (keys[..., :, None] * keys[..., None, :]).cumsum(-3) + eye[..., None, :, :]  # [*batch, demo, dk, dk]
    g = (values[..., :, None] * keys[..., None, :]).cumsum(-3)
    return (g @ torch.linalg.solve(h, own[..., None]))[..., 0], last


def gates(rule: Rule, params: Mapping[str, Tensor], context: Float[Tensor, "*batch 1 demo dim"]) -> dict[str, Tensor]:
    """A layer's gates on its demonstrations; rates and decays by head and token."""
    found = {}
    for name in rule.gates:
        if name in ("rate", "decay"):
            slope, level = params[name][..., :-1], params[name][..., -1:]  # [head, dim], [head, 1]
            found[name] = (torch.einsum("...xnd,hd->...hn", context, slope) + level).sigmoid()
        else:
            found[name] = params[name].exp() if name == "penalty" else params[name]
    return found


def states(
    state: Float[Tensor, "*batch token dim"], demos: int, params: Mapping[str, Tensor], depth: int, rule: str
) -> list[Float[Tensor, "*batch query dim"]]:
    """The query tokens before the first layer and after each one; layers as in `attention`, one state a head."""
    every, kind = [state[..., demos:, :]], RULES[rule]
    for layer in range(depth):
        part = {name: value[layer % value.shape[0]] for name, value in params.items()}
        context, query = state[..., None, :demos, :], state[..., None, demos:, :]
        keys, values = context @ part["key"].mT, context @ part["pv"].mT  # [*batch, head, demo, dim]
        own = context @ part["query"].mT if layer < depth - 1 else None
        answers = read(kind, keys, values, own, query @ part["query"].mT, gates(kind, part, context))
        moved = [one.sum(-3) for one in answers if one is not None]
        state = state[..., demos:, :] + moved[-1] if own is None else state + torch.cat(moved, -2)
        every.append(state[..., -every[0].shape[-2] :, :])
    return every
