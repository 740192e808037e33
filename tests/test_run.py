"""One cell: its arrays are the metrics of the learners' traces, and it leaves the model as it was."""

import pytest
import torch

from iclgd.learners import make_learner
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.metrics.likeness import sim_am, sim_am_delta, sim_aou, sim_aou_norm
from iclgd.models.load import load_subject
from iclgd.prompts import build_prompts
from iclgd.run import run_cell
from iclgd.spec import EpisodeSpec, LearnerSpec, ModelSpec, PromptSpec
from iclgd.tasks.episodes import load_episode
from little import little_cell, little_model, little_task

GD, LCGD = LearnerSpec(kind="gd", rate=0.01), LearnerSpec(kind="lcgd", rate=0.01)
POSITIONS, QUERIES, LAYERS = 2, 5, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("little")
    little_model(made / "model")
    little_task(made)
    little_task(made, "other", ("red", "blue"))
    return made


@pytest.fixture(scope="module")
def subject(folder):
    return load_subject(ModelSpec(name=str(folder / "model"), device="cpu"))


def cell(folder, *learners, **changes):
    return little_cell(folder / "model", folder / "mine.yaml", *learners, **changes)


@pytest.fixture(scope="module")
def full(folder, subject):
    """Everything a cell can be asked for."""
    return run_cell(
        subject,
        cell(folder, GD, LCGD, trained_nulls=True, floor=True, other_task=str(folder / "other.yaml")),
    )


def traces(subject, folder):
    """What each learner did, by itself."""
    episode = load_episode(str(folder / "mine.yaml"), EpisodeSpec(k=3, queries=5))
    prompts = build_prompts(subject.tokenizer, episode, PromptSpec(), subject.room)
    found = {}
    for name, learner in {
        "zero": ZeroShot(),
        "icl": InContext(),
        "gd": make_learner(GD),
        "lcgd": make_learner(LCGD),
    }.items():
        with learner.learn(subject, prompts) as predictor:
            found[name] = predictor.trace(prompts)
    return found


def test_a_cells_likeness_is_the_metrics_of_its_learners_traces(full, subject, folder):
    t = traces(subject, folder)
    for name in ("gd", "lcgd"):
        for i in range(POSITIONS):
            h = [t[x].outputs[:, :, i] for x in ("zero", "icl", name)]
            m = [t[x].logits[:, :, i] for x in ("zero", "icl", name)]
            for metric, wanted in {
                "SimAOU": sim_aou(*h),
                "SimAOU_norm": sim_aou_norm(*h),
                "SimAM": sim_am(m[1], m[2]),
                "SimAM_Δ": sim_am_delta(*m),
            }.items():
                found = full.arrays[f"{name} 0.01/{metric}"]
                assert found.shape == (POSITIONS, QUERIES, LAYERS)
                assert torch.equal(found[i], wanted.float())
        assert torch.equal(full.arrays[f"{name} 0.01/scores"], t[name].scores)


def test_alpha_is_the_likeness_of_the_two_finetuned_learners(full, subject, folder):
    t = traces(subject, folder)
    for i in range(POSITIONS):
        wanted = sim_am_delta(*(t[name].logits[:, :, i] for name in ("zero", "gd", "lcgd")))
        assert torch.equal(full.arrays["gd 0.01 ~ lcgd 0.01/α"][i], wanted.float())


def test_every_likeness_comes_with_its_nulls_and_its_noise_floor(full):
    for learner in ("gd 0.01", "lcgd 0.01"):
        assert full.arrays[f"{learner}/SimAOU|uniform"].shape == (POSITIONS, QUERIES, LAYERS)
        for metric in ("SimAOU", "SimAOU_norm", "SimAM", "SimAM_Δ"):
            own = full.arrays[f"{learner}/{metric}"]
            for null in ("random", "other query", "shuffled labels", "other task"):
                found = full.arrays[f"{learner}/{metric}|{null}"]
                assert found.shape == own.shape
                assert not torch.equal(found, own)
            for floor in ("other batch", "other precision"):
                assert full.arrays[f"{learner}/{metric}|{floor}"].min() > 0.99
    assert full.facts["nulls_left_out"] == {}
    assert full.facts["diverged"] == []


