"""Cells of `implicit` on a tiny model, against the learners of the package and against each other."""

from pathlib import Path

import numpy as np
import pytest
import torch

from iclgd.bench import Bench
from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.labs.implicit.beside import NULLS
from iclgd.labs.implicit.ground import Ground, Tuned, random_like
from iclgd.labs.implicit.run import TRAINED, depths, identity, run
from iclgd.labs.implicit.spec import ImplicitSpec
from iclgd.learners.descent import GradientDescent
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.models.added import Added
from iclgd.models.static import Static
from iclgd.models.subject import Subject
from iclgd.noise import normal
from iclgd.nulls.reading import Filler
from iclgd.nulls.trained import OtherDemos, ShuffledLabels
from iclgd.prompts import Prompts, build_prompts
from iclgd.results import Result
from iclgd.spec import PromptSpec
from iclgd.tools import Tools, silent
from little import little_task
from tiny import tiny_subject

ASKED = {"k": 3, "queries": 5, "calibration": (1, 4), "ranks": (1, 2), "rates": (0.3,), "tokens": 3}


@pytest.fixture(scope="module")
def subject() -> Subject:
    return tiny_subject("llama")


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> ImplicitSpec:
    folder = tmp_path_factory.mktemp("tasks")
    task, other = little_task(folder), little_task(folder, "theirs", ("Group", "Word"))
    given = {"model": "memory:tiny", "task": str(task), "other": str(other), "init": "trained", **ASKED}
    return ImplicitSpec.of(given)


@pytest.fixture(scope="module")
def results(subject: Subject, spec: ImplicitSpec) -> dict[str, Result]:
    tools = Tools(subjects={"memory:tiny": subject})
    before = subject.fingerprint()
    found = {}
    for cell in spec.cells():
        found[f"{cell.labels['part']} {cell.labels.get('precision', '')}".strip()] = run(cell, tools)
        assert subject.fingerprint() == before
    return found


def prompts_of(subject: Subject, cell: Cell) -> Prompts:
    episode = Tools().episode(cell.spec.task, cell.spec.episode)
    return build_prompts(subject.tokenizer, episode, PromptSpec(), subject.room)


def scores(result: Result, **labels: object) -> np.ndarray:
    usual = dict.fromkeys(("fitted", "null", "layers", "first", "last", "demos"))
    (found,) = result.select(**{**usual, "quantity": "scores", "asked": "held", **labels})
    return found.values


def test_scores_without_and_behind_demonstrations_are_those_of_the_package_s_learners(subject, spec, results):
    prompts = prompts_of(subject, spec.cells()[0])
    assert len(prompts.queries) == 9
    for name, learner in (("zero-shot", ZeroShot()), ("icl", InContext())):
        with learner.learn(subject, prompts) as predictor:
            expected = predictor.trace(prompts).scores
        np.testing.assert_allclose(scores(results["static"], patch=name), expected[4:], atol=1e-5)
        calibration = scores(results["static"], patch=name, asked="calibration")
        np.testing.assert_allclose(calibration, expected[:4], atol=1e-5)
    episode = Tools().episode(spec.cells()[0].spec.task, spec.cells()[0].spec.episode).with_wrong_labels(0)
    wrong = build_prompts(subject.tokenizer, episode, PromptSpec(), subject.room)
    with InContext().learn(subject, wrong) as predictor:
        expected = predictor.trace(wrong).scores[4:]
    np.testing.assert_allclose(scores(results["static"], patch="icl, wrong labels"), expected, atol=1e-5)


def alike(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.cosine_similarity(a.double().ravel(), b.double().ravel(), 0))


def trained_alone(subject: Subject, prompts: Prompts, layer: int) -> torch.Tensor:
    """What the package's learner makes of one layer's last map, trained by itself."""
    before = subject.layout.mlps()[layer].last.weight.detach().clone()
    with GradientDescent(rate=0.3, trains="down").learn(subject, prompts) as predictor:
        return predictor.slots[layer].parameter.detach() - before


