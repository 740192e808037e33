"""Feature maps φ with φ(x)·φ(y) = exp(x·y): one that is finite and exact on given points, one that is random.

A real head has keys with ‖φ(k)‖² = exp(‖k‖²) of 10²⁰ and more beside others near 1, and a root of that Gram matrix
loses the small entries beside the large. So φ is kept as a length and a direction, φ(p) = exp(‖p‖²/2) ψ(p) with
‖ψ‖ = 1: directions have the Gaussian Gram matrix ψ(p)·ψ(p') = exp(−‖p − p'‖²/2), whose diagonal is 1, and lengths
stay logarithms until a ratio of them is needed.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

SPREAD = 600.0  # scores further below the largest than this count as this far: a weight of e⁻⁶⁰⁰ is 0 beside 1
REACH = 7.0  # bound on the part of a key that the query does not see, for `points`
JITTER = 1e-12  # added to ‖ψ(k)‖² = 1, so that keys that coincide have a root too
PROBES = 8  # vectors by which the kernel's residual is estimated


def own_points(
    query: Float[Tensor, "*batch dim"], keys: Float[Tensor, "*batch token dim"]
) -> Float[Tensor, "*batch point dim"]:
    """Query and keys as the head has them, the query first: the kernel of the theorem as it is printed."""
    return torch.cat([query[..., None, :], keys], -2)


def points(
    scores: Float[Tensor, "*batch token"], keys: Float[Tensor, "*batch token dim"]
) -> tuple[Float[Tensor, "*batch point coordinate"], Float[Tensor, "*batch"]]:
    """Where query and keys may stand so that p_i · p_q = s_i − c, the query first, and c.

    For heads whose scores are not k·q (soft caps, biases) or whose keys are too long for `own_points`. Attention knows
    keys and query by their scores alone, and not by what is added to all of them, so any points with these products
    have a dual that is the head. One more coordinate carries the scores, split evenly between query and keys, c in
    their middle and cut off where a weight is 0 beside the largest; the others keep the keys' differences, shrunk to
    length `REACH` where they are longer. The query has no part in those, so the kernel between keys is not the head's.
    """
    top = scores.amax(-1)
    fall = (scores - top[..., None]).clamp_min(-SPREAD)  # *batch token
    middle = fall.amin(-1) / 2
    stretch = (-middle).clamp_min(1.0).sqrt()  # *batch
    apart = keys - keys.mean(-2, keepdim=True)
    length = apart.norm(dim=-1).amax(-1)[..., None, None]
    apart = apart * (REACH / length.clamp_min(REACH))
    ours = torch.cat([((fall - middle[..., None]) / stretch[..., None])[..., None], apart], -1)
    query = torch.cat([stretch[..., None, None], torch.zeros_like(apart[..., :1, :])], -1)
    return torch.cat([query, ours], -2), top + middle


def log_lengths(at: Float[Tensor, "*batch point coordinate"]) -> Float[Tensor, "*batch point"]:
    """log ‖φ(p)‖ = ‖p‖²/2."""
    return at.square().sum(-1) / 2


def gaussian_gram(at: Float[Tensor, "*batch point coordinate"]) -> Float[Tensor, "*batch point point"]:
    """exp(p·p') / (‖φ(p)‖ ‖φ(p')‖) = exp(−‖p − p'‖²/2), never above 1."""
    length = log_lengths(at)
    return torch.exp(at @ at.mT - length[..., :, None] - length[..., None, :])


def nearness(at: Float[Tensor, "*batch point coordinate"]) -> Float[Tensor, "*batch token"]:
    """ψ(k_i)·ψ(q): the row of the Gaussian Gram matrix that belongs to the query, which is the first point."""
    length = log_lengths(at)
    return torch.exp((at[..., 1:, :] @ at[..., 0, :, None])[..., 0] - length[..., 1:] - length[..., :1])


def gram_root(gram: Float[Tensor, "*batch token token"]) -> Float[Tensor, "*batch token feature"]:
    """ψ of some points, one row each: the Cholesky factor of their Gaussian Gram matrix, as many features as points."""
    more = JITTER * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    return torch.linalg.cholesky(gram + more).contiguous()


def with_query(
    root: Float[Tensor, "*batch token feature"], near: Float[Tensor, "*batch query token"]
) -> Float[Tensor, "*batch query point more"]:
    """ψ of each query and of the keys, the query first, from a root R of the keys and ``near``, g_i = ψ(k_i)·ψ(q).

    The query's ψ is made the first axis, so that φ(k_i)·φ(q) is one number without cancellation, exact relative to
    itself however small: a root of the whole matrix has it to 10⁻¹⁶ of the lengths, and attention may live on 10⁻³⁰.
    What the axis leaves is G − g gᵀ = R (I − x xᵀ) Rᵀ with R x = g, and I − x xᵀ is the square of
    I − x xᵀ / (1 + √(1 − ‖x‖²)): one root serves all queries of the same keys.
    """
    x = torch.linalg.solve_triangular(root, near.mT, upper=False).mT  # *batch query feature
    turn = 1 / (1 + (1 - x.square().sum(-1, keepdim=True)).clamp_min(0).sqrt())
    unit = near.new_zeros(*near.shape[:-1], near.shape[-1] + 1, root.shape[-1] + 1)
    unit[..., 0, 0] = 1.0
    unit[..., 1:, 0] = near
    rest = unit[..., 1:, 1:].copy_(root[..., None, :, :])
    rest.addcmul_((turn * near)[..., :, None], x[..., None, :], value=-1)
    return unit


def kernel_residual(
    gram: Float[Tensor, "*#batch token token"],
    near: Float[Tensor, "*batch token"],
    unit: Float[Tensor, "*batch point feature"],
    seed: int = 0,
) -> Float[Tensor, "*batch"]:
    """An estimate of √Σ of (φ(p)·φ(p') − exp(p·p'))² / (‖φ(p)‖ ‖φ(p')‖)² over all pairs. ``unit`` is ψ.

    The prediction of a dual reads φ in the query's direction alone and is right whatever φ is elsewhere; this is not.
    The Frobenius norm of E = ψψᵀ − G is estimated by `PROBES` vectors of random signs, E‖Ez‖² = ‖E‖², which takes
    products with vectors and not one of matrices: an error of a single pair may hide from all of them.
    G is ``gram`` between keys and ``near`` between keys and query.
    """
    g = torch.Generator().manual_seed(seed)
    signs = (torch.randint(2, (near.shape[-1] + 1, PROBES), generator=g) * 2 - 1).to(near)
    wanted = torch.cat([near[..., None, :] @ signs[1:] + signs[:1], gram @ signs[1:] + near[..., None] * signs[:1]], -2)
    off = unit @ (unit.mT @ signs) - wanted
    return (off.square().sum((-1, -2)) / PROBES).sqrt()


def writable(at: Float[Tensor, "*batch point coordinate"]) -> Bool[Tensor, "*batch"]:
    """Whether the largest exp(k·q) is still a double when φ(q) and the longest φ(k) are given length 1."""
    length = log_lengths(at)
    score = (at[..., 1:, :] @ at[..., 0, :, None])[..., 0]
    return length[..., 0] + length[..., 1:].amax(-1) - score.amax(-1) <= SPREAD


def taylor(x: Float[Tensor, "*batch token dim"], terms: int) -> Float[Tensor, "*batch token feature"]:
    """φ(x), the products of x_i^a / √a! over coordinates, a < terms: φ(x)·φ(y) is ∏ Σ_a (x_i y_i)^a / a!, exp's series.

    A function of x alone, unlike a root of a Gram matrix; terms^dim numbers, so for short vectors of few dimensions.
    """
    powers = torch.arange(terms, dtype=x.dtype)
    scaled = x[..., None] ** powers / torch.exp(torch.lgamma(powers + 1) / 2)  # *batch token dim term
    features = torch.ones_like(x[..., :1])
    for one in scaled.unbind(-2):
        features = (features[..., :, None] * one[..., None, :]).flatten(-2)
    return features


def taylor_terms(largest: float) -> int:
    """How many terms of exp's series at ±``largest`` leave less than a double's rounding."""
    terms, term = 1, largest
    while term > torch.finfo(torch.float64).eps * math.exp(-largest):
        terms += 1
        term *= largest / terms
    return terms + 1


def directions(features: int, dim: int, generator: torch.Generator) -> Float[Tensor, "feature dim"]:
    return torch.randn(features, dim, generator=generator, dtype=torch.float64)


def log_random_features(
    x: Float[Tensor, "*batch token dim"], w: Float[Tensor, "feature dim"]
) -> Float[Tensor, "*batch token feature"]:
    """log φ̂(x), φ̂(x) = m^(−1/2) exp(w·x − ‖x‖²/2) with w ~ N(0, I): E φ̂(x)·φ̂(y) = exp(x·y) (Performer)."""
    return x @ w.T - log_lengths(x)[..., None] - math.log(w.shape[0]) / 2


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
