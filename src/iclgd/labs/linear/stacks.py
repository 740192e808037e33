"""What studies of kinds of layers and of depths are asked for, and what changes the numbers of their cells."""

from typing import TYPE_CHECKING, Annotated, Protocol, Self

from pydantic import BeforeValidator, Field, model_validator

from iclgd.lab import Cell, LabSpec
from iclgd.labs.linear.spec import FAST, Family, FamilyOptions, Kind
from iclgd.spec import Seed, Seeds, option, unique

if TYPE_CHECKING:
    from iclgd.small.models import Transformer
    from iclgd.tasks.regression import Regression

Kinds = Annotated[tuple[Kind, ...], BeforeValidator(unique), Field(min_length=1)]


class OneStack(Protocol):
    """What training needs of a cell."""

    seed: int
    steps: int
    batch: int
    rate: float
    clip: float

    @property
    def family(self) -> "Regression": ...
    @property
    def model(self) -> "Transformer": ...


class Fitting(FamilyOptions):
    """A family, a depth, and how layers on it are trained."""

    dx: int = option(5, "Inputs.", ge=1)
    noise: float = option(0.2, "Standard deviation of the noise on the demonstrations' labels.", ge=0)
    layers: int = option(1, "Layers of each model.", ge=1)
    steps: int = option(2000, "Training steps.", ge=1)
    batch: int = option(64, "Episodes in a step.", ge=1)
    rate: float = option(0.02, "Adam's learning rate.", gt=0)
    clip: float = option(0.1, "Clip the gradient to this norm.", gt=0)
    episodes: int = option(2000, "Fresh episodes to judge on.", ge=1)

    @property
    def family(self) -> "Regression":
        return self.regression(1)


class LayersCell(Fitting):
    """One kind of layer and one seed."""

    attention: str
    seed: Seed

    @property
    def model(self) -> "Transformer":
        from iclgd.small.models import Transformer

        return Transformer(self.dx, 1, self.layers, 1, self.attention)


class LayersSpec(Fitting, LabSpec):
    """Train layers of every kind on one family of regressions, and hold each against every learner at its best.

    Layers of linear attention, of softmax attention, and layers with a state that learns as it reads: which of them
    become the learner that they can be, and how far is each from the others'? The learners take as many passes as the
    models have layers.
    """

    kinds: Kinds = option(("linear", "softmax", *FAST), "Kinds of layers, separated by commas.")
    seeds: Seeds = option((0, 1, 2), "How many initialisations, or which: 3, or 3,4,5.  [default: 3]")

    @model_validator(mode="after")
    def _linear(self) -> Self:
        from iclgd.small.optimum import has_linear_part
        from iclgd.tasks.laws import Sine

        if isinstance(self.family.function, Sine) or not has_linear_part(self.family):
            raise ValueError(f"the labels of {self.task} have no linear part for these learners; choose another `task`")
        for cell in self.cells():
            cell.spec.model  # type: ignore[attr-defined]  # noqa: B018  refuses what cannot be built
        return self

    def cells(self) -> list[Cell]:
        return [
            Cell(
                "linear layers",
                self.part(LayersCell, attention=kind, seed=seed),
                {"attention": kind, "seed": seed},
                "train",
            )
            for kind in self.kinds
            for seed in self.seeds
        ]

    def title(self) -> str:
        return f"layers-{self.task}"


class DepthOptions(Fitting):
    """A linear family without noise, and a stack of linear attention."""

    task: Family = option("gaussian", "linear, gaussian or skewed.")
    k: int = option(20, "Demonstrations in an episode; no fewer than inputs.", ge=1)
    noise: float = option(0.0, "Standard deviation of the noise on the demonstrations' labels.", ge=0)
    layers: int = option(3, "Layers of the deepest stack.", ge=1)
    steps: int = option(3000, "Training steps.", ge=1)
    rate: float = option(0.01, "Adam's learning rate.", gt=0)

    @property
    def model(self) -> "Transformer":
        from iclgd.small.models import Transformer

        return Transformer(self.dx, 1, self.layers)


class DepthCell(DepthOptions):
    """A stack of one depth, and one seed."""

    seed: Seed


class DepthSpec(DepthOptions, LabSpec):
    """Whether a trained stack of linear attention does one gradient step a layer, or runs ahead as Newton does.

    k of Newton's iterations are 2^k steps of gradient descent: one path at two speeds. Each layer of a trained stack is
    placed on it, and so are stacks of every depth up to the deepest.
    """

    seeds: Seeds = option((0, 1, 2), "How many initialisations, or which: 3, or 3,4,5.  [default: 3]")

    @model_validator(mode="after")
    def _solvable(self) -> Self:
        from iclgd.small.optimum import weights_of

        if self.task.startswith("sine"):
            raise ValueError(f"least squares does not solve {self.task}; choose a linear `task`")
        weights_of(self.family)
        if self.k < self.dx:
            raise ValueError(f"`k` has to be at least dx = {self.dx}: with fewer demonstrations nothing can be solved")
        self.model  # noqa: B018  refuses what cannot be built
        return self

    def cells(self) -> list[Cell]:
        return [
            Cell("linear depth", self.part(DepthCell, layers=n, seed=seed), {"layers": n, "seed": seed}, "train")
            for n in range(1, self.layers + 1)
            for seed in self.seeds
        ]

    def title(self) -> str:
        return f"depth-{self.task}"
