"""Finetuning written out by hand, on a copy of a tiny model: what the learners must equal."""

import copy
import math
from typing import Any, get_args

import torch
from torch import Tensor

from iclgd.models.layout import Part
from iclgd.models.subject import Subject
from iclgd.prompts import Demo, Prompts
from tiny import tiny_model, tiny_tokenizer

BOS = (1,)
DEMOS = (
    Demo((5, 17, 23, 40, 8), (8,)),
    Demo((31, 6, 77, 12, 54, 9, 10), (9, 10)),
    Demo((44, 3, 8), (8,)),
)
LONE = (Demo((61, 20, 9, 10), (9, 10)),)  # one that did not fit the context


def subject_of(architecture: str, seed: int = 0) -> Subject:
    """A tiny model in float64, whose weights are large enough that every gradient is felt."""
    return Subject(tiny_model(architecture, seed, torch.float64), tiny_tokenizer(), architecture)


def prompts(demos: tuple[Demo, ...] = DEMOS, dropped: tuple[Demo, ...] = (), bos: tuple[int, ...] = BOS) -> Prompts:
    queries = ((31, 6, 77), (14,), (9, 9, 22, 35))
    return Prompts(bos, demos, (2,), queries, ((8,), (9,)), (0, 1, 0), (), dropped)


def weights_of(model: Any) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def learned(learner: Any, subject: Subject, given: Prompts) -> dict[str, Tensor]:
    """The weights that a learner ends with."""
    with learner.learn(subject, given) as predictor:
        return installed(subject, predictor.slots)


def installed(subject: Subject, slots: Any) -> dict[str, Tensor]:
    """The model's weights, where a slot is trained the slot's: the trained one stands beside the model's, or in it."""
    own = {id(p): name for name, p in subject.model.named_parameters()}
    names = [slot.name for slot in slots]
    (part,) = [p for p in get_args(Part) if [slot.name for slot in subject.layout.slots(p)] == names][:1]
    trained = {
        own[id(mine.parameter)]: slot.parameter.detach().clone()
        for mine, slot in zip(subject.layout.slots(part), slots, strict=True)
    }
    return weights_of(subject.model) | trained


# which entries may move, by hand: heads of size 8, four of them; None is all


def rows(*numbers: int) -> list[int]:
    return [head * 8 + i for head in numbers for i in range(8)]


KV_ENTRIES: dict[str, tuple[dict[str, list[int] | None], int]] = {  # name → entries, and the axis for a matrix
    "llama": ({"k_proj": None, "v_proj": None}, 0),
    "qwen2": ({"k_proj": None, "v_proj": None}, 0),
    "gpt2": ({"c_attn": rows(*range(4, 12))}, 1),  # [q q q q k k k k v v v v], input × output
    "gpt-neox": ({"query_key_value": rows(1, 2, 4, 5, 7, 8, 10, 11)}, 0),  # [q k v] a head
    "falcon-heads": ({"query_key_value": rows(1, 2, 4, 5, 7, 8, 10, 11)}, 0),
    "falcon-multi-query": ({"query_key_value": rows(4, 5)}, 0),  # [q q q q k v]
    "falcon-groups": ({"query_key_value": rows(2, 3, 6, 7)}, 0),  # [q q k v] a group
}
INSIDE = {"llama": "self_attn", "qwen2": "self_attn", "gpt2": ".attn.", "gpt-neox": ".attention."}
QUERIES = {"llama": "q_proj", "qwen2": "q_proj"}


def mask(architecture: str, part: str, name: str, parameter: Tensor) -> Tensor:
    """1 where a part's training may move a parameter."""
    nothing, everything = torch.zeros_like(parameter), torch.ones_like(parameter)
    inside = INSIDE.get(architecture, "self_attention") in name
    if part == "all" or (part == "attention" and inside):
        return everything
    entries, axis = KV_ENTRIES[architecture]
    module = next((module for module in entries if f".{module}." in name and inside), None)
    if part == "qkv" and inside and (module or QUERIES.get(architecture, "none") in name):
        return everything
    if part != "kv" or module is None:
        return nothing
    if (kept := entries[module]) is None:
        return everything
    return nothing.index_fill(axis if parameter.ndim == 2 else 0, torch.tensor(kept), 1.0)


