"""What the identity does not say: any path of matrices is "gradient descent", and patches settle without training."""

from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.labs.implicit.weights import apart, by_layer
from iclgd.models.added import Outer
from iclgd.models.patches import patches, read
from iclgd.models.subject import Subject
from iclgd.prompts import Ids


def trace_losses(path: Float[Tensor, "step out in"], rate: float = 0.1) -> float:
    """How far a path is from gradient descent on losses L_i(W) = tr(Δ_iᵀ W), Δ_i = (W_i − W_{i+1})/rate.

    Dherin 2025 reads the patches of growing contexts as such steps. Every path is one: the losses are made from the
    path itself. The largest ‖W_{i+1} − (W_i − rate ∇L_i)‖ / ‖W_{i+1}‖, with ∇L_i taken by autograd.
    """
    worst = 0.0
    for now, then in pairwise(path):
        w = now.clone().requires_grad_(True)
        loss = torch.trace(((now - then) / rate).T @ w)
        (gradient,) = torch.autograd.grad(loss, w)
        worst = max(worst, float((then - (now - rate * gradient)).norm() / then.norm()))
    return worst


def settling(subject: Subject, bos: Ids, context: Ids, query: Ids) -> tuple[list[int], Float[Tensor, "size layer"]]:
    """‖ΔW_{i+1} − ΔW_i‖ of patches for the first i tokens of the context, i = 2, 4, 8, …

    Said to show convergence. Softmax attention averages: one token more moves an average of i by about 1/i, whatever
    the weights.
    """
    sizes = [2**p for p in range(1, (len(context) - 1).bit_length()) if 2**p > len(bos)]

    def patched(count: int) -> list[Outer]:
        target = read(subject, [query], subject.encode(context[:count]))
        return [layer.last for layer in patches(subject, [bos + query], target, "C")]  # type: ignore[misc]  # form C has it

    moved = []
    for size in sizes:
        pairs = zip(patched(size), patched(size + 1), strict=True)
        moved.append(by_layer(apart(one, two) for one, two in pairs)[0])
    return sizes, torch.stack(moved)


def attention_alone(seed: int, tokens: int = 512, dim: int = 16, draws: int = 64) -> float:
    """The same slope in one softmax attention layer with random weights, no MLP norms and no positions around it.

    ΔW_i = W(A_i − A_0) aᵀ/‖a‖² with A_i the attention over the first i tokens (Dherin 2025, theorem 2.2), so that
    ‖ΔW_{i+1} − ΔW_i‖ is ‖W(A_{i+1} − A_i)‖ up to a factor; its geometric mean over draws.
    """
    random = torch.Generator().manual_seed(seed)
    query, *rest = (torch.randn(draws, n, dim, generator=random, dtype=torch.float64) for n in (1, tokens, tokens))
    keys, values = rest
    weights = (keys @ query.transpose(1, 2) / dim**0.5).exp()  # draw token 1
    averages = (weights * values).cumsum(1) / weights.cumsum(1)  # A_1, A_2, …
    map_ = torch.randn(dim, dim, generator=random, dtype=torch.float64)
    moved = ((averages[:, 1:] - averages[:, :-1]) @ map_.T).norm(dim=-1).log().mean(0).exp()
    first = 8  # the law is one of many tokens
    return slope(list(range(first, tokens)), moved[first - 1 :])


def slope(sizes: list[int], values: Float[Tensor, " size"]) -> float:
    """Of log values over log sizes, by least squares: −1 where values fall as 1/i."""
    x = torch.tensor(sizes, dtype=torch.float64).log()
    y = values.double().log()
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())