@pytest.fixture(scope="module")
def ground(subject: Subject, spec: ImplicitSpec) -> Ground:
    tools, cell = Tools(), spec.cells()[0].spec
    episode, other = (tools.episode(task, cell.episode) for task in (cell.task, cell.other))
    return Ground(subject, episode, other, PromptSpec(), 0, 4, silent)


@pytest.fixture(scope="module")
def second(subject: Subject, ground: Ground) -> dict[str, torch.Tensor]:
    """Training's change of the second layer, of every kind of demonstrations, one by one."""
    return {demos: trained_alone(subject, ground.prompts[demos], 1) for demos in TRAINED}


def test_demonstrations_are_those_of_the_nulls_of_compare(subject, spec, ground):
    cell, tools = spec.cells()[0].spec, Tools()
    bench = Bench(subject, ground.episode, PromptSpec(), cell.episode.seed, tools.episode, silent)
    assert ground.prompts["filler"].demos == Filler().demos(bench)
    assert ground.prompts["filler"].queries == ground.prompts["right"].queries
    (shuffled,) = ShuffledLabels().trained_on(bench, False).values()
    assert ground.prompts["shuffled"].demos == shuffled.demos
    others, wrong = OtherDemos().trained_on(bench, True).values()
    assert ground.prompts["other demos"].demos == others.demos
    assert ground.prompts["other demos, wrong"].demos == wrong.demos
    assert ground.prompts["wrong"].demos == bench.wrong.demos
    assert len({ground.prompts[demos].demos for demos in (*TRAINED, "filler")}) == len(TRAINED) + 1


def test_trainings_at_once_are_what_each_is_by_itself(ground, second):
    found = ground.tuned(TRAINED, 0.3, ("wrong",))
    for demos, one in found.items():
        torch.testing.assert_close(one.change[1], second[demos], rtol=0, atol=1e-6)
        assert bool(one.scores) == (demos == "wrong")


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


def noise_of(change: torch.Tensor, layer: int, seed: int = 0) -> torch.Tensor:
    return normal(change.shape, (seed, layer), dtype=torch.float32)


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


def test_training_the_last_maps_is_the_package_s_gradient_descent(subject, spec, results):
    prompts = prompts_of(subject, spec.cells()[0])
    with GradientDescent(rate=0.3, trains="down").learn(subject, prompts) as predictor:
        expected = predictor.trace(prompts).scores
        moved = [slot.layer for slot in predictor.slots]
    assert moved == [0, 1, 2]
    found = scores(results["trained"], patch="gd", demos="right")
    np.testing.assert_allclose(found, expected[4:], atol=1e-5)
    calibration = scores(results["trained"], patch="gd", demos="right", asked="calibration")
    np.testing.assert_allclose(calibration, expected[:4], atol=1e-5)
    assert not np.allclose(found, scores(results["static"], patch="zero-shot"), atol=1e-3)
    assert not np.allclose(found, scores(results["trained"], patch="gd", demos="wrong"), atol=1e-4)


def test_every_patch_of_the_curve_is_there_and_no_rank_above_its_queries(results):
    found = [one.labels for one in results["static"].arrays if one.labels.get("asked") == "held"]
    kinds = {(one["patch"], one["fitted"]) for one in found if "fitted" in one}
    assert kinds == {("vector", 1), ("matrix", 1), ("vector", 4), ("rank 1", 4), ("rank 2", 4), ("matrix", 4)}
    assert {one.get("null") for one in found} == {None, "wrong labels", "other task", "filler", "random"}
    parts = {(one["layers"], one["first"], one["last"]) for one in found if "layers" in one}
    assert parts == {(layers, i, i) for layers in ("alone", "up to") for i in range(3)}  # the model has three layers


def test_other_queries_other_labels_and_other_depths_give_other_numbers(results):
    whole = {"patch": "matrix", "fitted": 4}
    base = scores(results["static"], **whole)
    last = {"layers": "alone", "first": 2, "last": 2}
    for change in (*({"null": null} for null in ("wrong labels", "other task", "filler", "random")), last):
        assert not np.allclose(scores(results["static"], **whole, **change), base, atol=1e-4)
    assert scores(results["static"], **whole, asked="others").shape == (9, 2)


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


