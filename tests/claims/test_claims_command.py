"""`iclgd claims`: listed, shown, run, kept, verified; the exit status says whether all is as the ledger says."""

import json
from dataclasses import replace

import pytest

from iclgd.claims import kept as kept_
from iclgd.claims import shown
from iclgd.claims.claim import CLAIMS
from iclgd.claims.expect import AtMost
from iclgd.cli import main
from iclgd.lab import LABS

SOME = ("dai2022.dual-form", "ren2024.one-step-is-descent")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A store and kept verdicts of one's own."""
    monkeypatch.setenv("ICLGD_STORE", str(tmp_path / "cells"))
    monkeypatch.setattr(kept_, "FOLDER", tmp_path / "verdicts")
    kept_._file.cache_clear()
    yield tmp_path / "verdicts"
    kept_._file.cache_clear()


def said(capsys, *args: str) -> tuple[int, str]:
    code = 0
    try:
        main(["claims", *args])
    except SystemExit as stop:
        code = int(stop.code or 0)
    return code, capsys.readouterr().out


def test_a_refuted_sentence_is_green_and_says_fails(capsys, place):
    code, out = said(capsys, "run", *SOME)
    assert code == 0
    assert "✓ ren2024.one-step-is-descent  fails" in out
    assert "✓ dai2022.dual-form  holds" in out
    assert out.splitlines()[-1] == "2 as we say"


def test_disagreement_is_red_and_the_exit_status_is_one(capsys, place, monkeypatch):
    monkeypatch.setitem(CLAIMS._things, SOME[0], replace(CLAIMS[SOME[0]], stands="fails"))
    code, out = said(capsys, "run", *SOME)
    assert code == 1
    assert "✗ dai2022.dual-form  fails" in out
    assert out.splitlines()[-1] == "1 as we say · 1 not"


def test_an_error_is_red_and_hides_no_other(capsys, place, monkeypatch):
    def broken(study):
        raise RuntimeError("not today")

    monkeypatch.setitem(CLAIMS._things, SOME[0], replace(CLAIMS[SOME[0]], measure=broken))
    code, out = said(capsys, "run", *SOME)
    assert code == 1
    assert "! dai2022.dual-form  holds  RuntimeError: not today" in out
    assert out.splitlines()[-1] == "1 as we say · 1 in error"


def test_what_was_kept_is_listed_and_shown_in_full(capsys, place):
    assert "dai2022.dual-form  holds  not run" in said(capsys, "--match", "dual-form")[1]
    said(capsys, "run", *SOME, "--keep")
    listed = said(capsys, "--paper", "dai2022")[1]
    assert "✓ dai2022.dual-form  holds" in listed
    full = said(capsys, "show", SOME[0])[1]
    for part in (
        "source     Bar Natan 2023, eq. 2–4",
        "measured   holds",
        "cells",
        "iclgd claims run dai2022.dual-form",
    ):
        assert part in full
    assert "@misc{natan2023," in full
    assert max(map(len, (listed + full.partition("@misc")[0]).splitlines())) <= 80


def test_a_claim_on_a_study_names_the_command_whose_page_draws_it(capsys):
    full = said(capsys, "show", "ren2024.panel-left")[1]
    assert "figures    iclgd dual train" in full
    assert "negative:k=3:beta=0.5" in full
    assert "figures" not in said(capsys, "show", "dai2022.dual-form")[1]


def test_a_kept_verdict_that_a_run_changes_is_red(capsys, place, monkeypatch):
    said(capsys, "run", *SOME, "--keep")
    real = CLAIMS[SOME[0]].measure
    monkeypatch.setitem(
        CLAIMS._things, SOME[0], replace(CLAIMS[SOME[0]], stands="open", measure=lambda s: [x + 1 for x in real(s)])
    )
    code, out = said(capsys, "run", *SOME)
    assert code == 1
    assert "the verdict kept is holds, this run says fails" in " ".join(out.split())


def test_verify_runs_every_cell_anew(capsys, place, tmp_path):
    said(capsys, "run", *SOME, "--keep")
    for record in (tmp_path / "cells").glob("*/record.json"):
        record.write_text("{}")  # a store that nobody should read
    assert said(capsys, "run", *SOME, "--verify")[0] == 0
    assert said(capsys, "run", *SOME)[0] == 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--verify",), "stopped; nothing is kept of what is run anew: the same command begins again."),
        ((), "stopped before a cell was finished: the same command begins again."),
    ],
)
def test_a_run_that_is_stopped_says_what_is_kept_of_it(capsys, place, monkeypatch, given, sentence):
    def stopped(cell, tools):
        raise KeyboardInterrupt

    monkeypatch.setitem(LABS._things, "identities", replace(LABS["identities"], run=stopped))
    with pytest.raises(SystemExit) as stop:
        main(["claims", "run", *SOME, *given])
    assert stop.value.code == 130
    assert capsys.readouterr().err.strip() == f"iclgd: {sentence}"


def test_claims_are_chosen_by_paper_tier_stand_and_words(capsys, place):
    found = json.loads(said(capsys, "--paper", "ren2024", "--tier", "seconds", "--stands", "fails", "--json")[1])
    names = {one["claim"] for one in found}
    assert "ren2024.one-step-is-descent" in names
    assert all(one["stands"] == "fails" and one["tier"] == "seconds" for one in found)
    assert {one["claim"] for one in json.loads(said(capsys, "--match", "Kendall", "--json")[1])} == {
        "dai2022.attention-ranks",
        "dai2022.ranks-of-noise",
    }


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("run", "dai2022.dual-from"), "Did you mean dai2022.dual-form"),
        (("run", "--tier", "days"), "--tier takes seconds, minutes, hours"),
        (("--match", "nothing of the kind"), "no claim has all of that"),
        (("run", "--jobs", "0"), "--jobs must be at least 1"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(capsys, place, args, complaint):
    with pytest.raises(SystemExit) as stop:
        main(["claims", *args])
    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err


def test_json_has_what_was_measured(capsys, place):
    (one,) = json.loads(said(capsys, "run", SOME[0], "--json")[1])
    assert (one["state"], one["measured"], one["stands"]) == ("as we say", "holds", "holds")
    assert one["findings"][""]["count"] == 3


def test_json_has_the_published_number_and_the_verdict_of_every_model(capsys):
    (one,) = json.loads(said(capsys, "--match", "attention-ranks", "--json")[1])
    assert one["published"]["value"].startswith(".193")
    assert one["models"] == {"gemma3-270m": "fails", "smollm2-135m": "fails"}
    assert one["chosen_after"] is False


def test_a_scorecard_lays_a_model_beside_those_that_are_kept(place):
    claim = replace(CLAIMS["dai2022.updates-are-alike"], expect=AtMost(1.0))
    found = claim.expect.judge([0.1, 0.2])
    text = shown.scorecard([shown.Line(claim, "as we say", found)], "mine")
    assert "dai2022.updates-are-alike" in text
    assert "mine" in text


def test_a_folder_that_is_no_model_gets_a_scorecard_that_says_why(capsys, place, tmp_path):
    (tmp_path / "empty").mkdir()
    code, out = said(capsys, "run", "ren2024.thm31-real-heads", "--model", str(tmp_path / "empty"))
    assert code == 1
    assert "1 error: " in out
    assert "holds no safetensors file" in out
    assert out.splitlines()[-1] == "empty: 1 error"
