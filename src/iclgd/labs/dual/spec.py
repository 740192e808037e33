"""What the dual lab can be asked: its four studies, and the cells they are made of."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, model_validator

from iclgd.choices import Choice, in_key, one_of, some_of
from iclgd.errors import Refusal
from iclgd.lab import Cell, LabSpec
from iclgd.labs.dual.modifications import IN_A_MODEL, MODIFICATIONS, TRAINED, beside_plain, check_enough
from iclgd.labs.dual.panels import PANELS, check_task, identity
from iclgd.options import ModelOptions, OneEpisode, PromptOptions
from iclgd.report.numbers import counted
from iclgd.small.languages.data import Data
from iclgd.small.room import check_inputs
from iclgd.spec import EpisodeSpec, ModelSpec, Names, PromptSpec, Seed, Seeds, Spec, option, unique

Precise = Literal["float32", "float64"]
if TYPE_CHECKING:
    from iclgd.labs.dual.small import Recipe

    One = Choice
    Modifications = tuple[Choice, ...]
    Arms = tuple[Choice, ...]
else:
    One = one_of(MODIFICATIONS)
    Modifications = some_of(MODIFICATIONS, IN_A_MODEL)
    Arms = some_of(MODIFICATIONS, TRAINED)


class HeadsCell(Spec):
    """One query behind its demonstrations, or all of them. Weights and episode are named by the cell's identity."""

    model: ModelSpec
    task: str = option(..., "Where the episode comes from.", keyed=False)
    episode: EpisodeSpec = option(..., "Which demonstrations and queries.", keyed=False)
    prompt: PromptSpec
    query: int | None = option(None, "Which query, counted from 0; none: all of them.", keyed=False)


class BoundCell(HeadsCell):
    """One query, with demonstrations held out."""

    held: int


class ModifyCell(HeadsCell):
    """All queries, read with one modification of attention."""

    modification: One


Kind = TypeVar("Kind", bound=HeadsCell)


class HeadsSpec(PromptOptions, OneEpisode, ModelOptions, LabSpec):
    """What the studies of a pretrained model share: a model, an episode, and how it becomes tokens."""

    def title(self) -> str:
        return f"{type(self).__name__.removesuffix('Spec').lower()}-{self.model_title}"

    def what(self, facts: Mapping[str, Any], queries: int) -> str:
        """A line on what was run."""
        drawn = "" if self.task.endswith(".json") else f" · seed {self.seed}"
        asked = f"k = {facts['k']}{drawn} · {counted(queries, 'query')} · {self.dtype}"
        return f"{self.model_title} · {facts['episode']['task']} · {asked}"

    def _cell(self, kind: type[Kind], **more: Any) -> Kind:
        model, episode = self.model_spec(), self.episode_spec(self.seed)
        return kind(model=model, task=self.task, episode=episode, prompt=self.prompt_spec(), **more)

    def _query_cells(self, lab: str, kind: type[HeadsCell], **more: Any) -> list[Cell]:
        """A cell a query: asking more of them runs only those. (An episode file says itself how many there are.)"""
        queries = self.queries
        if self.task.endswith(".json"):
            from pathlib import Path

            from iclgd.tasks.episodes import read_episode

            queries = len(read_episode(Path(self.task)).queries)
        return [Cell(lab, self._cell(kind, query=i, **more), {"query": i}, "heads") for i in range(queries)]


class CheckSpec(HeadsSpec):
    """Every head of a pretrained model as its zero-shot part + one gradient step.

    Builds the dual of each layer and head at the prompt's last token, takes the step by autograd, prints the residual,
    and shows how much of the head is the step, its rank and direction, and which demonstration gave what.
    """

    dtype: Precise = option("float64", "Arithmetic of the model; the dual is computed in float64.")
    k: int = option(8, "Number of demonstrations.", ge=1)
    queries: int = option(4, "Number of queries, or all there are.", ge=1)

    def cells(self) -> list[Cell]:
        return self._query_cells("dual check", HeadsCell)


class BoundSpec(HeadsSpec):
    """The generalisation bound of Ren and Liu's theorem 3.2 on real heads, beside the measured gap.

    Of k demonstrations the last ones are held out and measure the gap; the bound is for the first 1, 2, 4, … of the
    others.
    """

    dtype: Precise = option("float64", "Arithmetic of the model; the bound is computed in float64.")
    k: int = option(24, "Number of demonstrations.", ge=2)
    queries: int = option(2, "Number of queries, or all there are.", ge=1)
    held: int = option(8, "Demonstrations held out of the step, taken from the end.", ge=1)

    @model_validator(mode="after")
    def _leaves_some(self) -> "BoundSpec":
        if not self.task.endswith(".json"):
            check_held(self.held, self.k)
        return self

    def cells(self) -> list[Cell]:
        return self._query_cells("dual bound", BoundCell, held=self.held)


def check_held(held: int, demos: int) -> None:
    if held >= demos:
        raise Refusal(f"of {counted(demos, 'demonstration')} none is left when {held} are held out: lower `held`.")


