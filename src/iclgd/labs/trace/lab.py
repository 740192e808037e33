"""The lab `trace`: what it is asked for, and its parts."""

from iclgd.lab import Cell, Lab, LabSpec, later
from iclgd.options import ModelOptions, OneEpisode, PromptOptions
from iclgd.spec import EpisodeSpec, Init, ModelSpec, PromptSpec, Seed, Spec, option


class TraceCell(Spec):
    """One episode on one model."""

    model: ModelSpec
    task: str = option("", "Task name or file; its content is part of the identity.", keyed=False)
    episode: EpisodeSpec
    prompt: PromptSpec


class TraceSpec(PromptOptions, OneEpisode, ModelOptions, LabSpec):
    """What reading demonstrations changes inside a language model.

    Asks every query twice, without and with the demonstrations in front of it, and shows accuracy, label
    probabilities and, layer by layer, how far the attention output moves. The cell keeps all that was captured.
    """

    init: Init = option("trained", "trained, random, or embeddings: untrained weights behind trained embeddings.")
    init_seed: Seed = option(0, "Which untrained weights.")

    def title(self) -> str:
        return "trace"

    def cells(self) -> list[Cell]:
        model = self.model_spec(self.init, self.init_seed)
        spec = TraceCell(model=model, task=self.task, episode=self.episode_spec(self.seed), prompt=self.prompt_spec())
        return [Cell("trace", spec)]


TRACE = Lab(
    TraceSpec,
    run=later("iclgd.labs.trace.run:run"),
    page=later("iclgd.labs.trace.page:page"),
    identity=later("iclgd.labs.trace.run:identity"),
    examples=(
        "  iclgd trace                                        the embedded model on an embedded task\n"
        "  iclgd trace --task kinds --model gemma3-270m --k 48\n"
        "  iclgd trace --task sst2 --data DIR --k 32 --queries 100 --out runs/sst2\n"
        "  iclgd trace --task episode.json                    exactly the episode in a file\n"
    ),
)