def test_likeness_is_by_layer_and_between_minus_one_and_one(results):
    found = [one for one in results["trained"].arrays if one.labels["quantity"] in ("cosine", "contrast")]
    assert {(one.labels["patch"], one.labels.get("null")) for one in found} == {
        (patch, null) for patch in ("own", "matrix") for null in (None, *NULLS)
    }
    for one in found:
        assert one.values.shape == ((5 if one.labels["patch"] == "own" else 1), 3)
        assert np.abs(one.values).max() <= 1


def test_subspaces_are_of_patches_and_training_in_their_own_places(ground, second, results):
    """The whole decomposition, of the second layer: outputs to the left, inputs to the right, labels' part apart."""
    gd = second
    fit = {demos: ground.static(demos, Static(), 4)[1].last for demos in ("right", "wrong", "filler")}
    own = [ground.own("right")[1].of(query).last for query in range(5)]
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
    (chance,) = results["trained"].select(quantity="chance")
    assert chance.at(rank=2).values.tolist() == pytest.approx([2 / size for size in gd["right"].shape])
    (step,) = results["trained"].select(quantity="step")
    assert step.values[1] == pytest.approx(
        float((fit["right"] * gd["right"]).sum() / gd["right"].square().sum()), rel=1e-3
    )


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_the_change_that_training_made_written_into_the_weights_is_training(architecture, spec):
    """Its matrices are those that are patched, outputs by inputs, whichever way a family keeps them."""
    tools, cell, trained = Tools(), spec.cells()[0].spec, tiny_subject(architecture)
    episode, other = (tools.episode(task, cell.episode) for task in (cell.task, cell.other))
    ground = Ground(trained, episode, other, PromptSpec(), 0, 4, silent)
    tuned = ground.tuned(("other task", "right"), 0.3, ("right",))["right"]
    for asked in ("held", "calibration"):
        found = ground.patched([Added(change) for change in tuned.change], asked)
        torch.testing.assert_close(found, tuned.scores[asked], atol=1e-4, rtol=0)
        assert not torch.allclose(found, ground.scores(ground.reading(None, asked)), atol=1e-3)


def test_a_part_of_the_layers_is_that_part_and_all_up_to_a_layer_are_fitted_so(ground, spec, results):
    """Up to a layer is the first part of the whole patch, here beside a fit of these layers by themselves."""
    ridge = spec.cells()[0].spec.ridge
    for layer in range(3):
        for layers, some in (("alone", [layer]), ("up to", range(layer + 1))):
            expected = ground.patched(ground.static("right", Static(ridge=ridge), 4, some))
            found = scores(results["static"], patch="matrix", fitted=4, layers=layers, first=layer, last=layer)
            np.testing.assert_allclose(found, expected, atol=1e-5)
    whole = scores(results["static"], patch="matrix", fitted=4)
    last = scores(results["static"], patch="matrix", fitted=4, layers="up to", first=2, last=2)
    np.testing.assert_allclose(last, whole, atol=1e-6)
    for null, demos in (("wrong labels", "wrong"), ("other task", "other task"), ("filler", "filler")):
        expected = ground.patched(ground.static(demos, Static(ridge=ridge), 4))
        np.testing.assert_allclose(scores(results["static"], patch="matrix", fitted=4, null=null), expected, atol=1e-5)


@pytest.mark.parametrize("layers", [1, 3, 6, 7, 18, 30])
def test_depths_cover_the_stack_once_in_six_parts_or_layer_by_layer(layers):
    parts = depths(layers)
    assert len(parts) == min(6, layers)
    assert [layer for part in parts for layer in part] == list(range(layers))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_null_that_diverges_is_left_out_and_said_and_no_other_is(subject, spec, monkeypatch):
    tuned = Ground.tuned

    def wild(self, which, rate, scored=()):
        found = tuned(self, which, rate, scored)
        return found | {"other demos": Tuned([], {}, (9.0,), "the loss rose")}

    monkeypatch.setattr(Ground, "tuned", wild)
    cell = next(cell for cell in spec.cells() if cell.labels["part"] == "trained")
    found = run(cell, Tools(subjects={"memory:tiny": subject}))
    assert found.facts["diverged"] is None
    assert found.facts["lost"] == ["other demos"]
    kept = {
        one.labels.get("null") for one in found.arrays if one.labels["quantity"] in ("cosine", "contrast", "overlap")
    }
    assert kept == {None, *NULLS} - {"other demos"}


