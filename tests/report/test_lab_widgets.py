"""What labs let a reader do on their pages: move a demonstration, type a word, compare runs."""

import json
import re

import numpy as np
import pytest
import torch
from browsing import cut, faults_of, opened

from iclgd.labs.languages.answers import asked
from iclgd.labs.languages.drawn import automaton
from iclgd.labs.languages.reading import readings
from iclgd.labs.languages.run import together
from iclgd.labs.languages.spec import RunSpec
from iclgd.labs.linear import widgets
from iclgd.labs.linear.play import played
from iclgd.labs.linear.spec import TrainSpec
from iclgd.overview import overview
from iclgd.report.page import Page, Section
from iclgd.results import Result, array
from iclgd.small.languages.automaton import encode
from iclgd.small.languages.expressions import language
from iclgd.small.languages.prepare import Data, prepare
from iclgd.small.languages.references import references
from iclgd.study import Study
from iclgd.tasks.regression import Episodes
from iclgd.tools import Tools


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """Layers with planted weights and curves: a study, and the file of what it lets a reader do."""
    spec, random = TrainSpec.of({"dx": 2, "k": 3, "seeds": 2}), np.random.default_rng(0)
    results, steps = {}, {"step": (0, 10, 20)}
    likeness = {"coordinates": steps | {"metric": ("cosine", "prediction")}, "learner": "gd ×1"}
    for place, cell in enumerate(spec.cells()):
        weights = [
            array(random.normal(size=(3, 3)), "row", "column", quantity="weights", side=side, matrix=matrix)
            for side in ("learned", "constructed")
            for matrix in ("qk", "pv")
        ]
        loss = [1.0, 0.5 + 0.1 * place, 0.25 + 0.1 * place]
        curves = [
            array(loss, "step", coordinates=steps, quantity="loss by step", learner="trained"),
            array([[0.1, 2], [0.5, 1], [0.9, 0.5]], "step", "metric", quantity="likeness by step", **likeness),
            array(0.2, quantity="loss", learner="gd ×1"),
            array([1.0], "metric", coordinates={"metric": ("spd",)}, quantity="likeness", learner="gd ×1"),
            array(0.3, quantity="rate / N", learner="gd ×1"),
        ]
        results[str(cell.labels["seed"])] = Result({}, [*weights, *curves])
    study = Study("linear train", spec, spec.cells(), list(results), results)
    sections = [
        *played(study),
        Section("Training", widget=widgets.training(study)),
        Section("Weights", widget=widgets.weights(study)),
    ]
    path = tmp_path_factory.mktemp("linear") / "index.html"
    path.write_text(Page("t", "s", "a", sections).html(), encoding="utf-8")
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
            "g => [iclgd.regression.layer(g.w, g.x, g.y, g.q), iclgd.regression.descent(.3, g.x, g.y, g.q), "
            "iclgd.regression.ridge(.1, g.x, g.y, g.q)]",
            given,
        )
    assert found == pytest.approx([layer, descent, ridge], rel=1e-9)


def test_moving_a_demonstration_moves_every_answer(browser, linear):
    with opened(browser, linear[1]) as page:
        answers = page.locator(".widget").first.locator("tbody td:nth-child(2)")
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
    for width in (390, 1400):
        with opened(browser, path, width=width) as page:
            page.get_by_role("textbox").fill("a" * 30 + "b")
            assert cut(page) == []
    assert faults_of(browser, path) == []


