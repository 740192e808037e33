"""Cells brought together: what diverged is not averaged in, and what is paired was measured together."""

import math

import numpy as np
import pytest
import torch

from iclgd.report.compare import Tables
from iclgd.report.comparison import Comparison, estimate, raw_accuracy
from iclgd.run import CellResult
from iclgd.spec import LearnerSpec, ModelSpec, StudySpec

GD, LCGD = LearnerSpec(kind="gd", rate=0.1), LearnerSpec(kind="lcgd", rate=0.1)
QUERIES, LAYERS = 12, 3


def comparison(diverged: dict[int, str], tasks=("a",), seeds=(0, 1, 2)) -> Comparison:
    """Three seeds; a learner's likeness is its seed's number, so that a mean says which seeds are in it.

    ``diverged`` says in which seed which learner did.
    """
    study = StudySpec(model=ModelSpec(name="m"), tasks=tasks, seeds=seeds, inits=("trained",), learners=(GD, LCGD))
    results = {}
    for cell in study.cells():
        seed = cell.episode.seed
        random = np.random.RandomState(seed)
        answers = torch.from_numpy(random.randint(0, 2, QUERIES))
        arrays = {"answers": answers, "icl/SimAM|before": torch.ones(2, QUERIES, LAYERS)}
        lost = [diverged[seed]] if seed in diverged else []
        for name in ("zero-shot", "icl", GD.name, LCGD.name):
            if name in lost:
                continue
            arrays |= {f"{name}/scores": torch.eye(2)[answers], f"{name}/blanks": torch.zeros(1, 2)}
            if name in (GD.name, LCGD.name):
                noise = torch.from_numpy(random.uniform(-0.01, 0.01, (2, QUERIES, LAYERS)))
                for metric in ("SimAOU", "SimAOU_norm", "SimAM", "SimAM_Δ"):
                    arrays[f"{name}/{metric}"] = float(seed) + noise
        results[cell.key()] = CellResult({"diverged": lost}, arrays)
    return Comparison(study, results)


def test_a_seed_that_diverged_is_counted_and_not_averaged_in():
    found = comparison({2: GD.name})
    assert found.diverged("trained", "a", GD.name) == 1
    assert found.diverged("trained", "a", LCGD.name) == 0
    assert found.likeness("trained", ["a"], f"{GD.name}/SimAOU", "prompt").mean == pytest.approx(0.5, abs=0.01)
    assert found.likeness("trained", ["a"], f"{LCGD.name}/SimAOU", "prompt").mean == pytest.approx(1.0, abs=0.01)


def test_the_table_of_one_task_says_diverged_in_place_of_the_other_seeds_mean():
    rows = {row[0]: row[1:] for row in Tables(comparison({2: GD.name}), "prompt").one_task("a")[1]}
    assert rows[GD.name] == ["diverged in 1 of 3 seeds", "", "", "", "", ""]
    assert rows[LCGD.name][0].startswith("1.00")


def test_the_table_by_task_says_diverged_and_has_no_mean_over_tasks_then():
    tables = Tables(comparison({2: GD.name}, tasks=("a", "b")), "prompt")
    rows = {row[0]: row[1:] for row in tables.by_task("SimAOU")[1]}
    assert rows[GD.name] == ["1 diverged", "1 diverged", "n/a"]
    assert rows[LCGD.name][-1] == "1.000"
    accuracy = {row[0]: row[1:] for row in tables.accuracy_by_task()[1]}
    assert accuracy[GD.name] == ["1 diverged", "1 diverged"]
    assert accuracy[LCGD.name] == ["1.00 / 1.00", "1.00 / 1.00"]


def test_two_learners_are_paired_in_the_seeds_that_both_have():
    """Else the difference would be one of seeds: here the learners differ by nothing but noise."""
    found = comparison({2: GD.name}).paired("trained", ["a"], f"{LCGD.name}/SimAOU", f"{GD.name}/SimAOU", "prompt")
    assert abs(found.difference) < 0.02


def test_two_learners_that_share_no_seed_are_not_compared():
    found = comparison({0: GD.name, 1: LCGD.name}, seeds=(0, 1))
    paired = found.paired("trained", ["a"], f"{LCGD.name}/SimAOU", f"{GD.name}/SimAOU", "prompt")
    assert math.isnan(paired.difference)
    assert Tables(found, "prompt").pairs(["a"])[1][0][2:] == ["n/a"] * 4


def test_an_estimate_is_the_mean_its_interval_and_the_spread_of_the_seeds_means():
    values = np.random.default_rng(0).normal(size=(4, 30))
    values[0, :5] = np.nan
    found = estimate(values)
    known = values[np.isfinite(values)]
    assert found.mean == pytest.approx(known.mean())
    assert found.seed_std == pytest.approx(np.std([np.nanmean(row) for row in values], ddof=1))
    assert found.low < found.mean < found.high
    assert math.isnan(estimate(values[:1]).seed_std)
    assert all(math.isnan(x) for x in vars(estimate(np.full((2, 3), np.nan))).values())


def test_accuracy_is_over_the_seeds_there_are():
    found = comparison({0: GD.name, 1: GD.name, 2: GD.name})
    assert math.isnan(found.predictions("trained", "a", GD.name, raw_accuracy).mean)
    assert found.predictions("trained", "a", LCGD.name, raw_accuracy).mean == 1
