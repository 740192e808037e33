"""Modified attention inside a pretrained model, through the hook that captures it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from iclgd.labs.dual.heads import owners
from iclgd.labs.dual.modified import Adapter, Augmented, Block, Modification
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Prompts


@dataclass(frozen=True)
class ModifiedHeads:
    """A modification of every head, for sequences behind a prefix of bos and demonstrations.

    ``owner`` says which demonstration each token of the prefix belongs to; bos (−1) and what follows the prefix are
    the query's own.
    """

    modification: Modification
    owner: Int[Tensor, " prefix"]

    def states(
        self, keys: Float[Tensor, "batch keyhead key dim"], values: Float[Tensor, "batch keyhead key dim"]
    ) -> tuple[Tensor, Tensor]:
        return self.modification.states(keys, values, None)

    def weights(
        self, weights: Float[Tensor, "batch head query key"], scores: Float[Tensor, "batch head query key"]
    ) -> Float[Tensor, "batch head query key"]:
        queries, keys = weights.shape[-2:]
        owner = torch.nn.functional.pad(self.owner, (0, keys - len(self.owner)), value=-1).to(weights.device)
        place = torch.arange(keys - queries, keys, device=weights.device)
        return self.modification.weights(weights, scores, Block(owner, place))


@dataclass(frozen=True)
class ModifiedInContext:
    """The model as it is after reading the demonstrations, its attention modified for every token of the query.

    The demonstrations themselves are read with the model's own attention: for their tokens there is no query yet.
    """

    modification: Modification

    @contextmanager
    def learn(self, subject: Subject, prompts: Prompts) -> Iterator[Predictor]:
        heads = ModifiedHeads(self.modification, owners(prompts, ()))
        yield Predictor(subject, subject.encode(prompts.context), modification=heads)


def with_adapters(modification: Modification, subject: Subject, seed: int = 0) -> Modification:
    """An augmented attention gets untrained adapters that fit the model's heads; other modifications stay."""
    if not isinstance(modification, Augmented):
        return modification
    size = int(getattr(subject.layout.config, "head_dim", None) or 0)
    size = size or subject.layout.config.hidden_size // subject.layout.heads
    g = torch.Generator().manual_seed(seed)
    made = {part: Adapter.random(size, size, size, g) for part in ("g1", "g2")}
    kept = {part: made[part] if modification.adapters in (part, "both") else None for part in made}
    return replace(modification, value=kept["g1"], key=kept["g2"])
