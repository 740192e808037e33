"""The ledger as a page: claims by paper, verdict and tier, each with its evidence and its command."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iclgd.claims.claim import Claim
from iclgd.claims.pages import anchor
from iclgd.claims.shown import MARKS, in_full, of_kept, summed, value_of
from iclgd.papers import PAPERS
from iclgd.report.page import Page, Section
from iclgd.report.widgets import Widget

LEDGER = Path(__file__).parent / "ledger.js"
ABOUT = "Sentences of the papers, what the ledger says of each, and whether a run confirmed it."
TOLD = (
    "✓: a run confirmed what the ledger says of a sentence, ✗: it did not, ○: the ledger leaves it open, ·: not run. "
    "A sentence that fails, and is said to fail, is as it should be. Each opens to its source, what was expected and "
    "measured, and the command that repeats it."
)


def page(claims: Sequence[Claim]) -> Page:
    lines = [of_kept(claim) for claim in claims]
    papers = list(dict.fromkeys(claim.paper for claim in claims))
    what = f"{len(claims)} claims of {len(papers)} papers"
    widget = Widget("ledger", lambda: {"claims": [_plain(claim) for claim in claims]}, ABOUT, (LEDGER,))
    sources = [PAPERS[name].bibtex(name) for name in papers if name in PAPERS]
    answer = f"Of {len(claims)} sentences, runs say: {summed(lines)}."
    return Page("What the papers claim", what, answer, [Section("Claims", TOLD, widget=widget)], sources=sources)


def _plain(claim: Claim) -> dict[str, Any]:
    line, known = of_kept(claim), PAPERS.get(claim.paper)
    return {
        "anchor": anchor(claim.name),
        "paper": known.cited if known else claim.paper,
        "says": claim.says,
        "stands": claim.stands.split(" ")[0],
        "state": line.state,
        "tier": claim.tier,
        "mark": MARKS[line.state],
        "red": line.red,
        "measured": "not run" if line.judgement is None else value_of(line.judgement),
        "full": in_full(claim),
    }
