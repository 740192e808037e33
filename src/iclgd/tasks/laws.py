"""Laws of inputs and laws of functions: what a regression family draws an episode from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from iclgd.errors import Refusal
from iclgd.tasks.families import check_deviations

Law = Literal["uniform", "normal", "laplace", "exponential", "sphere"]
Matrix = Float[Tensor, "dx dx"]

# E z⁴ of one coordinate at unit variance. The sphere's coordinates are not independent and are treated apart.
KURTOSIS = {"uniform": 9 / 5, "normal": 3.0, "laplace": 6.0, "exponential": 9.0}


@dataclass(frozen=True, eq=False)
class Inputs:
    """x = R z with R Rᵀ = Σ = E x xᵀ, where z has uncorrelated coordinates of mean 0 and variance 1 under ``law``.

    Laws are compared at the same Σ: exponential is centred (skewed), and sphere is uniform on radius √dx before R.
    """

    covariance: Matrix
    law: Law = "normal"
    root: Matrix = field(init=False)

    def __post_init__(self) -> None:
        root, failed = torch.linalg.cholesky_ex(self.covariance.double())
        if failed or root.diagonal().min() < 1e-7 * root.diagonal().max():
            raise Refusal("the input covariance is singular; give a positive definite matrix.")
        object.__setattr__(self, "root", root)

    @classmethod
    def uniform(cls, dx: int, width: float = 1.0) -> "Inputs":
        """Coordinates uniform on (−width/2, width/2): what von Oswald's public code draws at width 1."""
        return cls(torch.eye(dx, dtype=torch.float64) * width**2 / 12, "uniform")

    @classmethod
    def normal(cls, dx: int, variance: float = 1.0) -> "Inputs":
        return cls(torch.eye(dx, dtype=torch.float64) * variance, "normal")

    @property
    def dx(self) -> int:
        return self.covariance.shape[0]

    def changed(self, law: Law | None = None, deviations: Sequence[float] = ()) -> "Inputs":
        """Of another law, or with independent coordinates of these standard deviations (one for all, or one each)."""
        check_deviations(deviations, self.dx)
        spread = torch.tensor(deviations, dtype=torch.float64).expand(self.dx) if deviations else None
        return Inputs(self.covariance if spread is None else torch.diag(spread**2), law or self.law)

    def scaled(self, factor: float) -> "Inputs":
        return Inputs(self.covariance * factor**2, self.law)

    def draw(
        self, batch: int, points: int, generator: Generator, dtype: torch.dtype
    ) -> Float[Tensor, "batch point dx"]:
        shape = (batch, points, self.dx)
        if self.law == "uniform":
            z = torch.rand(shape, generator=generator, dtype=dtype).sub_(0.5).mul_(12**0.5)
        elif self.law in ("laplace", "exponential"):
            z = torch.empty(shape, dtype=dtype).exponential_(generator=generator)
            if self.law == "exponential":
                z = z - 1
            else:
                z = torch.where(torch.rand(shape, generator=generator, dtype=dtype) < 0.5, z, -z) / 2**0.5
        else:
            z = torch.randn(shape, generator=generator, dtype=dtype)
            if self.law == "sphere":
                z = z / z.norm(dim=-1, keepdim=True) * self.dx**0.5
        if torch.equal(self.root, torch.diag(self.root.diagonal())):
            return z.mul_(self.root.diagonal().to(dtype))  # a third of the time of the product, and no second array
        return z @ self.root.to(dtype).T

    def second(self, weight: Matrix, demos: int) -> Matrix:
        """E[S Ω S] for S = (1/N) Σ x xᵀ and a fixed symmetric Ω, exactly.

        E[z zᵀ B z zᵀ] = 2B + tr(B) I + (κ − 3) diag(B) for independent coordinates of kurtosis κ, and
        d/(d+2) (2B + tr(B) I) on the sphere; the N − 1 other demonstrations give (1 − 1/N) Σ Ω Σ.
        """
        b = self.root.T @ weight.double() @ self.root
        one = 2 * b + b.trace() * torch.eye(self.dx, dtype=b.dtype)
        if self.law == "sphere":
            one = one * self.dx / (self.dx + 2)
        else:
            one = one + (KURTOSIS[self.law] - 3) * torch.diag(b.diagonal())
        return self.root @ (one / demos + (1 - 1 / demos) * b) @ self.root.T


@runtime_checkable
class Function(Protocol):
    """A law of functions R^dx → R^dy: ``draw`` takes one function per episode and evaluates it at the points."""

    @property
    def dy(self) -> int: ...

    def draw(self, x: Float[Tensor, "batch point dx"], generator: Generator) -> Float[Tensor, "batch point dy"]: ...


