"""The string autoencoder: a gated recurrent encoder, a code, and a decoder that writes all positions at once.

It is trained on words alone, before and apart from anything that sees a label, as the regular-languages report does.
The report names no architecture; this one is ours. All seeds are trained as one program.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import vmap
from torch.nn.functional import cross_entropy, gelu, one_hot

from iclgd.small.languages.encoders import Encode, Fitted, Material, standard
from iclgd.small.languages.words import uniform
from iclgd.small.train import Adam, Params, member, stack, train

Batch = Int[Tensor, "word position"]
AnyWords = Int[np.ndarray, "_ position"]  # as many as a seed has


@dataclass(frozen=True)
class Autoencoder:
    """Words of ``width`` positions over ``symbols`` symbols and padding, to ``dx`` numbers and back."""

    symbols: int
    width: int
    dx: int
    hidden: int = 64

    def init(self, seed: int) -> Params:
        g = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=g) / shape[-1] ** 0.5

        letters = self.symbols + 1
        return {
            "read": normal(3 * self.hidden, letters),
            "keep": normal(3 * self.hidden, self.hidden),
            "gates": torch.zeros(3 * self.hidden),
            "code": normal(self.dx, self.hidden),
            "open": normal(2 * self.hidden, self.dx),
            "open_bias": torch.zeros(2 * self.hidden),
            "write": normal(self.width * letters, 2 * self.hidden),
            "write_bias": torch.zeros(self.width * letters),
        }

    def encode(self, params: Params, words: Batch) -> Float[Tensor, "word dx"]:
        """A gated recurrent unit over the positions, then a linear map of its last state."""
        letters = one_hot(words, self.symbols + 1).to(params["read"].dtype)
        inputs = letters @ params["read"].mT + params["gates"]  # [word, position, 3 hidden]
        state = torch.zeros_like(inputs[:, 0, : self.hidden])
        for position in range(self.width):
            update, reset, new = inputs[:, position].chunk(3, -1)
            keep_update, keep_reset, keep_new = (state @ params["keep"].mT).chunk(3, -1)
            update = torch.sigmoid(update + keep_update)
            new = torch.tanh(new + torch.sigmoid(reset + keep_reset) * keep_new)
            state = update * state + (1 - update) * new
        return state @ params["code"].mT

    def decode(self, params: Params, codes: Float[Tensor, "word dx"]) -> Float[Tensor, "word position letter"]:
        hidden = gelu(codes @ params["open"].mT + params["open_bias"])
        return (hidden @ params["write"].mT + params["write_bias"]).unflatten(-1, (self.width, self.symbols + 1))

    def loss(self, params: Params, words: Batch) -> Float[Tensor, ""]:
        """Mean cross-entropy of a position, padding included."""
        return cross_entropy(self.decode(params, self.encode(params, words)).flatten(0, 1), words.flatten())


class TrainedAutoencoder(NamedTuple):
    params: Params
    """Stacked along the seed axis."""
    curves: dict[str, Any]
    """``step``, and by step and seed on held-out words: ``loss``, the shares ``symbols`` and ``words`` restored."""


def train_autoencoder(
    model: Autoencoder,
    words: list[AnyWords],
    validation: list[AnyWords],
    seeds: Sequence[int],
    steps: int,
    batch: int = 64,
    rate: float = 5e-3,
) -> TrainedAutoencoder:
    """One autoencoder for every list of words, all at once; each is judged on its own validation words."""
    draws = [np.random.default_rng([seed, 2]) for seed in seeds]
    judged = torch.from_numpy(np.stack([draw.choice(part, 512) for draw, part in zip(draws, validation, strict=True)]))

    def batches(step: int) -> Tensor:
        drawn = [part[draw.integers(len(part), size=batch)] for draw, part in zip(draws, words, strict=True)]
        return torch.from_numpy(np.stack(drawn))

    def judge(params: Params, seen: Batch) -> Tensor:
        logits = model.decode(params, model.encode(params, seen))
        right = logits.argmax(-1) == seen
        loss = cross_entropy(logits.flatten(0, 1), seen.flatten())
        return torch.stack([loss, right.float().mean(), right.all(-1).float().mean()])

    trained = train(
        model.loss,
        stack([model.init(seed) for seed in seeds]),
        batches,
        steps,
        Adam(torch.full((len(words),), rate), clip=1.0),
        lambda params: {"rows": vmap(judge)(params, judged)},
        max(1, steps // 30),
    )
    rows = torch.stack([seen["rows"] for seen in trained.watched.values()])  # [step, seed, 3]
    names = ("loss", "symbols", "words")
    curves = {"step": list(trained.watched)} | {name: rows[..., i].tolist() for i, name in enumerate(names)}
    return TrainedAutoencoder(trained.params, curves)


def fit_words(given: Sequence[Material], steps: int) -> list[Fitted]:
    """What `encoders.StringAutoencoder` does."""
    first = given[0]
    model = Autoencoder(first.symbols, first.lengths[-1], first.dims)
    trained = train_autoencoder(
        model, [with_others(one) for one in given], [one.test for one in given], [one.seed for one in given], steps
    )
    fitted = []
    for i, one in enumerate(given):
        curves = {"step": trained.curves["step"]}
        curves |= {name: [row[i] for row in trained.curves[name]] for name in ("loss", "symbols", "words")}
        params = member(trained.params, i)
        coded = standard(_coder(model, params), one.words)
        recurrent = {name: params[name].numpy() for name in ("read", "keep", "gates", "code")}
        fitted.append(Fitted(coded.encode, curves, {**coded.kept, **recurrent}))
    return fitted


def with_others(given: Material) -> AnyWords:
    """The training words and about as many uniform words, none of them a test word.

    A few dozen words are learned by heart; with others among them the code has to be of use for words not seen.
    """
    copies = -(-2000 // len(given.words))
    random = np.random.default_rng([given.seed, 3])
    more = uniform(2 * copies * len(given.words), given.lengths, given.symbols, random)
    known = {row.tobytes() for row in given.test}
    fresh = more[[row.tobytes() not in known for row in more]]
    return np.concatenate([np.tile(given.words, (copies, 1)), fresh[: copies * len(given.words)]])


def _coder(model: Autoencoder, params: Params) -> Encode:
    return lambda words: model.encode(params, torch.from_numpy(words)).numpy()
