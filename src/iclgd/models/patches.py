"""A prompt rewritten as a change of weights, block by block and exactly, for one query's last token.

Let y_C be a block's output at that token behind the context C, and y_0, g_0, n_0 the block's output, the input of the
MLP's last map and that of its first maps without it. Then the block gives y_C without the context when (Dherin 2025
for a bare block, Goldwaser 2026 for gated MLPs; W is the map that is changed, h what does not pass through the MLP)

    A  first maps:  ΔW = W(n_C − n_0) n_0ᵀ / ‖n_0‖²     last map:  ΔW = (h_C − h_0) g_Cᵀ / ‖g_C‖²
    B  first maps the same                              a bias behind the last map:  h_C − h_0
    C  last map alone:  ΔW = (y_C − y_0) g_0ᵀ / ‖g_0‖²

Behind a norm of the MLP's output v = W g with gain γ (form D of each) the last map's output has to become
v* = c·(y_C − h_0)/γ, and γ is multiplied by one number. A coordinate whose γ is next to nothing gets a gain of its own.

The stack is rewritten from the first block to the last: changed weights act on every token of the query, so each block
is patched for what the blocks before it, already patched, now give. All of that happens in one forward pass, while it
runs, for many queries at once, each with its own patches. `written` puts them into the weights; the identity says
nothing of how the patches came about, and holds for weights that were never trained.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from iclgd.errors import Refusal
from iclgd.models.added import Added, Outer, Own
from iclgd.models.budget import BATCH_COST, batches, halved
from iclgd.models.capture import Prefix
from iclgd.models.mlps import Mlp, matrix
from iclgd.models.subject import Subject
from iclgd.prompts import Ids

Form = Literal["A", "B", "C"]
FORMS: tuple[Form, ...] = ("A", "B", "C")
NO_GAIN = 0.02  # × the median: to carry its part, a gain below it would need more of the last map than all others do


@dataclass(frozen=True)
class Reading:
    """What the model did at the last token of each query, behind a context."""

    blocks: Float[Tensor, "query layer dim"]  # y
    inputs: Float[Tensor, "query layer width"]  # n, what the MLP's first maps read
    logits: Float[Tensor, "query token"]

    def of(self, queries: Sequence[int] | slice) -> "Reading":
        return Reading(self.blocks[queries], self.inputs[queries], self.logits[queries])


@dataclass(frozen=True)
class Wanted:
    """What one block lacks at each query's last token."""

    change: Float[Tensor, "query out"]  # of the last map's output
    g: Float[Tensor, "query in"]
    gain: Float[Tensor, "query out"] | None  # to be added to the gain of the norm behind the MLP
    first: tuple[Outer, ...]  # what the first maps were given already


Solve = Callable[[Wanted], Own | Added]


def exact(form: Form) -> Solve:
    """Every query's own patch."""

    def solve(wanted: Wanted) -> Own:
        if form == "B":
            return Own(None, wanted.change, wanted.gain, wanted.first)
        return Own(Outer(wanted.change, _over_square(wanted.g)), None, wanted.gain, wanted.first)

    return solve


def _over_square(x: Float[Tensor, "query dim"]) -> Float[Tensor, "query dim"]:
    return x / x.square().sum(-1, keepdim=True)


# reading and rewriting


def read(subject: Subject, queries: Sequence[Ids], prefix: Prefix | None, tokens: int = 2048) -> Reading:
    """What the model does at the last token of each query behind a context.

    ``tokens`` bounds a batch; where memory does not hold it, half of that.
    """
    found = halved(lambda most: _read(subject, queries, prefix, most), tokens)
    if found is None:
        raise Refusal(f"a single query does not fit the memory of {subject.device} behind its context.")
    return found


def _read(subject: Subject, queries: Sequence[Ids], prefix: Prefix | None, tokens: int) -> Reading:
    parts: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
    for batch in batches([len(query) for query in queries], tokens, BATCH_COST.get(subject.device.type, 0)):
        ids, rows = _padded(subject, [queries[i] for i in batch])
        inputs: dict[int, Tensor] = {}
        with ExitStack() as stack:
            for layer, mlp in enumerate(subject.layout.mlps()):
                hook = _keep_input(inputs, layer, rows)
                stack.callback(mlp.first[0].register_forward_pre_hook(hook).remove)
            found = subject.run(ids, rows, prefix)
        blocks = found.blocks[:, :, 0]
        n = torch.stack([inputs[layer].to(blocks.device) for layer in sorted(inputs)], 1)
        parts |= {i: (blocks[j], n[j], found.vocabulary[j, 0]) for j, i in enumerate(batch)}
    blocks, n, logits = (torch.stack(part) for part in zip(*(parts[i] for i in range(len(queries))), strict=True))
    return Reading(blocks, n, logits)


