"""What pages are written from, on inputs with known answers: counts, durations, packed numbers, queries, forms."""

import base64
import os
from types import SimpleNamespace

import numpy as np
import pytest

from iclgd.report import explorer, terminal
from iclgd.report.charts import Looks, Series, packed, picture, plain, small
from iclgd.report.explorer import Episode, block
from iclgd.report.html import anchors, attachment, defined, image, used
from iclgd.report.numbers import Number, p_value
from iclgd.report.page import Drawing, Link, Page, Section, Table
from iclgd.report.terminal import CellProgress, duration, window
from iclgd.report.what import what


@pytest.mark.parametrize(
    "value, text", [(0.001, ".001"), (0.00099, "< .001"), (0.0, "< .001"), (1.0, "1.000"), (float("nan"), "n/a")]
)
def test_a_p_value_below_a_thousandth_is_said_to_be_below(value, text):
    assert p_value(value) == text


def test_what_was_run_has_the_range_of_demonstrations_and_queries_where_episodes_differ():
    spec = SimpleNamespace(model_title="m", task_titles={"/a/b.yaml": "b", "c": "c"}, seeds=(3, 4), dtype="float32")
    assert what(spec, [8, 8], [40, 40]) == "m · b, c · k = 8 · 2 seeds × 40 queries · float32"
    assert (
        what(spec, [6, 8], [56, 64, 60], "5 orders")
        == "m · b, c · k = 6 to 8 · 5 orders · 2 seeds × 56 to 64 queries · float32"
    )
    assert what(spec, [8], [1], query="held-out query").endswith("2 seeds × 1 held-out query · float32")
    assert what(spec, [8], [2000, 2000]).endswith("2 seeds × 2,000 queries · float32")


# the terminal


@pytest.mark.parametrize(
    "seconds, text",
    [(89.4, "89 s"), (90, "2 min"), (5369, "89 min"), (5399, "1 h 30 min"), (7260, "2 h 1 min"), (0.4, "0 s")],
)
def test_a_duration_is_in_seconds_below_a_minute_and_a_half_and_in_minutes_below_an_hour_and_a_half(seconds, text):
    assert duration(seconds) == text


def test_less_than_a_second_is_not_said_to_be_left(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("iclgd.report.terminal.time.monotonic", lambda: clock[0])
    progress = CellProgress()
    progress.start(2, expected=10.0)
    for passed, said in ((9.0, " · about 1 s left"), (9.1, ""), (20.0, "")):
        clock[0] = passed
        assert progress.line() == f"0 of 2 cells{said} · starting"
    progress.failed("a")
    clock[0] = 22.0  # when it is known that no other cell was done with it
    assert progress.line() == "0 of 2 cells · 1 failed · about 18 s left · starting"


def test_an_estimate_of_seconds_is_not_worth_a_line_and_cells_that_failed_fill_the_bar():
    told = []
    progress = CellProgress(bar=True, tell=told.append)
    progress.start(4, expected=terminal.EVERY)
    assert told == []
    progress.failed("a")
    progress.so_far("all fine")
    assert progress.line().startswith("█" * 6 + "░" * 18 + " 0 of 4 cells · 1 failed · all fine")
    progress.start(3, expected=terminal.EVERY + 1)
    assert len(told) == 1
    assert (progress.total, progress.failures) == (4, ("a",))


def test_who_follows_is_told_what_runs_and_what_failed_whenever_that_changes():
    seen, progress = [], CellProgress()
    progress.follow(lambda running, failed: seen.append((running, failed)))
    progress.begun("a", "one")
    progress.begun("b", "two")
    progress.lost("a")
    progress.failed("b")
    progress.ends("drawing")
    assert seen == [([], []), (["a"], []), (["a", "b"], []), (["b"], []), ([], ["b"]), ([], ["b"])]


def test_a_pipe_has_no_window_unless_columns_are_named(monkeypatch):
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: False))
    monkeypatch.delenv("COLUMNS", raising=False)
    assert window() is None
    monkeypatch.setenv("COLUMNS", "77")
    assert window() == 77
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True))
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(terminal.shutil, "get_terminal_size", lambda usual: os.terminal_size(usual))
    assert window() == 100


# charts


