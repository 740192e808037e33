"""Softmax attention as one gradient step (Ren and Liu): the theorem, its feature maps, what it does not say."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from iclgd.labs.dual.features import (
    directions,
    gaussian_gram,
    gram_root,
    log_lengths,
    own_points,
    random_scores,
    taylor,
    taylor_terms,
)
from iclgd.labs.dual.model import Dual, kernel_dual, softmax_dual
from iclgd.labs.dual.theorems import AttentionLayer, Relu, behind_relu, chain, chain_by_duals, linear_dual
from iclgd.small.identities.drawn import F64, apart, source, whole


def head(seed: int, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Query, keys, values, and which tokens are demonstrations; ``scale`` is the size of the largest score."""
    g = source(seed)
    demos, own, dim, dv = whole(3, 9, g), whole(1, 4, g), whole(2, 6, g), whole(2, 6, g)
    query, keys = (torch.randn(*s, generator=g, dtype=F64) for s in ((dim,), (demos + own, dim)))
    values = torch.randn(demos + own, dv, generator=g, dtype=F64)
    return query, keys * scale / (keys @ query).abs().max(), values, torch.arange(demos + own) < demos


def softmax_is_one_step(seed: int) -> dict[str, float]:
    """Theorem 3.1: with the head's own kernel, with scores of ±300, at any rate; and what W₀ gives.

    ``second step`` is how far the gradient after the step is from the one before: the loss is linear. ``denominator``
    is how much log D differs between two queries that attend the same tokens.
    """
    query, keys, values, demos = head(seed)
    attention = (keys @ query).softmax(-1)
    dual = kernel_dual(own_points(query, keys), values, demos)
    own, wide = dual.predict(dual.step()), head(seed, 300.0)
    large = softmax_dual(wide[1] @ wide[0], wide[1], wide[2], wide[3])
    rates = [dual.predict(dual.step(rate)) for rate in (1e-3, 1.0, 50.0)]
    moved = Dual(dual.step(), dual.inputs, dual.labels, dual.test, dual.denominator, dual.scores)
    logs = (keys @ torch.stack([query, 0.5 * query]).T).logsumexp(0)
    return {
        "residual": apart(own, attention @ values),
        "large scores": apart(large.predict(large.step()), (wide[1] @ wide[0]).softmax(-1) @ wide[2]),
        "rate": max(apart(one, own) for one in rates),
        "own tokens": apart(dual.zero_shot, attention[~demos] @ values[~demos]),
        "second step": apart(moved.update(), dual.update()),
        "denominator": float((logs[0] - logs[1]).abs()),
        "step": float(dual.predict(dual.update()).norm()),
    }


def exponential_kernel(seed: int) -> dict[str, float]:
    """exp(x·y) as a kernel: its least eigenvalue, φ·φ against it, and A = A_u D⁻¹."""
    query, keys, _, _ = head(seed)
    at = own_points(query, keys)
    gram = (at @ at.T).exp()
    values = torch.linalg.eigvalsh(gram)
    root = gram_root(gaussian_gram(at)) * log_lengths(at).exp()[:, None]
    unnormalised = gram[1:, 0]
    return {
        "least eigenvalue": float(values[0] / values[-1]),
        "feature map": apart(root @ root.T, gram),
        "normalised": apart(unnormalised / unnormalised.sum(), (keys @ query).softmax(-1)),
    }


def taylor_features(seed: int) -> dict[str, float]:
    """The theorem with a φ of x alone: the features √(1/n!) x^⊗n of exp's series, enough of them for a double."""
    query, keys, values, demos = head(seed)
    keys, query = keys[:, :2], query[:2]
    at = own_points(query, keys)
    terms = taylor_terms(float((at @ at.T).abs().max()))
    phi = taylor(at, terms)
    scores = (phi[1:] @ phi[0]).log()
    denominator = scores.exp().sum()
    start = values[~demos].T @ phi[1:][~demos] / denominator
    dual = Dual(start, phi[1:][demos], values[demos], phi[0], denominator, scores[demos])
    return {"residual": apart(dual.predict(dual.step()), (keys @ query).softmax(-1) @ values)}


def siamese_loss(seed: int) -> dict[str, float]:
    """The dual's update is that of −⟨stop-gradient(v), W φ(k)⟩, which is contrastive without negatives.

    ``growth`` is the slope of log ‖W_n‖ in log n over many steps: nothing holds W back.
    """
    query, keys, values, demos = head(seed)
    dual = kernel_dual(own_points(query, keys), values, demos)
    weights = dual.start.clone().requires_grad_()
    online, target = dual.inputs @ weights.mT, dual.labels.detach()
    (gradient,) = torch.autograd.grad(-(online * target).sum() / dual.denominator, weights)
    update, sizes = dual.update(), []
    counts = (100, 1000)
    for count in counts:
        sizes.append(float((dual.start + count * update).norm()))
    return {
        "residual": apart(-gradient, update),
        "growth": math.log(sizes[1] / sizes[0]) / math.log(counts[1] / counts[0]),
    }


def linear_case(seed: int) -> dict[str, float]:
    """φ the identity and D = 1: linear attention."""
    query, keys, values, demos = head(seed)
    dual = linear_dual(keys, values, query, demos)
    return {"residual": apart(dual.predict(dual.step()), (keys @ query) @ values)}


