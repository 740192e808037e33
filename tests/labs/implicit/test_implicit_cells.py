"""Which cells a study of `implicit` is made of, what each of them is told, and what it says while it runs."""

from collections import Counter

import pytest
import torch

import iclgd.labs  # noqa: F401  registers the labs
from iclgd.errors import Refusal
from iclgd.lab import LABS
from iclgd.labs.implicit.ground import OWN, Ground
from iclgd.labs.implicit.run import TRAINED, identity, run
from iclgd.labs.implicit.spec import ImplicitSpec
from iclgd.models.static import Static
from iclgd.prompts import build_prompts
from iclgd.spec import EpisodeSpec, ModelSpec, PromptSpec
from iclgd.tools import Tools, silent
from little import little_task
from tiny import tiny_subject

SPEC = ImplicitSpec.of(
    {"task": "sentiment,kinds", "seeds": "3,5", "rates": "0.1,0.5", "calibration": "1,4", "queries": 6, "exact": 3}
)


def test_results_of_an_earlier_version_are_not_taken_for_those_of_this_one():
    """In the fourth the random null had a gain that was fitted."""
    assert LABS["implicit"].version >= 5


@pytest.mark.parametrize("field", ["ranks", "rates", "calibration", "task", "seeds", "init"])
def test_a_study_of_nothing_is_refused(field):
    with pytest.raises(Refusal, match=field):
        ImplicitSpec.of({field: ()})


def parts(cell) -> tuple:
    return tuple(cell.labels.get(name) for name in ("init", "seed", "task", "part", "rate", "precision"))


def test_cells_come_episode_by_episode_with_the_exact_ones_behind_the_first():
    expected = []
    for init in ("trained", "random"):
        for seed in (3, 5):
            for task in ("sentiment", "kinds"):
                expected.append((init, seed, task, "static", None, None))
                expected += [(init, seed, task, "trained", rate, None) for rate in (0.1, 0.5)]
                if (seed, task) == (3, "sentiment"):
                    expected += [(init, None, None, "exact", None, precision) for precision in ("float64", "float32")]
    assert [parts(cell) for cell in SPEC.cells()] == expected
    assert {cell.group for cell in SPEC.cells()} == {
        f"{init} {seed} {task}" for init in ("trained", "random") for seed in (3, 5) for task in ("sentiment", "kinds")
    }


def test_an_episode_has_the_calibration_s_queries_and_those_held_out():
    for cell in SPEC.cells():
        seed, queries = (3, 3) if cell.labels["part"] == "exact" else (cell.labels["seed"], 4 + 6)
        assert cell.spec.episode == EpisodeSpec(k=8, queries=queries, seed=seed, query_seed=1)
        assert cell.spec.prompt == PromptSpec()


def test_weights_that_were_not_trained_get_the_last_count_alone_and_no_depths():
    found = {
        (cell.labels["init"], cell.labels["part"]): (cell.spec.calibration, getattr(cell.spec, "depth", None))
        for cell in SPEC.cells()
        if cell.labels["part"] != "exact"
    }
    assert found == {
        ("trained", "static"): ((1, 4), True),
        ("trained", "trained"): ((4,), None),
        ("random", "static"): ((4,), False),
        ("random", "trained"): ((4,), None),
    }


def test_trained_weights_are_asked_for_as_every_lab_asks_for_them():
    models = {cell.spec.model for cell in SPEC.cells() if cell.labels["init"] == "trained"}
    assert models == {ModelSpec(name="smollm2-135m")}


@pytest.mark.parametrize(
    "precisions, dtypes, settles",
    [
        ("float64,float32", ["float32", "float32"], [False, True]),
        ("float32,bfloat16", ["float32", "bfloat16"], [True, False]),
        ("float64,bfloat16", ["float32", "bfloat16"], [False, True]),
    ],
)
def test_double_precision_is_the_single_one_widened_and_settling_is_asked_once(precisions, dtypes, settles):
    cells = [cell for cell in ImplicitSpec.of({"precisions": precisions}).cells() if cell.labels["part"] == "exact"][:2]
    assert [cell.spec.model.dtype for cell in cells] == dtypes
    assert [cell.spec.settling for cell in cells] == settles
    assert [cell.spec.precision for cell in cells] == precisions.split(",")


