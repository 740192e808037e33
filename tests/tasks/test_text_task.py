"""Task files: the library's load, a user's is checked, and texts cannot break the template."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iclgd.errors import Refusal
from iclgd.tasks.text import LIBRARY, TASKS, TextTask, all_tasks, find_task, read_task

GOOD = {
    "name": "mine",
    "version": 1,
    "title": "a task",
    "source": "a test",
    "template": "Sentence: {text} Label:",
    "labels": ["no", "yes"],
}
NAMED = {"sst2", "sst5", "mr", "subj", "agnews", "cb", "trec", "rte", "sentiment", "kinds", "continents"}


def yaml_file(folder, **changes):
    path = folder / "mine.yaml"
    path.write_text("".join(f"{name}: {value!r}\n" for name, value in {**GOOD, **changes}.items() if value is not None))
    return path


def test_the_library_holds_the_tasks_the_readme_names():
    assert {task.name for task in all_tasks()} == NAMED == set(TASKS)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_library_task_is_called_what_its_file_is_called(name):
    task, folder = find_task(name)
    assert task.name == name
    assert folder == LIBRARY
    assert task.version >= 1


@pytest.mark.parametrize(
    "name, prompt, first",
    [
        ("sst2", "Sentence: T Label:", " Negative"),
        ("sst5", "Sentence: T Label:", " terrible"),
        ("mr", "Review: T Sentiment:", " Negative"),
        ("subj", "Input: T Type:", " objective"),
        (
            "agnews",
            "Classify the news articles into the categories of World, Sports, Business, and Technology. "
            "Article: T Answer:",
            " World",
        ),
        ("cb", "P Question: H. True, False, or Neither? Answer:", " True"),
        ("rte", "Passage: P Question: H Yes or No? Answer:", " Yes"),
        ("trec", "Question: T Type:", " Description"),
    ],
)
def test_wordings_are_those_of_the_papers_code(name, prompt, first):
    task, _ = find_task(name)
    assert task.prompt({"text": "T", "premise": "P", "hypothesis": "H"}) == prompt
    assert task.completion(0) == first


@given(st.text(), st.text())
def test_braces_in_a_text_stay_what_they_are(premise, hypothesis):
    task = TextTask(**{**GOOD, "template": "{premise} Question: {hypothesis}. Answer:"})
    fields = {"premise": premise, "hypothesis": hypothesis}
    assert task.prompt(fields) == premise + " Question: " + hypothesis + ". Answer:"


def test_a_text_that_spells_a_field_is_not_filled_in():
    task = TextTask(**{**GOOD, "template": "{a} {b}:"})
    assert task.prompt({"a": "{b} {0} {a.__class__}", "b": "x"}) == "{b} {0} {a.__class__} x:"


def test_a_users_yaml_is_read(tmp_path):
    task, folder = find_task(str(yaml_file(tmp_path)))
    assert (task.name, task.labels, folder) == ("mine", ("no", "yes"), tmp_path)


@pytest.mark.parametrize(
    "changes, complaint",
    [
        ({"labels": ["yes"]}, 'line 6: "labels" needs at least 2 values, not 1.'),
        ({"labels": ["yes", "yes"]}, 'line 6: "labels" are label words, which must differ and not be empty.'),
        ({"labels": [True, False]}, 'line 6: "labels" takes a text; YAML reads a bare Yes, No, On or Off as true'),
        ({"labels": "yes"}, 'line 6: "labels" takes a list of values, not "yes".'),
        ({"labels": [["a"], "b"]}, "line 6: \"labels\" takes a text, not ['a']: write it in quotes."),
        ({"template": "no field"}, 'line 5: "template" names no field; write one as {text}.'),
        ({"template": "{text} Label: {label}"}, "must not hold {label}"),
        ({"template": "{text} Label: "}, 'ends in white space, which belongs to "join": leave it out.'),
        ({"version": None}, '"version" is missing: give it.'),
        ({"version": 0}, 'line 2: "version" must be at least 1, not 0.'),
        ({"name": "../up"}, 'line 1: "name" cannot be "../up": use lower-case letters, digits, - and _.'),
        ({"examples": "../up.jsonl"}, "without folders"),
        ({"splits": 3}, '"splits" takes a mapping of fields to values, not 3.'),
        ({"label_names": ["a"]}, "differ in length"),
        ({"lables": ["a", "b"]}, 'line 7: there is no field "lables". Did you mean labels'),
    ],
)
def test_a_bad_task_file_is_refused_with_the_line_and_what_is_wrong(tmp_path, changes, complaint):
    with pytest.raises(Refusal, match=r"mine\.yaml, line \d+: ") as refused:
        read_task(yaml_file(tmp_path, **changes))
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text, line",
    [("name: a\nlabels: [a\n", 3), ("name: a\nname: b\n", 2), ("a: b\n\tc: d\n", 2), ("a: 1\nb: \x07\n", 2)],
)
def test_a_file_that_is_no_yaml_is_refused_with_its_line(tmp_path, text, line):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(Refusal, match=rf"mine\.yaml, line {line}: "):
        read_task(tmp_path / "mine.yaml")


@pytest.mark.parametrize("text", ["- a\n- b\n", "", "a: [", "!!python/object/apply:os.system ['true']\n", "\x00"])
def test_a_file_that_is_no_mapping_is_refused_and_never_runs(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(Refusal):
        read_task(path)


def test_a_missing_task_file_is_refused(tmp_path):
    with pytest.raises(Refusal, match="cannot read .*none.yaml: No such file"):
        find_task(str(tmp_path / "none.yaml"))


def test_an_unknown_task_is_answered_with_the_nearest_names():
    with pytest.raises(Refusal, match=r'no task "sst3"\. Did you mean sst5 or sst2\?|Did you mean sst2 or sst5\?'):
        find_task("sst3")