class ModifySpec(HeadsSpec):
    """Attention modified inside a pretrained model: accuracy and log p beside the unmodified one.

    The query's tokens are read with modified attention, the demonstrations as ever; nothing is trained.
    """

    k: int = option(16, "Number of demonstrations.", ge=1)
    modifications: Modifications = option(
        "default",
        "Modifications with their options, separated by commas: regularised:alpha=0.1, regularised-slide:alpha=0.1, "
        "negative:k=3:beta=0.1, augmented:c=0.1 (untrained adapters), …; `default` stands for the usual ones.  "
        "[default: a few of each]",
        min_length=1,
    )

    @model_validator(mode="after")
    def _enough(self) -> "ModifySpec":
        if not self.task.endswith(".json"):
            check_enough(self.modifications, self.k)
        return self

    def cells(self) -> list[Cell]:
        cells = [self._cell(ModifyCell, modification=one) for one in beside_plain(self.modifications)]
        return [Cell("dual modify", cell, {"modification": cell.modification.label}, "model") for cell in cells]


# training


def expressions(given: Any) -> Any:
    """Languages, separated by commas; the comma of `a{1,2}` separates nothing."""
    parts = re.split(r",(?![^{]*})", given) if isinstance(given, str) else given
    return unique([part.strip() for part in parts if part.strip()] if isinstance(given, str) else parts)


def regressions(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        check_task(name)
    return names


class TrainCell(Spec):
    """One layer: its task, its modification and its seed."""

    task: Annotated[str, in_key(identity)]
    arm: One
    seed: Seed
    dx: int
    k: int
    epochs: int
    steps: int
    batch: int
    rate: float
    episodes: int
    alphabet: str = ""
    max_length: int | None = None  # of words; None: the task is a regression

    @property
    def recipe(self) -> "Recipe":
        from iclgd.labs.dual.small import Recipe

        return Recipe(self.epochs, self.steps, self.batch, self.rate, self.episodes)

    def words(self) -> Data:
        assert self.max_length is not None
        given: dict[str, Any] = {"alphabet": self.alphabet, "dims": self.dx, "k": self.k, "seeds": (self.seed,)}
        return Data(language=self.task, max_length=self.max_length, **given)


class TrainSpec(LabSpec):
    """Modified attention, trained: one softmax layer on regressions, or on membership in regular languages.

    Every arm starts from the same weights and sees the same episodes, seed by seed; plain attention is always among
    them.
    """

    tasks: Annotated[Names | tuple[()], AfterValidator(regressions)] = option(
        (),
        "Regressions: linear, trigonometric, exponential, gaussian, skewed, sparse, quadratic, relu, tree, or with "
        "dx 1 sine, sine-one-key.  [default: the first three, unless there are languages]",
    )
    languages: Annotated[tuple[str, ...], BeforeValidator(expressions)] = option(
        (),
        "Membership in regular languages instead: built-in names or expressions, the sign of the labels drawn for "
        "each episode; random for another language in each.",
    )
    arms: Arms = option(
        "default",
        "Modifications with their options, separated by commas, for instance negative:k=3:beta=0.5; the adapters of "
        "augmented (g1, g2, both) are trained with the layer; `default` stands for the usual ones.  "
        "[default: a few of each]",
        min_length=1,
    )
    seeds: Seeds = option(tuple(range(8)), "How many seeds, or which: 2,3,4.  [default: 8]")
    dx: int = option(10, "Inputs of a regression, or dimensions of a word's code.", ge=1)
    k: int = option(15, "Demonstrations in an episode.  [default: 15; of words, 20]", ge=1)
    alphabet: str = option("", "More symbols than the expressions of the languages have.")
    max_length: int | None = option(None, "Length of words.  [default: 12; 8 for random languages]", ge=1)
    epochs: int = option(100, "Epochs; the test loss is measured after each.", ge=1)
    steps: int = option(20, "Steps in an epoch.", ge=1)
    batch: int = option(128, "Fresh episodes in a step.", ge=1)
    rate: float = option(1e-2, "Adam's rate at the start; it falls to 0 along a half cosine.", gt=0)
    episodes: int = option(4096, "Test episodes of each seed.", ge=1)

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        """What depends on the kind of task."""
        if not isinstance(given, dict):
            return given
        words = bool(given.get("languages"))
        if words and given.get("tasks"):
            raise Refusal("regressions and languages are trained apart: give `tasks` or `languages`.")
        if not words and (given.get("alphabet") or given.get("max_length")):
            raise Refusal("`alphabet` and `max_length` are about words: give `languages` with them.")
        usual: dict[str, Any] = {"k": 20} if words else {"tasks": PANELS}
        return {**given, **{name: value for name, value in usual.items() if given.get(name) in (None, "", (), [])}}

    @model_validator(mode="after")
    def _trainable(self) -> "TrainSpec":
        from iclgd.labs.dual.small import find_task

        check_enough(self.arms, self.k)
        check_inputs(self.dx)
        for name in self.tasks:
            find_task(name, self.dx, self.k)
        for name in self.languages:
            self._cell(name, self.arms[0], 0).words()
        return self

    def _cell(self, task: str, arm: Choice, seed: int) -> TrainCell:
        words = task in self.languages
        length = (self.max_length or (8 if task == "random" else 12)) if words else None
        return self.part(TrainCell, task=task, arm=arm, seed=seed, max_length=length)

    def cells(self) -> list[Cell]:
        """A cell a seed. Seeds of an arm are trained together; a language's arms share its words and their codes."""
        return [
            Cell(
                "dual train",
                self._cell(task, arm, seed),
                {"task": task, "arm": arm.label, "seed": seed},
                task if task in self.languages else f"{task} {arm.label}",
            )
            for task in (*self.tasks, *self.languages)
            for arm in beside_plain(self.arms)
            for seed in self.seeds
        ]

    def title(self) -> str:
        return "train"
