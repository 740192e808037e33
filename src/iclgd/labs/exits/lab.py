"""The lab `exits`: the unembedding head on every block, as layer-causal training uses it (Deutch 2023, §4.3)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from iclgd.lab import Cell, Lab, LabSpec, later
from iclgd.options import ModelOptions, OneEpisode, PromptOptions
from iclgd.spec import EpisodeSpec, Init, ModelSpec, PromptSpec, Seed, Spec, option

if TYPE_CHECKING:
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
    spec = cell.asks(ExitsCell)
    return {"weights": tools.weights(spec.model), "episode": tools.episode(spec.task, spec.episode).sha256()}


EXITS = Lab(
    ExitsSpec,
    later("iclgd.labs.exits.run:run"),
    later("iclgd.labs.exits.page:page"),
    identity=identity,
    examples="  iclgd exits --task sentiment --k 8\n  iclgd exits --model gemma3-270m --task kinds\n",
)