def network_behind(seed: int) -> dict[str, float]:
    """A ReLU network behind attention changes the labels to W_F v; several layers are a chain of duals."""
    query, keys, values, demos = head(seed)
    g = source(seed + 1)
    dim, hidden = values.shape[-1], 7
    shapes = ((hidden, dim), (hidden,), (dim, hidden), (dim,))
    network = Relu(*(torch.randn(*s, generator=g, dtype=F64) for s in shapes))
    dual, constant = behind_relu(softmax_dual(keys @ query, keys, values, demos), network)
    out = network((keys @ query).softmax(-1) @ values)
    tokens = torch.randn(len(keys), 4, generator=g, dtype=F64)
    maps = [[torch.randn(4, 4, generator=g, dtype=F64) / 2 for _ in range(3)] for _ in range(4)]
    layers = [AttentionLayer(w_query, w_key, w_value, None, True) for w_query, w_key, w_value in maps]
    seen = torch.ones(len(keys), len(keys), dtype=torch.bool).tril()
    return {
        "relu": apart(dual.predict(dual.step()) + constant, out),
        "chain": apart(chain_by_duals(layers, tokens, seen, demos), chain(layers, tokens, seen)),
    }


def rademacher(seed: int) -> dict[str, float]:
    """The complexity of theorem 3.2's losses over w ρ √(Tr K)/N, exactly, over all signs of ten demonstrations.

    It is (w/N) E‖Σ σ_i v_i φ(k_i)ᵀ‖, whatever d_o is; at most 1 times the bound without d_o.
    """
    g = source(seed)
    keys, values = (torch.randn(10, d, generator=g, dtype=F64) for d in (4, 6))
    kernel = (keys @ keys.T).exp() * (values @ values.T)
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=F64)] * 10)
    complexity = ((signs @ kernel) * signs).sum(-1).clamp_min(0).sqrt().mean()
    bound = values.norm(dim=-1).max() * (keys @ keys.T).exp().trace().sqrt()
    return {"ratio": float(complexity / bound)}


def random_features(seed: int) -> dict[str, float]:
    """Positive random features: the mean of φ̂·φ̂ / exp, and the slope of a head's error in their number."""
    g = source(seed)
    keys, query, values = (torch.randn(*s, generator=g, dtype=F64) for s in ((12, 8), (8,), (12, 8)))
    keys, query = 0.3 * keys, 0.3 * query
    drawn = torch.stack([random_scores(keys, query, directions(64, 8, g)) for _ in range(600)])
    exact, counts, errors = (keys @ query).softmax(-1) @ values, (256, 4096), []
    for count in counts:
        tries = [random_scores(keys, query, directions(count, 8, g)).softmax(-1) @ values - exact for _ in range(150)]
        errors.append(float(torch.stack(tries).square().mean().sqrt()))
    return {
        "mean": float(torch.exp(drawn - keys @ query).mean()),
        "slope": math.log(errors[1] / errors[0]) / math.log(counts[1] / counts[0]),
    }


def every_head(seed: int) -> dict[str, float]:
    """The theorem on every head of an untrained transformer, and what W₀ has to do with its zero-shot pass.

    ``zero-shot`` is the mean cosine, beyond the first layer, of W₀φ(q) and what the head puts out without the
    demonstrations.
    """
    from iclgd.labs.dual.heads import analyse, layers
    from iclgd.nulls.identities import prompts, tiny

    subject, asked = tiny(seed), prompts(seed)
    query = asked.queries[0]
    found = analyse(subject, asked, query, sizes=(16,))
    with_demos = layers(subject, asked, query)
    without = layers(subject, replace(asked, demos=()), query)
    parts = [
        (layer.weights[:, None, ~layer.demos] @ layer.values[:, ~layer.demos])[:, 0] for layer in with_demos
    ]  # W₀φ(q) of each head
    cosines = [torch.cosine_similarity(a, b.output, dim=-1) for a, b in zip(parts, without, strict=True)]
    return {
        "residual": float(found.residual.max()),
        "kernel": float(found.kernel_residual.max()),
        "zero-shot": float(torch.stack(cosines[1:]).mean()),
    }


def constrained_loss(seed: int) -> dict[str, float]:
    """The dual's loss under ‖W‖ ≤ w, as contrastive kernel learning has it: least at w ΔW/‖ΔW‖, the step's direction.

    ``residual`` is how far projected gradient descent from a random W ends from it, ``lower`` by how much the best of
    1000 random W of that norm is below it: never.
    """
    query, keys, values, demos = head(seed)
    dual = kernel_dual(own_points(query, keys), values, demos)
    update, g = dual.update(), source(seed + 3)
    best = update / update.norm()
    w = torch.randn(update.shape, generator=g, dtype=F64)
    for _ in range(200):  # the gradient is the same everywhere
        w = w + update / update.norm()
        w = w / w.norm()
    others = torch.randn(1000, *update.shape, generator=g, dtype=F64)
    others = others / others.flatten(1).norm(dim=1)[:, None, None]
    lower = (dual.loss(best, 1.0) - torch.stack([dual.loss(one, 1.0) for one in others])).max()
    return {"residual": apart(w, best), "lower": float(lower.clamp_min(0))}
