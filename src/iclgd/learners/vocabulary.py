"""Cross-entropy over a vocabulary and its gradient, in closed form: no graph, and a few rows of logits at a time.

∂CE/∂logits = softmax(logits) − onehot.
"""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from iclgd.models.layout import Layout
from iclgd.models.precision import tolerance
from iclgd.models.subject import Subject

LOGITS = {"cpu": 2**25}  # that are alive at a time, by kind of device
MANY_LOGITS, LEAST_ROWS = 2**27, 256  # fewer rows at a time are a slow product
PRECISE = torch.float32, torch.float64  # where the gradient is taken in the format of the products
ASKED = (1, 2, 3, 0)  # tokens with which a model is asked how it answers
_PLAINLY: WeakKeyDictionary[Subject, bool] = WeakKeyDictionary()


class Desk:
    """Room for logits, which every step of a training uses again: on a CPU a product into fresh pages is slower."""

    def __init__(self) -> None:
        self._room: Tensor | None = None

    def logits(self, like: Tensor, rows: int, words: int) -> Float[Tensor, "rows words"]:
        if self._room is None or self._room.numel() < rows * words or self._room.device != like.device:
            self._room = like.new_empty(rows * words)
        return self._room[: rows * words].view(rows, words)


@torch.no_grad()
def cross_entropies(
    subject: Subject,
    normed: Float[Tensor, "row dim"],
    wanted: Int[Tensor, " row"],
    shares: Float[Tensor, " row"],
    outside: Sequence[Tensor],
    desk: Desk,
) -> tuple[Float[Tensor, " row"], Float[Tensor, "row dim"], list[Tensor]]:
    """Cross-entropies of U's predictions; ∇ of Σ share·loss in the rows, and in parameters of the unembedding."""
    room = max(LEAST_ROWS, LOGITS.get(normed.device.type, MANY_LOGITS) // subject.layout.config.vocab_size)
    matrix = plain_unembedding(subject.layout)
    if matrix is not None and not outside and matrix.dtype in PRECISE:
        return *_products(normed, matrix, wanted, shares, desk.logits(normed, min(room, len(normed)), len(matrix))), []
    losses, slopes, more = [], [], [torch.zeros_like(leaf) for leaf in outside]
    for first in range(0, len(normed), room):
        part = slice(first, first + room)
        rows, targets = normed[part].detach().requires_grad_(), wanted[part, None]
        with torch.enable_grad():
            logits = subject.unembed_normed(rows)
        logs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
        losses.append(-logs.gather(1, targets)[:, 0])
        slope = logs.exp_().scatter_add_(1, targets, -torch.ones_like(targets, dtype=logs.dtype))
        slope *= shares[part, None].to(slope)
        slope, *added = torch.autograd.grad(logits, [rows, *outside], slope.to(logits.dtype))
        slopes.append(slope)
        more = [one + other for one, other in zip(more, added, strict=True)]
    return torch.cat(losses), torch.cat(slopes), more


def of_unembedding(subject: Subject, leaves: Sequence[Tensor]) -> list[int]:
    """Which of the leaves are parameters of the unembedding."""
    own = {id(parameter) for parameter in subject.layout.unembedding.parameters()}
    return [i for i, leaf in enumerate(leaves) if id(leaf) in own]


def answers_plainly(subject: Subject) -> bool:
    """Whether the model's own logits are U times what comes into its unembedding. Each subject is asked once.

    Not in a coarser format than float32, in which a subject may be now and not when it was asked.
    """
    matrix = plain_unembedding(subject.layout)
    if matrix is None or matrix.dtype not in PRECISE:
        return False
    if subject not in _PLAINLY:
        _PLAINLY[subject] = _answers_plainly(subject, matrix)
    return _PLAINLY[subject]


@torch.no_grad()
def _answers_plainly(subject: Subject, matrix: Float[Tensor, "word dim"]) -> bool:
    states = list[Tensor]()
    handle = subject.layout.unembedding.register_forward_pre_hook(lambda _module, args: states.append(args[0]))
    try:
        logits = subject.model(subject.tensor([ASKED]), use_cache=False).logits
    finally:
        handle.remove()
    apart = logits.to(matrix.device) - states[0].to(matrix.device) @ matrix.T
    return float(apart.abs().max()) <= tolerance(subject.dtype) * float(logits.abs().max())


def beside_unembedding(subject: Subject, states: Float[Tensor, "*row dim"]) -> Float[Tensor, "*row dim"]:
    """What comes into the unembedding, on its device: the final norm may lie on another."""
    return states.to(next(subject.layout.unembedding.parameters()).device)


def plain_unembedding(layout: Layout) -> Float[Tensor, "word dim"] | None:
    """U, where logits are U times what the final norm gives, and nothing else is done to them."""
    names, last = layout.names, layout.unembedding
    other = names.scale, names.divisor, getattr(layout.config, "final_logit_softcapping", None)
    if type(last) is not nn.Linear or last.bias is not None or other != (None, None, None):
        return None
    return last.weight


def _products(
    normed: Float[Tensor, "row dim"],
    matrix: Float[Tensor, "word dim"],
    wanted: Int[Tensor, " row"],
    shares: Float[Tensor, " row"],
    place: Float[Tensor, "some word"],
) -> tuple[Float[Tensor, " row"], Float[Tensor, "row dim"]]:
    """The same where logits are a product and nothing else: two products a part, and logits in one place throughout."""
    losses, slopes = normed.new_empty(len(normed)), torch.empty_like(normed)
    for first in range(0, len(normed), len(place)):
        part = slice(first, first + len(place))
        targets = wanted[part, None]
        logits = torch.mm(normed[part], matrix.T, out=place[: len(targets)])
        top, right = logits.amax(1, keepdim=True), logits.gather(1, targets)
        total = logits.sub_(top).exp_().sum(1, keepdim=True)
        losses[part] = (total.log() + top - right)[:, 0]
        logits.scatter_add_(1, targets, -total)
        torch.mm(logits, matrix, out=slopes[part]).mul_(shares[part, None].to(logits) / total)
    return losses, slopes
