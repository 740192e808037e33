"""The tables of `implicit`: exact patches, one patch for all queries, training of the same matrices."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from iclgd.labs.implicit.alike import SIDES
from iclgd.labs.implicit.beside import NULLS as OF_LIKENESS
from iclgd.labs.implicit.null import slope
from iclgd.labs.implicit.view import CONSTANT, WHOLE, View, distance, mean, number, shares
from iclgd.metrics.differences import difference, holm, over_draws
from iclgd.metrics.estimates import SHARE, Estimate
from iclgd.report.numbers import Number, Size, p_value
from iclgd.report.page import Entry, Table
from iclgd.results import Array

Labels = dict[str, Any]
NULLS = {
    "wrong labels": "behind wrong labels",
    "other task": "another task's prompt",
    "filler": "behind filler",
    "random": "random, as long",
}
OF_TRAINING = {"wrong": "wrong labels", "other demos": "other demonstrations", "other task": "another task"}


def exact(view: View) -> Table:
    """The largest residual of every form, in every arithmetic, trained or not; of the gap and what is left, means."""
    header = ["", "block", "logits", "gap without patch", "another query's patch", "tokens alike"]
    rows: list[list[Entry]] = []
    for cell, result in view.study.found():
        if cell.labels["part"] != "exact":
            continue
        known = {tuple(one.labels.get(n) for n in ("quantity", "form", "patch")): one.values for one in result.arrays}
        for form in ("A", "B", "C"):
            worst = [float(known[q, form, who].max()) for q, who in (("block", "own"), ("logits", "own"))]
            gap = float(known["gap", form, "own"].mean())
            another = known.get(("logits", form, "another query's"))
            left: Entry = "" if another is None else Size(float(another.mean()), digits=2)
            name = f"{cell.labels['init']}, {cell.labels['precision']}, {_form(form, result.facts['normed'])}"
            same = f"{result.facts['same_tokens']} of {result.facts['tokens']}" if form == "C" else ""
            rows.append([name, *(Size(x, digits=2) for x in (*worst, gap)), left, same])
    return Table(header, rows)


def _form(form: str, normed: bool) -> str:
    """Behind a norm of the MLP's output the last map alone is form D."""
    return ("D" if form == "C" else f"{form} with D") if normed else form


def sizes(view: View) -> Table:
    """How large the patches are beside the weights, how they lie to them and to each other, layer by layer's median."""
    header = ["", "size", "along W", "two queries alike", "log-log slope of settling"]
    rows: list[list[Entry]] = []
    for cell, result in view.study.found():
        if cell.labels["part"] == "exact":
            known = {str(one.labels["quantity"]): one for one in result.arrays if "form" not in one.labels}
            size, along, alike = (known[q].values for q in ("size", "along W", "between queries"))
            name = f"{cell.labels['init']}, {cell.labels['precision']}"
            middle = (float(np.median(part)) for part in (size, along, alike))
            rows.append([name, *(Number(x) for x in middle), _fall(known["settling"]) if "settling" in known else ""])
    return Table(header, rows)


def _fall(settling: Array) -> Number:
    """The slope of the layers' median over the number of tokens."""
    sizes = [int(size) for size in settling.coordinates["size"]]
    return Number(slope(sizes, torch.from_numpy(np.median(settling.values, -1))), digits=2)


# what patches do


EFFECTS = ["", "margins missed", "margins recovered", "without the mean shift", "accuracy", "agrees with icl"]
ALIKE = "tells no query from another"


def effects(view: View, init: str, labels: Labels) -> list[Entry]:
    """How much of reading's effect on the label margins is there and is missed, accuracy, agreement with reading."""
    return [
        *_margins(view, init, labels),
        _or_not(shares(view.right(init, **labels))),
        _or_not(shares(view.agreeing(init, **labels))),
    ]


def _margins(view: View, init: str, labels: Labels) -> list[Entry]:
    """Missed without the mean shift; recovered with it and without."""
    brought = (view.recovery(init, centred, **labels) for centred in (False, True))
    return [_or_not(distance(view.missing(init, **labels))), *(_or_not(mean(values)) for values in brought)]


def _or_not(found: Estimate) -> Entry:
    shown = number(found)
    return shown if shown.value == shown.value else "n/a"


