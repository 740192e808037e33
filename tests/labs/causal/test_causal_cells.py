"""Which cells a study of `causal` is made of, what each is told and says while it runs, and its facts."""

from collections import Counter

import pytest
import torch
from little_causal import asked, ground_of

import iclgd.labs  # noqa: F401  registers the labs
from iclgd.errors import Refusal
from iclgd.lab import LABS
from iclgd.labs.causal import sets
from iclgd.labs.causal.run import run
from iclgd.labs.causal.sets import head_scores, random_set
from iclgd.labs.causal.spec import CausalSpec
from iclgd.learners.function_vector import FunctionVector
from iclgd.options import untrained_seed
from iclgd.spec import EpisodeSpec, ModelSpec, PromptSpec
from iclgd.tools import Tools
from tiny import tiny_subject

SPEC = CausalSpec.of({"task": "sentiment,kinds", "seeds": "3,5", "rates": "0.1,0.5", "k": 3, "queries": 6})
EPISODES = [(task, seed) for task in ("sentiment", "kinds") for seed in (3, 5)]


def test_cells_come_weight_by_weight_and_heads_are_of_the_first_weights_alone():
    expected = []
    for init in ("trained", "random"):
        for task, seed in EPISODES:
            parts = [("swaps", 0.1), ("swaps", 0.5)]
            if init == "trained":
                parts += [("exchanged", 0.1), ("exchanged", 0.5), ("heads", None)]
            expected += [(init, task, seed, *part, f"{init} {task} {seed}") for part in parts]
    names = ("init", "task", "seed", "part", "rate")
    assert [(*(cell.labels.get(name) for name in names), cell.group) for cell in SPEC.cells()] == expected


def test_what_a_cell_is_told_is_what_its_labels_say():
    for cell in SPEC.cells():
        spec, labels = cell.spec, cell.labels
        assert spec.task == labels["task"]
        assert spec.episode == EpisodeSpec(k=3, queries=6, seed=labels["seed"], query_seed=1)
        assert spec.prompt == PromptSpec()
        drawn = 0 if labels["init"] == "trained" else untrained_seed(labels["task"], labels["seed"])
        assert spec.model == ModelSpec(name="smollm2-135m", init=labels["init"], init_seed=drawn)
        if labels["part"] == "heads":
            assert (spec.heads, spec.sets) == (10, 20)
            assert spec.other == {"sentiment": "kinds", "kinds": "sentiment"}[labels["task"]]
        elif labels["part"] == "exchanged":
            assert (spec.rate, spec.exchanged) == (labels["rate"], (("icl", "gd"), ("gd", "icl")))
        else:
            assert (spec.rate, spec.heads) == (labels["rate"], labels["init"] == "trained")


def test_a_cells_key_has_all_that_it_is_told_but_where_tasks_lie():
    for cell in SPEC.cells():
        told = set(type(cell.spec).model_fields)
        assert told - set(cell.spec.keyed()) == ({"task", "other"} if cell.labels["part"] == "heads" else {"task"})


@pytest.mark.parametrize("field", ["rates", "task", "seeds", "init"])
def test_a_study_of_nothing_is_refused(field):
    with pytest.raises(Refusal, match=field):
        CausalSpec.of({field: ()})


def test_results_of_an_earlier_version_are_not_taken_for_those_of_this_one():
    """The first one put no heads of training into the zero-shot run."""
    assert LABS["causal"].version >= 2


def test_function_vector_scores_are_of_as_many_prompts_as_function_vectors():
    assert FunctionVector().prompts == sets.PROMPTS


def test_a_task_that_is_named_for_the_means_is_taken():
    found = CausalSpec.of({"other": "continents"}).cells()
    assert {cell.spec.other for cell in found if cell.labels["part"] == "heads"} == {"continents"}


def test_a_run_says_what_it_exchanges_puts_in_and_takes_out_query_by_query(tasks):
    said: Counter[str] = Counter()
    tools = Tools(
        subjects={"memory:tiny": tiny_subject("llama")}, progress=lambda what, done: said.update({what: done})
    )
    results = {cell.labels["part"]: run(cell, tools) for cell in asked(tasks, sets=2).cells()}
    sites = ("attention", "blocks")
    assert dict(said) == {
        **dict.fromkeys(("zero-shot", "icl"), 5),
        "gd 0.3": 10,  # for layers, and for heads that are exchanged
        **{f"layers into {into}, {site}": 5 for into in ("zero-shot", "icl", "gd") for site in sites},
        **{f"heads of gd into zero-shot, {null}": 5 for null in ("its own", "other query", "random")},
        **dict.fromkeys(("heads of icl into zero-shot", "heads of icl into gd", "heads of gd into icl"), 5),
        **dict.fromkeys(("function-vector scores", "induction scores", "dual steps"), 0),
        **{f"without {score} heads": 5 for score in ("function vector", "induction", "dual step")},
        **{f"without random heads, {i} of 2": 3 * 5 for i in (1, 2)},
    }
    same = {"demonstrations": 4, "queries": 5, "layers": 3}
    assert results["swaps"].facts == {**same, "diverged": None}
    heads = dict(results["heads"].facts)
    assert heads.pop("text") > 4
    assert heads == {**same, "heads": 4}


def test_function_vectors_and_dual_steps_are_of_no_more_than_so_many_demonstrations_and_queries(tasks, monkeypatch):
    ground, counts = ground_of(tiny_subject("llama"), tasks), []
    monkeypatch.setattr(sets, "PROMPTS", 2)
    own = sets.mediation
    monkeypatch.setattr(sets, "mediation", lambda *given: counts.append(given[-1]) or own(*given))
    steps = sets.dual_step
    monkeypatch.setattr(sets, "dual_step", lambda *given: counts.append("step") or steps(*given))
    head_scores(ground)
    assert counts == [2, "step", "step"]


def test_a_layer_of_which_half_the_heads_are_foremost_has_the_other_half_for_its_random_set():
    top = torch.tensor([[True, True, False, False]])
    assert {tuple(random_set(top, seed)[0].tolist()) for seed in range(9)} == {(False, False, True, True)}


def test_draws_of_random_heads_are_other_ones_in_another_episode(tasks, monkeypatch):
    seeds = []
    monkeypatch.setattr(sets, "random_set", lambda top, seed: seeds.append(seed) or top)
    monkeypatch.setattr(sets, "_without", lambda *_: {})
    ground = ground_of(tiny_subject("llama"), tasks)
    for ground.seed in (0, 2):
        list(sets.ablations(ground, {"induction": torch.rand(3, 4)}, ground.prompts.context, 2, 3))
    assert seeds == [0, 1, 2, 2000, 2001, 2002]


@pytest.mark.parametrize("count", [1, 5])
def test_as_many_heads_are_taken_out_as_were_asked_for(tasks, count, monkeypatch):
    monkeypatch.setattr(sets, "_without", lambda *_: {})
    ground = ground_of(tiny_subject("llama"), tasks)
    scores = torch.arange(12.0).reshape(3, 4)
    found = list(sets.ablations(ground, {"induction": scores}, ground.prompts.context, count, 2))
    assert [labels for labels, _, _ in found] == [
        {"score": "induction"}, {"score": "induction", "draw": 0}, {"score": "induction", "draw": 1},
    ]  # fmt: skip
    assert [int(chosen.sum()) for _, chosen, _ in found] == [count] * 3
    assert found[0][1].flatten().nonzero()[:, 0].tolist() == list(range(12 - count, 12))
