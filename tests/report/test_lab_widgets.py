"""What labs let a reader do on their pages: move a demonstration, type a word, look for a claim."""

import json
import re

import numpy as np
import pytest
from browsing import faults_of, opened

from iclgd.claims.claim import CLAIMS
from iclgd.claims.html import page as ledger
from iclgd.labs.languages.drawn import automaton
from iclgd.labs.linear.play import played
from iclgd.labs.linear.spec import TrainSpec
from iclgd.report.page import Page
from iclgd.results import Result, array
from iclgd.small.languages.automaton import encode
from iclgd.small.languages.expressions import language
from iclgd.study import Study


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """Layers with planted weights: a study, and the file of what it lets a reader move."""
    spec, random = TrainSpec.of({"dx": 2, "k": 3, "seeds": 2}), np.random.default_rng(0)
    results = {}
    for cell in spec.cells():
        weights = [
            array(random.normal(size=(3, 3)), "row", "column", quantity="weights", side=side, matrix=matrix)
            for side in ("learned", "constructed")
            for matrix in ("qk", "pv")
        ]
        results[str(cell.labels["seed"])] = Result({}, [*weights, array(0.3, quantity="rate / N", learner="gd ×1")])
    study = Study("linear train", spec, spec.cells(), list(results), results)
    path = tmp_path_factory.mktemp("linear") / "index.html"
    path.write_text(Page("t", "s", "a", played(study)).html(), encoding="utf-8")
    return study, path


def test_what_the_linear_page_computes_is_what_python_computes(browser, linear):
    random = np.random.default_rng(1)
    x, y, query = random.normal(size=(5, 3)), random.normal(size=5), random.normal(size=3)
    qk, pv = random.normal(size=(2, 4, 4))
    tokens, asked = np.column_stack([x, y]), np.append(query, 0)
    layer = -(pv @ (tokens.T @ (tokens @ (qk @ asked))) / 5)[-1]
    descent = 0.3 * (y @ x) @ query
    ridge = np.linalg.solve(x.T @ x + 0.1 * np.eye(3), x.T @ y) @ query
    given = {"x": x.tolist(), "y": y.tolist(), "q": query.tolist(), "w": {"qk": qk.tolist(), "pv": pv.tolist()}}
    with opened(browser, linear[1]) as page:
        found = page.evaluate(
            "g => [iclgd.linear.layer(g.w, g.x, g.y, g.q), iclgd.linear.descent(.3, g.x, g.y, g.q), "
            "iclgd.linear.ridge(.1, g.x, g.y, g.q)]",
            given,
        )
    assert found == pytest.approx([layer, descent, ridge], rel=1e-9)


def test_moving_a_demonstration_moves_every_answer(browser, linear):
    with opened(browser, linear[1]) as page:
        answers = page.locator(".widget tbody td:nth-child(2)")
        before = answers.all_inner_texts()
        assert before[0] != before[1]
        point = page.get_by_role("button", name="demonstration 2, moved by arrow keys")
        point.focus()
        for _ in range(15):
            page.keyboard.press("ArrowUp")
        after = answers.all_inner_texts()
        assert all(one != two for one, two in zip(before, after, strict=True))
        point.drag_to(page.get_by_role("button", name="query, moved by arrow keys"), force=True)
        assert answers.all_inner_texts() != after
        page.get_by_role("button", name="as drawn").click()
        assert answers.all_inner_texts() == before
    assert faults_of(browser, linear[1]) == []


def test_the_page_carries_every_seeds_weights(linear):
    study, path = linear
    data = json.loads(re.search(r'id="data-0">(.*?)</script>', path.read_text(encoding="utf-8"))[1])
    assert set(data["trained"]) == {"0", "1"}
    for one in study.arrays(quantity="weights", side="learned", seed=1):
        assert np.allclose(data["trained"]["1"][one.labels["matrix"]], one.values, atol=1e-6)


def test_a_word_that_is_typed_takes_its_path_through_the_automaton(browser, tmp_path):
    found = language("a*bc*")
    words = ["b", "aabcc", "ba", "c", "aab"]
    path = tmp_path / "index.html"
    path.write_text(Page("t", "s", "a", automaton(found, ["ab"])).html(), encoding="utf-8")
    with opened(browser, path) as page:
        page.get_by_role("textbox").fill(" ".join([*words, "axb"]))
        rows = page.locator(".widget tbody tr").all_inner_texts()
        drawn = page.locator("svg.plot text").all_text_contents()
    members = found.accepts(encode(words, found.alphabet))
    assert ["member" in row and "no member" not in row for row in rows] == [*members.tolist(), False]
    assert "not in abc" in rows[-1]
    assert {str(state) for state in range(len(found.table))} <= set(drawn)
    assert faults_of(browser, path) == []


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
