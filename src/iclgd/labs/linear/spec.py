"""What a study of the linear lab is asked for, and what changes the numbers of one of its cells."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, model_validator

from iclgd.choices import Choice, in_key, parse_one, some_of
from iclgd.errors import Refusal
from iclgd.lab import Cell, LabSpec
from iclgd.small.known import REFERENCES, check_kind
from iclgd.small.room import check_inputs
from iclgd.spec import Seed, Seeds, Spec, check_names, option, parts, unique
from iclgd.tasks.families import FAMILIES, check_deviations, check_mean

if TYPE_CHECKING:
    from iclgd.small.models import Transformer
    from iclgd.tasks.regression import Regression

LEARNERS = (
    f"Learners to hold it against, separated by commas: {', '.join(REFERENCES)}. An MLP has its own, gd on learned "
    "features, beside those named.  [default: gd; what the layer's state is, gd and ridge, where it learns; none with "
    "an MLP]"
)
FAST = ("delta", "gated-delta", "longhorn", "ttt", "mesa")  # `fast.RULES`: each is a learner of the same name, too
SINE, MLP = 40, 0.003  # the width of the MLP for sine, and the usual rate with one


def numbers(value: Any) -> Any:
    """`1,0.5,1` as a list; one number is a list of one."""
    value = parts(value)
    return (value,) if isinstance(value, int | float) else value


def family(name: str) -> str:
    """A family's name, refused if there is none."""
    FAMILIES.check(name)
    return name


