"""Heads by what they score, put into another run one by one, and taken out in sets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.labs.causal.ground import Ground
from iclgd.learners.function_vector import largest, mediation
from iclgd.models.heads import ablated, dual_step, induction, mean_outputs
from iclgd.models.last_token import Edits, LastToken
from iclgd.models.traces import Predictor
from iclgd.prompts import Ids

PROMPTS = 8  # demonstrations asked behind the others, for function-vector scores; queries, for dual steps
Scores = dict[str, Float[Tensor, "query label"]]


def head_scores(ground: Ground) -> dict[str, Float[Tensor, "layer head"]]:
    """Function-vector scores (Todd 2024), induction scores (Olsson 2022) and dual steps; the last where values show."""
    subject, prompts = ground.subject, ground.prompts
    ground.progress("function-vector scores", 0)
    found = {"function vector": mediation(subject, prompts, PROMPTS).effects}
    ground.progress("induction scores", 0)
    found["induction"] = induction(subject, prompts.bos, ground.seed)
    if subject.capture == "registered":
        ground.progress("dual steps", 0)
        demos = torch.arange(len(prompts.context)) >= len(prompts.bos)
        lasts = ground.read("icl")[0][:PROMPTS]
        steps = [dual_step(subject, last.prefix, last.token, demos) for last in lasts if last.prefix is not None]
        found["dual step"] = torch.stack(steps).mean(0)
    return found


def put_in(
    ground: Ground, what: str, lasts: Sequence[LastToken], values: Float[Tensor, "query layer width"]
) -> Float[Tensor, "layer head query label"]:
    """Label scores of a run with one head's output replaced by another run's."""
    ground.progress(what, 0)
    layers, heads = ground.subject.layout.layers, ground.subject.layout.heads
    each = torch.eye(layers * heads).bool().unflatten(1, (layers, heads))
    found = []
    for last, value in zip(lasts, values, strict=True):
        found.append(ground.of_words(last.edited(Edits("heads", each, value[None]))))
        ground.progress(what, 1)
    return torch.stack(found, 1).unflatten(0, (layers, heads))


def ablations(
    ground: Ground, scores: Mapping[str, Tensor], text: Ids, size: int, sets: int
) -> Iterator[tuple[dict[str, Any], Bool[Tensor, "layer head"], Scores]]:
    """The foremost heads by each score taken out, then random heads of the same layers, as often as asked for.

    A head that is taken out gives its mean over the tokens of another task's prompt, at every token. So the mean knows
    nothing of this task, and no token is left as it was.
    """
    mean = mean_outputs(ground.subject, text)
    for name, one in scores.items():
        top = largest(one, size)
        yield {"score": name}, top, _without(ground, top, mean, f"without {name} heads")
        for draw in range(sets):
            chosen = random_set(top, 1000 * ground.seed + draw)
            what = f"without random heads, {draw + 1} of {sets}"
            yield {"score": name, "draw": draw}, chosen, _without(ground, chosen, mean, what)


def random_set(top: Bool[Tensor, "layer head"], seed: int) -> Bool[Tensor, "layer head"]:
    """As many heads of each layer, of those that are not in the set; of all where it has more than half of them."""
    random, chosen = np.random.RandomState(seed), torch.zeros_like(top)
    for layer, row in enumerate(top):
        count = int(row.sum())
        free = (~row).nonzero()[:, 0].tolist() if 2 * count <= len(row) else list(range(len(row)))
        chosen[layer, random.permutation(free)[:count].tolist()] = True
    return chosen


def _without(ground: Ground, chosen: Tensor, mean: Tensor, what: str) -> Scores:
    """Label scores without these heads, behind the demonstrations and without any."""
    subject, prompts, labels = ground.subject, ground.prompts, [(word,) for word in ground.words]
    ground.progress(what, len(prompts.queries))
    found = {}
    with ablated(subject, chosen, mean):
        for run, context in (("zero-shot", prompts.bos), ("icl", prompts.context)):
            found[run] = Predictor(subject, subject.encode(context)).scores(prompts.queries, labels).cpu()
    return found
