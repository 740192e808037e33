"""A language model the lab can work with: its tokenizer, its layout, and a forward pass that is captured."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers.cache_utils import DynamicCache

from iclgd.errors import Refusal
from iclgd.models.budget import chunk_tokens, halved
from iclgd.models.capture import NAME, Interception, Modification, Prefix, Tape, expanded_cache, shared_cache
from iclgd.models.copies import sent
from iclgd.models.hooks import Watch, announced, hooked
from iclgd.models.layout import Layout, Part, Slot
from iclgd.models.precision import CannotWiden, Widening, tolerance, widened

How = Literal["registered", "intercepted"]


@dataclass(frozen=True)
class Captured:
    """What one forward pass did at the rows it was asked about."""

    vocabulary: Float[Tensor, "batch predicted token"]  # next-token logits
    outputs: Float[Tensor, "batch layer row dim"]  # attention after its output projection, before the residual
    logits: Float[Tensor, "batch layer row head key"]  # scores before mask and softmax, own tokens only
    context: Float[Tensor, "sequence layer row prefix"]  # the same over the prefix, summed over heads, where asked for
    vectors: Float[Tensor, "batch layer row qdim"]  # query projections, before any rotation by position
    blocks: Float[Tensor, "batch layer row dim"]  # the residual stream after each block


class Subject:
    """A causal language model, ready to be traced and finetuned. Its weights never keep a gradient by themselves."""

    def __init__(self, model: Any, tokenizer: Any, name: str):
        self.model, self.tokenizer, self.name = model.eval().requires_grad_(False), tokenizer, name
        self.layout = Layout(model)
        self.capture: How = self._choose_capture()

    # what it is

    @property
    def device(self) -> torch.device:
        return self.model.get_input_embeddings().weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    @property
    def precision(self) -> str:
        """The dtype as it is spelled on the command line."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def room(self) -> int | None:
        """How many tokens the model's context holds; None where positions have no bound."""
        return self.layout.room

    # captured forward passes

    def run(
        self,
        ids: Int[Tensor, "batch token"],
        rows: Int[Tensor, "batch row"],
        prefix: Prefix | None,
        modification: Modification | None = None,
        predicted: Int[Tensor, "batch predicted"] | None = None,
        ranked: Int[Tensor, " sequence"] | None = None,
    ) -> Captured:
        """One forward pass over right-padded sequences behind a shared prefix, captured at ``rows``.

        Padding on the right needs no mask: attention is causal and the rows asked for come before it. ``modification``
        changes the attention of these sequences, not the prefix's own, which was encoded before. ``predicted`` are the
        rows whose next token is predicted (None: all of ``rows``), ``ranked`` the sequences whose attention to the
        context is kept (None: all).
        """
        if modification is not None and self.capture != "registered":
            raise Refusal(f"the attention of {type(self.model).__name__} can be looked at but not changed here.")
        tape = Tape(rows, prefix if self.capture == "registered" else None, ranked, modification=modification)
        outputs: dict[int, Tensor] = {}
        vectors: dict[int, Tensor] = {}
        blocks: dict[int, Tensor] = {}
        current: list[int | None] = [None]

        def at_rows(hidden: Tensor, where: Tensor = rows) -> Tensor:
            return hidden.gather(1, where.to(hidden.device)[..., None].expand(-1, -1, hidden.shape[-1]))

        with ExitStack() as stack, torch.no_grad():
            stack.enter_context(self.watched_outputs(lambda layer, y: outputs.__setitem__(layer, at_rows(y))))
            stack.enter_context(self.watched_queries(lambda layer, y: vectors.__setitem__(layer, at_rows(y))))
            stack.enter_context(self.watched_blocks(lambda layer, y: blocks.__setitem__(layer, at_rows(y))))
            asked = rows if predicted is None else predicted
            handle = self.layout.unembedding.register_forward_pre_hook(lambda _m, args: (at_rows(args[0], asked),))
            stack.callback(handle.remove)
            extra: dict[str, Any] = {}
            if self.capture == "registered":
                extra["tape"] = tape
            else:
                stack.enter_context(announced(self.layout.attentions, current))
                stack.enter_context(Interception(tape, lambda: current[0], self.layout.slopes()))
            vocabulary = self.model(
                ids, past_key_values=self._cache(prefix, len(ids)), use_cache=prefix is not None, **extra
            ).logits
        self._assert_all_layers(tape, outputs)
        kept = (outputs, tape.logits, tape.context, vectors, blocks)
        return Captured(vocabulary, *(self._stacked(parts, vocabulary.device) for parts in kept))

    def _stacked(self, parts: dict[int, Tensor], device: torch.device) -> Tensor:
        """What the layers gave, where the next-token logits are: layers may lie on several devices."""
        return torch.stack([parts[layer].to(device) for layer in range(self.layout.layers)], 1)

    @contextmanager
    def watched_outputs(self, see: Watch) -> Iterator[None]:
        """Calls ``see(layer, output)`` with each attention's output, after its output projection."""
        with hooked([(out, None) for out in self.layout.outs], see):
            yield

    @contextmanager
    def watched_queries(self, see: Watch) -> Iterator[None]:
        """Calls ``see(layer, queries)`` with each layer's query projections, before any rotation by position."""
        with hooked(self.layout.queries(), see):
            yield

    @contextmanager
    def watched_blocks(self, see: Watch) -> Iterator[None]:
        """Calls ``see(layer, output)`` with each block's output (``hidden_states`` ends after the final norm)."""
        with hooked([(block, None) for block in self.layout.blocks], see):
            yield

    def unembed(self, hidden: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch token"]:
        """Next-token logits from a block's output: final norm, unembedding, scale and soft cap where there are any."""
        return self.unembed_normed(self.layout.norm(hidden))

    def unembed_normed(self, normed: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch token"]:
        """The same from what the final norm gives."""
        names, config = self.layout.names, self.layout.config
        logits = self.layout.unembedding(normed)
        if names.scale is not None:
            logits = logits * getattr(config, names.scale)
        if names.divisor is not None:
            logits = logits / getattr(config, names.divisor)
        cap = getattr(config, "final_logit_softcapping", None)
        return logits if cap is None else torch.tanh(logits / cap) * cap

    @torch.no_grad()
    def check_unembedding(self, hidden: Float[Tensor, "token dim"], final: Float[Tensor, "token vocabulary"]) -> None:
        """Refuse a model where `unembed` of the last block is not the model's own prediction: U is then something else.

        Predictions that are not finite say nothing about U: training has diverged, and its loss will say so.
        """
        ours, largest = self.unembed(hidden).to(final.device), float(final.abs().max())
        within = max(1e-3, 2 * torch.finfo(final.dtype).eps)
        if math.isfinite(largest) and not torch.allclose(ours, final, rtol=within, atol=within * largest + 1e-6):
            raise Refusal(
                f"layer-causal descent is not supported for {type(self.model).__name__}: its final norm and "
                "unembedding do not give its own predictions."
            )

    def fingerprint(self) -> str:
        """SHA-256 over parameters, and tables that a cast may have rounded: what they are, whatever it is called."""
        digest = hashlib.sha256()
        for name, tensor in (*self.model.named_parameters(), *self.model.named_buffers()):
            digest.update(f"{name} {tensor.dtype}".encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
        return digest.hexdigest()

    @contextmanager
    def in_precision(self, dtype: torch.dtype) -> Iterator[Widening]:
        """The same weights, and all arithmetic that can be, in a wider format (see precision.py).

        What could not be is in the ``narrow`` of what is yielded. A model that does not run in that format here, or
        does not fit the memory, is refused with `CannotWiden` and is as it was.
        """
        with ExitStack() as stack:
            try:
                widening = stack.enter_context(widened(self.model, dtype))
                self._try_a_step()
            except (RuntimeError, TypeError) as error:
                why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
                name = str(dtype).removeprefix("torch.")
                raise CannotWiden(f"{self.name} cannot be computed in {name} on {self.device.type}: {why}.") from None
            yield widening

    def _try_a_step(self) -> None:
        """A captured forward pass and a backward pass on four tokens, for what they raise."""
        ids = self.tensor([[0, 1, 2, 3]])
        self.run(ids, torch.arange(4, device=self.device)[None], None)
        with self.training("kv") as slots:
            logits = self.model(ids, use_cache=False).logits
            torch.autograd.grad(logits.sum(), [slot.parameter for slot in slots])

    def encode(self, ids: Sequence[int], chunk: int | None = None) -> Prefix | None:
        """Keys and values of a context, computed once; None for an empty one.

        In chunks of tokens, each behind those before it, so that no square of scores is ever whole in memory. A chunk
        that memory does not hold is halved.
        """
        if not ids:
            return None
        own = self.capture == "registered"
        chunk = chunk or chunk_tokens(self.layout, self.dtype, self.device, len(ids), own)
        found = halved(lambda size: self._encoded(ids, size), min(chunk, len(ids)))
        if found is None:
            raise Refusal(
                f"a context of {len(ids)} tokens does not fit the memory of {self.device}: use a shorter one."
            )
        return found

    @torch.no_grad()
    def _encoded(self, ids: Sequence[int], chunk: int) -> Prefix:
        cache = DynamicCache()  # not the model's own choice: a sliding-window cache would forget
        for start in range(0, len(ids), chunk):
            part = self.tensor([ids[start : start + chunk]])
            self.model(part, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return Prefix(len(ids), tuple((layer.keys, layer.values) for layer in cache.layers))  # type: ignore[misc, union-attr]  # filled

    def _cache(self, prefix: Prefix | None, batch: int) -> Any:
        if prefix is None:
            return None
        return shared_cache(prefix) if self.capture == "registered" else expanded_cache(prefix, batch)

    def tensor(self, ids: Sequence[Sequence[int]]) -> Int[Tensor, "batch token"]:
        """Token ids padded on the right."""
        width = max(map(len, ids))
        return sent([list(row) + [0] * (width - len(row)) for row in ids], self.device)

    # what can be changed

    @contextmanager
    def training(self, part: Part) -> Iterator[list[Slot]]:
        """The parameters of a part, to be changed in place; restored bit for bit on the way out, whatever happens."""
        slots = [slot.prepared() for slot in self.layout.slots(part)]
        for slot in slots:
            slot.parameter.requires_grad_(True)
        try:
            yield slots
        finally:
            for slot in slots:
                slot.parameter.requires_grad_(False)
                slot.parameter.grad = None
                slot.restore()

    # how attention is captured

    def _choose_capture(self) -> How:
        """The first way that sees every layer and leaves the next-token logits what they are."""
        ids = self.tensor([[0, 1, 2, 3]])
        self.capture = "intercepted"
        own = self.own_logits(ids)
        ways: tuple[tuple[How, str], ...] = (("registered", NAME), ("intercepted", "eager"))
        for how, implementation in ways:
            self.capture = how
            try:
                self.model.set_attn_implementation(implementation)
                found = self.run(ids, torch.arange(4, device=self.device)[None], None).vocabulary
            except (_NotCaptured, ValueError, TypeError):  # TypeError: it takes no tape
                continue
            if float((found - own).abs().max()) <= tolerance(self.dtype) * float(own.abs().max()):
                return how
        raise Refusal(
            f"{type(self.model).__name__} cannot be captured: its attention neither goes through the registered "
            "function nor through a softmax that can be seen in every layer."
        )

    def own_logits(
        self, ids: Int[Tensor, "batch token"], last: int | None = None
    ) -> Float[Tensor, "batch row vocabulary"]:
        """Next-token logits of the model's own eager attention, with the capture switched off for the call.

        Of the ``last`` tokens, where that is given: a long text's whole vocabulary takes much memory.
        """
        self.model.set_attn_implementation("eager")
        try:
            with torch.no_grad():
                logits = self.model(ids, use_cache=False, logits_to_keep=last or 0).logits
        except RuntimeError as error:
            why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            raise Refusal(f"{self.name} cannot run in {self.precision} on {self.device.type}: {why}.") from None
        finally:
            if self.capture == "registered":
                self.model.set_attn_implementation(NAME)
        if not bool(logits.isfinite().all()):
            raise Refusal(f"{self.name} gives NaN or infinite numbers in {self.precision}.")
        return logits

    def _assert_all_layers(self, tape: Tape, outputs: dict[int, Tensor]) -> None:
        wanted = set(range(self.layout.layers))
        if set(tape.logits) != wanted or set(outputs) != wanted:
            raise _NotCaptured(f"captured {len(tape.logits)} of {len(wanted)} layers of {type(self.model).__name__}")


class _NotCaptured(RuntimeError):
    """Fewer layers were captured than the model has: nothing of it may be used."""
