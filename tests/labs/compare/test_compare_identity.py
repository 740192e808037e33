"""What a key must know although the spec only points to it, and what a table must not be too sure of."""

import math

import pytest
import torch
from tokenizers.normalizers import Lowercase

from iclgd.calls import in_memory
from iclgd.labs.compare.run import identity
from iclgd.labs.compare.tables import _above_base
from iclgd.metrics.differences import Difference
from iclgd.metrics.estimates import Estimate
from iclgd.spec import ModelSpec
from iclgd.tools import Tools
from little import little_cell, little_task
from tiny import tiny_model, tiny_tokenizer


def test_rows_that_only_another_draw_takes_are_in_the_key_of_who_trains_on_them(tmp_path):
    task = little_task(tmp_path)
    rows = (tmp_path / "mine.csv").read_text().splitlines()
    found = []
    for change in (False, True):
        tools = Tools()
        own = {demo.fields["text"] for demo in tools.episode(str(task), little_cell(task).spec.episode).demos}
        asked = {query.fields["text"] for query in tools.episode(str(task), little_cell(task).spec.episode).queries}
        if change:  # every row that this draw does not take
            kept = [row if row.split(",")[0] in own | asked else row.replace("red", "car") for row in rows]
            (tmp_path / "mine.csv").write_text("\n".join(kept) + "\n")
            tools = Tools()
        cell = little_cell(task, "gd", nulls=("other-demos", "random"))
        found.append(identity(cell, tools))
    assert found[0].keys() == found[1].keys() == {"weights", "episode", "null other-demos"}
    assert found[0]["null other-demos"] != found[1]["null other-demos"]


def test_a_model_in_memory_is_named_by_its_configuration_too():
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    before = in_memory((model, tokenizer))[0]
    assert in_memory((model, tokenizer))[0] == before
    model.config.rms_norm_eps *= 2
    assert in_memory((model, tokenizer))[0] != before


def test_a_model_in_memory_is_named_by_its_tables_too():
    """Casting a model rounds its rotary tables, which loading it in that format does not: other numbers."""
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    before = in_memory((model, tokenizer))[0]
    tables = model.model.rotary_emb
    tables.inv_freq = tables.inv_freq.bfloat16().float()
    assert in_memory((model, tokenizer))[0] != before


def test_a_model_in_memory_is_named_by_how_its_tokenizer_splits_too():
    model, (one, two) = tiny_model("llama"), (tiny_tokenizer(), tiny_tokenizer())
    two.backend_tokenizer.normalizer = Lowercase()
    assert repr(one) == repr(two)
    assert one("A b")["input_ids"] != two("A b")["input_ids"]
    assert in_memory((model, one))[0] != in_memory((model, two))[0]
    assert in_memory((model, one))[0] == in_memory((model, tiny_tokenizer()))[0]


def test_products_of_a_model_in_memory_are_as_precise_as_the_key_says():
    name, subject = in_memory((tiny_model("llama"), tiny_tokenizer()))
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        Tools(subjects={name: subject}).subject(ModelSpec(name=name))
        assert torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize(("seeds", "shown"), [(2, False), (4, False), (5, True)])
def test_recall_above_its_base_rate_has_an_interval_from_five_draws_on(seeds, shown):
    found = _above_base(Difference(Estimate(0.1, 0.05, 0.15, 0.1, seeds, 40, 1, "draws"), 0.01))
    assert found.value == 0.1
    assert math.isfinite(found.low) is shown
