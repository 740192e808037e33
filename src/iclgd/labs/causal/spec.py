"""What `causal` is asked for, and the cells it is made of."""

from typing import Any

from pydantic import model_validator

from iclgd.lab import Cell, Label, LabSpec
from iclgd.options import ModelOptions, OtherTask, PromptOptions, SomeEpisodes, refuse_same, untrained_seed
from iclgd.spec import EpisodeSpec, Init, Inits, ModelSpec, PromptSpec, Rates, Spec, option

OTHERS = ("kinds", "sentiment")  # the task whose prompt heads' means are taken from: the first that is not asked


class CausalCell(Spec):
    """One draw of demonstrations."""

    model: ModelSpec
    task: str = option("", "Task name or file; its content is part of the identity.", keyed=False)
    episode: EpisodeSpec
    prompt: PromptSpec


class SwapCell(CausalCell):
    """Layers of reading, of training and of neither, exchanged between their runs."""

    rate: float
    heads: bool  # training's heads put into the zero-shot run one by one, too


class ExchangeCell(CausalCell):
    """Heads of reading put into the finetuned model one by one, and of that model into reading."""

    rate: float
    exchanged: tuple[tuple[str, str], ...] = (("icl", "gd"), ("gd", "icl"))  # from which run into which


class HeadsCell(CausalCell):
    """Heads of reading put into the zero-shot run one by one; the foremost ones taken out, beside random ones."""

    other: str = option("", "Task whose prompt means are taken over; its content is part of the identity.", keyed=False)
    heads: int
    sets: int


class CausalSpec(PromptOptions, SomeEpisodes, ModelOptions, LabSpec):
    """What carries the effect of reading, and of training: layer by layer, head by head.

    At the prompt's last token a layer's attention output, or the residual stream after it, is put from one run into
    another: from reading into the zero-shot run and into the finetuned model, from that model into both others. How
    much of the first run's label margins comes along? The same with single heads. Then the heads that score highest as
    function-vector heads, as induction heads and by their dual step are taken out, beside random heads of the same
    layers.
    """

    k: int = option(8, "Number of demonstrations.", ge=2)
    queries: int = option(16, "Number of queries, or all there are.", ge=2)
    other: OtherTask = option(
        None, "Task over whose prompt heads' means are taken.  [default: kinds, or sentiment]", keyed=False
    )
    init: Inits = option(("trained", "random"), "Weights, separated by commas: trained, random, embeddings.")
    rates: Rates = option((0.01,), "Learning rates of finetuning the key and value projections.", min_length=1)
    heads: int = option(10, "Number of heads that are taken out together.", ge=1)
    sets: int = option(20, "Number of random sets of heads beside each set.", ge=2)

    @model_validator(mode="after")
    def _check_other(self) -> "CausalSpec":
        refuse_same(self.other, self.task)
        return self

    def cells(self) -> list[Cell]:
        """Weight by weight, so that each model is loaded once; heads are put in and taken out of the first alone."""
        return [
            cell
            for init in self.init
            for task in self.task
            for seed in self.seeds
            for cell in self._cells(init, task, seed)
        ]

    def _cells(self, init: Init, task: str, seed: int) -> list[Cell]:
        base: dict[str, Any] = {
            "model": self.model_spec(init, 0 if init == "trained" else untrained_seed(self.task_titles[task], seed)),
            "task": task,
            "episode": self.episode_spec(seed),
            "prompt": self.prompt_spec(),
        }
        labels: dict[str, Label] = {"init": init, "task": task, "seed": seed}
        group, first = f"{init} {task} {seed}", init == self.init[0]
        found = [
            Cell("causal", SwapCell(**base, rate=rate, heads=first), {**labels, "part": "swaps", "rate": rate}, group)
            for rate in self.rates
        ]
        if first:
            found += [
                Cell("causal", ExchangeCell(**base, rate=rate), {**labels, "part": "exchanged", "rate": rate}, group)
                for rate in self.rates
            ]
            other = self.other or next(name for name in OTHERS if name != task)
            spec = HeadsCell(**base, other=other, heads=self.heads, sets=self.sets)
            found.append(Cell("causal", spec, {**labels, "part": "heads"}, group))
        return found