def test_numbers_and_codes_are_written_out_up_to_a_count_and_packed_beyond_it():
    assert packed(np.zeros(4096)) == [0.0] * 4096
    assert small([1] * 4096) == [1] * 4096
    assert set(packed(np.zeros(4097))) == {"low", "high", "steps", "codes"}
    assert isinstance(small([1] * 4097), str)
    assert len(base64.b64decode(small([255] * 5000))) == 5000
    assert len(base64.b64decode(small([256] * 5000))) == 10000


def test_packed_numbers_keep_the_ends_and_a_code_for_what_is_not_known():
    values = np.r_[np.linspace(2.0, 6.0, 5000), np.nan, np.inf]
    found = packed(values)
    codes = np.frombuffer(base64.b64decode(found["codes"]), "<u2")
    assert (found["low"], found["high"], found["steps"]) == (2.0, 6.0, 65534)
    assert (codes[0], codes[4999], codes[5000], codes[5001]) == (0, 65534, 65535, 65535)
    same = packed(np.full(5000, 3.0))
    assert (same["low"], same["high"]) == (3.0, 3.0)
    assert set(base64.b64decode(same["codes"])) == {0}
    nothing = packed(np.full(5000, np.nan))
    assert (nothing["low"], nothing["high"]) == (0.0, 0.0)
    assert set(base64.b64decode(nothing["codes"])) == {255}


def test_a_chart_says_how_it_is_laid_out_and_only_rows_with_limits_have_any():
    series = [Series({"name": "a"}, [1.0], [np.nan], [np.nan]), Series({"name": "b"}, [2.0], [1.5], [2.5])]
    found = plain(series, [4.0], Looks({"name": "who"}, x="step", y="loss", log=("one",), colour="name"))
    assert (found["limited"], found["low"], found["high"], found["count"]) == ([1], [1.5], [2.5], 2)
    laid = {name: found[name] for name in ("panel", "name", "own", "colour", "x", "y", "log", "choose", "points")}
    assert laid == {
        "panel": "panel", "name": "name", "own": "role", "colour": "name", "x": "step", "y": "loss", "log": ["one"],
        "choose": {"name": "who"}, "points": [4.0],
    }  # fmt: skip
    assert set(found["slots"]) == {"a", "b"}


def test_a_picture_of_one_column_names_it_and_of_several_lets_one_choose():
    rows = [["gd", Number(0.5), Number(0.7)], ["null: gd", Number(0.4), Number(0.6)], ["── all", Number(0.1), "x"]]
    two = picture(Table(["", "one", "two"], rows))
    assert (two.data["choose"], two.data["x"]) == ({"column": "what is shown"}, "")
    assert two.about == "Dots with 95% intervals: one, two."
    assert [two.data["names"]["role"][code] for code in two.data["codes"]["role"]] == [
        "own",
        "own",
        "null",
        "null",
        "null",
    ]
    one = picture(Table(["", "one"], [row[:2] for row in rows]))
    assert (one.data["choose"], one.data["x"]) == ({}, "one")
    assert picture(Table(["", "one", "two"], rows[:1])) is None


# queries


def episode(queries: int, size: int = 10) -> Episode:
    texts = {"start": ["<s>"], "demos": [["a"]], "label_tokens": ["b"], "separator": ["c"]}
    texts |= {"queries": [f"q{i}" for i in range(queries)], "answers": list(range(queries))}
    own = np.arange(queries * size, dtype=np.uint8).reshape(queries, 1, 1, size)
    scores = {"icl": np.full((queries, 2), 1 / 3)}
    return Episode("one", texts, ("x", "y"), scores, {"icl": own}, own + 1, None, {"gd": np.full((queries, 1), 2 / 3)})


def test_an_episode_is_shown_with_its_first_queries_and_rounded_scores():
    found = episode(3).plain(2)
    assert (found["queries"], found["answers"], found["labels"]) == (["q0", "q1"], [0, 1], ["x", "y"])
    assert found["scores"] == {"icl": [[0.3333, 0.3333]] * 2}
    assert found["alike"] == {"gd": [[0.667]] * 2}
    assert found["own"]["icl"] == {"shape": [2, 1, 1, 10], "bytes": base64.b64encode(bytes(range(20))).decode()}
    assert base64.b64decode(found["attention"]["bytes"]) == bytes(range(1, 21))
    assert "contribution" not in found
    assert [found[name] for name in ("title", "start", "demos", "label_tokens", "separator")] == [
        "one", ["<s>"], [["a"]], ["b"], ["c"],
    ]  # fmt: skip
    assert block(np.zeros((1, 2), np.uint8).T)["shape"] == [2, 1]


