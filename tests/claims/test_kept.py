"""What is kept of a run: the numbers that the documents print, and when a run elsewhere has changed them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from iclgd.claims.claim import CLAIMS
from iclgd.claims.expect import Above, AtMost, Finding, Judgement
from iclgd.claims.kept import changed, judgement_of, kept, models_of, record_of
from iclgd.claims.ledger import Row

ABOVE = Above(0.0)


def row(value: float, half: float = 0.0, name: str = "", expect=ABOVE, verdict: str = "holds") -> Row:
    claim = replace(CLAIMS["deutch2023.normalisation-inflates"], expect=expect)
    found = {name: Finding(value, value - half, value + half, 3, verdict)}
    return Row(claim, "as we say", Judgement(verdict, found))


@pytest.mark.parametrize(
    ("now", "half", "same"),
    [(1.04, 0.0, True), (1.06, 0.0, False), (0.94, 0.0, False), (1.06, 1.0, True), (1.11, 1.0, False)],
)
def test_a_number_has_a_twentieth_of_itself_or_of_its_interval_as_room(now, half, same):
    record = record_of(row(1.0, half))
    assert (changed(row(now, half), record, exactly=True) == "") == same
    assert changed(row(now, half), record) == ""  # without --verify verdicts alone count


def test_what_a_changed_number_was_and_is_is_said():
    assert changed(row(2.0), record_of(row(1.0)), True) == "it was 1 and is 2, further than 0.05"
    assert changed(row(1.0, name="sst2"), record_of(row(1.0)), True) == "sst2 is not in the verdict kept"


def test_of_rounding_errors_only_the_verdict_counts_and_of_an_identitys_other_numbers_the_size():
    residual, ratio = AtMost(1e-12, each=True), AtMost(1.0, each=True)
    assert changed(row(9e-16, expect=residual), record_of(row(1e-16, expect=residual)), True) == ""
    assert changed(row(5.6, expect=ratio), record_of(row(8.3, expect=ratio)), True).startswith("it was 8.3 and is 5.6")
    other = changed(row(1.0, expect=residual, verdict="fails"), record_of(row(1e-16, expect=residual)))
    assert other == "the verdict kept is holds, this run says fails"


def test_what_is_nothing_but_rounding_does_not_count():
    assert changed(row(3e-7), record_of(row(1e-7)), True) == ""


@pytest.mark.parametrize("name", CLAIMS)
def test_a_kept_verdict_is_what_its_findings_give(name):
    for model in models_of(CLAIMS[name]) or [""]:
        record = kept(CLAIMS[name], model)
        assert record is not None
        assert CLAIMS[name].expect.of(judgement_of(record).findings).verdict == record["verdict"]


def test_without_a_kept_verdict_nothing_has_changed():
    assert changed(row(1.0), None, True) == ""


ROWS = {  # claim and finding → table and row of the study's page
    ("dai2022.alike-beyond-another-query-on-six-tasks", "label, another query"): (
        "SimAOU",
        "gd 0.001 target=label − another query's update",
    ),
    ("dai2022.alike-beyond-wrong-labels-on-six-tasks", "all tokens, wrong labels"): (
        "SimAOU",
        "gd 0.001 − trained on wrong labels",
    ),
    ("dai2022.labels-alike-on-six-tasks", "all tokens, other demonstrations'"): (
        "contrast, outputs",
        "gd 0.001 − trained on other demonstrations",
    ),
    ("dai2022.label-loss-learns-labels-on-six-tasks", ""): ("accuracy", "gd 0.001 target=label: right − wrong labels"),
    ("deutch2023.lcgd-at-chance", ""): ("accuracy", "lcgd 0.001 − zero-shot"),
}


@pytest.mark.parametrize("model", ["smollm2-135m", "gemma3-270m"])
@pytest.mark.parametrize("place", [place for place in ROWS if models_of(CLAIMS[place[0]])])  # of those that were run
def test_verdicts_on_six_tasks_are_of_the_study_whose_tables_the_documents_print(model, place):
    (name, finding), (metric, row) = place, ROWS[place]
    data = Path(__file__).parents[2] / f"docs/results/data/strong-{model}.json"
    sections = json.loads(data.read_text(encoding="utf-8"))["sections"]
    title = f"Differences in {metric}, at the prompt's last token"
    (table,) = [section["table"]["rows"] for section in sections if section.get("title") == title]
    (printed,) = [entry for first, entry, *_ in table if first == row]
    told = kept(CLAIMS[name], model)["findings"][finding]
    assert [told[part] for part in ("value", "low", "high")] == [printed[part] for part in ("value", "low", "high")]
