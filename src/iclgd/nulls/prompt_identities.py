"""What stands in for a prompt, in tiny random transformers: patches of weights, exchanged runs, sums of heads.

Untrained weights, float64: what holds here is algebra and says nothing of learning.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from iclgd.learners.descent import GradientDescent
from iclgd.learners.left_out import read_left_out
from iclgd.models.added import Added, written
from iclgd.models.faithful import Residual, generate, generate_patched, residual
from iclgd.models.heads import written_by
from iclgd.models.last_token import Activity, Edits, LastToken, Site
from iclgd.models.patches import FORMS, Form, patches, read
from iclgd.models.static import Static, fit
from iclgd.models.subject import Subject
from iclgd.nulls.identities import LAYERS, WORDS, prompts
from iclgd.prompts import Prompts

TOKENS = 6  # that are generated
FAMILIES = {
    "Llama": "llama",
    "Qwen3": "qwen3",
    "GPT-2": "gpt2",
    "GPT-NeoX": "gpt_neox",
    "OLMo 2": "olmo2",
    "Gemma 3": "gemma3_text",
}
"""Of which the papers on patches speak, by the names that transformers has for them."""
SIZES: dict[str, Any] = {
    "vocab_size": WORDS,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
}


@contextmanager
def widened(seed: int, family: str = "llama") -> Iterator[Subject]:
    """A transformer of a family, all of it in float64, with weights large enough for attention to tell tokens apart."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(seed)
    model: Any = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **SIZES)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            noise = 0.2 * torch.randn_like(parameter)
            parameter.copy_(noise if parameter.ndim > 1 else parameter + noise)
    subject = Subject(model, None, "tiny")
    with subject.in_precision(torch.float64):
        yield subject


def _left(subject: Subject, asked: Prompts, form: Form, shift: int = 0, gain: bool = True) -> list[Residual]:
    """Residuals of every query with its own patches in the weights, or another query's."""
    queries = [asked.bos + query for query in asked.queries]
    target = read(subject, asked.queries, subject.encode(asked.context))
    own = patches(subject, queries, target, form)
    found = []
    for i, query in enumerate(queries):
        added: list[Added] = [layer.of((i + shift) % len(queries)) for layer in own]
        if not gain:
            added = [replace(one, gain=None) for one in added]
        found.append(residual(subject, query, target.of([i]), added))
    return found


def _largest(found: list[Residual]) -> float:
    """Of blocks and of logits, these in parts of what there was to close."""
    return max(max(float(one.blocks.max()), one.logits / one.gap) for one in found)


def prompt_as_patches(seed: int) -> dict[str, float]:
    """What is left of a prompt's effect after patches of a gated MLP, by form (models/patches.py), through the stack.

    ``another query`` is the least that is left of the gap in the logits when a query has another's patches.
    """
    with widened(seed) as subject:
        asked = prompts(seed)
        found = {f"form {form}": _largest(_left(subject, asked, form)) for form in FORMS}
        other = _left(subject, asked, "C", shift=1)
        return found | {"another query": min(one.logits / one.gap for one in other)}


def patches_by_family(seed: int) -> dict[str, float]:
    """The same in every family that the papers speak of: the largest that any form leaves (D behind a norm)."""
    found = {}
    for title, family in FAMILIES.items():
        with widened(seed, family) as subject:
            found[title] = max(_largest(_left(subject, prompts(seed), form)) for form in FORMS)
    return found


def patches_behind_norms(seed: int) -> dict[str, float]:
    """The same where a norm stands behind the MLP (Gemma 3): its gain has to be patched, too."""
    with widened(seed, "gemma3_text") as subject:
        asked = prompts(seed)
        kept = _left(subject, asked, "C", gain=False)
        return {
            "residual": _largest(_left(subject, asked, "C")),
            "gain kept": min(one.logits / one.gap for one in kept),
        }


def generation_with_patches(seed: int) -> dict[str, float]:
    """The share of tokens that a model generates behind a context and, with patches computed anew, without it."""
    with widened(seed) as subject:
        asked = prompts(seed)
        behind = generate(subject, asked.context, asked.queries[0], TOKENS)
        alone = generate_patched(subject, asked.bos, asked.context, asked.queries[0], TOKENS, "C")
        plain = generate(subject, asked.bos, asked.queries[0], TOKENS)

    def same(other: tuple[int, ...]) -> float:
        return sum(a == b for a, b in zip(behind, other, strict=True)) / TOKENS

    return {"patched": same(alone), "without patches": same(plain)}


def static_patches(seed: int) -> dict[str, float]:
    """One patch for all queries, by least squares: what is left of the logits' gap on those it was fitted on, and not.

    The demonstrations are the queries, each asked behind the others.
    """
    with widened(seed) as subject:
        asked = prompts(seed, demos=6)
        queries, target = read_left_out(subject, asked)
        gap = (read(subject, queries, None).logits - target.logits).abs().amax(-1)
        some, others = slice(0, 4), slice(4, 6)
        with written(subject, fit(subject, queries[some], target.of(some), Static(ridge=0))):
            left = (read(subject, queries, None).logits - target.logits).abs().amax(-1) / gap
    return {"fitted on": float(left[some].max()), "held out": float(left[others].min())}


def exchanged_runs(seed: int) -> dict[str, float]:
    """How far logits are from another run's, in parts of the gap, when that run's values are put in at the last token.

    ``attention``: every layer's attention output, of reading and of a model whose keys and values were finetuned, into
    the zero-shot run; ``heads``: every head; ``stream``: the residual stream after the last block; ``one layer``: one
    layer's attention, the nearest.
    """
    with widened(seed) as subject:
        asked = prompts(seed)
        query, zero = asked.queries[0], LastToken(subject, subject.encode(asked.bos), asked.queries[0])
        plain, read_ = zero.plain(), LastToken(subject, subject.encode(asked.context), query).plain()
        with GradientDescent(rate=0.5).learn(subject, asked) as predictor:
            tuned = LastToken(subject, predictor.prefix, query).plain()

        def apart(source: Activity, site: Site, layers: list[int]) -> float:
            where = torch.zeros(1, LAYERS, 4 if site == "heads" else 1, dtype=torch.bool)
            where[0, layers] = True
            found = zero.edited(Edits(site, where, getattr(source, site)))
            return float((found - source.logits).abs().max() / (plain.logits - source.logits).abs().max())

        every = list(range(LAYERS))
        return {
            "attention": apart(read_, "attention", every),
            "attention, trained": apart(tuned, "attention", every),
            "heads": apart(read_, "heads", every),
            "stream": apart(read_, "blocks", every[-1:]),
            "one layer": min(apart(read_, "attention", [layer]) for layer in every),
        }


def heads_add_up(seed: int) -> dict[str, float]:
    """Σ_h W_O,h a_h beside a layer's attention output: how far apart, relative to it."""
    with widened(seed) as subject:
        asked = prompts(seed)
        seen = LastToken(subject, subject.encode(asked.context), asked.queries[0]).plain()
        each = torch.eye(LAYERS * 4, dtype=torch.bool).view(LAYERS, 4, LAYERS, 4)
        written = [[written_by(subject, seen.heads[0], one) for one in layer] for layer in each]
        sums, whole = torch.stack([torch.stack(heads).sum(0) for heads in written]), seen.attention[0]
        left_out = torch.stack([torch.stack(heads[1:]).sum(0) for heads in written])
        apart = [((found - whole).norm(dim=-1) / whole.norm(dim=-1)) for found in (sums, left_out)]
    return {"residual": float(apart[0].max()), "without one": float(apart[1].min())}
