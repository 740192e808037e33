"""What counts as a changed number when claims are run again elsewhere."""

from dataclasses import replace

import pytest

from iclgd.claims.claim import CLAIMS
from iclgd.claims.expect import Above, AtMost, Finding, Judgement
from iclgd.claims.kept import changed, record_of
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


def test_of_an_identity_only_the_verdict_counts():
    residual = AtMost(1e-12, each=True)
    assert changed(row(9e-16, expect=residual), record_of(row(1e-16, expect=residual)), True) == ""
    other = changed(row(1.0, expect=residual, verdict="fails"), record_of(row(1e-16, expect=residual)))
    assert other == "the verdict kept is holds, this run says fails"


def test_what_is_nothing_but_rounding_does_not_count():
    assert changed(row(3e-7), record_of(row(1e-7)), True) == ""


def test_without_a_kept_verdict_nothing_has_changed():
    assert changed(row(1.0), None, True) == ""
