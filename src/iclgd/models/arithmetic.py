"""What a model's passes cost before it is loaded: multiplications and additions, from its configuration and tokens."""

from collections.abc import Iterable
from dataclasses import dataclass

from iclgd.models.layout import Layout, Part
from iclgd.models.subject import Subject
from iclgd.spec import ModelSpec

PRODUCT = 2  # a multiplication and an addition for each weight and token
WIDE = 2  # float64 takes twice as long as float32


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """Operations of matrix products; norms, softmaxes and copies are not counted.

    Texts are counted without the padding of a batch, and attention as it is computed: every token with every other.
    """

    layers: int
    blocks: int  # weights of all blocks' matrices
    head: int  # of the map to the vocabulary
    width: int  # of all heads together
    trained: dict[Part, int]  # weights that a part of the model has

    @classmethod
    def of(cls, layout: Layout) -> "Arithmetic":
        """A model's own, from the shapes of its matrices."""
        matrices = [p.numel() for block in layout.blocks for p in block.parameters() if p.ndim > 1]
        first = layout.attentions[0]
        width = getattr(first, "head_dim", None) or layout.config.hidden_size // layout.heads
        parts: tuple[Part, ...] = ("kv", "qkv", "attention", "down", "all")
        trained = {part: sum(slot.parameter.numel() for slot in layout.slots(part)) for part in parts}
        head = sum(p.numel() for p in layout.unembedding.parameters() if p.ndim > 1)
        return cls(layout.layers, sum(matrices), head, layout.heads * width, trained)

    def attention(self, tokens: int, context: int) -> float:
        """Scores and averages of a text behind a context."""
        return 2 * PRODUCT * self.layers * self.width * tokens * (tokens + context)

    def read(self, lengths: Iterable[int], context: int = 0, rows: int = 0) -> float:
        """A pass over texts behind a context that was read before; the vocabulary at so many of their tokens."""
        texts = list(lengths)
        blocks = PRODUCT * self.blocks * sum(texts) + sum(self.attention(n, context) for n in texts)
        return blocks + PRODUCT * self.head * rows

    def train(self, part: Part, length: int, rows: int, predictions: int = 1) -> float:
        """A step on one text that predicts at ``rows`` tokens: forward, and back to the inputs and the trained weights.

        ``predictions``: how often each row is mapped to the vocabulary: once, or after every layer.
        """
        forward = self.read([length])
        back = forward + self.attention(length, 0) + PRODUCT * self.trained[part] * length
        return forward + back + 2 * PRODUCT * self.head * rows * predictions


class Unloaded(Subject):
    """A subject without weights, which cannot run: how it makes tokens, how it is laid out, what passes would cost."""

    def __init__(self, spec: ModelSpec):  # not as a subject is made: that runs the model to see that it can be captured
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM

        from iclgd.models.load import load_tokenizer, resolve

        source = resolve(spec)
        with torch.device("meta"):
            self.layout = Layout(AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source)))
        self.tokenizer, self.cost = load_tokenizer(source, spec), Arithmetic.of(self.layout)
