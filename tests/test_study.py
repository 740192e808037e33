"""A study: its numbers by label, what it shows, and the folder it is opened from again."""

import click
import numpy as np
import pytest
import yaml

import iclgd
import toy
from iclgd.errors import Refusal
from iclgd.running import Where, run_study
from iclgd.study import open_study, repeat_line, said, show


@pytest.fixture
def study(tmp_path):
    return run_study("toy", toy.ToySpec(seeds=3, scale=2), Where(tmp_path / "cells", tmp_path / "out"))


def drawn(seed: int, scale: float = 2, k: int = 4) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal(k) * scale


def test_numbers_are_found_by_the_labels_of_arrays_and_cells(study):
    assert np.array_equal(study.arrays(quantity="value", seed=1)[0].values, drawn(1))
    assert len(study.arrays(quantity="value")) == 3
    assert study.arrays(quantity="value", seed=7) == []
    assert study.arrays(quantity="value", learner=None, seed=2)[0].labels == {"seed": 2, "quantity": "value"}


def test_stacked_numbers_are_in_the_order_asked_for_and_nan_where_there_are_none(study):
    found = study.stack("seed", (2, 9, 0), quantity="value")
    assert np.array_equal(found[[0, 2]], np.stack([drawn(2), drawn(0)]))
    assert np.isnan(found[1]).all()
    assert study.stack("seed", (0,), quantity="nothing").size == 0
    assert study.stack("seed", (1,), at={"draw": 3}, quantity="value").tolist() == [drawn(1)[3]]


def test_the_frame_has_a_column_for_each_label_and_axis(study):
    frame = study.frame(quantity="value")
    assert set(frame.columns) == {"draw", "value", "seed", "quantity"}
    assert len(frame) == 12
    picked = frame[(frame["seed"] == 1) & (frame["draw"] == 2)]["value"]
    assert picked.tolist() == [drawn(1)[2]]
    assert study.frame(quantity="nothing").empty


def test_a_number_without_axes_is_a_row_of_the_frame(tmp_path):
    study = iclgd.linear_optimum(task="gaussian", dx=2, steps=1, store=tmp_path)
    frame = study.frame(quantity="risk")
    assert len(frame) == len(study.arrays(quantity="risk")) > 1
    assert frame["value"].tolist() == [float(one.values) for one in study.arrays(quantity="risk")]


def test_what_is_shown_is_the_page_of_the_lab(study):
    mean = np.mean([drawn(seed).mean() for seed in range(3)])
    assert study.answer == f"The mean is {mean:.3f}.".replace("-0.", "-.").replace(" 0.", " .")
    assert [row[0] for row in study.table().rows] == ["0", "1", "2"]
    assert study.table("Means").rows[1][1].value == pytest.approx(drawn(1).mean())
    with pytest.raises(Refusal, match='no figure "x". It has none'):
        study.figure("x")
    assert study._repr_html_().startswith("<iframe srcdoc=")
    assert "The mean is" in study._repr_html_()


def test_opening_the_folder_gives_the_same_thing(study, tmp_path):
    again = open_study(tmp_path / "out")
    assert again.spec == study.spec
    assert again.answer == study.answer
    assert again.repeat == study.repeat
    assert again.page.html() == study.page.html()
    assert again.frame().equals(study.frame())
    assert again.fresh == 0
    assert study.fresh == 3


def test_the_folder_holds_spec_record_and_page_in_all_forms(study, tmp_path):
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {".iclgd", "spec.yaml", "study.json", "index.html", "page.md"}
    assert yaml.safe_load((tmp_path / "out" / "spec.yaml").read_text())["scale"] == 2
    assert (tmp_path / "out" / "page.md").read_text().startswith("# Toy\n")


def test_a_folder_that_holds_no_study_and_one_whose_cells_are_gone_are_refused(study, tmp_path):
    with pytest.raises(Refusal, match="holds no study"):
        open_study(tmp_path / "cells")
    next((tmp_path / "cells").glob("*/record.json")).unlink()
    with pytest.raises(Refusal, match="1 of 3 cells of .* is not in .*: run its spec again"):
        open_study(tmp_path / "out")


def test_the_repeat_line_without_a_folder_says_what_is_off_its_default():
    assert repeat_line("toy", toy.ToySpec(), None) == "iclgd toy"
    assert repeat_line("toy", toy.ToySpec(seeds="5,", scale=0.5, loud=True), None) == (
        "iclgd toy --scale 0.5 --seeds 5, --loud"
    )


def test_the_repeat_line_says_all_where_a_default_depends_on_another_field():
    from pydantic import model_validator

    from iclgd.lab import LabSpec
    from iclgd.spec import option

    class Linked(LabSpec):
        kind: str = option("line", "Which.")
        k: int = option(10, "How many.  [default: 10; 1 for sine]")

        @model_validator(mode="before")
        @classmethod
        def _fill(cls, given):
            return {"k": 1, **given} if given.get("kind") == "sine" else given

    assert said(Linked(kind="sine")) == {"kind": "sine", "k": 1}
    made = Linked(kind="sine", k=10)
    assert Linked(**said(made)) == made


@pytest.mark.parametrize("fields", [{"task": "gaussian", "draws": "tokens"}, {"task": "sine"}], ids=["all", "none"])
def test_a_repeat_line_that_says_all_fields_or_nothing_of_one_is_a_command_that_can_be_typed(fields):
    """A default depends on another field, so all are said; what is off anyway has no flag: there is no --no-shared."""
    import shlex

    from iclgd.cli import group
    from iclgd.lab import LABS

    made = LABS["linear train"].spec.of(fields)
    line = shlex.split(repeat_line("linear train", made, None))
    context = click.Context(group)
    command = group.get_command(context, "linear").get_command(context, "train")
    given = command.make_context("train", line[3:], parent=context).params
    again = {name: value for name, value in given.items() if value is not None and name in type(made).model_fields}
    assert LABS["linear train"].spec.of(again) == made


def test_choices_come_back_from_the_repeat_line():
    from iclgd.labs.compare.lab import CompareSpec

    made = CompareSpec(learners="gd:rate=0.01:trains=all,lcgd", nulls="random", metrics="SimAOU")
    words = repeat_line("compare", made, None).split()
    assert "gd:rate=0.01:trains=all,lcgd" in words  # options at their defaults are left out
    given = {word[2:]: value for word, value in zip(words[2:-1:2], words[3::2], strict=True)}
    assert CompareSpec.of(given) == made


def test_a_study_without_attention_is_not_shown_token_by_token(study):
    with pytest.raises(Refusal, match="keeps no attention to show"):
        show(study)


def test_what_is_no_study_is_not_shown():
    with pytest.raises(Refusal, match="a study can be shown, .* which a dict is not"):
        show({})
