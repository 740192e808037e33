"""Linear attention as a change of weights: the equations from which Dai 2022 starts, and how one is printed."""

import torch

from iclgd.small.identities.drawn import F64, apart, source, whole
from iclgd.small.theorems.duality import error_signals, linear_attention, outer_update, split_weights


def dual_form(seed: int) -> dict[str, float]:
    """(W₀ + Σ e ⊗ x) q = W₀ q + LinearAttention(E, X, q)."""
    g = source(seed)
    demos, dv, dk = whole(2, 12, g), whole(2, 6, g), whole(2, 6, g)
    values, keys, query = (torch.randn(n, d, generator=g, dtype=F64) for n, d in ((demos, dv), (demos, dk), (4, dk)))
    start = torch.randn(dv, dk, generator=g, dtype=F64)
    changed = query @ (start + outer_update(values, keys)).T
    return {"residual": apart(query @ start.T + linear_attention(values, keys, query), changed)}


def printed_attention(seed: int) -> dict[str, float]:
    """Whether K V q, as it is printed for linear attention, has a value, and whether it is Σ v (k·q): 1 or 0.

    With keys and values as columns the product K V needs as many value dimensions as demonstrations, and then is not
    V Kᵀ.
    """
    g = source(seed)
    demos, dv, dk = 7, 3, 4
    values, keys, query = (torch.randn(n, d, generator=g, dtype=F64) for n, d in ((demos, dv), (demos, dk), (1, dk)))
    wanted = linear_attention(values, keys, query)[0]

    def product(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor | None:
        try:
            return first @ second @ query[0]
        except RuntimeError:  # the shapes do not fit
            return None

    printed, meant = product(keys.T, values.T), product(values.T, keys)
    return {
        "defined": float(printed is not None),
        "residual": 1.0 if printed is None else apart(printed, wanted),
        "as V Kᵀ q": 1.0 if meant is None else apart(meant, wanted),
    }


def signals_are_gradients(seed: int) -> dict[str, float]:
    """The error signal of an example is −η times the gradient at the output, by autograd, for any loss's output."""
    g = source(seed)
    dv, dk, rate = whole(2, 6, g), whole(2, 6, g), 0.1
    start, key, label = (torch.randn(*s, generator=g, dtype=F64) for s in ((dv, dk), (1, dk), (1, dv)))
    out = (key @ start.T).requires_grad_()
    (gradient,) = torch.autograd.grad(0.5 * (out - label).square().sum(), out)
    return {"residual": apart(error_signals(start, key, label, rate), -rate * gradient)}


def sgd_is_attention(seed: int) -> dict[str, float]:
    """W after SGD, one example a step, taken by autograd, is W₀ plus linear attention to its own error signals.

    ``order`` is what reversing the examples changes in the answer.
    """
    g = source(seed)
    demos, dv, dk, rate = whole(4, 12, g), whole(2, 6, g), whole(2, 6, g), 0.1
    start = torch.randn(dv, dk, generator=g, dtype=F64)
    keys, labels, query = (torch.randn(n, d, generator=g, dtype=F64) for n, d in ((demos, dk), (demos, dv), (4, dk)))
    w = start.clone()
    for key, label in zip(keys, labels, strict=True):
        w = w.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(0.5 * (w @ key - label).square().sum(), w)
        w = w - rate * gradient

    def answer(keys: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return query @ start.T + linear_attention(error_signals(start, keys, labels, rate), keys, query)

    forward = answer(keys, labels)
    return {
        "residual": apart(forward, (query @ w.T).detach()),
        "order": apart(answer(keys.flip(0), labels.flip(0)), forward),
    }


def icl_and_ft_updates(seed: int) -> dict[str, float]:
    """F_ICL(q) = (W_ZSL + ΔW_ICL) q; and with changed W_V and W_K the same form, W_ZSL + ΔW_FT."""
    g = source(seed)
    dim, dv, dk = whole(3, 8, g), whole(2, 5, g), whole(2, 5, g)
    demos, own, query = (torch.randn(n, d, generator=g, dtype=F64) for n, d in ((9, dim), (4, dim), (3, dk)))
    w_value, w_key = (torch.randn(d, dim, generator=g, dtype=F64) for d in (dv, dk))
    zero, update = split_weights(w_value, w_key, demos, own)
    tokens = torch.cat([demos, own])
    read = linear_attention(tokens @ w_value.T, tokens @ w_key.T, query)
    moved = [w + 0.1 * torch.randn(w.shape, generator=g, dtype=F64) for w in (w_value, w_key)]
    tuned, _ = split_weights(moved[0], moved[1], demos[:0], own)
    by_hand = linear_attention(own @ moved[0].T, own @ moved[1].T, query)
    return {
        "icl": apart(query @ (zero + update).T, read),
        "finetuned": apart(query @ (zero + (tuned - zero)).T, by_hand),
    }
