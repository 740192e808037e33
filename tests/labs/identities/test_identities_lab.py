"""The lab `identities`: a cell an identity and a seed; a page; a change of the source runs them again."""

import pytest
import torch

from iclgd.errors import Refusal
from iclgd.labs.dual import modified_identities
from iclgd.labs.dual.modified import Modification, Negative, dual_of
from iclgd.labs.identities import lab
from iclgd.report.numbers import Size
from iclgd.results import Result, array
from iclgd.running import Where, run_study
from iclgd.small import learners
from iclgd.small.fast import RULES
from iclgd.small.identities.drawn import problem
from iclgd.small.known import IDENTITIES
from iclgd.study import Study
from iclgd.tools import Tools

SPEC = lab.IdentitiesSpec(names=("dual-form", "gd-layer"), seeds=2)


def test_a_cell_is_an_identity_and_a_seed():
    assert [(c.labels["identity"], c.labels["seed"]) for c in SPEC.cells()] == [
        ("dual-form", 0),
        ("dual-form", 1),
        ("gd-layer", 0),
        ("gd-layer", 1),
    ]


def test_the_page_shows_the_number_that_is_furthest_from_nothing(tmp_path):
    study = run_study("identities", SPEC, Where(tmp_path))
    rows = {(row[0], row[1]): row[2].value for row in study.table("Numbers").rows}
    found = [float(one.values) for one in study.arrays(identity="gd-layer", quantity="moves")]
    assert rows["gd-layer", "moves"] == max(found, key=abs)
    assert abs(rows["dual-form", "residual"]) < 1e-12
    assert "2 equations · 2 seeds" in study.page.subtitle


def test_every_quantity_of_an_identity_has_its_own_row_to_three_digits():
    cells, keys = SPEC.cells(), list("abcd")
    found = {
        key: Result({}, [array(value, quantity="off"), array(value / 10, quantity="by")])
        for key, value in zip(keys, (0.123456, -0.5, 0.25, 0.0), strict=True)
    }
    page = Study("identities", SPEC, cells, keys, found).page
    assert page.table("Numbers").texts() == [
        ["dual-form", "off", "-.5"],
        ["dual-form", "by", "-.05"],
        ["gd-layer", "off", ".25"],
        ["gd-layer", "by", ".025"],
    ]
    assert page.answer == "Of 4 numbers 0 are 0 to rounding; furthest from it: dual-form (off), .5."
    assert page.sections[0].brief
    assert lab.answer([["one", "off", Size(0.123456)]]).endswith("one (off), .123.")
    found["b"] = found["a"]
    short = Study("identities", SPEC, cells, keys, found).page
    assert short.table("Numbers").texts()[0] == ["dual-form", "off", ".123"]


@pytest.mark.parametrize("values", [{"a": 2.0, "b": 0.5}, {"a": 0.5, "b": 2.0}, {"b": 0.5, "a": 2.0}])
def test_a_row_is_about_its_own_quantity_however_large_the_others_are(values):
    spec = lab.IdentitiesSpec(names=("gd-layer",), seeds=1)
    found = Result({}, [array(value, quantity=name) for name, value in values.items()])
    table = Study("identities", spec, spec.cells(), ["a"], {"a": found}).page.table("Numbers")
    assert [(row[1], row[2].value) for row in table.rows] == list(values.items())


def test_a_run_says_what_it_is_doing():
    said = []
    lab.run(SPEC.cells()[0], Tools(progress=lambda what, done: said.append((what, done))))
    assert said == [("dual-form", 0)]


def test_without_names_all_are_asked():
    assert lab.IdentitiesSpec().names == tuple(IDENTITIES)


def test_an_identity_that_is_not_there_is_refused_with_one_that_is():
    with pytest.raises(Refusal, match="Did you mean dual-form"):
        lab.IdentitiesSpec.of({"names": "dual-from"})


def test_a_change_of_what_computes_runs_them_again(tmp_path, monkeypatch):
    assert run_study("identities", SPEC, Where(tmp_path)).fresh == 4
    assert run_study("identities", SPEC, Where(tmp_path)).fresh == 0
    monkeypatch.setattr(lab, "source", lambda: "another source")
    assert run_study("identities", SPEC, Where(tmp_path)).fresh == 4