def test_training_that_diverges_is_a_fact_and_no_number(subject, spec):
    cell = next(cell for cell in spec.cells() if cell.labels["part"] == "trained")
    wild = Cell("implicit", cell.spec.model_copy(update={"rate": 1e30}), cell.labels)
    found = run(wild, Tools(subjects={"memory:tiny": subject}))
    assert found.facts["diverged"]
    assert {one.labels["quantity"] for one in found.arrays} == {"loss"}


def test_other_demonstrations_are_part_of_the_identity_of_training_alone(spec):
    static, trained = (next(c for c in spec.cells() if c.labels["part"] == part) for part in ("static", "trained"))
    tools = Tools()
    episode = tools.episode(trained.spec.task, trained.spec.episode)
    assert identity(trained, tools)["other demos"] == episode.redraw(2**31).sha256() != episode.sha256()
    assert "other demos" not in identity(static, tools)


def test_the_other_task_and_the_queries_are_part_of_the_identity(spec, tmp_path: Path):
    cell, tools = spec.cells()[0], Tools()
    other = little_task(tmp_path, "theirs", ("Word", "Group"))
    changed = Cell("implicit", cell.spec.model_copy(update={"other": str(other)}), cell.labels)
    one, two = identity(cell, tools), identity(changed, tools)
    assert one["episode"] == two["episode"]
    assert one["other"] != two["other"]


def test_too_few_queries_to_hold_any_out_are_refused(subject, spec):
    tools, cell = Tools(), spec.cells()[0].spec
    episode, other = (tools.episode(task, cell.episode) for task in (cell.task, cell.other))
    with pytest.raises(Refusal, match="too few to calibrate on 8.*lower `calibration`"):
        Ground(subject, episode, other, PromptSpec(), 0, 8, silent)


def test_random_matrices_are_as_long_as_those_they_stand_in_for_and_of_their_seed_and_layer():
    given = [torch.full((3, 4), 2.0), torch.ones(3, 4), torch.ones(3, 4)]
    found = random_like(given, 0)
    for one, other in zip(given, found, strict=True):
        torch.testing.assert_close(one.norm(), other.norm())
        assert not torch.allclose(one, other)
    assert not torch.allclose(found[1], found[2])
    assert not torch.allclose(found[1], random_like(given, 1)[1])
    torch.testing.assert_close(found, random_like(given, 0), rtol=0, atol=0)


def test_the_random_null_has_nothing_that_was_fitted_behind_a_norm_either(spec):
    """Gemma's patches change the norm's gain, too: a random matrix beside a fitted gain would be partly fitted."""
    subject, tools, cell = tiny_subject("gemma3"), Tools(), spec.cells()[0]
    episode, other = (tools.episode(task, cell.spec.episode) for task in (cell.spec.task, cell.spec.other))
    ground = Ground(subject, episode, other, PromptSpec(), 0, 4, silent)
    fitted = ground.static("right", Static(ridge=cell.spec.ridge), 4)
    noise = random_like([one.last for one in fitted], 0)
    found = scores(run(cell, Tools(subjects={"memory:tiny": subject})), patch="matrix", fitted=4, null="random")
    np.testing.assert_allclose(found, ground.patched([Added(last=one) for one in noise]), atol=1e-5)
    partly = [Added(last=one, gain=two.gain) for one, two in zip(noise, fitted, strict=True)]
    assert np.abs(found - ground.patched(partly).numpy()).max() > 1e-3


def test_a_fit_is_computed_once_for_all_cells_of_an_episode(ground):
    assert ground.static("right", Static(), 4) is ground.static("right", Static(), 4)
    assert ground.static("right", Static(), 4) is not ground.static("wrong", Static(), 4)
    assert ground.static("right", Static(), 4, range(1))[2].last is None
