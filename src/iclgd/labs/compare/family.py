"""Differences that a sentence may rely on, corrected for all rows of their table: sentence and row have one verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iclgd.labs.compare.absent import short_of
from iclgd.labs.compare.spec import CONSTANT
from iclgd.labs.compare.spoken import spoken_of
from iclgd.labs.compare.view import Comparison
from iclgd.metrics.differences import Difference, Verdict, holm
from iclgd.nulls import NULLS

Place = dict[str, str]
Pair = tuple[Place, Place]


@dataclass(frozen=True)
class Row:
    """One place minus another: what a table calls it, and the difference corrected for all of the table's (Holm)."""

    name: str
    pair: Pair
    found: Difference
    part: str  # `, 3 of 5 draws` where not every draw has both: what is left may be a selection, and decides nothing

    @property
    def verdict(self) -> Verdict:
        return "undecided" if self.part else self.found.verdict


def family(comparison: Comparison, tasks: Sequence[str], position: str, metric: str) -> list[Row]:
    """Every difference of a metric that is known, corrected together; made once, for the table and for the answer."""

    def make() -> list[Row]:
        named = compared(comparison, metric) if metric in comparison.metrics else {}
        found = {name: comparison.difference(tasks, position, *pair) for name, pair in named.items()}
        known = {name: one for name, one in found.items() if one is not None}
        corrected = zip(known, holm(list(known.values())), strict=True)
        return [Row(name, named[name], one, short_of(comparison, tasks, *named[name])) for name, one in corrected]

    return comparison.shared(("family", tuple(tasks), position, metric), make)


def apart(comparison: Comparison, one: Mapping[str, str], two: Mapping[str, str]) -> Row | None:
    """One minus two over all tasks, as the table of their metric has it; none where it has no such row."""
    rows = family(comparison, comparison.spec.task, comparison.spec.position, one["metric"])
    return next((row for row in rows if row.pair == (one, two)), None)


def nulls(comparison: Comparison) -> dict[str, str]:
    """Of every null that was run, its label and its title with the options that are not the default."""
    known = {choice.label: choice for choice in comparison.spec.nulls}
    return {
        label: _with_options(NULLS[choice.name].title or choice.kind, label.removeprefix(choice.kind))
        for label, choice in known.items()
        if label in comparison.known("null")
    }


def _with_options(title: str, options: str) -> str:
    return f"{title} ({options.strip()})" if options else title


def compared(comparison: Comparison, name: str) -> dict[str, Pair]:
    """Trained − untrained, learner − each null, one learner − another: what is paired, by what a table calls it.

    Of accuracies it is reading and learners − zero-shot, and right − wrong labels.
    """
    metric = comparison.metrics[name]
    base, titles = {"init": comparison.spec.init[0], "metric": name}, nulls(comparison)
    if metric.by == "query" and metric.alone:
        return _of_accuracy(comparison, base)
    found: dict[str, Pair] = {}
    for choice in comparison.spec.trained:
        own = {**base, "learner": choice.label}
        found |= {f"{choice.label} − {title}": (own, {**own, "null": null}) for null, title in titles.items()}
        untrained = () if metric.contrast else comparison.spec.init[1:]
        found |= {f"{choice.label}: {base['init']} − {init}": (own, {**own, "init": init}) for init in untrained}
    if metric.by == "query":
        found |= _of_answers(comparison, base)
    for a, b in comparison.spec.pairs:
        found[f"{b.label} − {a.label}"] = ({**base, "learner": b.label}, {**base, "learner": a.label})
    return found


def _of_accuracy(comparison: Comparison, base: Place) -> dict[str, Pair]:
    """Reading and every learner against zero-shot, and against themselves on wrong labels."""
    places = [{**base, "learner": one} for one in ("icl", *(choice.label for choice in comparison.spec.trained))]
    zero = {**base, "learner": "zero-shot"}
    over_zero: dict[str, Pair] = {f"{own['learner']} − zero-shot": (own, zero) for own in places}
    return over_zero | {
        f"{own['learner']}: right − wrong labels": (own, {**own, "null": "wrong-labels"}) for own in places
    }


def _of_answers(comparison: Comparison, base: Place) -> dict[str, Pair]:
    """Learners against one answer for all queries, and each kind of them against the first."""
    one = {**base, "learner": CONSTANT}
    learners = [choice.label for choice in comparison.spec.trained]
    found: dict[str, Pair] = {f"{name} − {CONSTANT}": ({**base, "learner": name}, one) for name in learners}
    if spoken := spoken_of(comparison):
        first, *rest = ({**base, "learner": choice.label} for choice in spoken)
        found |= {f"{other['learner']} − {first['learner']}": (other, first) for other in rest}
    return found
