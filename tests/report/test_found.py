"""What several studies found together: counted, never stronger than any of them."""

import math

from charted import charted, limits
from iclgd.report.beside import beside
from iclgd.report.found import Found, said_by_labs, together
from iclgd.report.numbers import Number
from iclgd.report.page import Page, Section, Table

ALIKE, NOT = "what labels change is alike", "what labels change is not shown to be alike"
UNDECIDED = "nothing is decided, with 1 seed"


def page(value, low=math.nan, high=math.nan, verdict=NOT, rows=(), what="cosine"):
    table = Table(["", "SimAOU"], [["gd", Number(value)], *rows])
    found = [Found(what, Number(value, low, high), verdict)]
    return Page("t", "s", "a", [Section("In short", table=table, brief=True)], found=found).plain()


def test_parts_that_found_the_same_say_it_once_with_the_least_and_the_largest_number():
    parts = {"a": page(0.03, -0.02, 0.08), "b": page(0.01, -0.01, 0.03), "c": page(0.02, 0.0, 0.04)}
    assert together(parts) == (
        "In all 3 parts what labels change is not shown to be alike (cosine from .010 [-.010 .030] in b to .030 "
        "[-.020 .080] in a; their intervals overlap)."
    )
    assert together({"a": parts["a"], "b": parts["b"]}).startswith("In both parts what labels")
    assert together({"a": parts["a"]}) == f"In a {NOT} (cosine .030 [-.020 .080])."


def test_parts_that_differ_are_counted_and_an_undecided_one_stays_undecided():
    parts = {
        "k=5": page(0.5, 0.4, 0.6, ALIKE),
        "k=8": page(0.02, 0.0, 0.04),
        "k=9": page(0.03, 0.0, 0.04),
        "one": page(0.9, verdict=UNDECIDED),
    }
    said = together(parts)
    assert said == (
        "In 2 of 4 parts (k=8, k=9) what labels change is not shown to be alike; in 1 of 4 parts (k=5) what labels "
        "change is alike; in 1 of 4 parts (one) nothing is decided, with 1 seed (cosine from .020 [.000 .040] in k=8 "
        "to .900 in one)."
    )


def test_a_verdict_is_never_said_of_parts_that_did_not_give_it():
    parts = {name: page(0.5, 0.4, 0.6, ALIKE) for name in "abcd"} | {"e": page(0.0, -0.1, 0.1)}
    said = together(parts)
    assert "in 1 of 5 parts (e) what labels change is not shown to be alike" in said
    assert said.startswith("In 4 of 5 parts what labels change is alike")
    assert "all" not in said.split()
    assert "their intervals (the furthest apart of 5) do not overlap" in said


def test_intervals_that_meet_overlap_and_those_of_three_parts_are_the_furthest_apart():
    a, b, c = page(0.01, -0.01, 0.03), page(0.03, 0.02, 0.06), page(0.5, 0.4, 0.6)
    assert "their intervals overlap" in together({"a": a, "b": b})
    assert together({"a": a, "c": c}).endswith("to .500 [.400 .600] in c; their intervals do not overlap).")
    assert "their intervals (the furthest apart of 3) do not overlap" in together({"a": a, "b": b, "c": c})


def test_parts_that_have_no_answer_are_not_among_all_of_them():
    parts = {name: page(0.5, verdict=ALIKE) for name in "ab"} | {name: {"sections": []} for name in "cd"}
    assert together(parts) == f"In both parts {ALIKE} (cosine from .500 in a to .500 in b); no answer in 2 other parts."
    del parts["d"]
    assert together(parts).endswith("; no answer in 1 other part.")
    measured = {"a": page(0.1, verdict=""), "b": {"sections": []}}
    assert together(measured) == "Cosine .100; no answer in 1 other part."


def test_measurements_have_a_range_and_no_verdict():
    parts = {"a": page(0.1, 0.0, 0.2, ""), "b": page(0.3, 0.25, 0.4, "")}
    assert together(parts) == (
        "Cosine from .100 [.000 .200] in a to .300 [.250 .400] in b; their intervals do not overlap."
    )
    assert together({"a": page(math.nan, verdict="")}) == "Cosine: n/a."


def test_labs_are_told_apart_and_a_lab_without_verdicts_is_passed_over():
    studies = {"a": page(0.1), "b": page(0.2, what="share"), "c": {"sections": []}}
    labs = {"a": "compare", "b": "causal", "c": "dual bound"}
    assert said_by_labs(studies, labs) == (f"compare: in a {NOT} (cosine .100). causal: in b {NOT} (share .200).")
    assert said_by_labs({"c": studies["c"]}, {"c": "dual bound"}) == ""
    alone = {"a": studies["a"], "d": page(0.3)}
    assert said_by_labs(alone, dict.fromkeys(alone, "compare")) == together(alone)  # of one lab it goes without saying
    two = said_by_labs({"a": studies["a"], "b": studies["b"]}, labs)
    assert two == said_by_labs(studies, labs)


def test_the_picture_has_every_number_that_two_studies_share_what_answers_rest_on_first():
    studies = {
        "a": page(0.1, 0.0, 0.2, rows=[["lcgd", Number(0.4)]]),
        "b": page(0.3, 0.25, 0.4),
        "c": page(0.5, rows=[["alone", Number(1.0)]]),
    }
    widget = beside(studies, dict.fromkeys(studies, "compare"), "about")
    assert widget.data["names"]["number"] == ["cosine", "gd · SimAOU"]
    assert charted(widget, "name", number="cosine") == {("a",): [0.1], ("b",): [0.3], ("c",): [0.5]}
    assert limits(widget, "name", number="cosine") == {("a",): [[0.0], [0.2]], ("b",): [[0.25], [0.4]]}
    assert beside({"a": studies["a"]}, {"a": "compare"}, "about") is None
    assert beside({"a": studies["a"], "b": studies["b"]}, {"a": "compare", "b": "other"}, "about") is None
