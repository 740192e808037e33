"""How exactly patches stand in for a prompt: residuals of blocks and logits with patched weights, and generation."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.models.added import Added, written
from iclgd.models.patches import Form, Reading, patches, read
from iclgd.models.subject import Subject
from iclgd.prompts import Ids


@dataclass(frozen=True)
class Residual:
    """A patched model without the context, beside the model behind it, for one query."""

    blocks: Float[Tensor, " layer"]  # ‖y − y_C‖ / ‖y_C‖ at the last token
    logits: float  # the largest |difference| of next-token logits
    gap: float  # the same without a patch: what there was to close
    same_token: bool


def residual(
    subject: Subject, query: Ids, target: Reading, added: Sequence[Added], plain: Reading | None = None
) -> Residual:
    """What is left when the context is gone and the patches are in the weights; ``target`` is of this query alone.

    ``plain``, the query read without context or patch, is read where it is not given.
    """
    plain = read(subject, [query], None) if plain is None else plain
    with written(subject, added):
        found = read(subject, [query], None)
    wanted = target.blocks[0].double()  # whatever the model computes in, what is left is not rounded again
    apart = (found.blocks[0].double() - wanted).norm(dim=-1) / wanted.norm(dim=-1)
    logits, gap = (float((one.logits.double() - target.logits.double()).abs().max()) for one in (found, plain))
    same = bool(found.logits[0].argmax() == target.logits[0].argmax())
    return Residual(apart, logits, gap, same)


def generate(subject: Subject, context: Ids, query: Ids, tokens: int) -> Ids:
    """The most likely continuation behind the context, token by token."""
    text, prefix = query, subject.encode(context)
    for _ in range(tokens):
        text += (int(read(subject, [text], prefix).logits[0].argmax()),)
    return text[len(query) :]


def generate_patched(subject: Subject, bos: Ids, context: Ids, query: Ids, tokens: int, form: Form) -> Ids:
    """The same without the context: for each token patches are computed anew, and the patched weights choose it.

    Its own tokens are what it goes on from, so one that is another would lead elsewhere.
    """
    text, prefix = query, subject.encode(context)
    for _ in range(tokens):
        target = read(subject, [text], prefix)
        own = [layer.of(0) for layer in patches(subject, [bos + text], target, form)]
        with written(subject, own), torch.no_grad():
            text += (int(read(subject, [bos + text], None).logits[0].argmax()),)
    return text[len(query) :]
