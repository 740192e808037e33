"""Traces of in-context learning, four or five ways: seconds a query, and whether they agree."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec

import torch
from subjects import Timing, timed
from torch import Tensor

from iclgd.bench import Bench, Run, measured
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.metrics import METRICS, OWN
from iclgd.metrics.compared import Compared
from iclgd.models.capture import expanded_cache
from iclgd.models.subject import Subject
from iclgd.models.traces import Trace
from iclgd.nulls.untrained import OtherQuery, RandomDirections, Uniform
from iclgd.prompts import Prompts

Outputs = Tensor  # (query, layer, dim): attention output at the prompt's last token


@contextmanager
def attending(one: Subject, way: str = "eager") -> Iterator[None]:
    """The model with its own attention."""
    from iclgd.models.capture import NAME

    one.model.set_attn_implementation(way)
    try:
        yield
    finally:
        one.model.set_attn_implementation(NAME)


@torch.no_grad()
def plain(one: Subject, prompts: Prompts) -> Outputs:
    """The published procedure: one example at a time, context and all, with `output_attentions`."""
    found = []
    with attending(one):
        for query in prompts.queries:
            ids = one.tensor([prompts.context + query + prompts.labels[0]])
            seen: dict[int, Tensor] = {}
            row = len(prompts.context) + len(query) - 1
            with one.watched_outputs(lambda layer, y, seen=seen, row=row: seen.__setitem__(layer, y[0, row])):
                one.model(ids, output_attentions=True, use_cache=False)
            found.append(torch.stack([seen[layer] for layer in range(len(seen))]).cpu())
    return torch.stack(found)


@torch.no_grad()
def expanded(one: Subject, prompts: Prompts, batch: int) -> Outputs:
    """The context encoded once, its cache copied for every query of a batch."""
    prefix = one.encode(prompts.context)
    assert prefix is not None
    found = []
    with attending(one):
        for first in range(0, len(prompts.queries), batch):
            queries = prompts.queries[first : first + batch]
            ids = one.tensor([query + prompts.labels[0] for query in queries])
            rows = torch.tensor([len(query) - 1 for query in queries], device=ids.device)
            seen: dict[int, Tensor] = {}
            places = torch.arange(len(rows), device=ids.device)
            with one.watched_outputs(lambda layer, y, seen=seen, at=(places, rows): seen.__setitem__(layer, y[at])):
                one.model(ids, past_key_values=expanded_cache(prefix, len(ids)), use_cache=True, output_attentions=True)
            found.append(torch.stack([seen[layer] for layer in range(len(seen))], 1).cpu())
    return torch.cat(found)


@torch.no_grad()
def transformer_lens(one: Subject) -> Callable[[Prompts], Outputs]:
    """TransformerLens's bridge over the same weights; `run_with_cache`, one example at a time."""
    from transformer_lens.model_bridge import TransformerBridge

    bridge = TransformerBridge.boot_transformers(one.model.name_or_path, hf_model=one.model, tokenizer=one.tokenizer)

    def run(asked: Prompts) -> Outputs:
        found = []
        for query in asked.queries:
            ids = one.tensor([asked.context + query + asked.labels[0]])
            _, cache = bridge.run_with_cache(ids)
            row = len(asked.context) + len(query) - 1
            found.append(torch.stack([cache[f"blocks.{i}.hook_attn_out"][0, row] for i in range(one.layout.layers)]))
        return torch.stack(found).cpu()

    return run


@torch.no_grad()
def nnsight(one: Subject) -> Callable[[Prompts], Outputs]:
    """nnsight over the same weights, one example at a time."""
    from nnsight import NNsight

    seen = NNsight(one.model)

    def run(asked: Prompts) -> Outputs:
        found = []
        for query in asked.queries:
            ids = one.tensor([asked.context + query + asked.labels[0]])
            row = len(asked.context) + len(query) - 1
            rows: list[Tensor] = []
            with seen.trace(ids, use_cache=False):
                for block in seen.model.layers:
                    rows.append(block.self_attn.o_proj.output[0, row].save())
            found.append(torch.stack(rows))
        return torch.stack(found).cpu()

    return run


