"""Patches and training compared as matrices in cells of `implicit`, against whole matrices of one layer."""

import numpy as np
import pytest
import torch
from little_implicit import alike, noise_of

from iclgd.labs.implicit.alike import alike as compared
from iclgd.labs.implicit.beside import NULLS
from iclgd.models.static import Static


def test_likeness_is_by_layer_and_between_minus_one_and_one(results):
    found = [one for one in results["trained"].arrays if one.labels["quantity"] in ("cosine", "contrast")]
    assert {(one.labels["patch"], one.labels.get("null")) for one in found} == {
        (patch, null) for patch in ("own", "matrix") for null in (None, *NULLS)
    }
    for one in found:
        assert one.values.shape == ((5 if one.labels["patch"] == "own" else 1), 3)
        assert np.abs(one.values).max() <= 1


def test_every_null_is_the_cosine_of_whole_matrices(ground, second, results):
    """In the place of training another one, or noise; in the place of reading's patches those behind something else."""
    expected = {None: ("right", second["right"]), "noise": ("right", noise_of(second["right"], 1))}
    expected |= {demos: ("right", second[demos]) for demos in ("wrong", "shuffled", "other demos", "other task")}
    expected |= {"reading wrong": ("wrong", second["right"]), "reading filler": ("filler", second["right"])}
    seen = set()
    for null, (read, change) in expected.items():
        (found,) = results["trained"].select(quantity="cosine", patch="matrix", null=null)
        assert found.values[0, 1] == pytest.approx(alike(ground.static(read, Static(), 4)[1].last, change), abs=1e-4)
        (found,) = results["trained"].select(quantity="cosine", patch="own", null=null)
        for query in range(5):
            own = ground.own(read)[1].of(query).last
            assert found.values[query, 1] == pytest.approx(alike(own, change), abs=1e-4)
        seen.add(round(float(found.values[0, 1]), 6))
    assert len(seen) == len(expected)


def test_contrasts_are_of_right_minus_wrong_labels_in_the_patch_and_in_training(ground, second, results):
    changes = {
        None: second["right"] - second["wrong"],
        "other demos": second["other demos"] - second["other demos, wrong"],
        "noise": noise_of(second["right"], 1),
    }
    fitted = ground.static("right", Static(), 4)[1].last - ground.static("wrong", Static(), 4)[1].last
    own = ground.own("right")[1].of(2).last - ground.own("wrong")[1].of(2).last
    for null, change in changes.items():
        (found,) = results["trained"].select(quantity="contrast", patch="matrix", null=null)
        assert found.values[0, 1] == pytest.approx(alike(fitted, change), abs=1e-4)
        (found,) = results["trained"].select(quantity="contrast", patch="own", null=null)
        assert found.values[2, 1] == pytest.approx(alike(own, change), abs=1e-4)
    assert {one.labels.get("null") for one in results["trained"].select(quantity="contrast")} == set(changes)


def test_the_patch_for_all_is_fitted_with_the_cell_s_ridge_and_chance_is_never_above_one(ground, second, spec):
    """40 directions of 32 outputs are all of them."""
    cell = next(cell for cell in spec.cells() if cell.labels["part"] == "trained").spec
    changes = {demos: [torch.zeros(32, 48), change, torch.zeros(32, 48)] for demos, change in second.items()}
    found = list(compared(ground, changes, cell.model_copy(update={"ridge": 5.0, "ranks": (1, 40)})))
    (one,) = [one for one in found if one.labels == {"quantity": "cosine", "patch": "matrix"}]
    fits = [ground.static("right", Static(ridge=ridge), 4)[1].last for ridge in (5.0, 0.1)]
    wide, narrow = (alike(fit, second["right"]) for fit in fits)
    assert one.values[0, 1] == pytest.approx(wide, abs=1e-5)
    assert abs(wide - narrow) > 1e-3
    (chance,) = [one for one in found if one.labels["quantity"] == "chance"]
    assert chance.values.tolist() == pytest.approx(np.array([[1 / 32, 1 / 48], [1, 40 / 48]]))


def test_subspaces_are_of_patches_and_training_in_their_own_places(ground, second, results):
    """The whole decomposition, of the second layer: outputs to the left, inputs to the right, labels' part apart."""
    gd = second
    fit = {demos: ground.static(demos, Static(), 4)[1].last for demos in ("right", "wrong", "filler")}
    own = [ground.own("right")[1].of(query).last for query in range(5)]
    wrongs = [ground.own("wrong")[1].of(query).last for query in range(5)]
    fillers = [ground.own("filler")[1].of(query).last for query in range(5)]

    def sides(a: torch.Tensor, b: torch.Tensor, rank: int, columns: int) -> list[float]:
        (u, _, v), (x, _, y) = torch.linalg.svd(a), torch.linalg.svd(b)
        pairs = ((u[:, :columns], x), (v[:columns].T, y.T))
        return [float((one.T @ two[:, :rank]).square().sum() / columns) for one, two in pairs]

    cases = [
        ({"patch": None, "null": None}, [(fit["right"], gd["right"])], 2),
        ({"patch": None, "null": "other task"}, [(fit["right"], gd["other task"])], 2),
        ({"patch": None, "null": "other demos"}, [(fit["right"], gd["other demos"])], 2),
        ({"patch": None, "null": "reading wrong"}, [(fit["wrong"], gd["right"])], 2),
        ({"patch": None, "null": "reading filler"}, [(fit["filler"], gd["right"])], 2),
        ({"patch": None, "null": "noise"}, [(fit["right"], noise_of(gd["right"], 1))], 2),
        ({"patch": "own", "null": "reading filler"}, [(one, gd["right"]) for one in fillers], 1),
        ({"patch": "labels", "null": None}, [(fit["right"] - fit["wrong"], gd["right"] - gd["wrong"])], 2),
        ({"patch": "own", "null": None}, [(one, gd["right"]) for one in own], 1),
        ({"patch": "own", "null": "other task"}, [(one, gd["other task"]) for one in own], 1),
    ]
    for labels, pairs, columns in cases:
        (found,) = results["trained"].select(quantity="overlap", **labels)
        expected = np.mean([sides(a, b, 2, columns) for a, b in pairs], axis=0)
        np.testing.assert_allclose(found.at(rank=2).values[1], expected, atol=2e-3)
    for name, change in (("matrix", fit["right"]), ("gd", gd["right"])):
        (length,) = results["trained"].select(quantity="length", patch=name)
        weight = ground.subject.layout.mlps()[1].last.weight.detach()
        assert length.values[1] == pytest.approx(float(change.norm() / weight.norm()), rel=1e-3)
    (chance,) = results["trained"].select(quantity="chance")
    assert chance.at(rank=2).values.tolist() == pytest.approx([2 / size for size in gd["right"].shape])
    labels = gd["right"] - gd["wrong"]
    steps = {
        None: (fit["right"], gd["right"]),
        "labels": (fit["right"] - fit["wrong"], labels),
        "own": (torch.stack(own), gd["right"]),
        "own, labels": (torch.stack(own) - torch.stack(wrongs), labels),
    }
    for patch, (a, b) in steps.items():
        (step,) = results["trained"].select(quantity="step", patch=patch)
        expected = (a * b).sum((-2, -1)) / b.square().sum()
        np.testing.assert_allclose(step.values[..., 1], expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))
