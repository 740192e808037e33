"""What a cell of `compare` costs before any was run: its multiplications and additions, to within a factor of a few."""

from dataclasses import dataclass

from iclgd.lab import Cell
from iclgd.labs.compare.spec import CompareCell
from iclgd.spec import ModelSpec
from iclgd.tools import Tools

CHARACTERS = 4  # of a text in a token, in English
FORWARD, BACKWARD = 2, 4  # operations of a weight and token; behind a loss the gradients of inputs and of weights


@dataclass(frozen=True)
class Size:
    """A model's weights: of its blocks together, and of the map to the vocabulary."""

    layers: int
    blocks: int
    head: int

    @classmethod
    def of(cls, spec: ModelSpec) -> "Size":
        from transformers import AutoConfig

        from iclgd.models.load import resolve

        config = AutoConfig.from_pretrained(resolve(spec)).get_text_config()
        heads = config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        keys = getattr(config, "num_key_value_heads", None) or heads
        inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
        block = config.hidden_size * (2 * width * (heads + keys) + 3 * inner)
        return cls(config.num_hidden_layers, config.num_hidden_layers * block, config.hidden_size * config.vocab_size)


def flops(cell: Cell, tools: Tools) -> float:
    """Of reading, or of a learner with the trainings of its nulls and its contrast, and the traces behind them."""
    spec: CompareCell = cell.spec  # type: ignore[assignment]
    size = tools.shared(("size", spec.model.name), lambda: Size.of(spec.model))
    episode = tools.episode(spec.task, spec.episode)
    shown, asked = (
        sum(sum(map(len, example.fields.values())) + len(episode.task.template) for example in examples) / CHARACTERS
        for examples in (episode.demos, episode.queries)
    )
    trace = FORWARD * (size.blocks * asked + size.head * len(episode.queries))
    if spec.learner is None:
        return 3 * trace + 2 * FORWARD * size.blocks * shown  # asked alone, behind right labels and behind wrong ones
    if spec.versus is not None:
        return 0.0  # both were traced for their own cells
    trains = sum(null.registry[null.name].trains for null in spec.nulls)
    runs = (1 + trains) * (1 + spec.contrast)
    if not spec.learner.has("rate"):
        return runs * trace
    unembedded = size.layers if spec.learner.kind == "lcgd" else 1
    training = (FORWARD + BACKWARD) * size.blocks * shown + (FORWARD + BACKWARD / 2) * unembedded * size.head * shown
    return runs * (training + trace) + spec.floor * training