def short(view: View) -> Table:
    """Reading, one patch for all, its nulls, training, and weights that were not trained."""
    init, most = view.spec.init[0], view.most
    whole: Labels = {"patch": WHOLE, "fitted": most}
    *_, right, agreeing = effects(view, init, {"patch": "zero-shot"})  # the rest is 0 or 1 by definition
    rows: list[list[Entry]] = [["zero-shot", "", "", "", right, agreeing]]
    rows.append(["icl", "", "", "", effects(view, init, {"patch": "icl"})[-2], ""])
    rows.append(_row(view, init, ALIKE, {"patch": CONSTANT}))
    rows.append(_row(view, init, f"vector fitted on {most}", {"patch": "vector", "fitted": most}))
    rows.append(_row(view, init, f"matrix fitted on {most}", whole))
    rows += [_row(view, init, f"  {title}", {**whole, "null": null}) for null, title in NULLS.items()]
    rows += _on_others(view, init, most)
    for other in view.spec.init[1:]:
        rows.append(_row(view, other, f"  {other} weights", whole))
    for rate in view.spec.rates:
        lost = view.diverged(init, rate)
        said = f", diverged in {lost} of {view.draws}" if lost else ""
        rows.append(_row(view, init, f"gd {rate:g}{said}", {"patch": "gd", "rate": rate, "demos": "right"}))
        for demos, title in OF_TRAINING.items():
            rows.append(_row(view, init, f"  {title}", {"patch": "gd", "rate": rate, "demos": demos}))
    return Table(EFFECTS, rows)


def _on_others(view: View, init: str, most: int) -> list[list[Entry]]:
    """The same patch on queries of another task, beside what the same prompt does to them."""
    asked: Labels = {"asked": "others", "patch": WHOLE, "fitted": most}
    return [["  on another task's queries", *_margins(view, init, asked), "", ""]]


def _row(view: View, init: str, name: str, labels: Labels) -> list[Entry]:
    return [name, *effects(view, init, labels)]


def curve(view: View) -> Table:
    """Every patch for all queries: by kind and rank, by the number of queries it was fitted on."""
    init = view.spec.init[0]
    rows = []
    for count in view.spec.calibration:
        ranks = [f"rank {rank}" for rank in view.spec.ranks if rank < count]
        for patch in ("vector", *ranks, WHOLE):
            rows.append(_row(view, init, f"{patch}, {count}", {"patch": patch, "fitted": count}))
    rows.append(_row(view, init, ALIKE, {"patch": CONSTANT}))
    return Table(EFFECTS, rows)


def by_task(view: View) -> Table:
    """The matrix beside one answer for all queries on every task: missed, then recovered, without the mean shift."""
    init, whole, alike = view.spec.init[0], {"patch": WHOLE, "fitted": view.most}, {"patch": CONSTANT}
    missed = [view.missing(init, **labels) for labels in (whole, alike)]
    brought = [view.recovery(init, True, **labels) for labels in (whole, alike)]
    rows: list[list[Entry]] = []
    for title, level, pair in (("missed", distance, missed), ("recovered", mean, brought)):
        if pair[0].shape != pair[1].shape:
            continue  # no matrix was fitted
        apart = holm([over_draws(difference(*task)) for task in zip(*pair, strict=True)])
        for task, one, two, found in zip(view.spec.task, *pair, apart, strict=True):
            levels = [_or_not(level(values)) for values in (one, two)]
            name = f"{view.spec.task_titles[task]}, {title}"
            rows.append([name, *levels, _or_not(found.estimate), p_value(found.corrected), found.verdict])
    return Table(["", "matrix", "one answer", "matrix − one answer", "p (Holm)", "matrix is"], rows)


def depth(view: View) -> Table:
    """The patch for all queries in a part of the layers alone, and in all layers up to there."""
    init, whole = view.spec.init[0], {"patch": WHOLE, "fitted": view.most}
    rows = []
    for where, title in (("up to", "up to layer {last}"), ("alone", "layers {first} to {last} alone")):
        for first, last in view.depths():
            labels = {**whole, "layers": where, "first": first, "last": last}
            rows.append(_row(view, init, title.format(first=first, last=last), labels))
    return Table(EFFECTS, rows)


def labels_made(view: View) -> Table:
    """What labels change in the margins: right minus wrong, brought back by patches and by training."""
    init = view.spec.init[0]
    whole: Labels = {"patch": WHOLE, "fitted": view.most}
    pairs = {f"matrix fitted on {view.most}": (whole, {**whole, "null": "wrong labels"})}
    for rate in view.spec.rates:
        gd: Labels = {"patch": "gd", "rate": rate}
        pairs[f"gd {rate:g}"] = ({**gd, "demos": "right"}, {**gd, "demos": "wrong"})
    rows: list[list[Entry]] = [
        [name, *(_or_not(mean(view.label_recovery(init, centred, *pair))) for centred in (False, True))]
        for name, pair in pairs.items()
    ]
    return Table(["", "labels' effect recovered", "without the mean shift"], rows)


# the same matrices, trained


