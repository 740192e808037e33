"""Claims read cells of studies: they run once, are shared, and one that errs hides no other."""

from dataclasses import replace
from math import nan
from pathlib import Path

import pytest

import toy
from iclgd.claims import kept as kept_
from iclgd.claims.claim import CLAIMS, Claim, Place, Read
from iclgd.claims.expect import AtMost, Within
from iclgd.claims.ledger import Asked, cells_of, run_claims
from iclgd.errors import Refusal
from iclgd.running import Where

TOY = Read("toy", {"seeds": 3, "scale": 2})


def means(study):
    return [float(one.values.mean()) for one in study.arrays()]


def made(name: str, **changes) -> Claim:
    given = {"says": "It is so.", "source": Place("toy2020", "§1"), "expect": AtMost(100.0), "reads": (TOY,)}
    return Claim(name, measure=means, **(given | changes))


@pytest.fixture
def known(monkeypatch):
    """Claims that are known during a test only."""
    things = dict(CLAIMS._known)
    monkeypatch.setattr(CLAIMS, "_things", things)

    def add(*claims: Claim) -> list[str]:
        things.update({claim.name: claim for claim in claims})
        return [claim.name for claim in claims]

    return add


@pytest.fixture
def ran():
    """Seeds of the cells that are really run."""
    toy.RAN.clear()
    return toy.RAN


def test_claims_that_read_the_same_cells_share_them_and_cost_nothing_the_second_time(tmp_path, known, ran):
    names = known(made("toy2020.one"), made("toy2020.two"))
    first = run_claims(names, Where(tmp_path))
    assert len(ran) == 3
    second = run_claims(names, Where(tmp_path))
    assert len(ran) == 3
    assert [row.judgement for row in first] == [row.judgement for row in second]
    assert first[0].cells == first[1].cells
    assert len(first[0].cells) == 3


def test_a_reading_can_keep_some_of_its_specs_cells(tmp_path, known, ran):
    names = known(made("toy2020.some", reads=(replace(TOY, only={"seed": (0, 2)}),)))
    (row,) = run_claims(names, Where(tmp_path))
    assert ran == [0, 2]
    assert row.judgement.findings[""].count == 2


def test_readings_of_different_specs_never_run_in_one_group():
    one, two = (cells_of(replace(TOY, fields={"seeds": 2, "scale": scale}), Asked()) for scale in (1, 2))
    assert not {cell.group for cell in one} & {cell.group for cell in two}


def test_a_reading_that_keeps_no_cell_is_a_mistake():
    with pytest.raises(ValueError, match="keeps no cell"):
        cells_of(replace(TOY, only={"seed": (99,)}), Asked())


def test_a_claim_that_errs_hides_no_other(tmp_path, known):
    def broken(study):
        raise RuntimeError("not today")

    unknown = replace(TOY, lab="no such lab")
    names = known(
        made("toy2020.good"), replace(made("toy2020.broken"), measure=broken), made("toy2020.lost", reads=(unknown,))
    )
    good, bad, lost = run_claims(names, Where(tmp_path))
    assert good.state == "as we say"
    assert (bad.state, bad.reason) == ("error", "RuntimeError: not today")
    assert lost.state == "error"
    assert "no such lab" in lost.reason


def test_a_claim_without_the_data_it_needs_is_not_run_and_says_so(tmp_path, known, ran, monkeypatch):
    monkeypatch.delenv("ICLGD_DATA", raising=False)
    (row,) = run_claims(known(made("toy2020.data", needs=("data",))), Where(tmp_path))
    assert (row.state, row.reason) == ("not run", "needs --data")
    assert not ran


def test_nan_is_undecided_and_so_not_as_we_say(tmp_path, known):
    (row,) = run_claims(known(replace(made("toy2020.nan"), measure=lambda study: [nan] * 3)), Where(tmp_path))
    assert row.judgement.verdict == "undecided"
    assert row.state == "not as we say"


def test_another_model_is_asked_where_a_lab_asks_one():
    read = Read("dual check", {"k": 2, "queries": 1})
    own, other = (cells_of(read, Asked(model))[0].spec.model.name for model in ("", "gemma3-270m"))
    assert (own, other) == ("smollm2-135m", "gemma3-270m")


# verdicts that are kept


@pytest.fixture
def row(tmp_path, known):
    return run_claims(known(made("toy2020.kept")), Where(tmp_path / "cells"))[0]


def test_a_verdict_that_is_kept_comes_back(tmp_path, row):
    assert kept_.keep([row], folder=tmp_path) == 1
    record = kept_.kept(row.claim, folder=tmp_path)
    back = kept_.judgement_of(record)
    assert back.verdict == row.judgement.verdict
    assert back.findings[""].value == pytest.approx(row.judgement.findings[""].value, rel=1e-5)
    assert len(record["cells"]) == 3
    assert "torch" in record["versions"]
    assert kept_.changed(row, record, exactly=True) == ""


def test_verdicts_of_models_stand_side_by_side(tmp_path, row):
    about = replace(row, claim=replace(row.claim, needs=("model",)))
    kept_.keep([about], "mine", tmp_path)
    kept_.keep([about], "", tmp_path)
    assert kept_.models_of(about.claim, tmp_path) == ["mine", "smollm2-135m"]
    assert kept_.kept(about.claim, "mine", tmp_path) is not None
    assert kept_.kept(about.claim, "yours", tmp_path) is None


def test_a_verdict_of_another_expectation_does_not_count(tmp_path, row):
    kept_.keep([row], folder=tmp_path)
    assert kept_.kept(replace(row.claim, expect=Within(1, 2)), folder=tmp_path) is None


def test_another_verdict_and_a_number_too_far_off_are_changes(tmp_path, row):
    kept_.keep([row], folder=tmp_path)
    record = kept_.kept(row.claim, folder=tmp_path)
    finding = row.judgement.findings[""]
    further = replace(row, judgement=replace(row.judgement, findings={"": replace(finding, value=finding.value * 3)}))
    assert "was" in kept_.changed(further, record, exactly=True)
    assert kept_.changed(further, record) == ""
    other = replace(row, judgement=replace(row.judgement, verdict="fails"))
    assert "the verdict kept is holds, this run says fails" in kept_.changed(other, record)


def test_a_row_without_a_judgement_leaves_what_is_kept(tmp_path, row):
    kept_.keep([row], folder=tmp_path)
    before = Path(tmp_path / "toy2020.json").read_text()
    assert kept_.keep([replace(row, judgement=None, state="error")], folder=tmp_path) == 0
    assert Path(tmp_path / "toy2020.json").read_text() == before


def test_a_claim_says_holds_fails_open_or_depends_on_something():
    from iclgd.claims.claim import claim

    with pytest.raises(ValueError, match="stands"):
        claim("toy2020.what", "…", Place("toy2020", ""), AtMost(1), TOY, means, stands="maybe")
    with pytest.raises(Refusal):
        CLAIMS["toy2020.what"]
