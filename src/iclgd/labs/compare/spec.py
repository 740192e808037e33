"""What `compare` is asked for, and the cells it is made of."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import model_validator

from iclgd.choices import Choice, at_rates, one_of, some_of
from iclgd.errors import Refusal
from iclgd.lab import Cell, Label, LabSpec
from iclgd.learners import LEARNERS, PROMPTED
from iclgd.metrics import METRICS, OWN
from iclgd.nulls import NULLS
from iclgd.options import ModelOptions, PromptOptions, SomeEpisodes, untrained_seed
from iclgd.spec import EpisodeSpec, Init, Inits, ModelSpec, PromptSpec, Rates, Spec, option

USUAL_LEARNERS = ("gd", "lcgd")
USUAL_METRICS = tuple(name for name, *_ in OWN)  # not those of other packages, which change with what is installed
USUAL_NULLS = (
    *("random", "uniform", "other-query", "weight-noise", "filler", "read-wrong-labels", "wrong-labels"),
    *("two-wrongs", "other-demos", "other-task", "other-task:task=kinds"),
)
CONSTANT = "one answer for all queries"  # in a learner's place: reading's answers, their mean over the queries
WHOLE = "whole of {}"  # a quantity: what a metric that is a share is a share of
ENOUGH = 8  # learners and rates of one draw fill a pass: its cells need no other draw's beside them
Position = Literal["prompt", "label"]
if TYPE_CHECKING:
    One = Choice
    Learners = tuple[Choice, ...]
    Metrics = tuple[Choice, ...]
    Nulls = tuple[Choice, ...]
else:
    One = one_of(LEARNERS)
    Learners = some_of(LEARNERS, USUAL_LEARNERS, taken=PROMPTED)
    Metrics, Nulls = some_of(METRICS, USUAL_METRICS), some_of(NULLS, USUAL_NULLS, or_none=True)


class CompareCell(Spec):
    """One draw of demonstrations: zero-shot and icl alone, one learner against icl, or two learners against each other.

    ``nulls`` that train, the ``contrast`` of right and wrong labels and the ``floor`` cost more training.
    """

    model: ModelSpec
    task: str = option("", "Task name or file; its content is part of the identity.", keyed=False)
    episode: EpisodeSpec
    prompt: PromptSpec
    learner: One | None = None
    versus: One | None = None
    metrics: Metrics = ()
    nulls: Nulls = ()
    contrast: bool = False
    floor: bool = False
    batch_tokens: int | None = option(None, "Tokens a batch: last bits depend on it, as on threads.", keyed=False, ge=1)


class CompareSpec(PromptOptions, SomeEpisodes, ModelOptions, LabSpec):
    """Whether a model changes, when it reads demonstrations, as it would if it were finetuned on them.

    Compares in-context learning with gradient descent and layer-causal gradient descent on the same demonstrations:
    likeness of what happens inside, agreement of what is predicted, each with its nulls, untrained baselines and
    noise floor. A study that was cut short goes on where it stopped when the same command is given again.
    """

    k: int = option(8, "Number of demonstrations.", ge=1)
    queries: int = option(40, "Number of queries, or all there are.", ge=1)
    init: Inits = option(
        ("trained", "random"), "Weights, separated by commas: trained, random, embeddings (random behind trained ones)."
    )
    learners: Learners = option(
        "default", "Learners with their options, such as gd:trains=all; `iclgd known` lists all.  [default: gd,lcgd]"
    )
    rates: Rates = option((), "Learning rates for every learner that has one.  [default: the learner's own]")
    metrics: Metrics = option("default", "Metrics.  [default: all of this package]")
    nulls: Nulls = option("default", "Nulls, or none.  [default: all of this package]")
    contrast: bool = option(True, "Read and train on wrong labels too, and compare what labels alone change.")
    floor: bool = option(True, "Compute updates again in other batches and wider precision, on the first seed.")
    batch_tokens: int | None = option(
        None, "Tokens in a batch of queries; changes last bits only.  [default: what memory holds]", keyed=False, ge=1
    )
    position: Position = option("prompt", "Where the tables of the terminal are measured.", keyed=False)

    @model_validator(mode="after")
    def _check_learners(self) -> "CompareSpec":
        labels = [choice.label for choice in self.trained]
        twice = [label for label in labels if labels.count(label) > 1]
        if twice:
            raise Refusal(
                f'two `learners` would be called "{twice[0]}" in a table: their rates are the same to six digits.'
            )
        if not labels:
            raise Refusal("`learners` needs at least one; `iclgd known` lists all.")
        return self

    @property
    def trained(self) -> tuple[Choice, ...]:
        """Every learner at every rate."""
        return at_rates(self.learners, self.rates)

    @property
    def pairs(self) -> list[tuple[Choice, Choice]]:
        """Learners of different kinds at one rate: their changes of attention are compared with each other."""
        trained = self.trained
        return [
            (a, b)
            for i, a in enumerate(trained)
            for b in trained[i + 1 :]
            if a.kind != b.kind and a.has("rate") and b.has("rate") and a["rate"] == b["rate"]
        ]

    def cells(self) -> list[Cell]:
        """The cells, model by model, so that each is loaded once; all draws of a task on one model are a group.

        An untrained model's weights change with the seed, as in the papers, and with the task. Nulls that train are
        asked of the first initialisation, the noise floor of its first seed.
        """
        return [
            cell
            for init in self.init
            for task in self.task
            for seed in self.seeds
            for cell in self._cells(init, seed, task)
        ]

    def _cells(self, init: Init, seed: int, task: str) -> list[Cell]:
        """The cells of one episode: the prompted learners, each trained one, each pair."""
        first = init == self.init[0]
        base = CompareCell(
            model=self.model_spec(init, 0 if init == "trained" else untrained_seed(self.task_titles[task], seed)),
            task=task,
            episode=self.episode_spec(seed),
            prompt=self.prompt_spec(),
            metrics=self.metrics,
            contrast=self.contrast,
            batch_tokens=self.batch_tokens,
            floor=self.floor and first and seed == self.seeds[0],
        )
        nulls = tuple(null for null in self.nulls if first or not null.registry[null.name].trains)
        labels: dict[str, Label] = {"init": init, "task": task, "seed": seed}
        shared = init == "trained" and len(self.trained) < ENOUGH
        group = f"{init} {task}" if shared else f"{init} {task} {seed}"

        def cell(more: dict[str, Label], **changes: Any) -> Cell:
            return Cell("compare", base.model_copy(update=changes), labels | more, group)

        alone: dict[str, Any] = {"metrics": (), "contrast": False, "floor": False}
        return [
            cell({}),
            *(cell({"learner": choice.label}, learner=choice, nulls=nulls) for choice in self.trained),
            *(cell({"learner": a.label, "versus": b.label}, learner=a, versus=b, **alone) for a, b in self.pairs),
        ]
