"""Orders: full batches and attention without positions do not see them, reading and single steps do."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from iclgd.errors import Refusal
from iclgd.labs.order.anchors import anchors
from iclgd.labs.order.full_batch import FullBatch
from iclgd.labs.order.measures import overlap, spread
from iclgd.labs.order.page import (
    _in_logs,
    orders_table,
    over_rounding,
    spread_of_p,
    spread_of_updates,
    tokens_table,
)
from iclgd.labs.order.run import permutations
from iclgd.labs.order.spec import OrderSpec
from iclgd.learners.descent import GradientDescent
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.models.load import load_subject
from iclgd.prompts import build_prompts
from iclgd.results import Result, array
from iclgd.running import Where, run_study
from iclgd.spec import ModelSpec
from iclgd.study import Study
from iclgd.tools import Tools
from little import little_model, little_task

FEW = {"k": 3, "queries": 5, "orders": 4, "top": 3, "device": "cpu", "seeds": 2, "rates": (0.1,)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("order")
    little_model(made / "tiny")
    little_task(made)
    return made


@pytest.fixture(scope="module")
def study(folder):
    given = FEW | {"model": str(folder / "tiny"), "task": str(folder / "mine.yaml"), "init": "trained,random"}
    return run_study("order", OrderSpec.of(given | {"learners": "gd,lcgd"}), Where(folder / "cells", folder / "page"))


def values(study, quantity, learner, init="trained"):
    return np.stack([one.values for one in study.arrays(quantity=quantity, learner=learner, init=init)])


def test_reading_and_single_steps_see_the_order_and_a_full_batch_does_not(study):
    for learner in ("icl", "gd 0.1", "lcgd 0.1"):
        assert np.nanmean(values(study, "spread", learner)) > 1e-2, learner
        assert values(study, "p", learner).std(1).max() > 1e-5, learner
    assert np.nanmax(values(study, "spread", "gd 0.1, all at once")) < 1e-3
    assert values(study, "p", "gd 0.1, all at once").std(1).max() < 1e-5
    assert (values(study, "overlap", "gd 0.1, all at once") == 1).all()


def test_numbers_of_an_order_are_those_of_training_in_it(study, folder):
    """The second order of the first draw, trained by itself and asked by hand."""
    cell = study.cells[0]
    subject = load_subject(ModelSpec(name=cell.spec.model.name, device="cpu"))
    prompts = build_prompts(
        subject.tokenizer, Tools().episode(cell.spec.task, cell.spec.episode), cell.spec.prompt, None
    )
    order = permutations(3, 4, cell.spec.episode.seed)[1]
    mixed = replace(prompts, demos=tuple(prompts.demos[i] for i in order))
    with GradientDescent(0.1).learn(subject, mixed) as predictor:
        scores = predictor.trace(prompts).scores.softmax(-1)
    wanted = scores[torch.arange(5), torch.tensor(prompts.answers)]
    np.testing.assert_allclose(values(study, "p", "gd 0.1")[0, 1], wanted, atol=1e-5)


def test_next_tokens_are_compared_with_those_of_reading_in_the_same_order(study):
    cell = study.cells[0]
    subject = load_subject(ModelSpec(name=cell.spec.model.name, device="cpu"))
    episode = Tools().episode(cell.spec.task, cell.spec.episode)
    prompts = build_prompts(subject.tokenizer, episode, cell.spec.prompt, None)

    def likeliest(learner, demos) -> list[set[int]]:
        with learner.learn(subject, replace(prompts, demos=demos)) as predictor:
            blocks = predictor.trace(prompts).blocks[:, -1, 0]
        return [set(row) for row in subject.unembed(blocks).topk(3).indices.tolist()]

    shared = {"gd 0.1": [], "zero-shot": []}
    for order in permutations(3, 4, cell.spec.episode.seed):
        demos = tuple(prompts.demos[i] for i in order)
        read = likeliest(InContext(), demos)
        for name, learner in (("gd 0.1", GradientDescent(0.1)), ("zero-shot", ZeroShot())):
            pairs = zip(likeliest(learner, demos), read, strict=True)
            shared[name].append([len(one & two) / 3 for one, two in pairs])
    for name, expected in shared.items():
        found = values(study, "overlap with icl", name)[0]
        np.testing.assert_allclose(found, np.mean(expected, axis=0), atol=1e-9)
        assert found.mean() < 1  # reading's own would be


def test_a_full_batch_takes_one_step_along_the_sum_of_all_gradients(folder):
    subject = load_subject(ModelSpec(name=str(folder / "tiny"), device="cpu"))
    spec = OrderSpec.of(FEW | {"model": str(folder / "tiny"), "task": str(folder / "mine.yaml")}).cells()[0].spec
    prompts = build_prompts(subject.tokenizer, Tools().episode(spec.task, spec.episode), spec.prompt, None)
    before = subject.fingerprint()

    def change(learner, demos):
        with learner.learn(subject, replace(prompts, demos=demos)) as predictor:
            return [(slot.parameter.detach() - slot.before).clone() for slot in predictor.slots]

    single = GradientDescent(0.5)
    alone = [change(single, (demo,)) for demo in prompts.demos]
    at_once = change(FullBatch(single), prompts.demos)
    for i, found in enumerate(at_once):
        torch.testing.assert_close(found, sum(one[i] for one in alone), atol=1e-6, rtol=1e-4)
    one_by_one = change(single, prompts.demos)
    assert any((a - b).abs().max() > 1e-4 for a, b in zip(at_once, one_by_one, strict=True))
    assert subject.fingerprint() == before


def test_twice_as_many_epochs_are_two_steps(folder):
    subject = load_subject(ModelSpec(name=str(folder / "tiny"), device="cpu"))
    spec = OrderSpec.of(FEW | {"model": str(folder / "tiny"), "task": str(folder / "mine.yaml")}).cells()[0].spec
    prompts = build_prompts(subject.tokenizer, Tools().episode(spec.task, spec.episode), spec.prompt, None)
    moved = []
    for epochs in (1, 2):
        with FullBatch(GradientDescent(0.002, epochs=epochs)).learn(subject, prompts) as predictor:
            moved.append(sum(float((s.parameter - s.before).norm()) for s in predictor.slots))
    assert 1.7 < moved[1] / moved[0] < 2.1


def test_anchors_are_nothing_nothing_and_something():
    found = anchors(20, 3)
    assert list(found) == ["linear attention", "softmax attention", "delta rule"]
    assert max(found["linear attention"], found["softmax attention"]) < 1e-12
    assert found["delta rule"] > 0.1


def test_spread_is_zero_for_one_update_and_near_one_for_unrelated_ones():
    g = torch.Generator().manual_seed(0)
    one = torch.randn(3, 8, generator=g).expand(20, 3, 8)
    assert spread(one).max() < 1e-6
    apart = spread(torch.randn(20, 3, 2000, generator=g))
    assert (apart > 0.95).all()
    assert (apart < 1).all()
    half = spread(torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)[:, None])
    assert float(half) == pytest.approx(0.5**0.5)
    assert spread(torch.zeros(4, 2, 3)).isnan().all()


def test_overlap_counts_shared_tokens_whatever_their_rank():
    a, b = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]]), torch.tensor([[4, 9, 1, 10], [1, 2, 3, 4]])
    assert overlap(a, b).tolist() == [0.5, 0.0]
    assert overlap(a[None].expand(3, -1, -1), b[None]).shape == (3, 2)


def test_orders_are_different_begin_with_the_drawn_one_and_cannot_be_too_many():
    found = permutations(4, 24, 7)
    assert found[0] == (0, 1, 2, 3)
    assert len(set(found)) == 24
    assert permutations(5, 6, 0) == permutations(5, 6, 0) != permutations(5, 6, 1)
    with pytest.raises(Refusal, match="3 demonstrations have 6 orders, not 7: raise `k` or lower `orders`"):
        permutations(3, 7, 0)


def test_the_page_has_every_learner_its_nulls_and_anchors(study, folder):
    text = study.page.text(full=True)
    for part in ("icl", "gd 0.1, all at once", "lcgd 0.1", "null: icl, random weights", "zero-shot", "delta rule"):
        assert part in text
    assert "4 orders · 2 seeds × 5 queries" in text
    assert (folder / "page" / "index.html").exists()


def planted(reading, training, seeds=3, tasks=("sentiment",)):
    """Spreads of p and of updates that are known: reading's and one learner's, by seed and query; a task has a query
    less than the one before it, and the n-th n times the spread.
    """
    spec = OrderSpec.of({"k": 3, "queries": 4, "orders": 2, "seeds": seeds, "learners": "gd", "task": tasks})
    rng, cells, results = np.random.default_rng(0), spec.cells(), []
    for cell in cells:
        place = tasks.index(cell.labels["task"])
        count = 4 - place
        arrays = [array(np.full(count, 0.5), "query", quantity="zero-shot p")]
        for name, size in (("icl", reading), ("gd 0.001", training)):
            wobble = size * (1 + place) * (1 + 0.01 * rng.standard_normal(count))
            arrays.append(array(np.stack([0.5 - wobble, 0.5 + wobble]), "order", "query", quantity="p", learner=name))
            arrays.append(array(wobble[:, None], "query", "layer", quantity="spread", learner=name))
            arrays.append(array(np.full(count, 0.5), "query", quantity="overlap", learner=name))
            arrays.append(array(np.full(count, 0.5), "query", quantity="overlap with icl", learner=name))
        arrays.append(array(np.full(count, 0.5), "query", quantity="overlap with icl", learner="zero-shot"))
        results.append(Result({"task": "t", "demonstrations": 3, "queries": 4}, arrays))
    keys = [str(i) for i in range(len(cells))]
    return Study("order", spec, cells, keys, dict(zip(keys, results, strict=True)), "")


def test_the_answer_says_less_more_or_not_told_apart():
    small = planted(0.2, 0.01).answer
    assert (
        "Training moves p less than reading with gd 0.001 (.014). It moves its update less than reading with gd"
        in small
    )
    assert planted(0.2, 0.01).answer.count("less than reading") == 2
    assert planted(0.01, 0.2).answer.count("more than reading") == 2
    assert planted(0.1, 0.1).answer.count("not told apart from reading") == 2
    assert "One draw" in planted(0.2, 0.1, seeds=1).answer
    assert "One draw" not in planted(0.2, 0.1).answer


def test_what_is_a_hundred_thousand_times_smaller_in_every_task_is_less_though_tasks_differ():
    study = planted(0.1, 1e-6, tasks=("sentiment", "kinds", "continents"))
    assert study.answer.count("less than reading") == 2
    assert planted(0.1, 0.0, tasks=("sentiment", "kinds", "continents")).answer.count("less than reading") == 2


def test_several_tasks_weigh_alike_and_the_interval_is_over_them():
    study = planted(0.1, 0.05, tasks=("sentiment", "kinds", "continents"))
    (row,) = [row for row in orders_table(study).rows if row[0] == "icl"]
    own = [
        np.mean([a.values for a in study.arrays(quantity="spread", learner="icl", task=task)])
        for task in ("sentiment", "kinds", "continents")
    ]
    assert np.allclose(own, [0.1, 0.2, 0.3], rtol=0.01)
    assert row[3].value == pytest.approx(np.mean(own), abs=1e-12)
    alone = orders_table(planted(0.1, 0.05)).rows[0][3]
    assert row[3].high - row[3].low > 20 * (alone.high - alone.low)  # tasks differ by far more than draws do
    assert "smollm2-135m · sentiment, kinds, continents · k = 3" in study.page.text(full=True)
    notes = [planted(0.1, 0.05, seeds=n).page.sections[0].text for n in (1, 3)] + [study.page.sections[0].text]
    for note, over in zip(notes, ("over queries; 1 seed", "over draws", "Means over tasks"), strict=True):
        assert over in note


def known(seeds=2):
    """Both weights, two layers, three queries: the n-th varies n times as much, untrained ones twice as much."""
    given = {"k": 3, "queries": 3, "orders": 2, "seeds": seeds, "learners": "gd", "init": "trained,random"}
    spec = OrderSpec.of(given)
    cells, results = spec.cells(), []
    for cell in cells:
        times = 1 if cell.labels["init"] == "trained" else 2
        arrays = [array([0.4, 0.5, 0.6], "query", quantity="zero-shot p")]
        for name, size, shared in (("icl", 0.02, 0.2), ("gd 0.001", 0.04, 0.3), ("zero-shot", 0.0, 0.1)):
            wobble = size * times * np.array([1.0, 2.0, 3.0])
            if name != "zero-shot":
                p = np.stack([0.7 - wobble, 0.7 + wobble])
                arrays.append(array(p, "order", "query", quantity="p", learner=name))
                spreads = wobble[:, None] * [1.0, 3.0]
                arrays.append(array(spreads, "query", "layer", quantity="spread", learner=name))
                arrays.append(array([shared * times] * 3, "query", quantity="overlap", learner=name))
            if name != "icl":
                arrays.append(array([shared / 2] * 3, "query", quantity="overlap with icl", learner=name))
        results.append(Result({"task": "t", "demonstrations": 3, "queries": 3}, arrays))
    keys = [str(i) for i in range(len(cells))]
    return Study("order", spec, cells, keys, dict(zip(keys, results, strict=True)), "")


def numbers(table):
    return {row[0]: [entry if entry == "" else pytest.approx(entry.value) for entry in row[1:]] for row in table.rows}


def test_tables_have_the_means_over_queries_and_layers_of_every_learner_and_weights():
    found, root = known(), 2**0.5
    assert numbers(orders_table(found)) == {
        "icl": [0.04 * root, 0.2, 0.08],
        "gd 0.001": [0.08 * root, 0.2, 0.16],
        "null: icl, random weights": [0.08 * root, 0.2, 0.16],
        "null: gd 0.001, random weights": [0.16 * root, 0.2, 0.32],
    }
    assert numbers(tokens_table(found)) == {
        "icl": [0.2, ""],
        "gd 0.001": [0.3, 0.15],
        "zero-shot": ["", 0.05],
        "null: icl, random weights": [0.4, ""],
        "null: gd 0.001, random weights": [0.6, 0.15],
        "null: zero-shot, random weights": ["", 0.05],
    }


def test_a_spread_is_by_query_and_a_draws_is_its_mean_over_queries():
    found = known(seeds=1)
    assert spread_of_updates(found, "icl", "trained") == pytest.approx(np.array([[[0.04, 0.08, 0.12]]]))
    assert spread_of_p(found, "icl", "random") == pytest.approx(np.array([[[0.04, 0.08, 0.12]]]) * 2**0.5)
    draws = np.array([[[1.0, 3.0], [4.0, 16.0]], [[0.0, 0.0], [np.nan, 5.0]]])
    assert np.exp(_in_logs(draws)) == pytest.approx(np.array([[[2.0], [10.0]], [[1e-9], [5.0]]]))


def test_the_answer_is_about_the_first_weights_and_names_what_reading_moves_with_the_others():
    said = re.sub(r" \[[^]]*\]", "", known().answer)  # without the intervals
    assert "reading moves p(right label) by .057 (standard deviation) and its update by .080 of its size" in said
    assert "Training moves p more than reading with gd 0.001 (.113)." in said
    assert "It moves its update more than reading with gd 0.001 (.160)." in said
    assert said.endswith("With random weights reading moves its update by .160.")


def test_a_spread_that_is_rounding_is_shown_by_its_size():
    assert str(over_rounding(np.full((1, 2, 3), 3e-5))) == "3e-05"
    assert str(over_rounding(np.full((1, 2, 3), 0.0))) == ".000 [.000 .000]"
    assert str(over_rounding(np.full((1, 2, 3), 0.25))).startswith(".250")


def test_what_cannot_be_asked_is_refused():
    for given, said in (
        ({"k": 1}, "`k` must be at least 2"),
        ({"orders": 1}, "`orders` must be at least 2"),
        ({"k": 3}, "3 demonstrations have 6 orders, not 20"),
        ({"learners": "gdd"}, "gdd"),
        ({"learners": "none"}, "needs at least one|none"),
    ):
        with pytest.raises(Refusal, match=said):
            OrderSpec.of(given)


def test_a_training_that_diverges_is_refused_with_the_reason(folder):
    given = FEW | {"model": str(folder / "tiny"), "task": str(folder / "mine.yaml"), "rates": (1e6,), "seeds": 1}
    with pytest.raises(Refusal, match="diverged"):
        run_study("order", OrderSpec.of(given | {"learners": "gd"}), Where(folder / "other"))