@pytest.mark.parametrize("room, shown", [(100, (2, 2)), (40 * 3, (3, 2)), (1000, (5, 2)), (1, (1, 1))])
def test_every_episode_has_as_many_queries_as_there_is_room_for_and_at_least_one(room, shown, monkeypatch):
    """Twenty bytes a query and episode: own attention and attention, ten each."""
    monkeypatch.setattr(explorer, "ROOM", room)
    data = explorer.section(lambda: [episode(5), episode(2)]).widget.data
    assert tuple(len(one["queries"]) for one in data["episodes"]) == shown
    assert list(data["slots"]) == ["gd"]


# forms


def test_a_link_leads_on_in_markdown_and_is_text_in_a_table():
    table = Table(["a", "b"], [[Link("one | two", "x y.html"), "back\\slash <b>"]])
    assert table.markdown() == "| a | b |\n| --- | --- |\n| [one \\| two](x%20y.html) | back\\\\slash &lt;b> |"
    assert table.text() == "a          b\none | two  back\\slash <b>"


def test_markdown_and_json_have_every_section_with_its_table_or_figure():
    drawing = Drawing("drawn", lambda: None)
    sections = [Section("One", "How.", Table(["a"], [["1"]])), Section("Two", figure=drawing)]
    page = Page("Title", "what", "Answer.", sections, repeat="iclgd it")
    assert page.markdown() == (
        "# Title\n\nwhat\n\n**Answer.**\n\n## One\n\nHow.\n\n| a |\n| --- |\n| 1 |\n\n## Two\n\n![Two](drawn.svg)\n\n"
        "`iclgd it`\n"
    )
    assert Page("Title", "what", "", []).markdown() == "# Title\n\nwhat\n"
    assert page.plain() == {
        "title": "Title", "what": "what", "answer": "Answer.",
        "sections": [
            {"title": "One", "text": "How.", "table": {"header": ["a"], "rows": [["1"]]}},
            {"title": "Two", "text": "", "figure": "drawn"},
        ],
    }  # fmt: skip
    assert page.with_repeat("again").repeat == "again"
    assert list(page.drawings) == ["drawn"]


def test_a_brief_section_without_rows_is_a_heading_and_one_without_a_table_is_left_out():
    sections = [Section("Empty", "Why.", Table(["a"], []), brief=True), Section("Figure", brief=True)]
    page = Page("t", "what", "", sections)
    assert page.text() == "what\n\nEmpty"
    assert page.text(full=True) == "what\n\nEmpty\nWhy."


def test_a_title_that_comes_again_or_is_the_page_s_own_is_counted():
    assert anchors(["Main", "x", "x", "x", "Tip!"]) == ["main-2", "x", "x-2", "x-3", "tip-2"]


@pytest.mark.parametrize(
    "text, word",
    [("gd", "gd"), ("  gd", "gd"), ("gd 0.001", "gd"), ("gd ×2", "gd"), ("gd of it", ""), ("lcgd", ""), ("", "")],
)
def test_a_name_with_a_rate_or_a_number_of_steps_is_the_word_itself(text, word):
    assert defined(text, {"gd": "gradient descent"}) == word


def test_words_that_a_glossary_of_the_page_uses_are_explained_too():
    words = {"query": "what is asked", "seed": "a draw", "trace": "of a query"}
    page = Page("t", "", "Nothing.", [], glossary={"own": "with seeds"})
    assert used(words, page) == {"seed": "a draw"}
    assert used(words, Page("t", "", "Traces.", [])) == {"query": "what is asked", "trace": "of a query"}


def test_files_that_a_page_carries_come_back_as_they_were():
    assert base64.b64decode(image("<svg/>").removeprefix("data:image/svg+xml;base64,")) == b"<svg/>"
    assert (
        base64.b64decode(attachment(b"%PDF", "application/pdf").removeprefix("data:application/pdf;base64,")) == b"%PDF"
    )
