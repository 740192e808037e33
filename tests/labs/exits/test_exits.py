"""Every layer read out: the last one is the model itself."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from iclgd.labs.exits import run
from iclgd.labs.exits.lab import ExitsCell, ExitsSpec
from iclgd.labs.exits.page import page
from iclgd.models.load import load_subject
from iclgd.prompts import build_prompts
from iclgd.results import Result, array
from iclgd.running import Where, run_study
from iclgd.spec import ModelSpec, is_keyed
from iclgd.study import Study
from iclgd.tools import Tools
from little import little_model, little_task


def study(folder, words=("Negative", "Positive")):
    task = little_task(folder, words=words)
    fields = {"model": str(little_model(folder / "tiny")), "task": str(task), "k": 3, "queries": 6}
    return run_study("exits", ExitsSpec.of(fields | {"device": "cpu"}), Where(folder / "cells"))


def test_the_last_layer_says_what_the_model_says_and_a_page_shows_every_layer(tmp_path):
    found = study(tmp_path)
    for one in found.arrays(quantity="agrees"):
        assert one.values.shape == (6, 3)
        assert (one.values[:, -1] == 1).all()
    assert [row[0] for row in found.table("By layer").rows] == ["0", "1", "2"]
    assert "layer" in found.answer


def test_a_layer_is_the_model_cut_off_behind_it(tmp_path):
    found = study(tmp_path, ("good film", "bad car"))  # of label words the first token counts
    spec = found.cells[0].spec
    subject = load_subject(ModelSpec(name=spec.model.name, device="cpu"))
    whole, cut = load_subject(ModelSpec(name=spec.model.name, device="cpu")), subject.model
    cut.model.layers = cut.model.layers[:2]
    prompts = build_prompts(subject.tokenizer, Tools().episode(spec.task, spec.episode), spec.prompt, None)
    ids = [torch.tensor([prompts.context + query]) for query in prompts.queries]
    with torch.no_grad():
        short = [int(cut(one, use_cache=False).logits[0, -1].argmax()) for one in ids]
        full = [int(whole.model(one, use_cache=False).logits[0, -1].argmax()) for one in ids]
        words = [label[0] for label in prompts.labels]
        choices = [int(cut(one, use_cache=False).logits[0, -1, words].argmax()) for one in ids]
    (agrees,), (right,) = (found.arrays(quantity=name, learner="icl") for name in ("agrees", "right"))
    assert [bool(x) for x in agrees.values[:, 1]] == [a == b for a, b in zip(short, full, strict=True)]
    assert [bool(x) for x in right.values[:, 1]] == [a == b for a, b in zip(choices, prompts.answers, strict=True)]


def test_a_layer_agrees_where_its_token_is_the_last_layers_and_is_right_where_its_label_is_the_answer(monkeypatch):
    """Planted: the token that each of two layers would say, and the label (token 3 or 1) that it prefers."""
    said, preferred, answers = [[0, 2], [2, 2], [4, 3], [1, 3]], [[0, 1], [1, 0], [0, 0], [1, 0]], (0, 1, 1, 0)
    blocks = torch.zeros(4, 2, 2, 5)
    for query in range(4):
        for layer in range(2):
            blocks[query, layer, 0, [3, 1][preferred[query][layer]]] = 1
            blocks[query, layer, 0, said[query][layer]] = 2
    subject = SimpleNamespace(layout=SimpleNamespace(layers=2), unembed=lambda hidden: hidden, name="planted")
    subject.device, subject.dtype = torch.device("cpu"), torch.float32
    bench = SimpleNamespace(prompts=SimpleNamespace(labels=((3,), (1, 0)), answers=answers), facts=dict)
    bench.zero = bench.icl = SimpleNamespace(blocks=blocks)
    tools = Tools()
    tools.subject, tools.episode = (lambda _model: subject), (lambda *_which: None)
    monkeypatch.setattr(run, "Bench", lambda *_parts: bench)
    found = run.run(ExitsSpec.of({}).cells()[0], tools)
    (agrees,), (right,) = (found.select(quantity=name, learner="icl") for name in ("agrees", "right"))
    assert agrees.values.tolist() == [[0, 1], [1, 1], [0, 1], [0, 1]]
    assert right.values.tolist() == [[1, 0], [1, 0], [0, 0], [0, 1]]


def test_weights_and_examples_name_a_cell_and_the_files_they_came_from_do_not():
    fields = ExitsCell.model_fields
    assert {name for name, field in fields.items() if not is_keyed(field)} == {"task", "episode"}


# the page, from planted shares: two queries, three layers
READ = [[1, 0, 1], [0, 1, 1]]
BEFORE = [[0, 0, 1], [0, 1, 1]]
RIGHT = {"zero-shot": [[0, 0, 0], [0, 0, 1]], "icl": [[1, 0, 1], [1, 0, 1]]}


def shown(read, queries=2):
    arrays = []
    for learner, agrees in (("zero-shot", BEFORE), ("icl", read)):
        for quantity, values in (("agrees", agrees), ("right", RIGHT[learner])):
            values = np.resize(np.array(values, dtype=np.float32), np.shape(read))
            arrays.append(array(values, "query", "layer", quantity=quantity, learner=learner))
    spec = ExitsSpec.of({"k": 3, "queries": queries})
    facts = {"model": "tiny", "task": "films", "queries": queries}
    return page(Study("exits", spec, spec.cells(), ["a"], {"a": Result(facts, arrays)}))


def test_the_page_has_the_share_of_queries_by_layer_before_and_after_reading():
    made = shown(READ)
    assert made.table("By layer").texts() == [
        ["0", ".00 [.00 .66]", ".00 [.00 .66]", ".50 [.09 .91]", "1.00 [.34 1.00]"],
        ["1", ".50 [.09 .91]", ".00 [.00 .66]", ".50 [.09 .91]", ".00 [.00 .66]"],
        ["2", "1.00 [.34 1.00]", ".50 [.09 .91]", "1.00 [.34 1.00]", "1.00 [.34 1.00]"],
    ]
    header = ["layer", "zero-shot, agrees", "zero-shot, accuracy", "icl, agrees", "icl, accuracy"]
    assert list(made.table("By layer").header) == header
    assert made.subtitle == "smollm2-135m · films · k = 3 · 2 queries · float32"
    assert [section.brief for section in made.sections] == [True]


@pytest.mark.parametrize(
    "read, where",
    [
        (READ, "layer 0 on, of 0 to 2"),
        ([[0, 0, 1], [0, 1, 1]], "layer 1 on, of 0 to 2"),
        ([[1, 0, 1], [1, 0, 1]], "the last layer on alone (2)"),
        ([[0, 0, 0], [0, 0, 0]], "the last layer on alone (2)"),
        ([[0, 0, 0, 0], [0, 0, 0, 0]], "the last layer on alone (3)"),
    ],
)
def test_the_answer_names_the_layer_from_which_on_half_of_the_queries_are_as_the_model_says(read, where):
    assert f"for half or more of 2 queries from {where}." in shown(read).answer
