"""The lab `trace`: one episode, asked without and with its demonstrations, and everything that was captured."""

from collections.abc import Mapping
from typing import Any

from iclgd.bench import Bench
from iclgd.lab import Cell, Lab, LabSpec
from iclgd.labs.trace.page import page
from iclgd.options import ModelOptions, OneEpisode, PromptOptions
from iclgd.prompts import POSITIONS
from iclgd.results import Array, Result, array
from iclgd.spec import EpisodeSpec, Init, ModelSpec, PromptSpec, Seed, Spec, option
from iclgd.tasks.episodes import episode_text
from iclgd.tools import Tools

AXES = {
    "scores": ("query", "label"),
    "outputs": ("query", "layer", "position", "dim"),
    "logits": ("query", "layer", "position", "head", "key"),
    "keys": ("query", "position", "key"),
    "context": ("query", "layer", "position", "token"),
    "vectors": ("query", "layer", "position", "dim"),
}


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


def identity(cell: Cell, tools: Tools) -> Mapping[str, Any]:
    assert isinstance(cell.spec, TraceCell)
    episode = tools.episode(cell.spec.task, cell.spec.episode)
    return {"weights": tools.weights(cell.spec.model), "episode": episode.sha256()}


def run(cell: Cell, tools: Tools) -> Result:
    spec = cell.spec
    assert isinstance(spec, TraceCell)
    episode = tools.episode(spec.task, spec.episode)
    bench = Bench(tools.subject(spec.model), episode, spec.prompt, spec.episode.seed, tools.episode, tools.progress)
    arrays: list[Array] = []
    for learner, trace in (("zero-shot", bench.zero), ("icl", bench.icl)):
        for quantity, axes in AXES.items():
            places = {"position": POSITIONS} if "position" in axes else {}
            values = getattr(trace, quantity)
            arrays.append(array(values, *axes, coordinates=places, quantity=quantity, learner=learner))
    facts = bench.facts() | {
        "answers": list(bench.zero.answers),
        "episode": episode_text(episode),
        "queries_text": [episode.task.prompt(query.fields) for query in episode.queries],
    }
    return Result(facts, arrays)


TRACE = Lab(
    TraceSpec,
    run,
    page,
    identity=identity,
    examples=(
        "  iclgd trace                                        the embedded model on an embedded task\n"
        "  iclgd trace --task kinds --model gemma3-270m --k 48\n"
        "  iclgd trace --task sst2 --data DIR --k 32 --queries 100 --out runs/sst2\n"
        "  iclgd trace --task episode.json                    exactly the episode in a file\n"
    ),
)
