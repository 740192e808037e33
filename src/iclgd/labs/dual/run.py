"""What a cell of `dual check`, `dual bound` and `dual modify` computes: one episode in one pretrained model."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import torch

from iclgd.lab import Cell
from iclgd.labs.dual.bound import sweep
from iclgd.labs.dual.heads import SIZES, analyse
from iclgd.labs.dual.labels import flip_effect
from iclgd.labs.dual.modifications import check_enough
from iclgd.labs.dual.pretrained import ModifiedInContext, with_adapters
from iclgd.labs.dual.spec import BoundCell, HeadsCell, ModifyCell, check_held
from iclgd.models.subject import Subject
from iclgd.prompts import Prompts, build_prompts
from iclgd.results import Result, array
from iclgd.tasks.episodes import Episode, episode_text
from iclgd.tools import Tools

AXES = {  # of a head's quantities, where they are not layer and head
    "steps": ("layer", "head", "dim"),
    "contributions": ("layer", "head", "demo"),
    "random": ("size", "layer", "head"),
    "moved": ("size", "layer", "head"),
}
SPLITS = ("own", "best")  # of scores into keys and query


def identity(cell: Cell, tools: Tools) -> Mapping[str, Any]:
    """What the cell's spec points to: the weights, and exactly what is asked."""
    episode, place = asked(_spec(cell), tools)
    named = episode.sha256() if episode.queries else None  # a query that is not there has no content to name
    return {"weights": tools.weights(_spec(cell).model), "episode": named, "query": place}


def asked(spec: HeadsCell, tools: Tools) -> tuple[Episode, int | None]:
    """The episode of a cell and the place of its query there; None where all are asked, or the task has no more.

    A cell's episode has no query but its own, so that asking more queries changes no cell. Only where demonstrations
    may be dropped all queries are part of it: the longest decides how many demonstrations are kept.
    """
    episode = tools.episode(spec.task, spec.episode)
    if spec.query is None:
        return episode, None
    if spec.query >= len(episode.queries):
        return replace(episode, queries=()), None
    if spec.prompt.truncate:
        return episode, spec.query
    return replace(episode, queries=episode.queries[spec.query : spec.query + 1]), 0


def run_check(cell: Cell, tools: Tools) -> Result:
    """Every head's dual for one query, and its step with every label wrong."""
    episode, place = asked(_spec(cell), tools)
    if place is None:
        return Result({})
    subject, prompts = _prompted(_spec(cell), episode, tools)
    query = prompts.queries[place]
    found, flipped = analyse(subject, prompts, query), flip_effect(subject, prompts, query)
    tools.progress("analysing heads", 1)
    arrays = []
    for field in fields(found):
        axes = AXES.get(field.name, ("layer", "head"))
        sizes = {"size": SIZES} if "size" in axes else None
        arrays.append(array(getattr(found, field.name), *axes, quantity=field.name, coordinates=sizes))
    for field in fields(flipped):
        arrays.append(array(getattr(flipped, field.name), "layer", "head", quantity=f"flipped_{field.name}"))
    return Result(_facts(subject, episode, prompts, place), arrays)


def run_bound(cell: Cell, tools: Tools) -> Result:
    """The bound of every head for one query, for the first 1, 2, 4, … demonstrations and all that are not held out."""
    episode, place = asked(_spec(cell), tools)
    if place is None:
        return Result({})
    spec = cell.spec
    assert isinstance(spec, BoundCell)
    subject, prompts = _prompted(spec, episode, tools)
    check_held(spec.held, len(prompts.demos))
    left = len(prompts.demos) - spec.held
    counts = sorted({*(2**i for i in range(left.bit_length())), left})
    found = sweep(subject, prompts, prompts.queries[place], counts, spec.held)
    tools.progress("bounding heads", 1)
    arrays = []
    for split, name in enumerate(SPLITS):
        bounds = [found[count][split] for count in counts]
        for field in fields(bounds[0]):
            values = torch.stack([getattr(bound, field.name) for bound in bounds])
            axes = ("demonstrations", "layer", "head")
            places = {"demonstrations": counts}
            arrays.append(array(values, *axes, quantity=field.name, split=name, coordinates=places))
    return Result(_facts(subject, episode, prompts, place), arrays)


def run_modify(cell: Cell, tools: Tools) -> Result:
    """Log-probabilities of the label words for every query, read with one modification."""
    spec = cell.spec
    assert isinstance(spec, ModifyCell)
    episode, _ = asked(spec, tools)
    subject, prompts = _prompted(spec, episode, tools)
    check_enough([spec.modification], len(prompts.demos))
    modification = with_adapters(spec.modification.make(), subject)
    what = f"reading with {spec.modification.label}"
    with ModifiedInContext(modification).learn(subject, prompts) as predictor:
        trace = predictor.trace(prompts, progress=lambda count: tools.progress(what, count))
    labels = {"label": episode.task.labels}
    return Result(
        _facts(subject, episode, prompts, None),
        [
            array(trace.scores, "query", "label", quantity="scores", coordinates=labels),
            array(torch.tensor(trace.answers), "query", quantity="answers"),
        ],
    )


def _spec(cell: Cell) -> HeadsCell:
    assert isinstance(cell.spec, HeadsCell)
    return cell.spec


def _prompted(spec: HeadsCell, episode: Episode, tools: Tools) -> tuple[Subject, Prompts]:
    subject = tools.subject(spec.model)
    return subject, build_prompts(subject.tokenizer, episode, spec.prompt, subject.room)


def _facts(subject: Subject, episode: Episode, prompts: Prompts, place: int | None) -> dict[str, Any]:
    """Beside the numbers: what was read, so that a page needs neither model nor data."""
    shown = episode if place is None else replace(episode, queries=(episode.queries[place],))
    return {
        "model": subject.name,
        "device": str(subject.device),
        "k": len(prompts.demos),
        "demonstrations": [
            {"label": episode.task.labels[demo.label], "text": episode.task.prompt(demo.fields)}
            for demo in episode.demos[: len(prompts.demos)]
        ],
        "episode": json.loads(episode_text(shown)),
    }
