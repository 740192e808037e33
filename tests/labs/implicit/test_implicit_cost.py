"""The arithmetic of a cell, counted before it is run, beside what the run multiplied."""

import pytest

from counting import Counter, Tokens
from iclgd.lab import LABS
from iclgd.labs.implicit import cost
from iclgd.labs.implicit.ground import Ground
from iclgd.labs.implicit.spec import ExactCell, ImplicitSpec, StaticCell, TrainedCell
from iclgd.prompts import Demo, Prompts
from iclgd.tools import Tools
from little import little_model, little_task

LAB = LABS["implicit"]
ASKED = {"k": 4, "queries": 4, "calibration": (1, 4), "ranks": (1,), "rates": (0.3,), "tokens": 1}


def test_every_cell_of_an_episode_costs_what_torch_counts(tmp_path, monkeypatch):
    monkeypatch.setattr("iclgd.labs.implicit.run.attention_alone", lambda _seed: -1.0)  # next to a tiny model, a lot
    task, other = little_task(tmp_path), little_task(tmp_path, "theirs", ("Group", "Word"))
    given = {"model": str(little_model(tmp_path / "model")), "task": str(task), "other": str(other), "device": "cpu"}
    cells = ImplicitSpec.of({**given, "init": "trained", "precisions": "float32", **ASKED}).cells()
    tools, unrun, said, found = Tools(), Tools(), {}, {}
    for cell in cells:
        name = f"{cell.labels['part']} {cell.labels.get('precision', '')}".strip()
        said[name] = LAB.flops(cell, unrun)
        with Counter() as counter:
            LAB.run(cell, tools)
        found[name] = counter.flops
    assert set(said) == {"static", "trained", "exact float32"}
    for name in said:
        assert said[name] == pytest.approx(found[name], rel=0.4), name


def test_a_fit_reads_its_texts_and_puts_every_token_and_its_solution_through_the_last_maps():
    texts = [(1, 2, 3), (4, 5)]
    assert cost._read(Tokens(), texts) == pytest.approx(5.002)
    assert cost._read(Tokens(), texts, 10) == pytest.approx(5.502)
    assert cost._fit(Tokens(), texts) == pytest.approx(5.002 + 2 * 10 * (2 + 5))


@pytest.mark.parametrize("settling", [False, True])
def test_patches_of_one_query_cost_every_form_the_generation_and_where_asked_the_settling(settling):
    spec, context, queries = ExactCell.model_construct(tokens=2, settling=settling), (1,) * 10, [(5, 6), (7,)]
    parts = [
        10 + (3 * 1.1 + 0.002) + 5.002,  # the context, the queries behind it and alone, from bos
        3 * (5.002 + 20 * (2 + 5)) + 4 * 5.002,  # three forms, asked, and once without
        2 * (10 + 5 * 1.1 + 0.002),  # two and three tokens behind the context, as they are and patched
        (7.002 + 20 * (2 + 7)) + 7.002,
    ]
    if settling:  # contexts of 2, 4 and 8 tokens, each with one query and its patch, and one token more
        parts += [2 * (size + 2 * (1 + size / 100) + 0.001 + 3.001 + 20 * (1 + 3)) for size in (2, 4, 8)]
    assert list(cost._exact(spec, Tokens(), (1,), context, queries)) == pytest.approx(parts)


DEMOS = {"right": 2, "wrong": 3, "shuffled": 4, "other demos": 5, "other demos, wrong": 6, "other task": 7, "filler": 8}
ASKED_TOKENS = {"calibration": ((5,), (5, 6)), "held": ((5, 6, 7),), "others": ((5,), (5,))}


def counted_ground() -> Ground:
    """An episode of which every number is known: one demonstration of so many tokens, queries of one to three."""
    ground = Ground.__new__(Ground)
    ground.prompts = {
        demos: Prompts((1,), (Demo((9,) * count, (9,)),), (2,), (), ((8,), (9,)), ()) for demos, count in DEMOS.items()
    }
    ground.queries = ASKED_TOKENS
    return ground


def reading(asked: str, context: int = 0, bos: int = 0) -> float:
    """Of the model that is counted on fingers: a token is 1 and a hundredth for each before its text."""
    texts = ASKED_TOKENS[asked]
    return (sum(map(len, texts)) + bos * len(texts)) * (1 + context / 100) + len(texts) / 1000


def fitting(asked: str) -> float:
    texts = ASKED_TOKENS[asked]
    return reading(asked, bos=1) + 20 * (2 * len(texts) + sum(map(len, texts)))


@pytest.mark.parametrize("depth", [False, True])
def test_one_patch_for_all_costs_readings_every_fit_and_what_each_gives_on_the_held_out_queries(depth):
    spec = StaticCell.model_construct(calibration=(1, 2), ranks=(1, 3), depth=depth)
    context = {demos: count + 2 for demos, count in DEMOS.items()}  # with bos and the separator
    pairs = [("right", "held"), ("right", "calibration"), ("right", "others"), ("wrong", "held")]
    pairs += [(demos, "calibration") for demos in ("wrong", "other task", "filler")]
    held, first = reading("held", bos=1), 2.001 + 20 * (1 + 2)  # a fit on the first query alone
    fits = 3 + depth  # three nulls, and one part of a model with one layer
    assert list(cost._static(spec, counted_ground(), Tokens())) == pytest.approx(
        [
            sum(context[demos] for demos in ("right", "wrong", "other task", "filler")),
            sum(reading(asked, context[demos]) for demos, asked in pairs),
            sum(reading(asked, bos=1) for asked in ASKED_TOKENS),
            2 * (first + held),  # a vector and a matrix: no rank is below one query
            3 * (fitting("calibration") + held),  # and rank 1
            fits * fitting("calibration") + (fits + 1 + depth) * held + 2 * reading("others", bos=1),
        ]
    )


def test_training_costs_every_course_its_answers_own_patches_and_matrices_beside_each_other():
    class Trains(Tokens):
        def train(self, part: str, length: int, rows: int, predictions: int = 1) -> float:
            assert part == "down"
            return 1000.0 * length + rows

    spec = TrainedCell.model_construct(ranks=(1, 3))
    courses = [1000 * (1 + DEMOS[demos]) + DEMOS[demos] for demos in list(DEMOS)[:-1]]  # every token but bos is asked
    products = 1 + 7 + 6  # the change itself, seven nulls, three contrasts of two patches
    changes = 3 + 5 + 1 + 3  # patches, trainings that are compared, noise, contrasts
    assert list(cost._trained(spec, counted_ground(), Trains())) == pytest.approx(
        [
            *courses,
            4 * (reading("calibration", bos=1) + reading("held", bos=1)),
            reading("held", DEMOS["filler"] + 2),
            3 * fitting("held"),
            cost.WIDE * 2 * 10 * 1 * products,
            2 * 10 * (3 + 16) * 2 * (4 + 1) * changes,
        ]
    )
