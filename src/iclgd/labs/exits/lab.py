"""The lab `exits`: the unembedding head on every block, as layer-causal training uses it (Deutch 2023, §4.3)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from iclgd.lab import Cell, Lab, LabSpec, later
from iclgd.options import ModelOptions, OneEpisode, PromptOptions
from iclgd.report.numbers import Number, counted
from iclgd.report.page import Entry, Page, Section, Table
from iclgd.spec import EpisodeSpec, Init, ModelSpec, PromptSpec, Seed, Spec, option

if TYPE_CHECKING:
    from iclgd.study import Study
    from iclgd.tools import Tools


class ExitsCell(Spec):
    """One episode on one model. Weights and examples are named by the cell's identity."""

    model: ModelSpec
    task: str = option("", "Task name or file.", keyed=False)
    episode: EpisodeSpec = option(..., "Which demonstrations and queries.", keyed=False)
    prompt: PromptSpec


class ExitsSpec(PromptOptions, OneEpisode, ModelOptions, LabSpec):
    """From which layer on a model says what it says: every block's output through the final norm and the unembedding.

    At the prompt's last token, asked without demonstrations and after reading them: the share of queries for which a
    layer's likeliest next token is the model's own, and its accuracy among the label words.
    """

    k: int = option(8, "Number of demonstrations.", ge=1)
    queries: int = option(40, "Number of queries, or all there are.", ge=1)
    init: Init = option("trained", "trained, random, or embeddings: untrained weights behind trained embeddings.")
    init_seed: Seed = option(0, "Which untrained weights.")

    def title(self) -> str:
        return "exits"

    def cells(self) -> list[Cell]:
        model = self.model_spec(self.init, self.init_seed)
        spec = ExitsCell(model=model, task=self.task, episode=self.episode_spec(self.seed), prompt=self.prompt_spec())
        return [Cell("exits", spec)]


def identity(cell: Cell, tools: "Tools") -> Mapping[str, Any]:
    spec: ExitsCell = cell.spec  # type: ignore[assignment]
    return {"weights": tools.weights(spec.model), "episode": tools.episode(spec.task, spec.episode).sha256()}


def page(study: "Study") -> Page:
    (facts,) = [result.facts for _, result in study.found()]
    curves = {
        (str(one.labels["learner"]), str(one.labels["quantity"])): one.values.mean(0) for one in study.arrays()
    }  # each by layer
    reading = curves["icl", "agrees"]
    first = next((layer for layer in range(len(reading)) if (reading[layer:] >= 0.5).all()), len(reading) - 1)
    names = [(learner, quantity) for learner in ("zero-shot", "icl") for quantity in ("agrees", "right")]
    rows: list[list[Entry]] = [
        [str(layer), *(Number(float(curves[n][layer])) for n in names)] for layer in range(len(reading))
    ]
    header = ["layer", *(f"{learner}, {'agrees' if q == 'agrees' else 'accuracy'}" for learner, q in names)]
    told = "agrees: the likeliest next token is the model's own. accuracy: among the label words."
    answer = (
        f"After reading, a layer says what the model says for half of the queries and more from layer {first} of "
        f"{len(reading) - 1} on."
    )
    what = f"{facts['model']} · {facts['task']} · {counted(facts['queries'], 'query')}"
    return Page("Early exits", what, answer, [Section("By layer", told, Table(header, rows), brief=True)])


EXITS = Lab(
    ExitsSpec,
    later("iclgd.labs.exits.run:run"),
    page,
    identity=identity,
    examples="  iclgd exits --task sentiment --k 8\n  iclgd exits --model gemma3-270m --task kinds\n",
)