def references(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of learners, refused where there is none."""
    check_names(names, REFERENCES)
    return names


Family = Annotated[str, AfterValidator(family), in_key(FAMILIES.identity)]
Kind = Annotated[str, AfterValidator(check_kind)]
if TYPE_CHECKING:
    References = tuple[Choice, ...]
else:
    References = some_of(REFERENCES, ("gd",))
Learners = Annotated[tuple[str, ...], BeforeValidator(unique), AfterValidator(references)]
Numbers = Annotated[tuple[float, ...], BeforeValidator(numbers)]
Law = Literal["family", "uniform", "normal", "laplace", "exponential", "sphere"]


class FamilyOptions(Spec):
    """A family of regressions."""

    task: Family = option("linear", "linear, gaussian, skewed, sine, sine-one-key, sparse, quadratic, relu or tree.")
    dx: int = option(10, "Inputs.  [default: 10; 1 for sine]", ge=1)
    k: int = option(10, "Demonstrations in an episode.", ge=1)
    noise: float = option(0.0, "Standard deviation of the noise on the demonstrations' labels.", ge=0)
    law: Law = option("family", "Law of the inputs at the same covariance; family: its own.")
    covariance: Numbers = option((), "Standard deviations of independent inputs, one or dx.  [default: the family's]")
    weight_mean: Numbers = option((), "Mean of a linear family's weights, one number or dx.  [default: 0]")

    @model_validator(mode="after")
    def _check_numbers(self) -> Self:
        """Before anything is built, and torch imported."""
        check_inputs(self.dx)
        check_deviations(self.covariance, self.dx)
        check_mean(self.weight_mean, self.dx)
        return self

    def regression(self, dy: int) -> "Regression":
        law = None if self.law == "family" else self.law
        return FAMILIES[self.task](self.dx, dy, self.k, self.noise, law, self.covariance, self.weight_mean)


class TrainOptions(FamilyOptions):
    """Family, model and training: all that one seed's numbers depend on besides the seed."""

    dy: int = option(1, "Outputs.", ge=1)
    layers: int = option(1, "Layers of attention.", ge=1)
    heads: int = option(1, "Heads of a layer.", ge=1)
    attention: Kind = option(
        "linear",
        "linear, softmax, exponential, relu or rbf, or a state that learns as it reads: delta, gated-delta, longhorn, "
        "ttt or mesa.",
    )
    shared: bool = option(False, "The same weights in every layer.")
    width: int = option(0, "Put an MLP of this width in front; 0: none.  [default: 0; 40 for sine]", ge=0)
    hidden: int = option(160, "Hidden units of that MLP.", ge=1)
    draws: Literal["tokens", "moments"] = option(
        "tokens",
        "What a training step draws: demonstrations, or their second moment, which is all that linear attention sees "
        "and costs the same at any k; normal inputs, linear functions.  [default: moments where they can be]",
    )
    steps: int = option(4000, "Training steps.", ge=1)
    batch: int = option(64, "Episodes in a step.", ge=1)
    rate: float = option(0.02, "Adam's learning rate.  [default: 0.02; 0.003 with an MLP]", gt=0)
    clip: float = option(0.1, "Clip the gradient to this norm.", gt=0)
    episodes: int = option(4000, "Fresh episodes to judge on.", ge=1)

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        """What depends on the family or on the MLP is written into the spec, so that its key holds the value itself."""
        if not isinstance(given, dict):
            return given
        sine = str(given.get("task", "")).startswith("sine")
        usual: dict[str, Any] = {"dx": 1, "width": SINE} if sine else {}
        filled = usual | {name: value for name, value in given.items() if value is not None}
        if str(filled.get("width", 0)) != "0":
            return {"rate": MLP, "learners": ()} | filled
        rule = str(filled.get("attention", ""))
        return ({"learners": (rule, "gd", "ridge")} if rule in FAST else {}) | filled

    @model_validator(mode="wrap")
    @classmethod
    def _choose_draws(cls, given: Any, check: Any) -> Self:
        """Moments where they are exact and nobody asked for tokens."""
        spec = check(given)
        if isinstance(given, dict) and given.get("draws") is None and spec._moments():
            return check({**given, "draws": "moments"})
        return spec

    def _moments(self) -> bool:
        from iclgd.small.moments import exact

        return self.attention == "linear" and not self.width and exact(self.family)

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Whatever cannot be drawn or built is refused here, before anything is trained."""
        from iclgd.tasks.laws import Sine

        self.model  # noqa: B018  refuses what cannot be built
        if self.draws == "moments" and not self._moments():
            raise ValueError("`draws` takes tokens here: moments need linear attention, normal inputs and linear maps")
        if isinstance(self.family.function, Sine) and not self.width:
            raise ValueError("a sine is not linear in its input; give the model an MLP with `width` 40")
        return self

    @property
    def family(self) -> "Regression":
        return self.regression(self.dy)

    @property
    def model(self) -> "Transformer":
        from iclgd.small.models import Transformer

        return Transformer(
            self.dx, self.dy, self.layers, self.heads, self.attention, self.shared, self.width, self.hidden
        )

    @property
    def plain(self) -> bool:
        """One linear layer on the tokens themselves: the case with a construction to lay beside."""
        return self.attention == "linear" and self.layers == 1 and self.heads == 1 and not self.width


class TrainCell(TrainOptions):
    """One seed."""

    learners: References
    seed: Seed


class TrainSpec(TrainOptions, LabSpec):
    """Train self-attention on regressions in context, and hold it against learners at their best on the same family.

    The learners take as many steps as the model has layers. Seeds are trained together, as one tensor program.
    """

    learners: Learners = option(("gd",), LEARNERS)
    seeds: Seeds = option(tuple(range(8)), "How many initialisations, or which: 8, or 3,4,5.  [default: 8]")

    @model_validator(mode="after")
    def _known(self) -> Self:
        """A learner that is not there, or has nothing to learn, is refused before anything is drawn or trained."""
        from iclgd.small.optimum import has_linear_part
        from iclgd.small.references import SIZED

        if not self.learners and not self.width:
            raise ValueError("`learners` needs at least one name")
        chosen = [parse_one(name, REFERENCES) for name in self.learners]
        idle = [choice.kind for choice in chosen if choice.kind in SIZED]
        if idle and not has_linear_part(self.family):
            raise ValueError(
                f"the labels of {self.task} have no linear part, so {idle[0]} at its best answers 0, which the "
                "table has anyway; name other `learners`, for instance nearest"
            )
        return self

    def cells(self) -> list[Cell]:
        return [Cell("linear train", self.part(TrainCell, seed=seed), {"seed": seed}, "train") for seed in self.seeds]

    def title(self) -> str:
        return f"linear-{self.task}"


class OptimumCell(FamilyOptions):
    """A linear family, and how far to tune."""

    task: Family = option("linear", "linear, gaussian or skewed.")
    steps: int = option(3, "The most steps to tune GD and GD++ for.", ge=1)
    sample: int = option(5000, "Episodes whose inputs the tuned risks average over.", ge=1)

    @model_validator(mode="after")
    def _linear(self) -> Self:
        if self.task.startswith("sine"):
            raise Refusal(f"only a linear family has a best step in closed form, which {self.task} is not: see `task`.")
        from iclgd.small.optimum import weights_of

        weights_of(self.family)
        return self

    @property
    def family(self) -> "Regression":
        return self.regression(1)


class OptimumSpec(OptimumCell, LabSpec):
    """The best that each learner can do on a linear family, without training anything."""

    def cells(self) -> list[Cell]:
        return [Cell("linear optimum", self.part(OptimumCell))]

    def title(self) -> str:
        return f"optimum-{self.task}"
