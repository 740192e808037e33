"""Padding that is not computed, because nobody asks for it: with texts of many lengths it is half of a batch.

With one thread of a CPU texts are packed, where the model can (see packed.py). Elsewhere padding passes by the MLPs,
where most of the arithmetic is: a row of an MLP's output is a function of the same row of its input.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Int
from torch import Tensor, nn

from iclgd.errors import Refusal
from iclgd.models.layout import Layout, Slot
from iclgd.models.packed import Packed
from iclgd.models.precision import tolerance
from iclgd.models.subject import Subject

WORTH = 0.95  # more text than this in a batch, and it is left as it is
ASKED = (13, 29, 5)  # lengths of the texts with which a model is asked whether it packs
_PACKS: WeakKeyDictionary[Subject, bool] = WeakKeyDictionary()


def packs(subject: Subject) -> bool:
    """Whether texts in one sequence get the logits of a padded batch; on one thread. Each subject is asked once.

    Where weights are trained, each replica has a product of its own then. With two threads that was slower than one
    product with padding, or no faster; a GPU would have more kernels to start.
    Llama 4 counts places in the sequence, whatever positions it is told: in its chunks of attention and in how sharply
    it attends. Both begin after thousands of tokens, too many to ask with, so it is known by its configuration.
    """
    one_thread = torch.get_num_threads() == 1 and {part.device.type for part in subject.model.parameters()} == {"cpu"}
    in_chunks = getattr(subject.layout.config, "attention_chunk_size", None) is not None
    if not one_thread or subject.capture != "registered" or in_chunks:
        return False
    if subject not in _PACKS:
        _PACKS[subject] = _gives_the_same(subject)
    return _PACKS[subject]


@torch.no_grad()
def _gives_the_same(subject: Subject) -> bool:
    packed = Packed(ASKED)
    tokens = tuple(i % int(subject.layout.config.vocab_size) for i in range(sum(ASKED)))
    texts = [tokens[start : start + length] for start, length in zip(packed.starts, ASKED, strict=True)]
    ids = subject.tensor([tokens])
    try:
        found = subject.model(ids, use_cache=False, position_ids=packed.positions, packed=packed).logits
    except (TypeError, ValueError):  # it takes no positions
        return False
    apart = packed.joined(subject.model(subject.tensor(texts), use_cache=False).logits)
    return float((found - apart).abs().max()) <= tolerance(subject.dtype) * float(apart.abs().max())


def row_wise(layout: Layout, trained: Sequence[Slot]) -> list[nn.Module]:
    """The MLPs that are modules of their own and have nothing in them that is trained; those of experts are not."""
    try:
        lasts = [mlp.last for mlp in layout.mlps()]
    except Refusal:
        return []
    own = {id(slot.parameter) for slot in trained}
    found = []
    for block, last in zip(layout.blocks, lasts, strict=True):
        holder = next(child for child in block.children() if any(module is last for module in child.modules()))
        if holder is not last and not any(id(parameter) in own for parameter in holder.parameters()):
            found.append(holder)
    return found


@contextmanager
def unpadded(modules: Sequence[nn.Module], text: Int[Tensor, " text"], batch: tuple[int, int]) -> Iterator[None]:
    """The modules run on the rows ``text`` of a flattened batch of so many texts and tokens; other rows become 0."""
    if len(text) > WORTH * batch[0] * batch[1]:
        yield
        return

    def enter(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if len(args) != 1:  # it is given more than states, which would have to be the same rows
            return None
        return (args[0].flatten(0, 1).index_select(0, text.to(args[0].device))[None],)

    def leave(_module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor | None:
        if len(args) != 1:
            return None
        rows = output.new_zeros(batch[0] * batch[1], output.shape[-1])
        return rows.index_copy(0, text.to(output.device), output[0]).unflatten(0, batch)

    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_pre_hook(enter).remove)
            stack.callback(module.register_forward_hook(leave).remove)
        yield
