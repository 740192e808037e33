"""Many finetunings of one model at once: the trained weights have a replica axis, everything else is shared.

A batch holds one text of each replica, in order. Where a projection is trained, text r is multiplied by matrix r; all
other modules see one batch. The replicas' losses are summed, so that gradients stay apart by themselves. The model's
own parameters are never touched.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers.pytorch_utils import Conv1D

from iclgd.models.budget import free_memory
from iclgd.models.layout import Part, Slot
from iclgd.models.packed import Packed
from iclgd.models.subject import Subject

SHARE = 0.8  # of the free memory that replicas may take
UNKNOWN = 8  # replicas at once where nobody says how much memory is free


class Stacked:
    """The trained slots of several replicas, in float32 or better whatever the model's format.

    A coarser model runs its trained projections in float32 here, from input cast up to output cast back: most steps
    are smaller than half a step of bfloat16 and would be rounded away.
    """

    def __init__(self, subject: Subject, part: Part, weights: list[Tensor]):
        self.slots, self.weights = subject.layout.slots(part), weights  # each (replica, *shape)
        self.leaves = weights
        self._packed: Packed | None = None
        self._rooms: list[Tensor] | None = None  # for gradients, the same in every step: fresh pages are slower
        self._free: dict[int, Tensor] = {}  # of these, what no gradient of this step has yet
        self._owners = list(_owners(subject.model, self.slots))

    @classmethod
    def copies(cls, subject: Subject, part: Part, count: int) -> "Stacked":
        """The model's own weights, so many times."""
        own = [slot.parameter.detach() for slot in subject.layout.slots(part)]
        precise = [weight.to(torch.promote_types(weight.dtype, torch.float32)) for weight in own]
        return cls(subject, part, [weight.expand(count, *weight.shape).clone() for weight in precise])

    def take(self, count: int, packed: Packed | None = None) -> None:
        """Run and train the first ``count`` replicas from now on, on a batch of one text each, ``packed`` or padded."""
        self._packed = packed
        self.leaves = [weight[:count].detach().requires_grad_() for weight in self.weights]
        if self._rooms is None:
            self._rooms = [torch.empty_like(weight) for weight in self.weights]
        self._free = {i: room[:count] for i, room in enumerate(self._rooms)}

    def kept(self) -> list[Tensor]:
        """The weights (replica, *shape), for after the training."""
        return self.weights

    def restricted(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """The gradients (replica, *shape), with everything outside the slots at zero."""
        return [slot.restrict(gradient) for slot, gradient in zip(self.slots, gradients, strict=True)]

    @torch.no_grad()
    def descend(self, gradients: Sequence[Tensor], sizes: Float[Tensor, " replica"]) -> None:
        """w ← w − size·g, each replica with its own step size."""
        for weight, gradient in zip(self.weights, gradients, strict=True):
            size = sizes.to(weight.device, weight.dtype).view(-1, *[1] * (weight.ndim - 1))
            weight[: len(sizes)].addcmul_(gradient, size, value=-1)

    @torch.no_grad()
    def moves(self) -> Float[Tensor, "replica 4"]:
        """As `Slot.moves`, of every replica: what changed, what there is, ‖w − w_before‖², ‖w_before‖²."""
        found = []
        for slot, weight in zip(self.slots, self.weights, strict=True):
            before = slot.parameter.detach().to(weight.dtype)
            added = weight - before
            changed = torch.stack([one.count_nonzero() for one in added]).double()
            entries = slot.restrict(torch.ones_like(before)).count_nonzero().expand_as(changed)
            length = _by_replica(slot.restrict(before)[None]).square().expand_as(changed)
            moves = torch.stack([changed, entries, _by_replica(added).square(), length], 1)
            found.append(moves.to(self.weights[0].device))
        return torch.stack(found).sum(0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The model runs with these weights, on batches of one or more texts a replica, replica by replica."""
        with ExitStack() as stack:
            for module, weight, bias in self._owners:
                stack.callback(_forward_as_before(module))
                module.forward = self._forward(weight, bias, isinstance(module, Conv1D))
            yield

    def _forward(self, weight: int, bias: int | None, input_first: bool) -> Callable[[Tensor], Tensor]:
        def forward(states: Tensor) -> Tensor:
            added = None if bias is None else self.leaves[bias]
            return product(states, self.leaves[weight], added, input_first, self._packed, self._free.pop(weight, None))

        return forward


def product(
    states: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    input_first: bool,
    packed: Packed | None = None,
    room: Tensor | None = None,
) -> Tensor:
    """x_r W_rᵀ + b_r for the rows of each replica r; ``input_first`` where W is kept as (input, output).

    states: (replica·texts, …, input), or (1, token, input) where texts of all replicas are ``packed``; weight:
    (replica, output, input); bias: (replica, output); ``room`` is where the weight's gradient is to be.
    """
    rows = states.to(weight.device, weight.dtype)
    if len(weight) == 1:
        matrix = weight.flatten(0, 1)
        made = linear(rows, matrix.T if input_first else matrix, None if bias is None else bias.flatten())
        return made.to(states.dtype)
    if input_first:
        weight, room = weight.mT, None if room is None else room.mT
    if packed is not None:
        made = _Apart.apply(rows[0], weight, packed.lengths, room)
        lengths = torch.tensor(packed.lengths)
        return (made if bias is None else made + bias.repeat_interleave(lengths, 0))[None].to(states.dtype)
    made = _Beside.apply(rows.reshape(len(weight), -1, rows.shape[-1]), weight, room)
    made = made if bias is None else made + bias[:, None]
    return made.reshape(*states.shape[:-1], -1).to(states.dtype)


class _Beside(torch.autograd.Function):
    """x_r W_rᵀ for as many rows of every replica, by products in the order of factors that is quick for each.

    Left to autograd, either the product or its gradient would have the transposed layout, in which it is two to four
    times slower on a CPU, and so would every later pass over that gradient.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, room: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        ctx.room = room
        return torch.bmm(rows, weight.mT)

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor | None, Tensor, None]:
        rows, weight = ctx.saved_tensors
        below = torch.bmm(slopes, weight) if ctx.needs_input_grad[0] else None
        gradient = torch.empty_like(weight) if ctx.room is None else ctx.room
        return below, torch.bmm(slopes.mT, rows, out=gradient), None


class _Apart(torch.autograd.Function):
    """x_r W_rᵀ where the rows of the replicas stand behind each other, as many as each has.

    Products write where their result is to be: a loop over replicas by autograd would copy every gradient once more.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, lengths: tuple[int, ...], room: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        ctx.lengths, ctx.room = lengths, room
        made = rows.new_empty(len(rows), weight.shape[1])
        for x, w, out in zip(rows.split(lengths), weight, made.split(lengths), strict=True):
            torch.mm(x, w.T, out=out)
        return made

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor | None, Tensor, None, None]:
        (rows, weight), lengths = ctx.saved_tensors, ctx.lengths
        below = torch.empty_like(rows) if ctx.needs_input_grad[0] else None
        gradient = torch.empty_like(weight) if ctx.room is None else ctx.room
        parts = slopes.split(lengths)
        for x, slope, out in zip(rows.split(lengths), parts, gradient, strict=True):
            torch.mm(slope.T, x, out=out)
        if below is not None:
            for slope, w, out in zip(parts, weight, below.split(lengths), strict=True):
                torch.mm(slope, w, out=out)
        return below, gradient, None, None


class InPlace:
    """One replica, in the model's own parameters: for parts that are not all matrices, such as norms and embeddings."""

    def __init__(self, slots: Sequence[Slot]):
        self.slots = slots
        self.leaves = [slot.parameter for slot in slots]

    def take(self, count: int, _packed: Packed | None = None) -> None:
        assert count == 1

    def restricted(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        return [slot.restrict(gradient)[None] for slot, gradient in zip(self.slots, gradients, strict=True)]

    def descend(self, gradients: Sequence[Tensor], sizes: Float[Tensor, " replica"]) -> None:
        for slot, gradient in zip(self.slots, gradients, strict=True):
            slot.descend(gradient[0], float(sizes))

    def moves(self) -> Float[Tensor, "replica 4"]:
        return torch.stack([slot.moves().cpu() for slot in self.slots]).sum(0)[None]

    def kept(self) -> list[Tensor]:
        return [leaf.detach().clone()[None] for leaf in self.leaves]


def stackable(subject: Subject, part: Part) -> bool:
    """Whether every trained parameter of a part belongs to a plain linear map, and to no embedding that shares it."""
    slots = subject.layout.slots(part)
    maps = {module for module, *_ in _owners(subject.model, slots)}
    matrices = {id(p) for module in maps for p in module.parameters()}
    others = {id(p) for module in subject.model.modules() if module not in maps for p in module.parameters(False)}
    return all(id(slot.parameter) in matrices - others for slot in slots)


def norms(gradients: Sequence[Tensor]) -> list[Float[Tensor, " replica"]]:
    """‖g‖ of every replica, slot by slot, in float64."""
    return [_by_replica(gradient) for gradient in gradients]


def replicas_that_fit(subject: Subject, part: Part, tokens: int, rows: int) -> int:
    """An estimate: weights, gradients and what a backward pass keeps of each text, against the memory that is free.

    A block keeps about 14 vectors of its width and 4 of its inner width for each token, the loss 3 vocabularies for
    each of ``rows``.
    """
    config, layers = subject.layout.config, subject.layout.layers
    precise = torch.promote_types(subject.dtype, torch.float32).itemsize
    weights = 2 * precise * sum(slot.parameter.numel() for slot in subject.layout.slots(part))
    inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    states = subject.dtype.itemsize * tokens * layers * (14 * config.hidden_size + 4 * inner)
    free = free_memory(subject.device)
    if free is None:
        return UNKNOWN
    return max(1, int(SHARE * free) // (weights + states + 3 * precise * rows * config.vocab_size))


def _by_replica(stack: Float[Tensor, "replica ..."]) -> Float[Tensor, " replica"]:
    """Lengths: row by row in the stack's own format, the rows together in float64.

    All of it in float64 would copy the stack first, a twentieth of a training's time on a CPU.
    """
    rows = torch.linalg.vector_norm(stack, dim=-1) if stack.ndim > 2 else stack
    return torch.linalg.vector_norm(rows.flatten(1), dim=1, dtype=torch.float64)


def _owners(model: nn.Module, slots: Sequence[Slot]) -> Iterator[tuple[nn.Module, int, int | None]]:
    """Linear maps whose weight is a slot's, with the places of weight and bias among the slots."""
    place = {id(slot.parameter): i for i, slot in enumerate(slots)}
    for module in model.modules():
        own: dict[str, Any] = dict(module.named_parameters(recurse=False))
        known = type(module) in (nn.Linear, Conv1D) or type(module).__name__ == "FalconLinear"
        if known and own and all(id(parameter) in place for parameter in own.values()):
            bias = own.get("bias")
            yield module, place[id(own["weight"])], None if bias is None else place[id(bias)]


def _forward_as_before(module: nn.Module) -> Callable[[], None]:
    """What gives a module back the ``forward`` it has now, its class's or one of its own."""
    if "forward" not in module.__dict__:
        return lambda: module.__dict__.pop("forward", None)
    own = module.__dict__["forward"]
    return lambda: setattr(module, "forward", own)
