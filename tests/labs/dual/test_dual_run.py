"""Studies of the dual lab from end to end: a tiny model, a task of a few words, small trainings."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from iclgd.errors import Refusal
from iclgd.lab import LabSpec
from iclgd.labs.dual import run as runs
from iclgd.labs.dual import train as training
from iclgd.labs.dual.bound import sweep
from iclgd.labs.dual.heads import analyse
from iclgd.labs.dual.labels import flip_effect
from iclgd.labs.dual.small import Source, curves, find_task, gd_reference
from iclgd.labs.dual.spec import BoundSpec, CheckSpec, ModifySpec, TrainSpec
from iclgd.learners.prompted import InContext
from iclgd.models.subject import Subject
from iclgd.prompts import Prompts, build_prompts
from iclgd.running import Where, run_study
from iclgd.study import Study, open_study
from iclgd.tasks.episodes import load_episode
from iclgd.tools import Tools
from little import little_task
from tiny import tiny_model, tiny_tokenizer


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject(tiny_model("llama", dtype=torch.float64), tiny_tokenizer(), "tiny")


@pytest.fixture
def task(tmp_path: Path) -> str:
    return str(little_task(tmp_path))


def run(lab: str, spec: LabSpec, place: Path, subject: Subject | None = None, **where: Any) -> Study:
    subjects = None if subject is None else {"memory:tiny": subject}
    return run_study(f"dual {lab}", spec, Where(place / "cells", **where), subjects=subjects)


def asked(spec: Any, subject: Subject) -> Prompts:
    episode = load_episode(spec.task, spec.episode_spec(spec.seed))
    return build_prompts(subject.tokenizer, episode, spec.prompt_spec(), subject.room)


def test_a_cell_of_check_is_the_analysis_of_its_query(task: str, tmp_path: Path, subject: Subject) -> None:
    spec = CheckSpec(model="memory:tiny", task=task, k=3, queries=2)
    study, prompts = run("check", spec, tmp_path, subject), asked(spec, subject)
    for query in (0, 1):
        found = analyse(subject, prompts, prompts.queries[query])
        for field in fields(found):
            (one,) = study.arrays(query=query, quantity=field.name)
            assert np.array_equal(one.values, getattr(found, field.name), equal_nan=True), field.name
            assert len(one.axes) == one.values.ndim
            if "size" in one.axes:
                assert one.coordinates["size"] == (16, 64, 256, 1024)
        flipped = flip_effect(subject, prompts, prompts.queries[query])
        assert np.array_equal(study.arrays(query=query, quantity="flipped_change")[0].values, flipped.change)
        assert np.array_equal(study.arrays(query=query, quantity="flipped_cosine")[0].values, flipped.cosine)
    assert study.answer.startswith("All 12 heads are")


def test_more_queries_run_only_what_is_new_and_more_than_there_are_run_nothing(
    task: str, tmp_path: Path, subject: Subject
) -> None:
    given = {"model": "memory:tiny", "task": task, "k": 2}
    assert run("check", CheckSpec(**given, queries=1), tmp_path, subject).fresh == 1
    assert run("check", CheckSpec(**given, queries=3), tmp_path, subject).fresh == 2
    there = len(load_episode(task, CheckSpec(**given, queries=999).episode_spec(0)).queries)
    queries = [cell.spec for cell in CheckSpec(**given, queries=there + 3).cells()][there - 1 :]
    keys = {str(runs.asked(spec, Tools())[1]) for spec in queries}
    assert keys == {"0", "None"}


def test_a_query_that_the_task_does_not_have_is_an_empty_cell(
    task: str, tmp_path: Path, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = CheckSpec(model="memory:tiny", task=task, k=2, queries=1000)
    cells = spec.cells()
    monkeypatch.setattr(CheckSpec, "cells", lambda _self: [cells[0], *cells[-2:]])
    study = run("check", spec, tmp_path, subject)
    assert study.fresh == 2  # one that is there, and the same nothing twice
    assert "· 1 query ·" in study.page.subtitle


def test_other_demonstrations_or_another_query_are_another_cell(task: str, tmp_path: Path, subject: Subject) -> None:
    given = {"model": "memory:tiny", "task": task, "k": 2, "queries": 1}
    for change in ({}, {"seed": 1}, {"query_seed": 2}, {"k": 3}):
        assert run("check", CheckSpec(**given | change), tmp_path, subject).fresh == 1


def test_a_killed_check_goes_on_with_the_query_it_was_at(
    task: str, tmp_path: Path, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, done = CheckSpec(model="memory:tiny", task=task, k=2, queries=3), []

    def dying(*given: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return analyse(*given)

    monkeypatch.setattr(runs, "analyse", dying)
    with pytest.raises(KeyboardInterrupt):
        run("check", spec, tmp_path, subject)
    monkeypatch.undo()
    assert run("check", spec, tmp_path, subject).fresh == 1


def test_where_demonstrations_are_dropped_all_queries_read_the_same_ones(
    task: str, tmp_path: Path, subject: Subject
) -> None:
    """The longest query decides, so every cell has the same number, and other queries are another cell."""
    given = {"model": "memory:tiny", "task": task, "k": 36, "truncate": True}
    study = run("check", CheckSpec(**given, queries=3), tmp_path, subject)
    assert len(set(study.facts("k"))) == 1
    assert study.facts("k")[0] < 36
    assert study.fresh == 3
    last = [episode["queries"] for episode in study.facts("episode")]
    assert [len(queries) for queries in last] == [1, 1, 1]
    assert last[0] != last[1]


def test_an_episode_that_a_page_left_can_be_asked_again(task: str, tmp_path: Path, subject: Subject) -> None:
    first = run(
        "check", CheckSpec(model="memory:tiny", task=task, k=2, queries=2), tmp_path, subject, folder=tmp_path / "page"
    )
    left = str(tmp_path / "page" / "episode.json")
    again = run("check", CheckSpec(model="memory:tiny", task=left), tmp_path, subject)
    for name in ("residual", "share"):
        assert np.array_equal(first.stack("query", [0, 1], quantity=name), again.stack("query", [0, 1], quantity=name))
    assert "seed" not in again.page.subtitle
    assert CheckSpec.of(again.spec.model_dump(mode="json")) == again.spec  # its own file can be read again
    assert len(open_study(tmp_path / "page").results) == 2
    with pytest.raises(Refusal, match="leave out `k`"):
        CheckSpec.of({"task": left, "k": 3})


def test_the_bound_is_swept_over_powers_of_two_and_what_is_left(task: str, tmp_path: Path, subject: Subject) -> None:
    spec = BoundSpec(model="memory:tiny", task=task, k=5, held=2, queries=1)
    study, prompts = run("bound", spec, tmp_path, subject), asked(spec, subject)
    found = sweep(subject, prompts, prompts.queries[0], [1, 2, 3], 2)
    for place, split in enumerate(("own", "best")):
        for field in fields(found[1][place]):
            (one,) = study.arrays(quantity=field.name, split=split)
            assert one.coordinates["demonstrations"] == (1, 2, 3)
            for count in (1, 2, 3):
                expected = getattr(found[count][place], field.name)
                assert np.array_equal(one.at(demonstrations=count).values, expected, equal_nan=True)
    assert study.page.sections[0].table is not None


def test_a_file_with_too_few_demonstrations_is_refused_when_it_is_read(
    task: str, tmp_path: Path, subject: Subject
) -> None:
    run("check", CheckSpec(model="memory:tiny", task=task, k=2, queries=1), tmp_path, subject, folder=tmp_path / "page")
    left = str(tmp_path / "page" / "episode.json")
    with pytest.raises(Refusal, match="of 2 demonstrations none is left when 8 are held out: lower `held`"):
        run("bound", BoundSpec(model="memory:tiny", task=left), tmp_path, subject)
    with pytest.raises(Refusal, match="needs 3 demonstrations to choose from, not 2"):
        run("modify", ModifySpec(model="memory:tiny", task=left, modifications="negative:k=3"), tmp_path, subject)


def test_modify_keeps_the_scores_of_each_modification(task: str, tmp_path: Path, subject: Subject) -> None:
    chosen = "negative:k=1:beta=0.5,regularised:alpha=0,augmented:c=0.5"
    spec = ModifySpec(model="memory:tiny", task=task, k=2, queries=4, modifications=chosen)
    study, prompts = run("modify", spec, tmp_path, subject), asked(spec, subject)
    with InContext().learn(subject, prompts) as predictor:
        plain = predictor.trace(prompts)
    scores = {one.labels["modification"]: one for one in study.arrays(quantity="scores")}
    assert list(scores) == ["plain", "negative k=1", "regularised alpha=0", "augmented c=0.5"]
    assert np.array_equal(scores["plain"].values, plain.scores)
    assert np.array_equal(scores["regularised alpha=0"].values, plain.scores)
    assert not np.array_equal(scores["negative k=1"].values, plain.scores)
    assert not np.array_equal(scores["augmented c=0.5"].values, plain.scores)
    assert scores["plain"].coordinates["label"] == ("Negative", "Positive")
    assert study.arrays(quantity="answers")[0].values.tolist() == list(plain.answers)
    more = ModifySpec(model="memory:tiny", task=task, k=2, queries=4, modifications=f"{chosen},centred")
    assert run("modify", more, tmp_path, subject).fresh == 1


# training

SMALL = {"dx": 4, "k": 6, "epochs": 2, "steps": 3, "batch": 8, "episodes": 32}


def test_a_cell_of_train_is_the_curve_of_its_seed(tmp_path: Path) -> None:
    spec = TrainSpec(tasks="exponential", arms="negative:k=2", seeds="3,5", **SMALL)
    study = run("train", spec, tmp_path)
    task = find_task("exponential", 4, 6)
    members = [(seed, Source(task, task)) for seed in (3, 5)]
    wanted = curves(members, spec.arms[0].make(), spec.cells()[0].spec.recipe)
    found = study.stack("seed", [3, 5], quantity="loss", arm="negative k=2")
    assert np.array_equal(found, wanted.T.double())
    constant = study.stack("seed", [3, 5], quantity="reference", learner="best constant")
    targets = [members[0][1].held(seed, 32).target for seed in (3, 5)]
    assert np.allclose(constant, [float(((one - one.mean()) ** 2).mean()) for one in targets])
    steps = study.stack("seed", [3, 5], quantity="reference", learner="centred gd step")
    assert np.allclose(steps, [float(gd_reference(source, seed, 32)) for seed, source in members])


def test_more_seeds_train_only_the_new_ones_and_alone_they_are_the_same(tmp_path: Path) -> None:
    given = {"tasks": "linear", "arms": "centred", **SMALL}
    assert run("train", TrainSpec(**given, seeds=2), tmp_path).fresh == 4
    grown = run("train", TrainSpec(**given, seeds=4), tmp_path)
    assert grown.fresh == 4
    whole = run("train", TrainSpec(**given, seeds=4), tmp_path / "anew")
    for arm in ("plain", "centred"):
        pair = [study.stack("seed", range(4), quantity="loss", arm=arm) for study in (grown, whole)]
        assert np.allclose(*pair, rtol=1e-5)


def test_running_one_cell_is_training_it_alone() -> None:
    (cell,) = TrainSpec(tasks="linear", arms="plain", seeds="2,", **SMALL).cells()
    alone = training.run(cell, Tools())
    among = list(training.together(TrainSpec(tasks="linear", arms="plain", seeds=3, **SMALL).cells(), Tools()))[2]
    assert np.allclose(alone.select(quantity="loss")[0].values, among.select(quantity="loss")[0].values, rtol=1e-5)


def test_a_language_is_tested_on_words_that_were_not_shown() -> None:
    spec = TrainSpec(languages="a*bc*", arms="plain", seeds="0,", dx=4).cells()[0].spec
    words = spec.words()
    assert words.language == "a*bc*"
    made: list[Any] = []
    tools = Tools()
    source = tools.shared(("words", words), lambda: _source(words, made))
    assert training.source_of(spec, tools) is source
    shown, tried = (
        {tuple(row) for row in part.codes.flatten(0, 3).tolist() if any(row)} for part in (source.train, source.test)
    )
    assert len(shown) > 20
    assert len(tried) > 10
    assert not shown & tried


def _source(words: Any, made: list[Any]) -> Source:
    from iclgd.small.languages.prepare import prepare

    made.append(words)
    return Source(*prepare(with_pca(words)).tasks(20, True)[0])


def with_pca(words: Any) -> Any:
    """The same words in codes that need no training."""
    from iclgd.choices import parse_one
    from iclgd.small.languages.encoders import ENCODERS

    return words.model_copy(update={"encoder": parse_one("pca", ENCODERS)})


def test_arms_of_a_language_share_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from iclgd.small.languages.prepare import prepare

    prepared: list[int] = []

    def quickly(data: Any) -> Any:
        prepared.extend(data.seeds)
        return prepare(with_pca(data))

    monkeypatch.setattr(training, "prepare", quickly)
    study = run("train", TrainSpec(languages="((a|b)c)*", arms="centred", seeds=2, **SMALL), tmp_path)
    assert prepared == [0, 1]
    constants = study.stack("seed", [0, 1], quantity="reference", learner="best constant")
    assert np.allclose(constants, 1, atol=0.1)  # half of the words are members, labels ±1
    assert study.fresh == 4


def test_signs_are_drawn_for_a_language_and_not_where_every_episode_has_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Prepared:
        def tasks(self, demos: int, signs: bool) -> Any:
            return [(demos, signs)]

    monkeypatch.setattr(training, "prepare", lambda _data: Prepared())
    cells = TrainSpec(languages="a*bc*,random", arms="plain", seeds=1).cells()
    found = {cell.labels["task"]: tuple(training.source_of(cell.spec, Tools())) for cell in cells}
    assert found == {"a*bc*": (20, True), "random": (20, False)}


def test_a_seed_that_diverges_is_named_and_nothing_is_kept(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="diverged"):
        run("train", TrainSpec(tasks="exponential", arms="plain", seeds=1, **{**SMALL, "rate": 1e30}), tmp_path)


def test_one_seed_of_several_that_diverges_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(members: Any, *_given: Any) -> torch.Tensor:
        found = torch.ones(2, len(members))
        found[-1, 1] = torch.nan
        return found

    monkeypatch.setattr(training, "curves", half)
    cells = TrainSpec(tasks="linear", arms="plain", seeds="4,7", **SMALL).cells()
    with pytest.raises(Refusal, match="plain diverged on linear from seed 7: lower `rate`"):
        list(training.together(cells, Tools()))