def _keep_input(inputs: dict[int, Tensor], layer: int, rows: Tensor) -> Callable[..., None]:
    def hook(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
        inputs[layer] = at(args[0].reshape(len(rows), -1, args[0].shape[-1]), rows)

    return hook


def rewrite(
    subject: Subject,
    queries: Sequence[Ids],
    target: Reading,
    solve: Solve,
    first: bool = False,
    layers: Container[int] | None = None,
) -> list[Own | Added]:
    """The patches of every block, for queries read from their first token on, so that they end as the target did.

    ``first``: the MLP's first maps are patched too (forms A and B). ``layers``: only these blocks are patched.
    """
    ids, rows = _padded(subject, queries)
    blocks = [
        _Block(mlp, target.blocks[:, layer], target.inputs[:, layer] if first else None, rows, solve)
        for layer, mlp in enumerate(subject.layout.mlps())
    ]
    with ExitStack() as stack:
        for layer, module in enumerate(subject.layout.blocks):
            if layers is None or layer in layers:
                for handle in blocks[layer].hooks(module):
                    stack.callback(handle.remove)
        subject.run(ids, rows, None)
    return [block.patch for block in blocks]


def patches(subject: Subject, queries: Sequence[Ids], target: Reading, form: Form) -> list[Own]:
    """Each query's own exact patches, block by block."""
    found = rewrite(subject, queries, target, exact(form), first=form in ("A", "B"))
    return found  # type: ignore[return-value]  # `exact` makes its own kind of patch


def _padded(subject: Subject, queries: Sequence[Ids]) -> tuple[Int[Tensor, "query token"], Int[Tensor, "query 1"]]:
    ids = subject.tensor(queries)
    return ids, torch.tensor([[len(query) - 1] for query in queries], device=ids.device)


def at(hidden: Float[Tensor, "query token dim"], rows: Int[Tensor, "query 1"]) -> Float[Tensor, "query dim"]:
    """What stands at each query's last token."""
    return hidden.gather(1, rows.to(hidden.device)[..., None].expand(-1, -1, hidden.shape[-1]))[:, 0]


class _Block:
    """One block that is patched while it runs: what it would give is seen, and what it has to give is put in place."""

    patch: Own | Added = Added()  # nothing

    def __init__(self, mlp: Mlp, y: Tensor, n: Tensor | None, rows: Tensor, solve: Solve):
        self.mlp, self.y, self.n, self.rows, self.solve = mlp, y, n, rows, solve
        self.first: list[Outer] = []

    def hooks(self, block: nn.Module) -> Iterator[Any]:
        if self.n is not None:
            for module in self.mlp.first:
                yield module.register_forward_hook(self._enter)
        yield self.mlp.last.register_forward_hook(self._leave)
        yield block.register_forward_hook(self._finish)

    def _enter(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        """A first map: at the last token it shall give what it gives behind the context."""
        assert self.n is not None
        n = args[0].reshape(len(self.rows), -1, args[0].shape[-1])
        own = at(n, self.rows)
        outer = Outer((self.n.to(own) - own) @ matrix(module).T, _over_square(own))
        self.first.append(outer)
        return output + outer(n).reshape(output.shape)

    def _leave(self, _module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        batch = len(self.rows)
        self.g, self.v = (x.reshape(batch, -1, x.shape[-1]) for x in (args[0], output))

    def _finish(self, _module: nn.Module, _args: Any, output: Any) -> Any:
        y = output if isinstance(output, Tensor) else output[0]
        y = self._with_norm(y) if self.mlp.norm is not None else self._plain(y)
        return y if isinstance(output, Tensor) else (y, *output[1:])

    def _plain(self, y: Tensor) -> Tensor:
        lacks = (self.y.to(y) - at(y, self.rows)) / self.mlp.scale
        self.patch = self.solve(Wanted(lacks, at(self.g, self.rows), None, tuple(self.first)))
        return y + self.mlp.scale * self.patch.output(self.g)

    def _with_norm(self, y: Tensor) -> Tensor:
        """y = h + γ ⊙ v/√(mean v² + ε): v has to point where (y_C − h_0)/γ does, at the length that it has."""
        assert self.mlp.norm is not None
        gain, eps = gain_of(self.mlp.norm), norm_eps(self.mlp.norm)
        h = y - gain * _scaled(self.v, eps)
        v, has_to = at(self.v, self.rows), self.y.to(y) - at(h, self.rows)
        poor = gain.abs() <= NO_GAIN * gain.abs().median()
        u = torch.where(poor, 0, has_to / gain.where(~poor, torch.ones_like(gain)))
        typical = u.square().mean(-1, keepdim=True).sqrt()
        u = torch.where(poor, typical, u)
        enlarged = v.norm(dim=-1, keepdim=True) / u.norm(dim=-1, keepdim=True)
        aim = enlarged * u
        factor = (aim.square().mean(-1, keepdim=True) + eps).sqrt() / enlarged
        gains = torch.where(poor, factor * has_to / typical, factor * gain)
        wanted = Wanted(aim - v, at(self.g, self.rows), gains - gain, tuple(self.first))
        self.patch = self.solve(wanted)
        assert self.patch.gain is not None
        added = self.patch.gain[:, None] if self.patch.gain.ndim == 2 else self.patch.gain
        return h + (gain + added) * _scaled(self.v + self.patch.output(self.g), eps)


def gain_of(norm: nn.Module) -> Float[Tensor, " dim"]:
    """The gain of an RMS norm: its weight or, in Gemma, one more than that."""
    weight = norm.weight
    assert isinstance(weight, Tensor)
    ones = norm(torch.ones_like(weight))
    for gain in (weight, 1 + weight):
        if torch.allclose(ones, gain, rtol=1e-2, atol=1e-2):
            return gain.detach()
    raise Refusal(f"the norm behind the MLP, {type(norm).__name__}, is not supported: it is no RMS norm with a gain.")


def norm_eps(norm: Any) -> float:
    return float(norm.eps if hasattr(norm, "eps") else norm.variance_epsilon)


def _scaled(v: Tensor, eps: float) -> Tensor:
    return v / (v.square().mean(-1, keepdim=True) + eps).sqrt()
