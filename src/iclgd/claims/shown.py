"""Claims as people read them: a line each with its sentence below, one in full, the sum, and data for programs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from iclgd.claims.claim import Claim
from iclgd.claims.expect import Finding, Judgement, state_of
from iclgd.claims.kept import Kept, judgement_of, kept, models_of
from iclgd.errors import Refusal
from iclgd.papers import PAPERS
from iclgd.report.numbers import counted, significant

MARKS = {"as we say": "✓", "open": "○", "not as we say": "✗", "not run": "·", "error": "!"}
WIDTH = 80


@dataclass(frozen=True)
class Line:
    """A claim with what is known of it: just measured, kept, or nothing."""

    claim: Claim
    state: str
    judgement: Judgement | None = None
    reason: str = ""
    seconds: float | None = None

    @property
    def red(self) -> bool:
        return self.state in ("not as we say", "error")


def of_kept(claim: Claim, model: str = "") -> Line:
    """What is kept of a claim."""
    record = kept(claim, model)
    if record is None:
        return Line(claim, "not run")
    found = judgement_of(record)
    return Line(claim, state_of(claim.stands, found), found, found.reason, record["seconds"])


def value_of(judgement: Judgement, most: int = 2) -> str:
    """`2.2e-16`, `.706 [.703 .709]`; of several quantities each by name, the first few of them."""
    findings = list(judgement.findings.items())
    shown = [f"{name} {_number(one)}".strip() for name, one in findings[:most]]
    return ", ".join(shown) + (f", … {len(findings) - most} more" if len(findings) > most else "")


def _number(one: Finding) -> str:
    text = significant(one.value, 3)
    if one.low == one.low and one.high == one.high and one.high > one.low and abs(one.value) > 1e-9:
        text += f" [{significant(one.low, 3)} {significant(one.high, 3)}]"
    return text


def line_of(line: Line, width: int = WIDTH) -> str:
    """`✓ ren2024.thm31  holds  2.2e-16 (expected ≤ 1e-12)`, and the sentence below, wrapped."""
    claim, indent = line.claim, "    "
    head = f"{MARKS[line.state]} {claim.name}  {claim.stands.split()[0]}"
    told = line.reason or (claim.tier if line.state == "not run" else "")
    if line.judgement is not None:
        told = f"{value_of(line.judgement)} (expected {claim.expect})" + (f": {line.reason}" if line.reason else "")
    elif line.state == "not run":
        told = f"not run: {told}"
    first = f"{head}  {told}"
    if len(first) > width:
        first = f"{head}\n{fill(told, width, initial_indent=indent, subsequent_indent=indent)}"
    return f"{first}\n{fill(claim.says, width, initial_indent=indent, subsequent_indent=indent)}"


def listing(lines: Iterable[Line], width: int = WIDTH) -> str:
    """Grouped by paper, and the sum."""
    lines = list(lines)
    parts = []
    for paper in dict.fromkeys(line.claim.paper for line in lines):
        title = f"{PAPERS[paper].cited} · {PAPERS[paper].title}" if paper in PAPERS else paper
        own = [line_of(line, width) for line in lines if line.claim.paper == paper]
        parts.append("\n".join([fill(title, width), *own]))
    return "\n\n".join([*parts, summed(lines)])


def summed(lines: Sequence[Line]) -> str:
    """`97 as we say · 5 open · 2 not · 11 not run`."""
    states = [line.state for line in lines]
    counts = {
        "as we say": "as we say",
        "open": "open",
        "not as we say": "not",
        "not run": "not run",
        "error": "in error",
    }
    shown = [f"{states.count(state)} {word}" for state, word in counts.items() if states.count(state)]
    return " · ".join(shown) or "no claims"


def plain(line: Line) -> dict[str, Any]:
    """For JSON."""
    claim, found = line.claim, line.judgement
    return {
        "claim": claim.name,
        "says": claim.says,
        "source": {"document": claim.source.document, "where": claim.source.where},
        "expect": str(claim.expect),
        "chosen_after": claim.chosen_after,
        "stands": claim.stands,
        "note": claim.note,
        "published": None if claim.published is None else vars(claim.published),
        "tier": claim.tier,
        "needs": list(claim.needs),
        "state": line.state,
        "measured": None if found is None else found.verdict,
        "findings": {} if found is None else {name: vars(one) for name, one in found.findings.items()},
        "reason": line.reason,
        "seconds": line.seconds,
        "models": {model: record["verdict"] for model in models_of(claim) if (record := kept(claim, model))},
    }


def in_full(claim: Claim, width: int = WIDTH, figures: str = "") -> str:
    """Everything that is known of one claim; ``figures``: the command whose page draws what it reads."""
    document = PAPERS.get(claim.source.document)
    of = document.cited if document else claim.source.document
    copy = f" ({document.told})" if document and document.told else ""
    parts = {
        "source": f"{of}, {claim.source.where}{copy}",
        "stands": claim.stands,
        "expected": f"{claim.of + ': ' if claim.of else ''}{claim.expect}"
        + ("; set after a measurement was seen" if claim.chosen_after else ""),
        "published": _published(claim),
        "note": claim.note,
        "needs": ", ".join([claim.tier, *(["a GPU"] if claim.gpu else []), *claim.needs]),
    }
    lines = [claim.name, "", fill(claim.says, width), ""]
    lines += [fill(f"{name:<11}{text}", width, subsequent_indent=" " * 11) for name, text in parts.items() if text]
    for model in ["", *models_of(claim)] if "model" not in claim.needs else models_of(claim):
        if (record := kept(claim, model)) is not None:
            lines += ["", *_evidence(record, model, claim.over, width)]
    reads = [f"{'reads' if not i else '':<11}{_read(read)}" for i, read in enumerate(claim.reads)]
    data = " --data DIR" if "data" in claim.needs else ""
    lines += ["", *[fill(one, width, subsequent_indent=" " * 11) for one in reads]]
    lines += [f"repeat     iclgd claims run {claim.name}{data}"]
    if figures:  # words stay whole, to be copied
        indent, text = " " * 11, f"figures    {figures}"
        lines += [fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)]
    cited = [name for name in dict.fromkeys((claim.paper, claim.source.document)) if name in PAPERS]
    return "\n\n".join(["\n".join(lines), *(PAPERS[name].bibtex(name) for name in cited)])


def drawn_by(claim: Claim) -> str:
    """The command whose page has the figures of what a claim reads; an identity has none."""
    from iclgd.claims.ledger import Asked, spec_of
    from iclgd.study import repeat_line

    read = claim.reads[0]
    return "" if read.lab == "identities" else repeat_line(read.lab, spec_of(read, Asked()), None)


def _published(claim: Claim) -> str:
    if claim.published is None:
        return ""
    return claim.published.value + (
        f"; not comparable digit by digit: {claim.published.apart}" if claim.published.apart else ""
    )


def _read(read: Any) -> str:
    fields = " ".join(f"{name}={_shown(value)}" for name, value in read.fields.items())
    only = "".join(f", only {name} {' or '.join(map(str, among))}" for name, among in read.only.items())
    return f"{read.lab} {fields}{only}".strip()


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _evidence(record: Kept, model: str, over: str, width: int) -> list[str]:
    found = judgement_of(record)
    where = [found.verdict, *([model] if model else []), record["on"], record["device"]]
    head = f"measured   {', '.join(where)}, {record['seconds']:g} s"
    rows = [
        f"{'':<11}{name + ' ' if name else ''}{_number(one)} over {counted(one.count, over)}: {one.verdict}"
        for name, one in found.findings.items()
    ]
    cells = (
        f"cells      {' '.join(record['cells'][:3])}{' …' if len(record['cells']) > 3 else ''} ({len(record['cells'])})"
    )
    return [head, *rows, fill(cells, width, subsequent_indent=" " * 11)]


def scorecard(lines: Sequence[Line], model: str) -> str:
    """What of this literature holds for a model, beside the models of which verdicts are kept; why some was not run."""
    from iclgd.report.page import Table

    others = [name for name in dict.fromkeys(m for line in lines for m in models_of(line.claim)) if name != model]
    rows: list[list[str]] = []
    for line in lines:
        known = [kept(line.claim, other) for other in others]
        own = line.state if line.judgement is None else line.judgement.verdict
        value = "" if line.judgement is None else value_of(line.judgement, 1)
        rows.append([line.claim.name, own, value, *("not run" if one is None else one["verdict"] for one in known)])
    if not rows:
        raise Refusal("none of these claims is about a language model: leave out `model`, or name others.")
    verdicts = [row[1] for row in rows]
    why = [f"{line.state}: {line.reason}" for line in lines if line.judgement is None]
    reasons = [f"{why.count(one)} {one}" for one in dict.fromkeys(why)]
    told = " · ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
    return "\n\n".join([Table(["", model, "", *others], rows).text(), *reasons, f"{model}: {told}"])