def test_the_border_between_two_matrices_is_moved_by_mouse_and_keys_and_uncovers_the_other(browser, linear):
    study, path = linear
    learned, built = (
        study.arrays(quantity="weights", side=side, matrix="pv", seed=0)[0].values
        for side in ("learned", "constructed")
    )
    cosine = (learned * built).sum() / np.linalg.norm(learned) / np.linalg.norm(built)
    with opened(browser, path) as page:
        place = page.locator("section", has=page.get_by_role("heading", name="Weights"))
        place.locator("select[name=matrix]").select_option("P Wᵥ")
        assert f"Cosine {cosine:.3f}".replace("0.", ".").replace("-", "−") in place.get_by_role("status").inner_text()
        widths = "all => all.map(one => Number(one.getAttribute('width')))"
        clips, slider = place.locator("clipPath rect"), place.get_by_role("slider")
        left, right = clips.evaluate_all(widths)
        assert left == right
        slider.focus()
        for _ in range(10):
            page.keyboard.press("ArrowRight")
        moved = clips.evaluate_all(widths)
        assert moved[0] == pytest.approx(1.2 * left)
        assert sum(moved) == pytest.approx(2 * left)
        svg = place.locator("svg.wipe")
        box = svg.bounding_box()
        page.mouse.move(box["x"] + 60, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + 44, box["y"] + 60)
        page.mouse.up()
        assert clips.evaluate_all(widths)[0] == pytest.approx(0, abs=1)
        svg.focus()
        page.keyboard.press("ArrowDown")
        told = page.locator("#tip").inner_text()
        row, column, *values = map(float, re.findall(r"-?[\d.]+", told.replace("seed 0", "").replace("−", "-")))
        at = int(row) - 1, int(column) - 1
        assert values == pytest.approx([built[at], learned[at]], abs=6e-4)
        place.locator("select[name=right]").select_option("constructed")
        assert "Cosine 1.000" in place.get_by_role("status").inner_text()


def test_curves_are_the_mean_of_all_seeds_or_one_seeds_own(browser, linear):
    with opened(browser, linear[1]) as page:
        place = page.locator("section", has=page.get_by_role("heading", name="Training"))
        assert place.locator(".title").all_inner_texts() == [widgets.LOSS, widgets.COSINE, widgets.FAR]
        place.get_by_text("Numbers").click()
        last = place.locator("tbody tr", has_text="20").first
        assert ".300 [.250 .350]" in last.inner_text()
        alike = place.locator("tbody tr", has_text=widgets.COSINE).last.inner_text()
        assert ".900" in alike
        levels = place.locator("svg.plot").evaluate_all("all => all.map(one => one.scale?.('y')?.type)")
        assert [level for level in levels if level][-3:] == ["log", "linear", "log"]  # a cosine has no logarithm
        place.locator("select[name=seed]").select_option("1")
        assert ".350" in last.inner_text()
        assert place.locator(".legend li").all_inner_texts() == ["trained", "gd ×1"]


@pytest.mark.parametrize("encoder", ["pca", "autoencoder:steps=2"])
def test_what_the_page_answers_about_typed_words_is_what_python_answers(browser, tmp_path, encoder):
    small = {"language": "a*bc*", "encoder": encoder, "dims": 3, "max_length": 6, "k": 4, "labels": "sign"}
    spec = RunSpec.of({**small, "steps": 2, "batch": 4, "episodes": 4, "seeds": 1})
    cells = spec.cells()
    results = dict(enumerate(together(cells, Tools())))
    study = Study("languages run", spec, cells, list(map(str, results)), {str(i): r for i, r in results.items()})
    (reading,) = readings(study)
    path = tmp_path / "index.html"
    path.write_text(Page("t", "s", "a", asked(reading)).html(), encoding="utf-8")
    expected = _by_python(cells[0], reading, ["aabc", "cba"])
    with opened(browser, path) as page:
        page.get_by_role("textbox", name="Words to ask about, separated by spaces").fill("aabc cba axb aaaaaaab")
        rows = [row.locator("td").all_inner_texts() for row in page.locator(".widget tbody tr").all()]
        for row, wanted in zip(rows, expected, strict=False):
            found = [float(text.replace("−", "-")) for text in row[1:]]
            assert found == pytest.approx(wanted, abs=0.0051)
        assert [row[0] for row in rows] == [
            "✓ member",
            "✗ no member",
            "has a letter that is not in abc",
            "longer than 6 letters",
        ]
        page.get_by_role("button", name="turn every label").click()
        turned = page.locator(".widget tbody tr").first.locator("td").all_inner_texts()[1:]
        assert [float(text.replace("−", "-")) for text in turned][1] == pytest.approx(-expected[0][1], abs=0.0051)
        page.get_by_role("textbox", name="demonstration 1").fill("axe")
        assert "3 demonstrations; 1 cannot be read and is left out." in page.locator(".widget").inner_text()
    assert faults_of(browser, path) == []