def test_an_other_task_that_the_tokenizer_cannot_say_is_left_out_and_recorded(subject, folder):
    found = run_cell(subject, cell(folder, trained_nulls=True, other_task="continents"))
    assert "same tokens" in found.facts["nulls_left_out"]["other task"]
    assert "gd 0.01/SimAOU|shuffled labels" in found.arrays
    assert "gd 0.01/SimAOU|other task" not in found.arrays


def test_a_cell_leaves_the_weights_as_they_were(full, subject, folder):
    before = subject.fingerprint()
    assert full.facts["weights_sha256"] == before
    run_cell(subject, cell(folder, LearnerSpec(kind="lcgd-paper", rate=0.01), floor=True))
    assert subject.fingerprint() == before


def test_the_same_cell_gives_the_same_bits(full, subject, folder):
    again = run_cell(
        subject,
        cell(folder, GD, LCGD, trained_nulls=True, floor=True, other_task=str(folder / "other.yaml")),
    )
    assert again.facts == full.facts
    assert again.arrays.keys() == full.arrays.keys()
    for name, array in full.arrays.items():
        assert torch.equal(array.nan_to_num(9), again.arrays[name].nan_to_num(9)), name


@pytest.mark.parametrize("kind", ["gd", "lcgd", "lcgd-paper"])
def test_a_learner_that_diverges_has_no_likeness_and_is_named(subject, folder, kind):
    wild = LearnerSpec(kind=kind, rate=3e38)
    found = run_cell(
        subject, cell(folder, wild, GD, trained_nulls=True, floor=True, other_task=str(folder / "other.yaml"))
    )
    assert found.facts["diverged"] == [wild.name]
    assert {name for name in found.arrays if name.startswith(wild.name)} == {
        f"{wild.name}/losses",
        f"{wild.name}/gradients",
    }
    assert found.arrays["gd 0.01/SimAOU"].isfinite().all()


def test_a_rate_of_zero_has_no_likeness_of_updates_but_one_of_maps(subject, folder):
    found = run_cell(subject, cell(folder, LearnerSpec(kind="gd", rate=0.0))).arrays
    for metric in ("SimAOU", "SimAOU_norm", "SimAM_Δ"):
        for null in ("", "|random", "|other query"):
            assert found[f"gd 0/{metric}{null}"].isnan().all()
    assert torch.equal(found["gd 0/SimAM"], found["icl/SimAM|before"])
    assert torch.equal(found["gd 0/scores"], found["zero-shot/scores"])


def test_without_demonstrations_nothing_changes_and_nothing_is_measured(subject, folder):
    found = run_cell(subject, cell(folder, episode=EpisodeSpec(k=0, queries=2), floor=True)).arrays
    assert found["gd 0.01/SimAOU"].isnan().all()
    assert found["gd 0.01/τ"].isnan().all()
    assert torch.equal(found["icl/scores"], found["zero-shot/scores"])


def test_one_query_has_no_other_query_to_compare_with(subject, folder):
    found = run_cell(subject, cell(folder, episode=EpisodeSpec(k=2, queries=1))).arrays
    assert found["gd 0.01/SimAOU"].isfinite().all()
    assert found["gd 0.01/SimAM|other query"].isnan().all()


def test_a_low_precision_model_comes_back_from_its_noise_floor_as_it_was(tmp_path):
    """With its buffers, some of which it keeps in float32 (the frequencies of its rotation by position)."""
    little_model(tmp_path / "model")
    subject = load_subject(ModelSpec(name=str(tmp_path / "model"), dtype="bfloat16", device="cpu"))
    before = {name: tensor.clone() for name, tensor in state(subject.model)}
    assert {tensor.dtype for tensor in before.values()} == {torch.bfloat16, torch.float32}
    with subject.in_precision(torch.float32):
        assert subject.dtype == torch.float32
    assert subject.dtype == torch.bfloat16
    for name, tensor in state(subject.model):
        assert tensor.dtype == before[name].dtype, name
        assert torch.equal(tensor, before[name]), name


def state(model):
    return [*model.named_parameters(), *model.named_buffers()]
