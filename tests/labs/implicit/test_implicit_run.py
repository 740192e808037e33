"""Exact cells of `implicit`, and what is part of the identity of a cell."""

from pathlib import Path

from little_implicit import SEED

from iclgd.lab import Cell
from iclgd.labs.implicit.run import identity
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
