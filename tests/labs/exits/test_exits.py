"""Every layer read out: the last one is the model itself."""

import torch

from iclgd.labs.exits.lab import ExitsSpec
from iclgd.models.load import load_subject
from iclgd.running import Where, run_study
from iclgd.spec import ModelSpec
from little import little_model, little_task


def study(folder):
    fields = {"model": str(little_model(folder / "tiny")), "task": str(little_task(folder)), "k": 3, "queries": 6}
    return run_study("exits", ExitsSpec.of(fields | {"device": "cpu"}), Where(folder / "cells"))


def test_the_last_layer_says_what_the_model_says_and_a_page_shows_every_layer(tmp_path):
    found = study(tmp_path)
    for one in found.arrays(quantity="agrees"):
        assert one.values.shape == (6, 3)
        assert (one.values[:, -1] == 1).all()
    assert [row[0] for row in found.table("By layer").rows] == ["0", "1", "2"]
    assert "layer" in found.answer


def test_a_layer_is_the_model_cut_off_behind_it(tmp_path):
    found = study(tmp_path)
    spec = found.cells[0].spec
    subject = load_subject(ModelSpec(name=spec.model.name, device="cpu"))
    whole, cut = load_subject(ModelSpec(name=spec.model.name, device="cpu")), subject.model
    cut.model.layers = cut.model.layers[:2]
    from iclgd.prompts import build_prompts
    from iclgd.tools import Tools

    prompts = build_prompts(subject.tokenizer, Tools().episode(spec.task, spec.episode), spec.prompt, None)
    ids = [torch.tensor([prompts.context + query]) for query in prompts.queries]
    with torch.no_grad():
        short = [int(cut(one, use_cache=False).logits[0, -1].argmax()) for one in ids]
        full = [int(whole.model(one, use_cache=False).logits[0, -1].argmax()) for one in ids]
    (agrees,) = found.arrays(quantity="agrees", learner="icl")
    assert [bool(x) for x in agrees.values[:, 1]] == [a == b for a, b in zip(short, full, strict=True)]
