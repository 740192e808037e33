"""Layers trained on membership, against the learners they may have become."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from iclgd.errors import Refusal
from iclgd.labs.languages.run import Experiment, as_preconditioner, record, run
from iclgd.labs.languages.suite import experiments, run_all
from iclgd.metrics.functions import half_square
from iclgd.small import learners
from iclgd.small.attention import Weights
from iclgd.small.languages.autoencoder import Autoencoder, train_autoencoder
from iclgd.small.languages.prepare import Data, _with_others, prepare
from iclgd.small.languages.references import best_penalty, references
from iclgd.small.languages.words import held_out, uniform
from iclgd.small.models import Transformer
from iclgd.small.streams import generator
from iclgd.small.train import member
from iclgd.tasks.regression import Episodes

BASE = Experiment(language="((a|b)c)*", encoder="pca", seeds=2, steps=600)


@pytest.fixture(scope="module")
def prepared():
    return prepare(BASE.data)


@pytest.fixture(scope="module")
def fixed(prepared):
    return run(BASE, prepared)


@pytest.fixture(scope="module")
def signed(prepared):
    return run(replace(BASE, labels="sign", start="gd", queries=32), prepared)


def mean(result, learner, what):
    return float(np.mean(result.learners[learner][what]))


def test_with_a_fixed_language_the_labels_are_not_read(fixed):
    assert mean(fixed, "trained", "accuracy") > 0.85
    assert abs(mean(fixed, "trained", "accuracy") - mean(fixed, "trained", "shuffled")) < 0.02
    assert abs(mean(fixed, "preconditioned gd", "shuffled") - 0.5) < 0.05  # GD of any kind reads them
    assert mean(fixed, "no context", "cosine") > 0.99  # what the layer has become


def test_likeness_alone_does_not_tell_whether_labels_are_read_and_shuffled_labels_do(fixed, signed):
    """Of one language the best step has one direction: a layer that reads no label has it too."""
    assert mean(fixed, "preconditioned gd", "cosine") > 0.98
    assert abs(mean(fixed, "preconditioned gd", "cosine_shuffled")) < 0.2
    assert mean(signed, "preconditioned gd", "cosine_shuffled") > 0.95
    assert abs(mean(signed, "no context", "cosine")) < 0.2


def test_with_a_random_sign_the_layer_is_preconditioned_gd_and_not_gd(signed):
    assert min(signed.learners["preconditioned gd"]["cosine"]) > 0.999
    assert mean(signed, "gd", "cosine") < 0.9
    assert mean(signed, "preconditioned gd", "mse") < mean(signed, "gd", "mse") / 10
    assert mean(signed, "trained", "accuracy") > 0.85
    assert abs(mean(signed, "trained", "shuffled") - 0.5) < 0.05


def test_the_layer_leaves_its_start_near_gd(signed):
    cosines = signed.curves["cosine gd"]
    assert np.mean(cosines[0]) > 0.9
    assert np.mean(cosines[-1]) < np.mean(cosines[0])


def test_curves_end_at_the_results(signed):
    assert signed.curves["step"][-1] == BASE.steps
    assert signed.curves["accuracy"][-1] == pytest.approx(signed.learners["trained"]["accuracy"])
    assert signed.curves["mse gd"][-1] == pytest.approx(signed.learners["gd"]["mse"], rel=1e-4)


def test_a_seed_gives_its_numbers_whoever_trains_beside_it():
    short = replace(BASE, steps=5, episodes=50)
    together = run(short)
    for i in range(2):
        alone = run(replace(short, seed=i, seeds=1))
        for name, row in alone.learners.items():
            assert row["loss"][0] == pytest.approx(together.learners[name]["loss"][i], rel=1e-4)


@pytest.mark.slow
def test_with_a_drawn_language_the_layer_is_preconditioned_gd_and_not_gd():
    result = run(
        Experiment(
            language="random", labels="language", encoder="pca", start="gd", min_length=8, max_length=8, seeds=2,
            queries=32,
        )
    )  # fmt: skip
    assert mean(result, "preconditioned gd", "cosine") > 0.99
    assert mean(result, "gd", "cosine") < 0.92
    assert mean(result, "trained", "accuracy") > 0.65
    assert abs(mean(result, "trained", "shuffled") - 0.5) < 0.05


@pytest.mark.slow
def test_autoencoder_codes_need_white_coordinates_to_reach_the_optimum(monkeypatch):
    hard = replace(BASE, language="a*bc*", encoder="autoencoder", negatives="edits", labels="sign", start="gd")
    hard = replace(hard, queries=32, steps=2000)
    prepared = prepare(hard.data)
    white = run(hard, prepared)
    monkeypatch.setattr("iclgd.labs.languages.run.whitening", lambda task: torch.eye(task.codes.shape[-1] + 1))
    plain = run(hard, prepared)
    matrices = [min(found.weights["cosine to the best preconditioner"]) for found in (white, plain)]
    assert matrices[0] > 0.99 > 0.95 > matrices[1]
    assert max(white.learners["preconditioned gd"]["mse"]) < min(plain.learners["preconditioned gd"]["mse"])


def sample(count=4000, dx=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    x, query = torch.randn(count, 6, dx, generator=g).double(), torch.randn(count, 1, dx, generator=g).double()
    w = torch.randn(count, dx, 1, generator=g).double()
    return Episodes(x, x @ w, query, query @ w)


def test_references_are_at_their_best():
    episodes = sample()

    def loss(w):
        return float(half_square(learners.predict(w, episodes.query), episodes.target))

    penalty = best_penalty(episodes)
    noisy = episodes._replace(y=episodes.y + torch.randn(episodes.y.shape, dtype=torch.float64, generator=generator(1)))
    chosen = best_penalty(noisy)
    assert penalty < chosen < 100  # noise wants a penalty, and not the largest
    best = loss(learners.ridge(noisy.x, noisy.y, chosen))
    for factor in (0.1, 10):
        assert best < loss(learners.ridge(noisy.x, noisy.y, chosen * factor))
    assert set(references(episodes, 0.1, None)) == {"gd", "ridge", "3 nearest"}


def test_a_layer_is_a_preconditioner_a_fixed_answer_and_a_term_without_labels():
    g = torch.Generator().manual_seed(0)
    model = Transformer(3, start=0.5)
    params = {name: value.double() for name, value in model.init(0).items()}
    y = (torch.randint(2, (5, 8, 1), generator=g) * 2 - 1).double()
    x, query = torch.randn(5, 8, 3, generator=g).double(), torch.randn(5, 1, 3, generator=g).double()
    weights = Weights(params["qk"], params["pv"])
    a, r = as_preconditioner(weights, 3)
    b, s = (y * x).mean(1), x.mT @ x / 8
    plain = -(weights.pv[0, 0][3, :3] @ s @ weights.qk[0, 0][:3, :3])  # p_xᵀ S Q_xx
    expected = ((b @ a + r + plain) * query[:, 0]).sum(-1)
    answer = model.predict(params, Episodes(x, y, query, query[..., :1]))
    assert torch.allclose(answer[:, 0, 0], expected, atol=1e-12)


def test_the_autoencoder_restores_words_it_has_not_seen():
    random = np.random.default_rng(0)
    model = Autoencoder(symbols=2, width=4, dx=6, hidden=24)
    every = [np.unique(uniform(4000, range(1, 5), 2, random), axis=0) for _ in range(2)]  # all 30 words
    words, others = ([part[held_out(part, 0) == test] for part in every] for test in (False, True))
    assert min(map(len, others)) > 5
    trained = train_autoencoder(model, words, others, [0, 1], 300)
    symbols = trained.curves["symbols"]  # of words it has not seen
    assert np.mean(symbols[-1]) > 0.8 > np.mean(symbols[0]) + 0.2
    params = member(trained.params, 0)
    seen = torch.from_numpy(words[0])
    restored = model.decode(params, model.encode(params, seen)).argmax(-1)
    assert (restored == seen).all(-1).float().mean() > 0.9


@pytest.mark.parametrize("encoder", ["autoencoder", "end-to-end"])
def test_the_other_encoders_run(encoder):
    result = run(replace(BASE, encoder=encoder, labels="sign", steps=3, encoder_steps=3, episodes=40))
    assert ("gd on learned features" in result.learners) == (encoder == "end-to-end")
    assert ("preconditioned gd" in result.learners) == (encoder == "autoencoder")
    assert bool(result.autoencoder) == (encoder == "autoencoder")
    assert all(np.isfinite(result.learners["trained"]["loss"]))


def test_more_layers_run_and_have_no_construction_beside_them(prepared):
    result = run(replace(BASE, labels="sign", layers=2, steps=3, episodes=40), prepared)
    assert not result.weights


def test_the_set_has_every_kind_once():
    cells = experiments(seeds=2)
    assert len(set(cells)) == len(cells)
    assert {cell.labels for cell in cells} == {"fixed", "sign", "language"}
    assert {cell.encoder for cell in cells} == {"autoencoder", "pca", "end-to-end"}
    assert {cell.layers for cell in cells} == {1, 2}


def test_the_set_shares_what_is_prepared_and_keeps_its_order():
    cells = [replace(BASE, labels=labels, steps=2, episodes=40) for labels in ("sign", "fixed")]
    counted = []
    results = run_all(cells, 1, counted.append)
    assert [result.experiment for result in results] == cells
    assert counted == [2]


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"labels": "signs"}, "Did you mean sign"),
        ({"negatives": "edit"}, "Did you mean edits"),
        ({"encoder": "pcb"}, "Did you mean pca"),
        ({"start": "zero"}, "There are random, gd"),
        ({"demos": 7}, "an even number of them, not 7"),
        ({"labels": "language"}, "--language random together"),
        ({"language": "random"}, "--language random together"),
        ({"min_length": 5, "max_length": 4}, "lengths run upwards"),
        ({"max_length": 60}, "too long"),
        ({"rate": 0.0}, "give a positive one"),
        ({"steps": 0}, "counts of at least one"),
        ({"seeds": 0}, "at least one"),
        ({"queries": 0}, "counts of at least one"),
        ({"rate": float("nan")}, "give a positive one"),
        ({"dims": 41}, "too wide"),
        ({"seed": 2**32}, "between 0 and 4294967295"),
        ({"encoder": "end-to-end", "start": "gd"}, "leave out --start"),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(given, sentence):
    with pytest.raises(Refusal, match=sentence):
        replace(BASE, **given)


def test_a_seed_that_diverges_is_named():
    with pytest.raises(Refusal, match="lower"):
        run(replace(BASE, layers=2, rate=1e12, batch=16, steps=20, episodes=50))


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"alphabet": "abc $<"}, "cannot be a symbol"),
        ({"alphabet": "abcdefghij", "max_length": 30}, "lower --max-length"),
    ],
)
def test_random_languages_have_an_alphabet_like_others(given, sentence):
    with pytest.raises(Refusal, match=sentence):
        prepare(Experiment(language="random", labels="language", encoder="pca", **given).data)


def test_a_record_is_json_whatever_was_undefined(prepared):
    result = run(replace(BASE, steps=2, episodes=40), prepared)
    result.learners["gd"]["cosine"][0] = float("nan")
    text = json.dumps(record(result), allow_nan=False)
    assert json.loads(text)["learners"]["gd"]["cosine"][0] is None


def test_too_many_dimensions_get_a_sentence():
    with pytest.raises(Refusal, match=r"lower --dims"):
        prepare(replace(BASE, dims=40).data)


def test_the_autoencoder_is_shown_no_test_word():
    random = np.random.default_rng(0)
    every = np.unique(uniform(4000, range(1, 4), 2, random), axis=0)
    shown, tested = every[::2], every[1::2]
    given = _with_others(Data(max_length=3), 0, shown, tested, 2)
    assert {tuple(row) for row in shown.tolist()} <= {tuple(row) for row in given.tolist()}
    assert not {tuple(row) for row in tested.tolist()} & {tuple(row) for row in given.tolist()}