def _by_python(cell, reading, words):
    """Answers of the trained layer and of every learner, from the words of the episode on."""
    prepared = prepare(cell.spec.part(Data, seeds=(0,)))
    task, _ = prepared.tasks(4, True)[0]
    tuned, found = references(task, 0, False), reading.results[0]
    shown, labels = zip(*found.facts["episode"], strict=True)
    codes, asked_ = (torch.tensor(prepared.encoders[0](encode(list(some), "abc", 6))) for some in (shown, words))
    y = torch.tensor(labels, dtype=codes.dtype)[:, None]
    qk, pv = (torch.tensor(reading.matrix("trained", name)[0]) for name in ("qk", "pv"))
    answers = []
    for query in asked_:
        episodes = Episodes(codes[None], y[None], query[None, None], torch.zeros(1, 1, 1))
        tokens = torch.cat([codes, y], 1)
        layer = -(pv @ (tokens.mT @ (tokens @ (qk @ torch.cat([query, torch.zeros(1)])))) / len(tokens))[-1]
        answers.append([float(layer), *(float(learner(episodes)) for learner in tuned.learners.values())])
    return answers


def test_what_is_taken_away_is_escaped_for_where_it_goes(browser, linear):
    rows = [[{"text": "50% $x_1$ & {y}\\"}, {"text": "=1+1"}, {"text": "a|b <i>"}]]
    with opened(browser, linear[1]) as page:
        tex, md, csv = (
            page.evaluate(f"rows => iclgd.save.{form}(['a', 'b_c', 'd'], rows)", rows)
            for form in ("asLatex", "asMarkdown", "csv")
        )
    assert r"50\% \$x\_1\$ \& \{y\}\textbackslash{} & =1+1 & a|b <i> \\" in tex
    assert r"a & b\_c & d \\" in tex
    assert r"| =1+1 | a\|b &lt;i> |" in md
    assert '"\'=1+1"' in csv  # a spreadsheet would run it


def test_two_runs_stand_side_by_side_and_hostile_names_are_text(browser, tmp_path):
    hostile = "</script><img src=x onerror=alert(1)>"

    def number(value):
        return {"value": value, "low": value - 0.1, "high": value + 0.1}

    for name, lab, k, mean in (("a", "one", 3, 0.25), (hostile, "one", 5, 0.75), ("c", "other", 3, 0.5)):
        folder = tmp_path / name.replace("/", "∕")
        folder.mkdir()
        table = {
            "header": ["", "cosine", "more"],
            "rows": [["gd", number(mean), number(9)], [hostile, number(mean), ""]],
        }
        record = {"lab": lab, "answer": f"It is {name}.", "sections": [{"title": "In short", "table": table}]}
        (folder / "study.json").write_text(json.dumps(record), encoding="utf-8")
        (folder / "spec.yaml").write_text(f"k: {k}\ntask: {json.dumps(hostile)}\n", encoding="utf-8")
        (folder / "index.html").write_text("", encoding="utf-8")
    path = tmp_path / "index.html"
    path.write_text(overview(tmp_path).html(), encoding="utf-8")
    with opened(browser, path) as page:
        place = page.locator("section", has=page.get_by_role("heading", name="Run against run"))
        place.locator("select[name=first]").select_option("a")
        asked_for = place.get_by_role("region", name="Asked for").locator("tbody tr").all_inner_texts()
        assert [row.split() for row in asked_for] == [["k", "3", "5"]]
        numbers = place.get_by_role("region", name="In short: cosine").locator("tbody tr").all_inner_texts()
        assert numbers[0].split("\t") == ["gd", ".250 [.150 .350]", ".750 [.650 .850]"]
        place.locator("select[name=column]").select_option("more")
        assert "9.000 [8.900 9.100]" in place.get_by_role("region", name="In short: more").inner_text()
        place.locator("select[name=second]").select_option("c")
        assert "one and other are different labs." in place.inner_text()
        assert "second=c" in page.url
        assert page.locator("main img").count() == 0
    assert faults_of(browser, path) == []
