"""One page, many forms: it shows what a data set says and runs none of it, in a real browser too."""

import json
import re

import pytest
from browsing import opened

from iclgd.errors import Refusal
from iclgd.report.figures import band, figure, styled, svg
from iclgd.report.html import anchors, embedded, hashed, opening, shown, told
from iclgd.report.numbers import Number
from iclgd.report.page import Drawing, Page, Section, Table

HOSTILE = (
    "<script>document.title = 'owned'</script>",
    "</script><script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title = 'owned'\">",
    '"><svg onload="document.title = \'owned\'">',
    "</title></style><iframe srcdoc='<script>parent.document.title = 1</script>'></iframe>",
    "<a href=\"javascript:document.title = 'owned'\" autofocus onfocus=\"document.title = 'owned'\">x</a>",
    "{{ 7 * 7 }} {% raw %} ${7*7} &lt;b&gt; ]]> <!--",
    "<meta http-equiv=refresh content=0;url=https://example.org>",
    "</script><img src=x onerror=alert(1)>",
    r"$\frac{",
    "turned \u202e round",
)


@styled
def drawing():
    made, axes = figure()
    band(axes[0, 0], [0, 1], [1, 2], [0, 1], [2, 3], "#000000", HOSTILE[0])
    axes[0, 0].set_title(HOSTILE[1])
    axes[0, 0].legend()
    return made


def hostile_page() -> Page:
    """A page in which every text that can come from outside is hostile."""
    rows = [[text, Number(0.5, 0.25, 0.75), text] for text in HOSTILE]
    table = Table([HOSTILE[0], "number", HOSTILE[1]], rows)
    sections = [Section(text, text, table if i == 0 else None) for i, text in enumerate(HOSTILE)]
    figure_ = Section("Drawn", HOSTILE[2], figure=Drawing("drawn", drawing))
    return Page("What was found", HOSTILE[3], HOSTILE[4], [*sections, figure_], repeat=HOSTILE[5])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "index.html").write_text(hostile_page().html(), encoding="utf-8")
    return folder


def test_a_table_that_is_not_there_is_answered_with_those_that_are():
    page = Page("t", "s", "", [Section("One", table=Table(["a"], [["1"]])), Section("Two", table=Table(["b"], []))])
    assert page.table() is page.table("One")
    with pytest.raises(Refusal, match='there is no table "Three". There are One; Two.'):
        page.table("Three")


def test_a_policy_names_every_script_and_style_by_its_hash_and_nothing_is_from_elsewhere(written):
    text = (written / "index.html").read_text()
    said = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1].replace("&#39;", "'")
    assert "default-src 'none'" in said
    assert "unsafe" not in said
    for kind in ("script", "style"):
        allowed = re.search(rf"{kind}-src ([^;]*)", said)[1].split()
        inline = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        assert inline
        assert {hashed(one) for one in inline} <= set(allowed)
    assert not re.search(r"<(iframe|link|object|embed|base|form)\b", text)
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", text)


def test_every_section_has_a_place_of_its_own():
    assert anchors(["Sources", "A b", "a-b", "←", "A b"]) == ["sources-2", "a-b", "a-b-2", "section", "a-b-3"]


def test_the_glossary_has_the_words_of_the_page_and_those_that_define_them():
    def words(text: str, **more) -> list[str]:
        page = Page("Risks", "", text, [Section("All", "", Table(["", "risk"], [["gd", Number(0.1, **more)]]))])
        return re.findall(r"<dt>(.*?)</dt>", page.html())

    assert words("Nothing of the kind.") == []
    assert "Glossary" not in Page("Risks", "", "Nothing.", []).html()
    assert words("Two queries.") == ["query"]
    assert words("By iclgd, metrical, multitasking.") == []
    assert words("A contrast.") == ["demonstration", "query", "learner", "zero-shot", "trace", "update", "contrast"]
    assert words("A number.", low=0.05, high=0.15)[-2:] == ["seed", "95% interval"]


def test_without_a_picture_of_its_own_a_page_shows_the_first_brief_table_that_has_numbers():
    tables = [Table(["", name], [["a", Number(0.5)], ["b", Number(0.25)]]) for name in ("long", "short", "next")]
    words = Table(["", "words"], [["a", "x"], ["b", "y"]])
    sections = [
        Section("Long", table=tables[0]),
        Section("Figure", brief=True),
        Section("Words", table=words, brief=True),
        Section("Short", table=tables[1], brief=True),
        Section("Next", table=tables[2], brief=True),
    ]
    shown = Page("t", "s", "a", sections).html()
    assert "Dots with 95% intervals: short." in shown
    assert shown.count("Dots with 95% intervals") == 1


def test_a_table_of_more_than_thirty_rows_is_folded_unless_it_stands_first():
    tables = {count: Table(["", "n"], [[f"row {i}", "1"] for i in range(count)]) for count in (40, 30, 31)}
    text = Page("t", "s", "", [Section(str(count), table=table) for count, table in tables.items()]).html()
    assert re.findall(r'<details class="long"><summary>(.*?)</summary>', text) == ["31 rows"]
    assert text.count("row 29<") == 3


