"""Feature maps φ with φ(x)·φ(y) = exp(x·y): one that is finite and exact on given tokens, one that is random."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

SPREAD = 600.0  # scores further below the largest than this count as this far: a weight of e⁻⁶⁰⁰ is 0 beside 1
REACH = 7.0  # bound on the part of a key that the query does not see; e^(600 + 49) is a finite double
LONGEST = 600.0  # ‖x‖² up to which exp(x·y) is a finite double with room for sums


def own_points(
    query: Float[Tensor, "*batch dim"], keys: Float[Tensor, "*batch token dim"]
) -> Float[Tensor, "*batch point dim"]:
    """Query and keys as the head has them, the query first: the kernel of the theorem as it is printed."""
    return torch.cat([query[..., None, :], keys], -2)


def writable(at: Float[Tensor, "*batch point coordinate"]) -> bool:
    """Whether every entry of the points' Gram matrices is a finite double."""
    return bool((at.square().sum(-1) <= LONGEST).all())


def points(
    scores: Float[Tensor, "*batch token"], keys: Float[Tensor, "*batch token dim"]
) -> Float[Tensor, "*batch point coordinate"]:
    """Where query and keys may stand so that exp(p_i · p_q) = exp(s_i − max s), the query first.

    For heads whose scores are not k·q (soft caps, biases) or whose keys are too long for `own_points`. Attention knows
    keys and query by their scores alone, so any points with these products have a dual that is the head; these keep
    every number below finite. One more coordinate carries the scores, split evenly between query and keys and cut off
    where a weight is 0 beside the largest; the others keep the keys' differences, shrunk to length `REACH` where they
    are longer. The query has no part in the others, so the kernel between keys is not the head's own.
    """
    fall = (scores - scores.amax(-1, keepdim=True)).clamp_min(-SPREAD)  # *batch token
    stretch = (-fall.amin(-1, keepdim=True)).clamp_min(1.0).sqrt()  # *batch 1
    apart = keys - keys.mean(-2, keepdim=True)
    length = apart.norm(dim=-1).amax(-1)[..., None, None]
    apart = apart * (REACH / length.clamp_min(REACH))
    ours = torch.cat([(fall / stretch)[..., None], apart], -1)
    query = torch.cat([stretch[..., None], torch.zeros_like(apart[..., :1, :])], -1)
    return torch.cat([query, ours], -2)


def gram_root(at: Float[Tensor, "*batch point coordinate"]) -> Float[Tensor, "*batch point feature"]:
    """φ of the points, one row each: a root of the Gram matrix K_ij = exp(p_i · p_j), as many features as points.

    The first point is the query, and its feature is made the first axis, as in a Cholesky factor: φ(p_i)·φ(p_q) is
    then one product with no cancellation, exact to rounding however much larger the other entries of K are. The
    rest is the eigenvalue root of what the first axis leaves of K.
    """
    half = at[..., :1, :].square().sum(-1) / 2  # ‖p_q‖²/2
    first = torch.exp((at @ at[..., 0, :, None])[..., 0] - half)  # *batch point
    keys = at[..., 1:, :]
    left = torch.exp(keys @ keys.mT) - first[..., 1:, None] * first[..., None, 1:]
    value, vector = torch.linalg.eigh((left + left.mT) / 2)
    rest = vector * value.clamp_min(0).sqrt()[..., None, :]
    rest = torch.cat([torch.zeros_like(rest[..., :1, :]), rest], -2)
    return torch.cat([first[..., None], rest], -1)


def directions(features: int, dim: int, generator: torch.Generator) -> Float[Tensor, "feature dim"]:
    return torch.randn(features, dim, generator=generator, dtype=torch.float64)


def log_random_features(
    x: Float[Tensor, "*batch token dim"], w: Float[Tensor, "feature dim"]
) -> Float[Tensor, "*batch token feature"]:
    """log φ̂(x), φ̂(x) = m^(−1/2) exp(w·x − ‖x‖²/2) with w ~ N(0, I): E φ̂(x)·φ̂(y) = exp(x·y) (Performer)."""
    return x @ w.T - x.square().sum(-1, keepdim=True) / 2 - math.log(w.shape[0]) / 2


def random_scores(
    keys: Float[Tensor, "*batch token dim"], query: Float[Tensor, "*batch dim"], w: Float[Tensor, "feature dim"]
) -> Float[Tensor, "*batch token"]:
    """log φ̂(k_i)·φ̂(q): scores whose softmax is attention by random features, without over- or underflow."""
    return (log_random_features(keys, w) + log_random_features(query[..., None, :], w)).logsumexp(-1)


def log_random_variance(
    keys: Float[Tensor, "*batch token dim"], query: Float[Tensor, "*batch dim"]
) -> Float[Tensor, "*batch token"]:
    """log of Var[φ̂(k)·φ̂(q)] / exp(k·q)² = exp(‖k + q‖²) − 1, of one feature; m of them divide it by m."""
    length = (keys + query[..., None, :]).square().sum(-1)
    return length + torch.log(-torch.expm1(-length))
