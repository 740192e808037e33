"""The page of `order`: what reordering changes, in reading and in training, and beside it what it cannot change."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from iclgd.labs.order.spec import OrderSpec
from iclgd.metrics.differences import difference, holm
from iclgd.metrics.estimates import SHARE, Estimate, estimate
from iclgd.report.found import Found
from iclgd.report.numbers import Number, Size
from iclgd.report.page import Entry, Page, Section, Table
from iclgd.report.what import what
from iclgd.study import Study

TOLD = {
    "below": "less than reading",
    "above": "more than reading",
    "undecided": "to an extent not told apart from reading's",
}
ROUNDING = 1e-9  # a spread below it is none


def page(study: Study) -> Page:
    spec = _spec(study)
    sections = [Section("Orders", f"{READ_ORDERS} {spec.interval_note}", orders_table(study), brief=True)]
    sections.append(Section("Next tokens", READ_TOKENS, tokens_table(study), brief=True))
    sections.append(Section("Anchors", READ_ANCHORS, anchors_table(study), brief=True))
    asked = what(spec, study.facts("demonstrations"), study.facts("queries"), f"{spec.orders} orders")
    reading = {"p(right label) varies in reading by": spread_of_p, "reading's update varies by": spread_of_updates}
    found = [Found(what, over_rounding(measure(study, "icl", spec.init[0]))) for what, measure in reading.items()]
    return Page("What the order of demonstrations changes", asked, answer(study), sections, found=found)


def _spec(study: Study) -> OrderSpec:
    assert isinstance(study.spec, OrderSpec)
    return study.spec


# numbers, by task, seed and query


def learners(study: Study) -> list[str]:
    """Reading, then what was trained, in the order they were asked for."""
    return list(dict.fromkeys(str(one.labels["learner"]) for one in study.arrays(quantity="p")))


def _values(study: Study, quantity: str, init: str, over: Callable[..., Any], **labels: Any) -> np.ndarray:
    """[task, seed, query]: what ``over`` leaves of [seed, …, query, …]; nan where a task has fewer queries."""
    spec, found = _spec(study), []
    for task in spec.task:
        found.append(over(study.stack("seed", spec.seeds, quantity=quantity, init=init, task=task, **labels)))
    most = max(one.shape[1] for one in found)
    return np.stack([np.pad(one, ((0, 0), (0, most - one.shape[1])), constant_values=np.nan) for one in found])


def _as_they_are(values: np.ndarray) -> np.ndarray:
    return values


def spread_of_p(study: Study, learner: str, init: str) -> np.ndarray:
    """The standard deviation over orders of p(right label)."""
    return _values(study, "p", init, partial(np.std, axis=1, ddof=1), learner=learner)


def change_of_p(study: Study, learner: str, init: str) -> np.ndarray:
    """How far the mean over orders is from zero-shot."""
    mean = _values(study, "p", init, partial(np.mean, axis=1), learner=learner)
    return np.abs(mean - _values(study, "zero-shot p", init, _as_they_are))


def spread_of_updates(study: Study, learner: str, init: str) -> np.ndarray:
    """The mean over layers."""
    return _values(study, "spread", init, partial(np.nanmean, axis=-1), learner=learner)


def overlap(study: Study, quantity: str, learner: str, init: str) -> Number:
    return shown(estimate(_values(study, quantity, init, _as_they_are, learner=learner), SHARE))


def shown(found: Estimate, digits: int = 3) -> Number:
    return Number(found.mean, found.low, found.high, digits)


def over_rounding(values: np.ndarray, digits: int = 3) -> Number:
    """An estimate of a spread, which is between 0 and 1; where it is rounding, its size."""
    found = estimate(values, SHARE)
    return Size(found.mean, digits=2) if 0 < abs(found.mean) < 1e-4 else shown(found, digits)


def _in_logs(spreads: np.ndarray) -> np.ndarray:
    """[task, seed, 1]: the logarithm of a draw's mean over queries. Spreads are compared by how many times one is the
    other: some are rounding errors, and what is left of them says how small, not how far from 0."""
    return np.log(np.maximum(np.nanmean(spreads, axis=2, keepdims=True), ROUNDING))


# tables


def orders_table(study: Study) -> Table:
    rows: list[list[Entry]] = []
    for init in _spec(study).init:
        for name in learners(study):
            title = name if init == "trained" else f"null: {name}, {init} weights"
            p = [over_rounding(measure(study, name, init)) for measure in (spread_of_p, change_of_p)]
            rows.append([title, *p, over_rounding(spread_of_updates(study, name, init))])
    return Table(["", "p varies", "p changes", "updates vary"], rows)


def tokens_table(study: Study) -> Table:
    rows: list[list[Entry]] = []
    for init in _spec(study).init:
        for name in [*learners(study), "zero-shot"]:
            title = name if init == "trained" else f"null: {name}, {init} weights"
            between: Entry = ""
            if name != "zero-shot":
                between = overlap(study, "overlap", name, init)
            with_icl: Entry = ""
            if name != "icl":
                with_icl = overlap(study, "overlap with icl", name, init)
            rows.append([title, between, with_icl])
    return Table(["", "between orders", "with icl"], rows)


def anchors_table(study: Study) -> Table:
    found = {str(one.labels["layer"]): float(one.values) for one in study.arrays(quantity="anchor")}
    return Table(["", "updates vary"], [[name, Size(value, digits=2)] for name, value in found.items()])


# the answer


def answer(study: Study) -> str:
    """What order moves in reading and in every trained learner, and which is more, corrected for all that is said."""
    names, init = learners(study), _spec(study).init[0]
    parts = [
        f"In another order of the same demonstrations reading moves p(right label) by "
        f"{over_rounding(spread_of_p(study, 'icl', init))} (standard deviation) and its update by "
        f"{over_rounding(spread_of_updates(study, 'icl', init))} of its size"
    ]
    asked = [(measure, name) for measure in (spread_of_p, spread_of_updates) for name in names[1:]]
    pairs = [(_in_logs(measure(study, name, init)), _in_logs(measure(study, "icl", init))) for measure, name in asked]
    gaps = holm([difference(one, reading) for one, reading in pairs])
    for moves, measure in (("Training moves p", spread_of_p), ("It moves its update", spread_of_updates)):
        told = dict[str, list[str]]()
        for (other, name), gap in zip(asked, gaps, strict=True):
            if other is measure:
                by = over_rounding(measure(study, name, init)).middle
                told.setdefault(TOLD[gap.verdict], []).append(f"{name}: {by}")
        if told:
            parts.append(f"{moves} " + ", ".join(f"{how} ({'; '.join(those)})" for how, those in told.items()))
    for untrained in _spec(study).init[1:]:
        by_much = over_rounding(spread_of_updates(study, "icl", untrained))
        parts.append(f"With {untrained} weights reading moves its update by {by_much}")
    return " ".join(filter(None, (". ".join(parts) + ".", _spec(study).one_draw)))


READ_ORDERS = (
    "p varies: standard deviation over orders of the probability of the right label among the label words, mean over "
    "queries; p changes: how far its mean over orders is from zero-shot. updates vary: √(Σ‖u − ū‖² / Σ‖u‖²) over "
    "orders of the change of attention outputs at the prompt's last token, mean over layers; 0: order is nothing, "
    "near 1: orders share nothing. all at once: one step on the sum of all demonstrations' losses."
)
READ_TOKENS = (
    "The share of the likeliest next tokens that two orders have in common, and that a learner has in common with "
    "reading in the same order."
)
READ_ANCHORS = (
    "Layers of known order: attention without positions and masks cannot see it, the delta rule takes one step a "
    "demonstration. Random weights and inputs, float64."
)