@dataclass(frozen=True, eq=False)
class LinearMap:
    """y = W x with independent rows W_k ~ N(mean_k, Ω)."""

    covariance: Matrix
    dy: int = 1
    mean: Float[Tensor, "dy dx"] | None = None

    @classmethod
    def isotropic(cls, dx: int, dy: int = 1, scale: float = 1.0) -> "LinearMap":
        return cls(torch.eye(dx, dtype=torch.float64) * scale**2, dy)

    @classmethod
    def inverse(cls, inputs: Inputs, dy: int = 1) -> "LinearMap":
        """Ω = Σ⁻¹, under which the task looks the same in every direction (Ahn 2023, §4)."""
        return cls(torch.linalg.inv(inputs.covariance.double()), dy)

    def weights(self, batch: int, generator: Generator, dtype: torch.dtype) -> Float[Tensor, "batch dy dx"]:
        w = torch.randn(batch, self.dy, self.covariance.shape[0], generator=generator, dtype=dtype)
        w = w @ torch.linalg.cholesky(self.covariance.double()).to(dtype).T
        return w if self.mean is None else w + self.mean.to(dtype)

    def draw(self, x: Float[Tensor, "batch point dx"], generator: Generator) -> Float[Tensor, "batch point dy"]:
        return x @ self.weights(len(x), generator, x.dtype).mT

    @property
    def moment(self) -> Matrix:
        """Σ_k E W_kᵀ W_k: all that a quadratic risk sees of the weights."""
        total = self.covariance.double() * self.dy
        return total if self.mean is None else total + self.mean.double().T @ self.mean.double()


@dataclass(frozen=True)
class Sine:
    """y = a sin(x + φ), a ~ U(0.1, 0.5), φ ~ U(0, π) (von Oswald 2023, §4).

    ``one_key`` ties a = 0.1 + 0.4 φ/π, as in the public code, where both are drawn from the same random key: a family
    with one parameter instead of two.
    """

    one_key: bool = False
    dy: int = 1

    def draw(self, x: Float[Tensor, "batch point dx"], generator: Generator) -> Float[Tensor, "batch point dy"]:
        u = torch.rand(2, x.shape[0], 1, 1, generator=generator, dtype=x.dtype)
        amplitude = 0.1 + 0.4 * (u[1] if self.one_key else u[0])
        return amplitude * torch.sin(x[..., :1] + torch.pi * u[1])


@dataclass(frozen=True)
class Sparse:
    """Linear with ``nonzero`` standard normal weights at random places (Garg 2022: 3 of 20)."""

    nonzero: int = 3
    dy: int = 1

    def draw(self, x: Float[Tensor, "batch point dx"], generator: Generator) -> Float[Tensor, "batch point dy"]:
        batch, _, dx = x.shape
        if self.nonzero > dx:
            raise Refusal(f"{self.nonzero} non-zero weights do not fit {dx} inputs; raise the dimension.")
        rank = torch.rand(batch, dx, generator=generator, dtype=x.dtype).argsort(-1).argsort(-1)
        w = torch.randn(batch, dx, generator=generator, dtype=x.dtype) * (rank < self.nonzero)
        return x @ w[..., None]


@dataclass(frozen=True)
class Quadratic:
    """y = Σ w_i x_i² / √3, which has the variance of the linear class at standard normal x (Garg 2022)."""

    dy: int = 1

    def draw(self, x: Float[Tensor, "batch point dx"], generator: Generator) -> Float[Tensor, "batch point dy"]:
        w = torch.randn(x.shape[0], x.shape[-1], 1, generator=generator, dtype=x.dtype)
        return x**2 @ w / 3**0.5


@dataclass(frozen=True)
class ReluNetwork:
    """y = √(2/h) vᵀ relu(U x) with standard normal U, v (Garg 2022: h = 100)."""

    hidden: int = 100
    dy: int = 1

    def draw(self, x: Float[Tensor, "batch point dx"], generator: Generator) -> Float[Tensor, "batch point dy"]:
        u = torch.randn(x.shape[0], x.shape[-1], self.hidden, generator=generator, dtype=x.dtype)
        v = torch.randn(x.shape[0], self.hidden, 1, generator=generator, dtype=x.dtype)
        return (x @ u).relu() @ v * (2 / self.hidden) ** 0.5


@dataclass(frozen=True)
class Tree:
    """A full binary tree: each node asks the sign of one random coordinate, leaves are standard normal (Garg 2022)."""

    depth: int = 4
    dy: int = 1

    def draw(self, x: Float[Tensor, "batch point dx"], generator: Generator) -> Float[Tensor, "batch point dy"]:
        batch, points, dx = x.shape
        asks = torch.randint(dx, (batch, 2**self.depth - 1), generator=generator)
        leaves = torch.randn(batch, 2**self.depth, generator=generator, dtype=x.dtype)
        node = torch.zeros(batch, points, dtype=torch.long)  # heap order: children of i are 2i + 1 and 2i + 2
        for _ in range(self.depth):
            value = x.gather(-1, asks.gather(-1, node)[..., None])[..., 0]
            node = 2 * node + 1 + (value > 0).long()
        return leaves.gather(-1, node - (2**self.depth - 1))[..., None]


@dataclass(frozen=True)
class GaussianProcess:
    """y | X ~ N(0, k(X, X)): where functional GD in the same kernel tends to the Bayes predictor (Cheng 2024)."""

    kernel: Callable[[Tensor, Tensor], Tensor]
    dy: int = 1

    def draw(self, x: Float[Tensor, "batch point dx"], generator: Generator) -> Float[Tensor, "batch point dy"]:
        gram = self.kernel(x, x).double()
        values, vectors = torch.linalg.eigh((gram + gram.mT) / 2)
        z = torch.randn(*x.shape[:2], self.dy, generator=generator, dtype=x.dtype)
        return ((vectors * values.clamp_min(0).sqrt()[..., None, :]).to(x.dtype)) @ z
