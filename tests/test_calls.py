"""Labs from Python: a function for each, a study as the answer, stopping and going on."""

import inspect
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from matplotlib.figure import Figure

import iclgd
import toy
from iclgd.errors import Refusal
from iclgd.learners import LEARNERS
from little import little_task
from tiny import tiny_model, tiny_tokenizer

STOPS = {"left": 0}


@dataclass(frozen=True)
class Restless:
    """The model as it is, but for Ctrl-C, once."""

    @contextmanager
    def learn(self, subject, prompts):
        if STOPS["left"]:
            STOPS["left"] -= 1
            raise KeyboardInterrupt
        with iclgd.GradientDescent(rate=0.01).learn(subject, prompts) as predictor:
            yield predictor


LEARNERS.add("restless", Restless)


@pytest.fixture
def given(tmp_path):
    """A model in memory, a task of one's own, and the smallest of comparisons."""
    return {
        "model": (tiny_model("llama"), tiny_tokenizer()),
        "task": str(little_task(tmp_path)),
        "store": tmp_path / "cells",
        "metrics": "SimAOU,accuracy",
        "nulls": "random",
        "init": "trained",
        "k": 2,
        "queries": 3,
        "floor": False,
    }


def test_every_lab_is_a_function_whose_arguments_are_the_fields_of_its_spec():
    signature = inspect.signature(iclgd.compare)
    assert {"model", "task", "learners", "seeds", "out", "store"} <= set(signature.parameters)
    assert "Number of demonstrations." in iclgd.compare.__doc__
    assert "compare" in dir(iclgd)
    with pytest.raises(AttributeError, match="no attribute 'compere'"):
        _ = iclgd.compere


def test_a_study_has_answer_table_frame_figure_and_page(given, tmp_path):
    study = iclgd.compare(**given, learners=["gd:rate=0.01"], seeds=2, out=tmp_path / "out")
    assert study.answer.startswith("SimAOU of whole updates is ")
    assert "SimAOU" in study.answer
    assert [row[0] for row in study.table("mine, at the prompt's last token").rows][:3] == [
        "zero-shot",
        "icl",
        "gd 0.01",
    ]
    frame = study.frame(metric="SimAOU", learner="gd 0.01", null=None)
    assert len(frame) == 2 * 2 * 3 * 3  # seeds, positions, queries, layers
    assert set(frame["position"]) == {"prompt", "label"}
    assert isinstance(study.figure("layers-prompt"), Figure)
    assert study._repr_html_().startswith("<iframe")
    with pytest.raises(Refusal, match="It has layers-prompt"):
        study.figure("layers")
    again = iclgd.open(tmp_path / "out")
    assert again.answer == study.answer
    assert again.table().text() == study.table().text()
    assert again.frame().equals(study.frame())


def test_five_seeds_where_three_are_done_run_two_cells_a_learner(given):
    assert iclgd.compare(**given, learners=["gd"], seeds=3).fresh == 6  # prompted, gd
    assert iclgd.compare(**given, learners=["gd"], seeds=5).fresh == 4


def test_stopping_keeps_what_was_finished_and_the_same_call_goes_on(given):
    STOPS["left"] = 1
    with pytest.raises(KeyboardInterrupt):
        iclgd.compare(**given, learners=["gd", Restless()])
    study = iclgd.compare(**given, learners=["gd", Restless()])
    assert study.fresh == 1
    assert len(study.cells) == 3


def test_two_models_in_memory_are_two_sets_of_cells_and_the_same_weights_are_one(given):
    assert iclgd.compare(**given, learners=["gd"]).fresh == 2
    assert iclgd.compare(**given | {"model": (tiny_model("llama"), tiny_tokenizer())}, learners=["gd"]).fresh == 0
    assert (
        iclgd.compare(**given | {"model": (tiny_model("llama", seed=1), tiny_tokenizer())}, learners=["gd"]).fresh == 2
    )


def test_what_is_no_model_is_refused(given):
    with pytest.raises(Refusal, match=r"`model` is a name, or a pair \(model, tokenizer\)"):
        iclgd.compare(**given | {"model": tiny_model("llama")})


def test_a_lab_that_was_just_registered_is_a_function_too(tmp_path):
    assert iclgd.toy(seeds=2, store=tmp_path).fresh == 2
    assert toy.ToySpec.__doc__ in iclgd.toy.__doc__
    with pytest.raises(Refusal, match="`k` must be at least 1"):
        iclgd.toy(k=0, store=tmp_path)
