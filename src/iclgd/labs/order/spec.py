"""What a study of orders is asked for, and what changes the numbers of one of its cells."""

import math
from typing import TYPE_CHECKING

from pydantic import model_validator

from iclgd.choices import Choice, at_rates, some_of
from iclgd.errors import Refusal
from iclgd.lab import Cell, LabSpec
from iclgd.learners import LEARNERS, PROMPTED
from iclgd.options import ModelOptions, PromptOptions, SomeEpisodes, untrained_seed
from iclgd.spec import EpisodeSpec, Inits, ModelSpec, PromptSpec, Rates, Spec, option

USUAL = ("gd", "lcgd:target=label")  # lcgd on every token of a demonstration takes minutes on a CPU

if TYPE_CHECKING:
    Learners = tuple[Choice, ...]
else:
    Learners = some_of(LEARNERS, USUAL, taken=PROMPTED)


def enough_orders(count: int, orders: int) -> None:
    """Refuse more orders than so many demonstrations have."""
    if orders > (most := math.factorial(min(count, 20))):
        raise Refusal(f"{count} demonstrations have {most} orders, not {orders}: raise `k` or lower `orders`.")


class OrderCell(Spec):
    """One episode on one model, in some orders. Weights and examples are named by the cell's identity."""

    model: ModelSpec
    task: str = option("", "Task name or file.", keyed=False)
    episode: EpisodeSpec = option(..., "Which demonstrations and queries.", keyed=False)
    prompt: PromptSpec
    orders: int
    top: int
    learners: Learners


class OrderSpec(PromptOptions, SomeEpisodes, ModelOptions, LabSpec):
    """What the order of the same demonstrations changes: in reading them, and in training on them one after another.

    The spread of label probabilities and of updates over orders, and how many of the likeliest next tokens stay; beside
    them one step on all demonstrations at once, and layers of attention without positions, for which order is nothing,
    and the delta rule, for which it is not (Shen 2023).
    """

    k: int = option(4, "Number of demonstrations.", ge=2)
    queries: int = option(10, "Number of queries, or all there are.", ge=1)
    orders: int = option(20, "Orders, the drawn one among them; the same for every learner.", ge=2)
    top: int = option(10, "Likeliest next tokens whose overlap is counted.", ge=1)
    init: Inits = option(("trained",), "Weights, separated by commas: trained, random, embeddings.")
    learners: Learners = option(
        "default",
        "Learners with their options; gd has a step on all demonstrations beside it.  [default: gd,lcgd:target=label]",
    )
    rates: Rates = option((), "Learning rates for every learner that has one.  [default: the learner's own]")

    @model_validator(mode="after")
    def _check(self) -> "OrderSpec":
        """What cannot be run is refused before a model is loaded; an episode file says its own number."""
        if not self.trained:
            raise Refusal("`learners` needs at least one; `iclgd known` lists all.")
        if not all(task.endswith(".json") for task in self.task):
            enough_orders(self.k, self.orders)
        return self

    @property
    def trained(self) -> tuple[Choice, ...]:
        """Every learner at every rate."""
        return at_rates(self.learners, self.rates)

    def title(self) -> str:
        return f"order-{super().title()}"

    def cells(self) -> list[Cell]:
        return [
            Cell(
                "order",
                OrderCell(
                    model=self.model_spec(
                        init, 0 if init == "trained" else untrained_seed(self.task_titles[task], seed)
                    ),
                    task=task,
                    episode=self.episode_spec(seed),
                    prompt=self.prompt_spec(),
                    orders=self.orders,
                    top=self.top,
                    learners=self.trained,
                ),
                {"init": init, "task": task, "seed": seed},
                f"{init} {task} {seed}",
            )
            for init in self.init
            for task in self.task
            for seed in self.seeds
        ]
