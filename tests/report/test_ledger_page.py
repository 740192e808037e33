"""The ledger as a page: its answer, and claims that are looked for and opened."""

import dataclasses

from browsing import cut, faults_of, opened

from charted import charted
from iclgd.claims.claim import CLAIMS
from iclgd.claims.html import ROWS, by_paper, picture
from iclgd.claims.html import answer as ledger_answer
from iclgd.claims.html import page as ledger


def test_the_ledgers_answer_counts_what_holds_and_what_runs_confirm():
    some = [CLAIMS[f"deutch2023.{name}"] for name in ("noise-quarter", "noise-zero", "low-resource", "alpha")]
    assert ledger_answer(some) == "Of 4 sentences 2 hold, 1 fails, as runs confirm; 1 is open."
    assert ledger_answer(some[3:]) == "Of 1 sentence none is judged; 1 is open."
    not_run = dataclasses.replace(some[0], name="deutch2023.nobody-ran-this")
    assert ledger_answer([not_run, *some[1:]]) == "Of 4 sentences 2 hold, 1 fails, which runs confirm of 2; 1 is open."
    counts = {row[0]: row[1:-1] for row in by_paper([*some, CLAIMS["ren2024.thm31"]]).rows}
    assert counts == {"Deutch et al. 2023": ["4", "2", "1", "", "1"], "Ren and Liu 2024": ["1", "1", "", "", ""]}


def test_claims_are_filtered_and_open_to_their_evidence(browser, tmp_path):
    some = [CLAIMS[name] for name in CLAIMS if name.startswith(("dai2022.", "ren2024."))]
    path = tmp_path / "claims.html"
    path.write_text(ledger(some).html(), encoding="utf-8")
    with opened(browser, path, width=390) as page:
        page.locator("select[name=stands]").select_option("fails")
        shown = page.locator(".ledger details")
        assert shown.count() == sum(claim.stands.startswith("fails") for claim in some)
        page.locator("select[name=paper]").select_option("Dai et al. 2022")
        assert shown.count() == sum(claim.stands.startswith("fails") and claim.paper == "dai2022" for claim in some)
        shown.first.locator("summary").click()
        assert "iclgd claims run dai2022." in shown.first.inner_text()
        assert "stands=fails" in page.url
    assert faults_of(browser, path) == []


def test_the_ledgers_picture_counts_what_it_says_of_each_paper_and_of_the_others_together():
    claims = [CLAIMS[name] for name in CLAIMS]
    shown = charted(picture(claims), "name", "part")
    assert sum(count for (count,) in shown.values()) == len(claims)
    assert shown["Ren and Liu 2024", "fails"] == [
        sum(claim.paper == "ren2024" and claim.stands.startswith("fails") for claim in claims)
    ]
    rows = list(dict.fromkeys(name for name, _ in shown))
    assert len(rows) == ROWS
    assert rows[-1].endswith(" other papers")
    two = [claim for claim in claims if claim.paper in ("vonoswald2023", "vonoswald2023b")]
    assert len({name for name, _ in charted(picture(two), "name", "part")}) == 2  # cited alike, told apart


def test_a_part_of_a_bar_tells_its_count_and_shows_its_sentences_when_it_is_pressed(browser, tmp_path):
    some = [CLAIMS[name] for name in CLAIMS if name.startswith(("dai2022.", "ren2024."))]
    path = tmp_path / "claims.html"
    path.write_text(ledger(some).html(), encoding="utf-8")
    fails = [claim for claim in some if claim.paper == "dai2022" and claim.stands.startswith("fails")]
    for width in (390, 1400):
        with opened(browser, path, width=width) as page:
            assert cut(page) == []
            svg = page.locator("svg.plot:not(.swatch)").first
            svg.focus()
            svg.press("ArrowDown")
            svg.press("ArrowRight")
            assert page.locator("#tip").inner_text().split("\n") == ["Dai et al. 2022", f"fails: {len(fails)}"]
            ring = svg.locator("circle").last
            box = svg.bounding_box()
            at = {side: float(ring.get_attribute(f"c{side}")) for side in "xy"}
            page.mouse.click(box["x"] + at["x"], box["y"] + at["y"])
            assert page.locator(".ledger details").count() == len(fails)
            assert "paper=Dai+et+al.+2022&stands=fails" in page.url
