"""A prompt as a change of weights: the rank-one patch of a block that reads attention (Dherin 2025).

A block is T_W(C, x) = f(W a(C, x) + b), a its attention output at the query with context C. Deleting a part Y of the
context changes a by δ = a(C, x) − a(C∖Y, x), and

    ΔW = (W δ) aᵀ / ‖a‖²,    a = a(C∖Y, x),        T_W(C, x) = T_{W+ΔW}(C∖Y, x).

With a skip connection around the network the last bias takes δ as well. All of this is algebra: no W is left out.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor


def patch(
    w: Float[Tensor, "hidden dim"], whole: Float[Tensor, " dim"], part: Float[Tensor, " dim"]
) -> Float[Tensor, "hidden dim"]:
    """ΔW that makes (W + ΔW) part = W whole: the one of least norm, of rank one."""
    return torch.outer(w @ (whole - part), part) / part.square().sum()


@dataclass(frozen=True)
class Block:
    """Softmax attention of the last token to all, then a network with one hidden layer; around it a skip, or not."""

    w_query: Float[Tensor, "dk dim"]
    w_key: Float[Tensor, "dk dim"]
    w_value: Float[Tensor, "dim dim"]
    w1: Float[Tensor, "hidden dim"]
    b1: Float[Tensor, " hidden"]
    w2: Float[Tensor, "dim hidden"]
    b2: Float[Tensor, " dim"]
    skip: bool = False

    def attention(self, tokens: Float[Tensor, "token dim"]) -> Float[Tensor, " dim"]:
        scores = (tokens @ self.w_key.T) @ (self.w_query @ tokens[-1]) / self.w_key.shape[0] ** 0.5
        return scores.softmax(-1) @ (tokens @ self.w_value.T)

    def __call__(
        self, tokens: Float[Tensor, "token dim"], change: Tensor | float = 0.0, shift: Tensor | float = 0.0
    ) -> Float[Tensor, " dim"]:
        """The block's output at the last token; ``change`` is added to W₁ and ``shift`` to the last bias."""
        a = self.attention(tokens)
        out = torch.nn.functional.gelu((self.w1 + change) @ a + self.b1) @ self.w2.T + self.b2 + shift
        return out + a if self.skip else out


def path_as_descent(path: Float[Tensor, "step hidden dim"], rate: float) -> Float[Tensor, "step hidden dim"]:
    """Any path of matrices by gradient descent on L_i(W) = tr(Δ_iᵀ W), Δ_i = (W_i − W_{i+1}) / h, taken by autograd."""
    w, every = path[0], [path[0]]
    for now, then in pairwise(path):
        w = w.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(((now - then) / rate * w).sum(), w)
        w = w - rate * gradient
        every.append(w.detach())
    return torch.stack(every)