# on a model


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> ImplicitSpec:
    folder = tmp_path_factory.mktemp("tasks")
    task, other = little_task(folder), little_task(folder, "theirs", ("Group", "Word"))
    given = {"model": "memory:tiny", "task": str(task), "other": str(other), "init": "trained", "ranks": 1}
    return ImplicitSpec.of(given | {"k": 2, "queries": 3, "calibration": "1,2", "rates": 0.3, "precisions": "float64"})


def ground_of(spec: ImplicitSpec, calibration: int, progress=silent) -> Ground:
    tools, cell = Tools(), spec.cells()[0].spec
    episode, other = (tools.episode(task, cell.episode) for task in (cell.task, cell.other))
    return Ground(tiny_subject("llama"), episode, other, PromptSpec(), 0, calibration, progress)


def test_two_queries_are_enough_to_hold_out_and_one_is_not(spec):
    found = ground_of(spec, 3)  # of five
    assert [len(found.queries[asked]) for asked in ("calibration", "held")] == [3, 2]
    assert len(found.answers) == 2
    with pytest.raises(Refusal, match="has 5 queries, too few to calibrate on 4"):
        ground_of(spec, 4)


def test_too_few_queries_are_refused_when_cells_are_planned_before_any_model_is_loaded(spec):
    many = spec.model_copy(update={"calibration": (1, 400)})
    for cell in many.cells()[:2]:
        with pytest.raises(Refusal, match="too few to calibrate on 400"):
            identity(cell, Tools())


def test_a_run_says_what_it_reads_fits_and_trains_and_with_how_many_queries(spec):
    said: Counter[str] = Counter()
    tools = Tools(
        subjects={"memory:tiny": tiny_subject("llama")}, progress=lambda what, done: said.update({what: done})
    )
    for cell in spec.cells():
        run(cell, tools)
    own, whole = ("right", "wrong", "filler"), Static().label
    assert dict(said) == {
        "reading, no demonstrations": 3 + 2 + 5,
        "reading, right demonstrations": 3 + 2 + 5,
        "reading, wrong demonstrations": 3 + 2,
        "reading, other task demonstrations": 2,
        "reading, filler demonstrations": 2 + 3,
        "vector fitted on 1, right demonstrations": 1,
        "vector fitted on 2, right demonstrations": 2,
        "rank 1 fitted on 2, right demonstrations": 2,
        f"{whole} fitted on 1, right demonstrations": 1,
        f"{whole} fitted on 2, right demonstrations": 2 + 2 * 2,  # and in two of three layers alone
        **{f"{whole} fitted on 2, {demos} demonstrations": 2 for demos in ("wrong", "other task", "filler")},
        f"gd 0.3 on the last maps, {len(TRAINED)} trainings": 0,
        **{f"own patches, {demos} demonstrations": 0 for demos in own},
        "exact patches in float64": 0,
    }


def test_in_the_first_part_of_the_stack_a_patch_alone_is_the_whole_one_up_to_there(spec):
    found = ground_of(spec, 2)
    whole, alone = (found.static("right", Static(), 2, layers) for layers in (None, range(1)))
    assert whole[1].last is not None
    assert alone[1].last is None
    torch.testing.assert_close(alone[0].last, whole[0].last, rtol=0, atol=0)


def test_own_patches_are_of_the_first_queries_that_are_held_out(spec):
    many = spec.model_copy(update={"queries": OWN + 1})
    found = ground_of(many, 2).own("right")
    assert len(found[0].last.left) == OWN


def test_generation_and_settling_are_of_the_first_query_of_the_episode(spec, monkeypatch):
    asked = []
    monkeypatch.setattr("iclgd.labs.implicit.run.settling", lambda *given: asked.append(given[-1]) or ([2], [[1.0]]))
    monkeypatch.setattr(
        "iclgd.labs.implicit.run.generate", lambda _s, _c, query, count: asked.append(query) or (7,) * count
    )
    subject, cell = tiny_subject("llama"), spec.cells()[-1]
    found = run(cell, Tools(subjects={"memory:tiny": subject}))
    episode = Tools().episode(cell.spec.task, cell.spec.episode)
    first, second = build_prompts(subject.tokenizer, episode, PromptSpec(), subject.room).queries
    assert asked == [first, first]
    assert first != second
    assert found.facts["tokens"] == 4
    assert found.facts["same_tokens"] < 4  # what was generated behind the prompt is counted where it is the same
