"""What an answer rests on, question by question, and what the parts of a grid say of the same questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iclgd.report.numbers import Number, counted

FEW = 3  # parts that are named


@dataclass(frozen=True)
class Found:
    """A number that an answer rests on, and the words that it gave rise to.

    ``verdict`` has no numbers in it: studies that found the same say the same. Without one it is a measurement.
    """

    what: str
    number: Number
    verdict: str = ""

    def plain(self) -> dict[str, Any]:
        return {"what": self.what, "verdict": self.verdict, **self.number.plain()}


Records = Mapping[str, Mapping[str, Any]]  # studies by name, as their folders keep them


def said_by_labs(studies: Records, labs: Mapping[str, str]) -> str:
    """What studies of each lab found, counted."""
    told = []
    for lab in dict.fromkeys(labs.values()):
        mine = {name: one for name, one in studies.items() if labs[name] == lab}
        if said := together(mine):
            told.append(said if len(set(labs.values())) == 1 else f"{lab}: {said[:1].lower()}{said[1:]}")
    return " ".join(told)


def together(studies: Records) -> str:
    """How many of them say what, with the least and the largest number and their intervals.

    Verdicts are counted, each as strong as its own study made it; nothing is pooled, so the whole says no more than
    its parts.
    """
    questions = list(dict.fromkeys(one["what"] for study in studies.values() for one in study.get("found", ())))
    told = [_told(what, _asked(studies, what), len(studies)) for what in questions]
    return " ".join(f"{one[:1].upper()}{one[1:]}." for one in told)


def _asked(studies: Records, what: str) -> dict[str, Mapping[str, Any]]:
    return {name: one for name, study in studies.items() for one in study.get("found", ()) if one["what"] == what}


def _told(what: str, found: Mapping[str, Mapping[str, Any]], of: int) -> str:
    verdicts: dict[str, list[str]] = {}
    for name, one in found.items():
        verdicts.setdefault(one["verdict"], []).append(name)
    numbers = _from_to(what, found)
    silent = f"; no answer in {counted(of - len(found), 'other part')}" if len(found) < of else ""
    if list(verdicts) == [""]:
        return f"{numbers}{silent}"
    said = [
        f"{_those(names, len(found))} {verdict or 'nothing is said of it'}"
        for verdict, names in sorted(verdicts.items(), key=lambda one: -len(one[1]))
    ]
    return f"{'; '.join(said)} ({numbers}){silent}"


def _those(names: Sequence[str], of: int) -> str:
    """`in all 3 parts`, `in 1 of 3 parts (k=5)`."""
    if len(names) == of:
        return {1: f"in {names[0]}", 2: "in both parts"}.get(of, f"in all {of} parts")
    named = f" ({', '.join(names)})" if len(names) <= FEW else ""
    return f"in {len(names)} of {of} parts{named}"


def _from_to(what: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    """The least and the largest, and whether their intervals leave room between them."""
    known = sorted((one for one in found.items() if one[1]["value"] is not None), key=lambda one: one[1]["value"])
    if not known:
        return f"{what}: n/a"
    (first, least), (last, largest) = known[0], known[-1]
    if first == last:
        return f"{what} {least['text']}"
    of = f" (the furthest apart of {len(known)})" if len(known) > 2 else ""
    room = {None: "", True: "; their intervals overlap", False: f"; their intervals{of} do not overlap"}[
        _overlap(least, largest)
    ]
    return f"{what} from {least['text']} in {first} to {largest['text']} in {last}{room}"


def _overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool | None:
    """Of the least and the largest, which are chosen after the fact; None where one has no interval."""
    if one.get("high") is None or other.get("low") is None:
        return None
    return bool(one["high"] >= other["low"])