SHARED = ("cache expanded per query", "iclgd", "iclgd, with metrics and nulls")  # the context is encoded once
PEERS = {"TransformerLens": transformer_lens, "nnsight": nnsight}  # where they are installed


def ours(one: Subject, prompts: Prompts, batch: int | None) -> Trace:
    with InContext().learn(one, prompts) as predictor:
        return predictor.trace(prompts, batch) if batch else predictor.trace(prompts)


class Beside(Bench):
    """What nulls that need no training ask of a bench."""

    def __init__(self, zero: Trace):
        self.zero, self.seed = zero, 0


def whole(one: Subject, prompts: Prompts, batch: int | None, zero: Trace) -> Trace:
    """Reading's trace with every metric of updates and every null that needs no training, beside a zero-shot trace.

    What is measured costs the same whatever the numbers are, so that reading stands in the learner's place too.
    """
    icl = ours(one, prompts, batch)
    beside = Beside(zero)
    nulls = [null.trace(beside, "", InContext(), Run(icl)) for null in (RandomDirections(), Uniform(), OtherQuery())]
    metrics = [METRICS[name] for name, *_ in OWN]
    for tuned in (icl, *nulls):
        for metric in metrics:
            if not metric.contrast:
                measured(metric, Compared(zero, icl, tuned, prompts)).cpu()
    return icl


def compare(one: Subject, prompts: Prompts, few: int, batch: int | None, within: float) -> dict[str, Timing]:
    """Seconds a query of each way; refused where one of them does not agree with the plain one."""
    asked = replace(prompts, queries=prompts.queries[:few], answers=prompts.answers[:few])
    wanted = plain(one, asked).float()
    found: dict[str, Timing] = {}

    def take(name: str, outputs: Outputs, timing: Timing, queries: int) -> None:
        apart = float((outputs[:few].float() - wanted).abs().max() / wanted.abs().max())
        if not apart <= within:
            raise SystemExit(f"{name} and the plain port differ by {apart:.2g} of the largest output: no timing counts")
        contexts = 1 if name in SHARED else queries  # encoded in that time
        own = sum(len(query) + len(prompts.labels[0]) for query in prompts.queries[:queries])
        tokens = (contexts * len(prompts.context) + own) / queries
        found[name] = Timing(timing.seconds / queries, timing.gib, tokens)

    take("plain port", wanted, timed(lambda: plain(one, asked), one.device, 1), len(asked.queries))
    some = replace(prompts, queries=prompts.queries[: 8 * few], answers=prompts.answers[: 8 * few])
    take(
        "cache expanded per query",
        expanded(one, some, few),
        timed(lambda: expanded(one, some, few), one.device),
        len(some.queries),
    )
    trace = ours(one, prompts, batch)
    take(
        "iclgd",
        trace.outputs[:, :, 0].cpu(),
        timed(lambda: ours(one, prompts, batch), one.device),
        len(prompts.queries),
    )
    with ZeroShot().learn(one, prompts) as predictor:
        zero = predictor.trace(prompts, batch)
    take(
        "iclgd, with metrics and nulls",
        whole(one, prompts, batch, zero).outputs[:, :, 0].cpu(),
        timed(lambda: whole(one, prompts, batch, zero), one.device),
        len(prompts.queries),
    )
    for name, make in PEERS.items():
        if find_spec(make.__name__) is None:
            print(f"\n{name} is not installed: it is left out.")
        elif one.tokenizer is None:
            print(f"\n{name} is left out: it wants a tokenizer, which random weights have not.")
        else:
            with attending(one):
                run = make(Subject(deepcopy(one.model), one.tokenizer, one.name))  # of its own: they change it
                take(name, run(asked), timed(lambda run=run: run(asked), one.device, 1), len(asked.queries))
    return found
