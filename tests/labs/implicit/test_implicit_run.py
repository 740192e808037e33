"""Exact cells of `implicit`, and what is part of the identity of a cell."""

from pathlib import Path

import pytest
import torch
from little_implicit import SEED, prompts_of
from little_implicit import alike as cosine_of

from iclgd.lab import Cell
from iclgd.labs.implicit.run import identity
from iclgd.models.patches import patches, read
from iclgd.tools import Tools
from little import little_task


def test_exact_cells_hold_in_double_precision_and_only_for_their_own_query(results):
    double, single = results["exact float64"], results["exact float32"]
    for form in "ABC":
        for quantity in ("block", "logits"):
            labels = {"quantity": quantity, "form": form, "patch": "own"}
            (fine,), (coarse,) = double.select(**labels), single.select(**labels)
            assert fine.values.max() <= 1e-12 < coarse.values.max() <= 1e-4
    (other,) = double.select(quantity="logits", form="C", patch="another query's")
    assert other.values.min() > 0.1
    assert double.facts["same_tokens"] == double.facts["tokens"] == 3
    assert double.facts["narrow"] == []
    assert double.facts["random_path"] <= 1e-14


def test_patches_beside_the_weights_are_as_long_as_their_largest_singular_values_say(subject, spec, results):
    """Spectral norms of both, the patch being of rank one; its cosine with the weights; of the episode's queries."""
    cell = next(cell for cell in spec.cells() if cell.labels.get("precision") == "float32")
    prompts = prompts_of(subject, cell)
    queries = [prompts.bos + query for query in prompts.queries]
    target = read(subject, prompts.queries, subject.encode(prompts.context))
    own = patches(subject, queries, target, "C")
    size, along, alike = (results["exact float32"].select(quantity=q)[0].values
                          for q in ("size", "along W", "between queries"))  # fmt: skip
    for layer, mlp in enumerate(subject.layout.mlps()):
        weight = mlp.last.weight.detach().double()
        changes = [own[layer].of(i).last.double() for i in range(len(queries))]
        for i, change in enumerate(changes):
            expected = torch.linalg.matrix_norm(change, 2) / torch.linalg.matrix_norm(weight, 2)
            assert size[i, layer] == pytest.approx(float(expected), rel=1e-3)
            assert along[i, layer] == pytest.approx(cosine_of(change, weight), abs=1e-4)
        assert alike[layer] == pytest.approx(cosine_of(changes[0], changes[1]), abs=1e-4)


def test_the_queries_that_are_held_out_have_their_own_answers(subject, spec, results):
    (answers,) = results["static"].select(quantity="answers")
    every = prompts_of(subject, spec.cells()[0]).answers
    assert answers.values.tolist() == list(every[4:])
    assert list(every[4:]) != list(every[:5])


def test_other_demonstrations_are_part_of_the_identity_of_training_alone(spec):
    static, trained = (next(c for c in spec.cells() if c.labels["part"] == part) for part in ("static", "trained"))
    tools = Tools()
    episode = tools.episode(trained.spec.task, trained.spec.episode)
    assert identity(trained, tools)["other demos"] == episode.redraw(2**31 + SEED).sha256() != episode.sha256()
    assert "other demos" not in identity(static, tools)


def test_the_other_task_and_the_queries_are_part_of_the_identity(spec, tmp_path: Path):
    cell, tools = spec.cells()[0], Tools()
    other = little_task(tmp_path, "theirs", ("Word", "Group"))
    changed = Cell("implicit", cell.spec.model_copy(update={"other": str(other)}), cell.labels)
    one, two = identity(cell, tools), identity(changed, tools)
    assert one["episode"] == two["episode"]
    assert one["other"] != two["other"]