def test_no_text_ends_the_script_that_it_is_data_of():
    found = embedded({"a": ["</script><script>x</script>", "\u2028&\u202e", float("nan"), 0.5]})
    assert not set("<>&\u2028\u202e") & set(found)
    assert json.loads(found) == {"a": ["</script><script>x</script>", "\u2028&⟨U+202E⟩", None, 0.5]}
    assert embedded({"é": (1, [True])}) == '{"é":[1,[true]]}'  # no longer than it has to be


def test_characters_that_turn_the_text_around_them_are_spelled_out():
    assert shown("a\u202eb\x07") == "a⟨U+202E⟩b⟨U+0007⟩"
    assert shown("שלום é\n") == "שלום é\n"


def test_an_answer_opens_with_its_first_sentence_and_numbers_do_not_end_one():
    assert opening("It is .5 [.4 .6] (gd 0.01). Training is not. It is.") == [
        "It is .5 [.4 .6] (gd 0.01).",
        "Training is not. It is.",
    ]
    assert opening("One, .5 of it") == ["One, .5 of it"]
    page = Page("t", "s", "It is `so`. The rest <b>.", []).html()
    assert '<div class="answer"><p>It is <code>so</code>.</p><p>The rest &lt;b&gt;.</p></div>' in page


def test_what_stands_in_backticks_is_code_and_nothing_in_it_is_markup():
    assert str(told("a `b` c")) == "a <code>b</code> c"
    assert str(told("`<img src=x>` \u202e")) == "<code>&lt;img src=x&gt;</code> ⟨U+202E⟩"
    assert str(told("one ` alone")) == "one ` alone"


def test_the_page_is_the_same_for_the_same_numbers():
    assert hostile_page().html() == hostile_page().html()


def test_text_in_a_figure_is_escaped():
    assert "<script" not in svg(drawing())


def test_a_notebook_gets_the_page_in_a_frame_of_its_own():
    frame = hostile_page()._repr_html_()
    assert frame.startswith('<iframe srcdoc="')
    assert frame.count("<") == 2  # the frame's own tags: all else is escaped
    assert frame.count('"') == 6
    assert 'sandbox="allow-scripts allow-downloads"' in frame


def test_markdown_breaks_no_table_and_holds_no_tag():
    text = hostile_page().markdown()
    assert text.startswith("# What was found\n")
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(table) == len(HOSTILE) + 2
    assert not any("<" in line for line in table)
    assert Table(["a|b"], [["x\ny"]]).markdown() == "| a\\|b |\n| --- |\n| x y |"


def test_a_language_is_no_emphasis_in_a_markdown_table():
    assert Table(["in"], [["a*bc*"], ["`x`"]]).markdown() == "| in |\n| --- |\n| a\\*bc\\* |\n| \\`x\\` |"


def test_json_has_numbers_as_numbers_and_null_for_what_is_undefined():
    page = Page("t", "s", "a", [Section("x", table=Table(["n"], [[Number(0.5, 0.25, 0.75)], [Number(float("nan"))]]))])
    found = json.loads(json.dumps(page.plain(), allow_nan=False))
    assert found["sections"][0]["table"]["rows"] == [
        [{"value": 0.5, "low": 0.25, "high": 0.75, "text": ".500 [.250 .750]"}],
        [{"value": None, "text": "n/a"}],
    ]
    assert found["answer"] == "a"


def test_the_terminal_shows_the_answer_and_brief_sections_and_all_of_it_if_asked():
    table = Table(["a"], [["1"]])
    page = Page("t", "what", "The answer.", [Section("Brief", "How.", table, brief=True), Section("Long", "", table)])
    assert page.text() == "what\n\nThe answer.\n\nBrief\n\na\n1"
    assert Page("t", "what", "", page.sections[::-1]).text() == "what\n\nBrief\n\na\n1"
    assert "Long" in page.text(full=True)
    assert "How." in page.text(full=True)
    assert max(map(len, Page("t", "s", "word " * 50, []).text(width=60).splitlines())) <= 60
    words = Page("t", "s", "x" * 40 + " " + "y" * 39 + " " + "z" * 80, []).text().splitlines()
    assert [len(line) for line in words] == [1, 0, 80, 80]  # what is as wide as a terminal is one line


def test_a_table_is_found_by_its_title_and_a_drawing_is_drawn_once():
    drawn = []
    one, two = Table(["a"], []), Table(["b"], [])
    picture = Drawing("p", lambda: drawn.append(1) or drawing())
    page = Page("t", "", "", [Section("One", table=one), Section("Two", table=two, figure=picture)])
    assert page.table() is one
    assert page.table("Two") is two
    assert page.drawings["p"].figure is page.drawings["p"].figure
    assert drawn == [1]


def test_hostile_text_is_inert_in_a_browser_and_still_readable(written, browser):
    with opened(browser, written / "index.html") as page:
        assert page.title() == "What was found"
        assert page.locator("iframe, form, base, img[src=x], a[href^=javascript]").count() == 0
        assert page.evaluate("document.querySelectorAll('[onerror],[onload],[onfocus]').length") == 0
        read = " ".join(page.inner_text("main").split())
    for hostile in HOSTILE:
        assert " ".join(hostile.split()).replace("\u202e", "⟨U+202E⟩") in read


def test_the_page_fits_a_phone_and_a_desk(written, browser):
    for width in (390, 1280):
        with opened(browser, written / "index.html", width) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