# the losses


def cross_entropy_by_hand(logits: Tensor, ids: tuple[int, ...], targets: list[int]) -> Tensor:
    """Mean over targets of −log softmax at the token before."""
    terms = [torch.logsumexp(logits[t - 1], 0) - logits[t - 1, ids[t]] for t in targets]
    return sum(terms[1:], terms[0]) / len(terms)


def plain_loss(model: Any, ids: tuple[int, ...], targets: list[int]) -> Tensor:
    return cross_entropy_by_hand(model(torch.tensor([ids])).logits[0], ids, targets)


def plain_layer_losses(model: Any, subject: Subject, ids: tuple[int, ...], targets: list[int]) -> Tensor:
    """Each block called again on the input it had, without history; its output through final norm and unembedding."""
    calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []
    blocks = model.get_submodule(subject.layout.names.blocks)
    handles = [
        block.register_forward_pre_hook(lambda m, a, k: calls.append((m, a, k)), with_kwargs=True) for block in blocks
    ]
    with torch.no_grad():
        model(torch.tensor([ids]), use_cache=False)
    for handle in handles:
        handle.remove()
    total = torch.zeros((), dtype=torch.float64)
    for block, args, kwargs in calls:
        out = block(*args, **kwargs)
        out = out if isinstance(out, Tensor) else out[0]
        logits = model.get_output_embeddings()(model.get_submodule(subject.layout.names.norm)(out))
        total = total + cross_entropy_by_hand(logits[0], ids, targets)
    return total


def gpt2_paper_loss(model: Any, ids: tuple[int, ...], target: int) -> Tensor:
    """Σ over layers of CE(U(Attn(W_V·SG(X), W_K·SG(X), SG(q)))), the attention of GPT-2 written out."""
    body = model.transformer
    x = body.wte.weight[list(ids)] + body.wpe.weight[: len(ids)]
    total = torch.zeros((), dtype=torch.float64)
    causal = torch.ones(len(ids), len(ids)).triu(1).bool()
    for block in body.h:
        x = x.detach()
        projected = block.ln_1(x).detach() @ block.attn.c_attn.weight + block.attn.c_attn.bias
        q, k, v = (part.view(len(ids), 4, 8).transpose(0, 1) for part in projected.split(32, -1))
        scores = (q.detach() @ k.transpose(1, 2) / math.sqrt(8)).masked_fill(causal, -torch.inf)
        mixed = (scores.softmax(-1) @ v).transpose(0, 1).reshape(len(ids), 32)
        attended = mixed @ block.attn.c_proj.weight + block.attn.c_proj.bias
        total = total + cross_entropy_by_hand(model.lm_head(body.ln_f(attended)), ids, [target])
        x = x + attended
        x = x + block.mlp(block.ln_2(x))
    return total


# the step


def plain_step(model: Any, loss: Tensor, architecture: str, part: str, rate: float, clip: float | None = None) -> None:
    """w ← w − rate·g on what may move, by autograd's ``backward``."""
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        moves = {
            name: p.grad * mask(architecture, part, name, p)
            for name, p in model.named_parameters()
            if p.grad is not None
        }
        size = math.sqrt(sum(float((g**2).sum()) for g in moves.values()))
        scale = clip / size if clip is not None and size > clip else 1.0
        for name, p in model.named_parameters():
            if name in moves:
                p -= rate * scale * moves[name]


def copy_of(subject: Subject, attention: str = "sdpa") -> Any:
    """The same weights in a model of its own, every gradient on, with an attention that is not the lab's.

    PyTorch's own where a model can take it: what transformers calls eager takes its softmax in float32.
    """
    model = copy.deepcopy(subject.model).requires_grad_(True)
    model.set_attn_implementation(attention if subject.capture == "registered" else "eager")
    return model


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor], within: float = 1e-10) -> None:
    assert found.keys() == wanted.keys()
    for name in wanted:
        assert torch.allclose(found[name], wanted[name], rtol=0, atol=within), name