def test_the_source_is_all_that_computes_and_nothing_that_shows(tmp_path, monkeypatch):
    files = [tmp_path / name for name in ("labs/identities/lab.py", "small/sums.py", "spec.py", "report/page.py")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("one", encoding="utf-8")
    monkeypatch.setattr(lab, "__file__", str(files[0]))
    seen = [lab.source.__wrapped__()]
    for file in files:
        file.write_text("two", encoding="utf-8")
        seen.append(lab.source.__wrapped__())
    assert len(set(seen)) == 4
    assert seen[3] == seen[4]  # a page was changed
    assert {len(name) for name in seen} == {16}


def test_another_seed_gives_other_inputs():
    for name in ("gd-layer", "softmax-is-one-step", "noise-scores"):
        assert IDENTITIES[name](0) != IDENTITIES[name](1)
        assert IDENTITIES[name](0) == IDENTITIES[name](0)


@pytest.mark.parametrize("seed", [0, 1])
def test_layers_that_learn_as_they_read_answer_as_their_learners(seed):
    """No claim names this identity, so that it is judged here."""
    found = IDENTITIES["learning-layers"](seed)
    assert set(found) == set(RULES)
    assert max(map(abs, found.values())) < 1e-12


def test_what_no_claim_reads_of_an_identity_is_what_it_should_be():
    delta = IDENTITIES["delta-is-sgd"](0)
    assert max(delta[name] for name in ("residual", "gated", "chunks", "output")) < 1e-12
    assert delta["order"] > 0.1
    printed = IDENTITIES["printed-attention"](0)
    assert (printed["defined"], printed["residual"]) == (0.0, 1.0)  # K V q has no value
    assert printed["as V Kᵀ q"] < 1e-12
    p = problem(3)
    start = p.normal(p.sizes[1], p.sizes[0])
    moved = learners.predict(learners.gd(p.x, p.y, p.rate, 1, start) - start, p.x)
    assert IDENTITIES["gd-layer"](3)["moves"] == pytest.approx(float(moved.abs().max()))


@pytest.mark.parametrize("seed", [0, 1])
def test_negatives_as_printed_are_off_by_as_much_as_other_keys_make(seed):
    """Without features: a step on v_j at k_j, where v_j at k_i is meant, moves the answer by Σ a_j v_j in place of
    Σ a_i v_j, summed over pairs, with a what attention gives."""
    query, keys, values, _, block = modified_identities._head(seed)
    scores = dual_of(query, keys, values, block, Modification()).scores
    sets = Negative(3, 0.5).sets(scores, torch.ones_like(scores, dtype=torch.bool))
    given = (keys @ query / keys.shape[-1] ** 0.5).softmax(-1)
    own, shown = given[block.demos], values[block.demos]
    meant = given @ values - 0.5 * own @ (sets @ shown)
    printed = given @ values - 0.5 * (own * sets.sum(0)) @ shown
    found = modified_identities.negatives_as_printed(seed)["as printed"]
    assert found == pytest.approx(float((printed - meant).norm() / meant.norm()))
    assert found > 0.01


@pytest.mark.parametrize("name", list(IDENTITIES))
def test_an_identity_has_a_sentence(name):
    assert IDENTITIES[name].__doc__


def test_the_answer_counts_what_is_rounding_and_names_what_is_not():
    rows = [["one", "residual", Size(1e-15)], ["two", "residual", Size(-0.25)], ["two", "as printed", Size(0.1)]]
    assert lab.answer(rows) == "Of 3 numbers 1 is 0 to rounding; furthest from it: two (residual), .25."
    assert lab.answer(rows[:1]) == "Of 1 number 1 is 0 to rounding."
    several = [["three", word, Size(1e-12)] for word in ("first", "second", "third")] + rows[1:2]
    assert lab.answer(several) == "Of 4 numbers 3 are 0 to rounding; furthest from it: two (residual), .25."
    assert lab.answer([["lost", "residual", Size(float("nan"))]]).startswith("Of 1 number 0 are 0 to rounding")
