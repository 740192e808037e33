"""The ledger as Markdown, for the documents: all claims by paper, the state of the question, counts, a table.

Blocks `<!-- fill ledger … -->` of the documents ask for one of these; `docs/fill.py` writes them.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from iclgd.claims.claim import CLAIMS, Claim
from iclgd.claims.kept import DEFAULT, judgement_of, kept, models_of
from iclgd.claims.shown import MARKS, Line, of_kept, summed, value_of
from iclgd.claims.state import SECTIONS, STANDS
from iclgd.errors import Refusal
from iclgd.papers import PAPERS
from iclgd.report.page import Table


def own() -> list[Claim]:
    """The claims of this package, paper by paper, oldest first."""
    found = [claim for claim in CLAIMS.items() if claim[1].paper in PAPERS]
    return [claim for _, claim in sorted(found, key=lambda item: (PAPERS[item[1].paper].year, item[1].paper))]


def counts(_home: str) -> str:
    """`131 as we say · 9 open · 29 not run`."""
    papers = {claim.paper for claim in own()}
    return f"{summed([of_kept(claim) for claim in own()])}, of {len(own())} claims of {len(papers)} papers"


def claims(_home: str) -> str:
    """Every claim: what it says, where that stands, what was expected and measured, what the ledger says."""
    parts = []
    for paper in dict.fromkeys(claim.paper for claim in own()):
        mine = [claim for claim in own() if claim.paper == paper]
        about = PAPERS[paper]
        link = f" ([arXiv {about.arxiv}](https://arxiv.org/abs/{about.arxiv}))" if about.arxiv else ""
        parts += [f"\n### {about.cited}\n\n*{about.title}*{link}{f'; {about.venue}' if about.venue else ''}\n"]
        parts += [_entry(claim) for claim in mine]
    return "\n" + "\n".join(parts) + "\n"


def _entry(claim: Claim) -> str:
    """A claim as a paragraph with an anchor that other pages link to."""
    line = of_kept(claim)
    where = f"{PAPERS[claim.source.document].cited if claim.source.document in PAPERS else claim.source.document}"
    told = [
        f'<a id="{anchor(claim.name)}"></a>{MARKS[line.state]} **{claim.name}** · {claim.stands} · {claim.tier}  ',
        f"{_safe(claim.says)} ({where}, {_safe(claim.source.where)})  ",
        f"Expected{f', {_safe(claim.of)}' if claim.of else ''}: {_safe(str(claim.expect))}"
        + ("; set after a measurement was seen" if claim.chosen_after else "")
        + f". {_measured(claim, line)}",
    ]
    if claim.published is not None:
        apart = f" (not comparable digit by digit: {claim.published.apart})" if claim.published.apart else ""
        told.append(f"Published: {_safe(claim.published.value)}{_safe(apart)}.")
    if claim.note:
        told.append(_safe(claim.note))
    return "\n".join(told) + "\n"


def _measured(claim: Claim, line: Line) -> str:
    if line.judgement is None:
        return f"Not run yet{': it needs ' + ' and '.join(claim.needs) if claim.needs else ''}."
    records = {m: record for m in models_of(claim) if (record := kept(claim, m)) is not None}
    found = {f" on {m}": judgement_of(record) for m, record in records.items()} or {"": line.judgement}
    return " ".join(f"Measured{on}: {_safe(value_of(one, 6))}: {one.verdict}." for on, one in found.items())


def _safe(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return text.replace("*", r"\*").replace("|", r"\|").replace("<", "&lt;").replace("_", r"\_")


def anchor(name: str) -> str:
    return name.replace(".", "-").replace("_", "-").lower()


def state(home: str, section: str = "") -> str:
    """The sentences of one section, each with the claims that it rests on and how they stand.

    A sentence of which no claim was run stands among the open ones, with what the ledger expects.
    """
    if section not in SECTIONS:
        raise Refusal(f'there is no section "{section}": {", ".join(SECTIONS)}.')
    lines = []
    for stand in STANDS:
        rests = [of_kept(CLAIMS[name]) for name in stand.claims]
        unknown = all(line.state == "not run" for line in rests)
        if section == ("open" if unknown else stand.section):
            links = " ".join(_link(line.claim, home, str(i)) for i, line in enumerate(rests, 1))
            expected = f"Expected, not yet run ({stand.section}): " if unknown and stand.section != "open" else ""
            lines.append(f"- {expected}{_safe(stand.says)} ({_confirmed(rests)}: {links})")
    return "\n" + "\n".join(lines) + "\n"


def _confirmed(lines: Iterable[Line]) -> str:
    """`5 ✓`, `1 ✓ on smollm2-135m, 1 not run`, `4 ✓, of them 3 on smollm2-135m`, `2 ○`."""
    lines = list(lines)
    run = [line for line in lines if line.state == "as we say"]
    agree = Counter(model for line in run for model in models_of(line.claim) if _agrees(line.claim, model))
    part = [f"{agree[model]} on {model}" for model in sorted(agree)]
    on = f" on {' and '.join(sorted(agree))}" if set(agree.values()) == {len(run)} else ""
    shown = [f"{len(run)} ✓{on}" + (f", of them {', '.join(part)}" if part and not on else "")] if run else []
    words = {"open": "○", "not as we say": "✗", "not run": "not run"}
    shown += [f"{n} {word}" for state, word in words.items() if (n := sum(x.state == state for x in lines))]
    return ", ".join(shown)


def _agrees(claim: Claim, model: str) -> bool:
    """Whether what is kept of a model is what the ledger says."""
    return of_kept(claim, model).state == "as we say"


def table(home: str, paper: str = "") -> str:
    """A paper's claims as a table: name, what the ledger says, expected, measured."""
    mine = [claim for claim in own() if claim.paper == paper]
    if not mine:
        raise Refusal(f'the ledger has no paper "{paper}".')
    rows = []
    for claim in mine:
        line = of_kept(claim)
        measured = "not run" if line.judgement is None else value_of(line.judgement)
        rows.append([_link(claim, home), claim.stands, str(claim.expect), measured, MARKS[line.state]])
    return f"\n{Table(['', 'stands', 'expected', 'measured', ''], rows).markdown()}\n"


def scorecard(home: str) -> str:
    """What is asked of a language model, and the verdict of each model that was asked."""
    asked = [claim for claim in own() if "model" in claim.needs]
    models = sorted({model for claim in asked for model in models_of(claim)}) or [DEFAULT]
    rows = []
    for claim in asked:
        known = [kept(claim, model) for model in models]
        shown = ["not run" if one is None else f"{one['verdict']}: {value_of(judgement_of(one), 1)}" for one in known]
        rows.append([_link(claim, home, claim.name), claim.stands, str(claim.expect), *shown])
    return f"\n{Table(['', 'stands', 'expected', *models], rows).markdown()}\n"


def _link(claim: Claim, home: str, name: str = "") -> str:
    return f"[{name or claim.short}]({home}#{anchor(claim.name)})"


FORMS: dict[str, Callable[..., str]] = {
    "claims": claims,
    "counts": counts,
    "scorecard": scorecard,
    "state": state,
    "table": table,
}


def answered(words: list[str], home: str = "claims.md") -> str:
    """What a block asks of the ledger; ``home`` is where the block's page finds the list of claims."""
    form, *rest = words
    if form not in FORMS:
        raise Refusal(f'the ledger has no form "{form}": {", ".join(FORMS)}.')
    return FORMS[form](home, *rest)