def alike(view: View) -> Table:
    """Cosines with what training makes of the same matrices, and what nulls give."""
    header = ["", "own patches", "one matrix", "labels' part, own", "labels' part, one"]
    rows: list[list[Entry]] = []
    for init in view.spec.init:
        for rate in view.spec.rates:
            named: list[tuple[str | None, str]] = [(None, f"gd {rate:g}, {init}"), *OF_LIKENESS.items()]
            for null, title in named:
                found = [
                    view.cosine(init, quantity, patch, rate, null)
                    for quantity in ("cosine", "contrast")
                    for patch in ("own", WHOLE)
                ]
                shown: list[Entry] = [number(one, 3) if one.mean == one.mean else "" for one in found]
                if null is None and not any(shown):
                    shown = ["n/a"] * len(shown)
                if any(shown):
                    rows.append([title if null is None else f"  {title}", *shown])
    return Table(header, rows)


STEPS = {None: "one matrix", "own": "own patches", "labels": "labels, one matrix", "own, labels": "labels, own patches"}
SPACES = {None: "one matrix", "own": "own patches", "labels": "labels' part"}


def overlaps(view: View) -> Table:
    """The subspaces that patches and training act on, by rank, beside chance.

    What nulls give stands beside the largest rank of the first weights, at the rate that the answer speaks of.
    """
    rows: list[list[Entry]] = []
    for init in view.spec.init:
        for rate in view.spec.rates:
            for patch, title in SPACES.items():
                for rank in view.spec.ranks:
                    places = (init, rate, rank, patch)
                    rows += _overlap_row(view, f"{title}, rank {rank}, gd {rate:g}, {init}", *places)
                    if (init, rank) == (view.spec.init[0], view.spec.ranks[-1]) and rate == view.most_alike(init):
                        for null, named in OF_LIKENESS.items():
                            rows += _overlap_row(view, f"  {named}", *places, null)
    return Table(["", "outputs", "chance", "inputs", "chance "], rows)


def _overlap_row(
    view: View, name: str, init: str, rate: float, rank: int, patch: str | None, null: str | None = None
) -> Iterator[list[Entry]]:
    """A row, or none where that was not measured: labels' part has fewer nulls."""
    chance = _stacked(view, init, rate, "chance", None)
    cells: list[Entry] = []
    for place, side in enumerate(SIDES):
        found = mean(view.overlaps(init, rate, rank, side, patch, null), SHARE)
        if found.mean != found.mean:
            return
        cells += [number(found, 3), Number(float(chance[:, view.spec.ranks.index(rank), place].mean()))]
    yield [name, *cells]


def steps(view: View) -> Table:
    """How long both changes are beside the weights, and by how much training's would have to be scaled."""
    header = ["", "‖matrix‖ / ‖W‖", "‖gd‖ / ‖W‖", "best step", "last loss", "diverged"]
    rows: list[list[Entry]] = []
    for init in view.spec.init:
        for rate in view.spec.rates:
            lengths = (_stacked(view, init, rate, "length", None, patch=patch) for patch in (WHOLE, "gd"))
            step = _stacked(view, init, rate, "step", None)
            loss = [float(np.mean(one[-3:])) for one in _parts(view, init, rate, "loss", None, demos="right")]
            middle = [Size(float(np.median(x)), digits=2) if len(x) else "n/a" for x in (*lengths, step)]
            last: Entry = Size(float(np.mean(loss)), digits=3) if loss else "n/a"
            rows.append([f"gd {rate:g}, {init}", *middle, last, str(view.diverged(init, rate))])
    return Table(header, rows)


def best_steps(view: View) -> Table | None:
    """By how much training's update would have to be scaled to come closest to each kind of patch; if it was asked."""
    rows: list[list[Entry]] = []
    for init in view.spec.init:
        for rate in view.spec.rates:
            found = [[x.ravel() for x in _parts(view, init, rate, "step", None, patch=patch)] for patch in STEPS]
            if all(found):
                middle = (float(np.median(np.concatenate(one))) for one in found)
                rows.append([f"gd {rate:g}, {init}", *(Size(x, digits=2) for x in middle)])
    return Table(["", *STEPS.values()], rows) if rows else None


def _parts(view: View, init: str, rate: float, quantity: str, null: str | None, **more: Any) -> Iterator[np.ndarray]:
    for task in view.spec.task:
        for seed in view.spec.seeds:
            found = view.one(init=init, task=task, seed=seed, rate=rate, quantity=quantity, null=null, **more)
            if found is not None:
                yield found


def _stacked(view: View, init: str, rate: float, quantity: str, null: str | None, **more: Any) -> np.ndarray:
    parts: Sequence[np.ndarray] = list(_parts(view, init, rate, quantity, null, **more))
    return np.stack(parts) if parts else np.empty(0)
