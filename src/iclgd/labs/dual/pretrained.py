"""Modified attention inside a pretrained model, through the hook that captures it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.labs.dual.modified import Adapter, Augmented, Block, Modification
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Prompts


@dataclass(frozen=True)
class ModifiedHeads:
    """A modification of every head, for sequences behind a prefix of bos and demonstrations.

    Demonstrations are the prefix after its bos; the query's own tokens are bos and what follows the prefix.
    """

    modification: Modification
    bos: int
    prefix: int

    def states(
        self, keys: Float[Tensor, "batch keyhead key dim"], values: Float[Tensor, "batch keyhead key dim"]
    ) -> tuple[Tensor, Tensor]:
        return self.modification.states(keys, values, None)

    def weights(
        self, weights: Float[Tensor, "batch head query key"], scores: Float[Tensor, "batch head query key"]
    ) -> Float[Tensor, "batch head query key"]:
        queries, keys = weights.shape[-2:]
        index = torch.arange(keys, device=weights.device)
        demos = (index >= self.bos) & (index < self.prefix)
        return self.modification.weights(weights, scores, Block(demos, index[keys - queries :]))


@dataclass(frozen=True)
class ModifiedInContext:
    """The model as it is after reading the demonstrations, its attention modified for every token of the query.

    The demonstrations themselves are read with the model's own attention: for their tokens there is no query yet.
    """

    modification: Modification

    @contextmanager
    def learn(self, subject: Subject, prompts: Prompts) -> Iterator[Predictor]:
        context = prompts.context
        heads = ModifiedHeads(self.modification, len(prompts.bos), len(context))
        yield Predictor(subject, subject.encode(context), modification=heads)


def with_adapters(modification: Modification, subject: Subject, seed: int = 0) -> Modification:
    """An augmented attention without adapters gets untrained ones that fit the model's heads; others stay."""
    if not isinstance(modification, Augmented) or modification.value or modification.key:
        return modification
    size = int(getattr(subject.layout.config, "head_dim", None) or 0)
    size = size or subject.layout.config.hidden_size // subject.layout.heads
    g = torch.Generator().manual_seed(seed)
    made = {part: Adapter.random(size, size, size, g) for part in ("g1", "g2")}
    kept = {part: made[part] if modification.adapters in (part, "both") else None for part in made}
    return replace(modification, value=kept["g1"], key=kept["g2"])
