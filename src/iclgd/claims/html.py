"""The ledger as a page: claims by paper, verdict and tier, each with its evidence and its command."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iclgd.claims.claim import Claim
from iclgd.claims.pages import anchor
from iclgd.claims.shown import MARKS, in_full, of_kept, value_of
from iclgd.papers import PAPERS
from iclgd.report.bars import bars
from iclgd.report.numbers import counted
from iclgd.report.page import Page, Section, Table
from iclgd.report.widgets import Widget

LEDGER = Path(__file__).parent / "ledger.js"
# what the ledger says of a sentence, of one and of several
WORDS = {
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "depends": ("depends on something", "depend on something"),
}
STANDS = (*WORDS, "open")
ROWS = 14  # of the picture
BY_PAPER = "What the ledger says of the sentences of each paper."
ABOUT = "Sentences of the papers, what the ledger says of each, and whether a run confirmed it."
TOLD = (
    "✓: a run confirmed what the ledger says of a sentence, ✗: it did not, ○: the ledger leaves it open, ·: not run. "
    "A sentence that fails, and is said to fail, is as it should be. Each opens to its source, what was expected and "
    "measured, and the command that repeats it."
)


def page(claims: Sequence[Claim]) -> Page:
    papers = list(dict.fromkeys(claim.paper for claim in claims))
    what = f"{len(claims)} claims of {len(papers)} papers"
    widget = Widget("ledger", lambda: {"claims": [_plain(claim) for claim in claims]}, ABOUT, (LEDGER,))
    sources = [PAPERS[name].bibtex(name) for name in papers if name in PAPERS]
    sections = [Section("Claims", TOLD, widget=widget), Section("By paper", BY_PAPER, by_paper(claims))]
    return Page("What the papers claim", what, answer(claims), sections, sources=sources, picture=picture(claims))


def answer(claims: Sequence[Claim]) -> str:
    """How many sentences hold and do not, as the ledger says, and whether runs say the same."""
    said, states = Counter(map(_said, claims)), Counter(of_kept(claim).state for claim in claims)
    judged, confirmed = len(claims) - said["open"], states["as we say"]
    told = ", ".join(f"{said[one]} {words[said[one] > 1]}" for one, words in WORDS.items() if said[one])
    runs = "as runs confirm" if confirmed == judged else f"which runs confirm of {confirmed}"
    left = f"; {said['open']} {'is' if said['open'] == 1 else 'are'} open" if said["open"] else ""
    return f"Of {counted(len(claims), 'sentence')} {told or 'none is judged'}{f', {runs}' if told else ''}{left}."


def picture(claims: Sequence[Claim]) -> Widget:
    """What the ledger says of the sentences of papers, those with most first and the others together."""
    papers = [paper for paper, _ in Counter(claim.paper for claim in claims).most_common()]
    names = {paper: _cited(paper) for paper in (papers if len(papers) <= ROWS else papers[: ROWS - 1])}
    others = counted(len(papers) - len(names), "other paper")
    said = Counter((names.get(claim.paper, others), _said(claim)) for claim in claims)
    rows = list(dict.fromkeys([*names.values(), *(name for name, _ in said)]))
    counts = {name: {one: said[name, one] for one in STANDS if said[name, one]} for name in rows}
    presses = {"name": "paper", "part": "stands", "names": list(names.values())}
    return bars(counts, "sentences", "What the ledger says of the sentences of each paper, as bars.", presses)


def by_paper(claims: Sequence[Claim]) -> Table:
    """How many sentences of each paper hold and do not, those with most first."""
    found = Counter(claim.paper for claim in claims)
    said = Counter((claim.paper, _said(claim)) for claim in claims)
    rows: list[list[Any]] = []
    for paper, count in found.most_common():
        known = PAPERS.get(paper)
        counts = [str(said[paper, one] or "") for one in STANDS]
        rows.append([_cited(paper), str(count), *counts, known.title if known else ""])
    return Table(["paper", "sentences", *STANDS, "title"], rows)


def _cited(paper: str) -> str:
    """As it is cited, with its name where another one is cited alike."""
    if paper not in PAPERS:
        return paper
    cited = PAPERS[paper].cited
    return cited if [one.cited for one in PAPERS.values()].count(cited) == 1 else f"{cited} ({paper})"


def _said(claim: Claim) -> str:
    return claim.stands.split(" ")[0]


def _plain(claim: Claim) -> dict[str, Any]:
    line = of_kept(claim)
    return {
        "anchor": anchor(claim.name),
        "paper": _cited(claim.paper),
        "says": claim.says,
        "stands": _said(claim),
        "state": line.state,
        "tier": claim.tier,
        "mark": MARKS[line.state],
        "red": line.red,
        "measured": "not run" if line.judgement is None else value_of(line.judgement),
        "full": in_full(claim),
    }
