"""A prompt's last token, run many times: what is changed at that token alone leaves all before it as it was.

So everything before it is encoded once, and a changed run is a run of one token. A batch holds as many of them as there
are layers, heads or anything else to be changed.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from iclgd.models.capture import Prefix, expanded_cache
from iclgd.models.heads import before_projections
from iclgd.models.subject import Subject
from iclgd.prompts import Ids

Site = Literal["heads", "attention", "blocks"]
SITES: tuple[Site, ...] = ("heads", "attention", "blocks")
AT_ONCE = 512  # edits in one batch: each is a token, but has a row of the vocabulary


@dataclass(frozen=True)
class Activity:
    """What the model did at the token, for each run of it."""

    heads: Float[Tensor, "run layer width"]  # outputs of all heads side by side, before the output projection
    attention: Float[Tensor, "run layer dim"]  # after it
    blocks: Float[Tensor, "run layer dim"]  # the residual stream after each block
    logits: Float[Tensor, "run token"]


@dataclass(frozen=True)
class Edits:
    """What is put in the place of what the model gives, for each run: a site's own values where ``where`` is False.

    A unit is a head, or all that a layer gives at the site.
    """

    site: Site
    where: Bool[Tensor, "run layer unit"]
    values: Float[Tensor, "_ layer width"]  # one for each run, or one for all

    def __len__(self) -> int:
        return len(self.where)

    def some(self, runs: slice) -> "Edits":
        return Edits(self.site, self.where[runs], self.values if len(self.values) == 1 else self.values[runs])

    def at(self, layer: int, own: Tensor) -> Tensor:
        """A layer's output with the edits in it."""
        where = self.where[:, layer, :, None].to(own.device)
        values = self.values[:, layer].to(own).unflatten(-1, (where.shape[1], -1))
        return torch.where(where, values, own.reshape(len(self), where.shape[1], -1)).reshape(own.shape)


class LastToken:
    """The last token of a query behind a context that is encoded up to it."""

    def __init__(self, subject: Subject, context: Prefix | None, query: Ids):
        self.subject, self.token = subject, query[-1]
        self.prefix = read_on(subject, context, query[:-1])

    def plain(self) -> Activity:
        """One run of it as it is."""
        heads: dict[int, Tensor] = {}

        def keep(layer: int, given: Tensor) -> None:
            heads[layer] = given.reshape(1, -1)

        with before_projections(self.subject, keep):
            found = self._run(1)
        widths = torch.stack([heads[layer].to(found.vocabulary.device) for layer in sorted(heads)], 1)
        return Activity(widths, found.outputs[:, :, 0], found.blocks[:, :, 0], found.vocabulary[:, 0])

    def edited(self, edits: Edits) -> Float[Tensor, "run token"]:
        """Next-token logits of every edited run."""
        found = []
        for start in range(0, len(edits), AT_ONCE):
            some = edits.some(slice(start, start + AT_ONCE))
            with _edited(self.subject, some):
                found.append(self._run(len(some)).vocabulary[:, 0])
        return torch.cat(found)

    def _run(self, runs: int) -> Any:
        ids = self.subject.tensor([[self.token]] * runs)
        none = torch.empty(0, dtype=torch.long, device=ids.device)
        return self.subject.run(ids, torch.zeros_like(ids), self.prefix, ranked=none)


def read_on(subject: Subject, prefix: Prefix | None, ids: Ids) -> Prefix | None:
    """Keys and values of a context that goes on behind one that was encoded before."""
    if prefix is None or not ids:
        return subject.encode(ids) if prefix is None else prefix
    cache: Any = expanded_cache(prefix, 1)
    with torch.no_grad():
        subject.model(subject.tensor([ids]), past_key_values=cache, use_cache=True, logits_to_keep=1)
    return Prefix(prefix.length + len(ids), tuple((layer.keys, layer.values) for layer in cache.layers))


@contextmanager
def _edited(subject: Subject, edits: Edits) -> Iterator[None]:
    if edits.site == "heads":
        with before_projections(subject, edits.at):
            yield
        return
    modules = subject.layout.outs if edits.site == "attention" else subject.layout.blocks
    with ExitStack() as stack:
        for layer, module in enumerate(modules):
            stack.callback(_hooked(module, layer, edits).remove)
        yield


def _hooked(module: nn.Module, layer: int, edits: Edits) -> Any:
    def hook(_module: nn.Module, _args: Any, output: Any) -> Any:
        given = output if isinstance(output, Tensor) else output[0]
        changed = edits.at(layer, given)
        return changed if isinstance(output, Tensor) else (changed, *output[1:])

    return module.register_forward_hook(hook)
