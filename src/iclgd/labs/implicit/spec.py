"""What `implicit` is asked for, and the cells it is made of."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from iclgd.errors import Refusal
from iclgd.lab import Cell, Label, LabSpec
from iclgd.options import ModelOptions, OtherTask, PromptOptions, SomeEpisodes, Tasks, refuse_same, untrained_seed
from iclgd.spec import EpisodeSpec, Init, Inits, ModelSpec, PromptSpec, Rates, Spec, option, unique

Precision = Literal["float64", "float32", "bfloat16"]
Counts = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...],
    BeforeValidator(unique),
    AfterValidator(lambda given: tuple(sorted(set(given)))),
]
Precisions = Annotated[tuple[Precision, ...], BeforeValidator(unique), Field(min_length=1)]
OTHERS = ("kinds", "sentiment")  # the task that other queries and demonstrations are of: the first that is not asked


class ImplicitCell(Spec):
    """One draw of demonstrations. The episode holds calibration queries first, then those that are held out."""

    model: ModelSpec
    task: str = option("", "Task name or file; its content is part of the identity.", keyed=False)
    other: str = option("", "Where other queries and demonstrations come from; the same.", keyed=False)
    episode: EpisodeSpec
    prompt: PromptSpec


class ExactCell(ImplicitCell):
    """Residuals of exact patches on the first queries, and generation with them.

    float64 is the float32 model widened, so that nothing in it stays narrow.
    """

    tokens: int
    precision: Precision
    settling: bool  # how patches settle as the context grows, too


class StaticCell(ImplicitCell):
    """One change for all queries, fitted on the first 1, 4, … of them and scored on those held out."""

    calibration: Counts
    ranks: Counts
    ridge: float
    depth: bool  # patches in parts of the layers, too


class TrainedCell(ImplicitCell):
    """Finetuning of exactly the patched matrices, beside the patches."""

    calibration: Counts  # its last number is how many queries the patch for all is fitted on
    ranks: Counts
    ridge: float
    rate: float


class ImplicitSpec(PromptOptions, SomeEpisodes, ModelOptions, LabSpec):
    """A prompt as a change of weights: exact for one query; how much of it holds for all; is it what training does?

    Every block's last linear map is patched so that the model answers without the demonstrations as it does behind
    them: for each query by itself (exact, trained or not), and by one patch for all queries. The same matrices are
    then finetuned on the same demonstrations, and the two changes compared as matrices and by what they do.
    """

    k: int = option(8, "Number of demonstrations.", ge=1)
    queries: int = option(12, "Number of held-out queries, or all that the calibration leaves.", ge=2)
    task: Tasks = option(("sentiment",), "Tasks, separated by commas: names, or task .yaml files.")
    other: OtherTask = option(
        None, "Task of queries and demonstrations that serve as nulls.  [default: kinds, or sentiment]", keyed=False
    )
    init: Inits = option(("trained", "random"), "Weights, separated by commas: trained, random, embeddings.")
    calibration: Counts = option((1, 4, 12), "Numbers of queries that one patch for all is fitted on.", min_length=1)
    ranks: Counts = option((1, 4), "Ranks of patches, and of the subspaces that are compared.", min_length=1)
    ridge: float = option(0.1, "Ridge of the fit, as a share of the mean squared length of the map's inputs.", ge=0)
    rates: Rates = option((0.1,), "Learning rates of finetuning the patched matrices.", min_length=1)
    exact: int = option(2, "Number of queries whose own patches are written into the weights and checked.", ge=2)
    tokens: int = option(4, "Tokens to generate with patches computed anew for each.", ge=0)
    precisions: Precisions = option(("float64", "float32"), "Arithmetics in which exact patches are checked.")

    @model_validator(mode="after")
    def _check_other(self) -> "ImplicitSpec":
        refuse_same(self.other, self.task)
        if any(task.endswith(".json") for task in self.task):
            raise Refusal(
                "an episode file has no queries to spare for calibration: give a `task` that can be drawn from."
            )
        return self

    def other_task(self, task: str) -> str:
        return self.other or next(name for name in OTHERS if name != task)

    def cells(self) -> list[Cell]:
        """Episode by episode, so that each model is loaded once; exact patches of the first task and draw alone.

        Weights that were not trained are a baseline: they get the last number of calibration queries alone.
        """
        found = []
        for init in self.init:
            for seed in self.seeds:
                for task in self.task:
                    found += self._cells(init, seed, task)
                    if (seed, task) == (self.seeds[0], self.task[0]):
                        found += [self._exact(init, precision) for precision in self.precisions]
        return found

    def _base(self, init: Init, seed: int, task: str, queries: int) -> dict[str, Any]:
        init_seed = 0 if init == "trained" else untrained_seed(self.task_titles[task], seed)
        return {
            "model": self.model_spec(init, init_seed),
            "task": task,
            "other": self.other_task(task),
            "episode": self.episode_spec(seed).model_copy(update={"queries": queries}),
            "prompt": self.prompt_spec(),
        }

    def _cells(self, init: Init, seed: int, task: str) -> list[Cell]:
        base = self._base(init, seed, task, self.calibration[-1] + self.queries)
        first = init == self.init[0]
        kept = self.calibration if first else self.calibration[-1:]
        base |= {"calibration": kept, "ranks": self.ranks, "ridge": self.ridge}
        labels: dict[str, Label] = {"init": init, "task": task, "seed": seed}
        group = f"{init} {seed} {task}"

        def trained(rate: float) -> Cell:
            spec = TrainedCell(**base | {"calibration": kept[-1:]}, rate=rate)
            return Cell("implicit", spec, {**labels, "part": "trained", "rate": rate}, group)

        static = Cell("implicit", StaticCell(**base, depth=first), {**labels, "part": "static"}, group)
        return [static, *map(trained, self.rates)]

    def _exact(self, init: Init, precision: Precision) -> Cell:
        base = self._base(init, self.seeds[0], self.task[0], self.exact)
        dtype = "bfloat16" if precision == "bfloat16" else "float32"
        base["model"] = base["model"].model_copy(update={"dtype": dtype})
        labels: dict[str, Label] = {"init": init, "part": "exact", "precision": precision}
        settling = precision == ("float32" if "float32" in self.precisions else self.precisions[-1])
        spec = ExactCell(**base, tokens=self.tokens, precision=precision, settling=settling)
        return Cell("implicit", spec, labels, f"{init} {self.seeds[0]} {self.task[0]}")
