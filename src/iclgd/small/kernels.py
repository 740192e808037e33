"""Kernels as functions of inner products, so that a kernel-attention layer needs no more than W_Kᵀ W_Q.

``kernel(s, kk, qq)`` takes s = ⟨k, q⟩, kk = ⟨k, k⟩ and qq = ⟨q, q⟩, all under the same bilinear form.
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from iclgd.registry import Registry

Kernel = Callable[[Tensor, Tensor, Tensor], Tensor]

KERNELS: Registry[Kernel] = Registry("kernel", "iclgd linear train --help")


def linear(s: Tensor, kk: Tensor, qq: Tensor) -> Tensor:
    return s


def exponential(s: Tensor, kk: Tensor, qq: Tensor) -> Tensor:
    return s.exp()


def relu(s: Tensor, kk: Tensor, qq: Tensor) -> Tensor:
    """Not positive definite, but an attention that Cheng 2024 trains."""
    return s.relu()


def rbf(s: Tensor, kk: Tensor, qq: Tensor) -> Tensor:
    """exp(−‖k − q‖²/2)."""
    return (s - (kk + qq) / 2).exp()


for _kernel in (linear, exponential, relu, rbf):
    KERNELS.add(_kernel.__name__, _kernel)


def gram(
    kernel: Kernel, a: Float[Tensor, "*batch left dim"], b: Float[Tensor, "*batch right dim"]
) -> Float[Tensor, "*batch left right"]:
    return kernel(a @ b.mT, (a * a).sum(-1)[..., :, None], (b * b).sum(-1)[..., None, :])
