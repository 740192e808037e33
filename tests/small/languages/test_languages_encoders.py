"""Words to codes: those there are, and a stranger's."""

import numpy as np
import pytest
import torch

from iclgd.errors import Refusal
from iclgd.metrics.functions import half_square
from iclgd.small import learners
from iclgd.small.languages.autoencoder import Autoencoder, train_autoencoder, with_others
from iclgd.small.languages.encoders import Material
from iclgd.small.languages.prepare import Data, prepare, words_of
from iclgd.small.languages.references import (
    best_penalty,
    descent,
    hits,
    hits_scale,
    references,
    stored_times_hits,
    tuned,
)
from iclgd.small.languages.words import held_out, uniform
from iclgd.small.streams import generator
from iclgd.small.train import member
from iclgd.tasks.regression import Episodes

COUNTS = '''
from dataclasses import dataclass
import numpy as np
from iclgd.small.languages.encoders import Encoder

@dataclass(frozen=True)
class Counts(Encoder):
    """How often each symbol comes, times a factor."""
    factor: float = 1.0

    def fit(self, given):
        assert not set(map(bytes, given.words)) & set(map(bytes, given.test))
        return lambda words: self.factor * np.stack([(words == s).sum(1) for s in range(given.symbols)], 1)
'''


def data(**given):
    return Data.of({"language": "((a|b)c)*", "encoder": "pca", "max_length": 8, "dims": 4, "seeds": 2, **given})


def test_a_strangers_encoder_is_one_class_in_one_file_and_its_codes_are_scaled_like_all(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(COUNTS)
    prepared = prepare(data(encoder=f"{file}:Counts:factor=7"))
    for place, (task, _) in enumerate(prepared.tasks(4, False)):
        assert task.codes.shape[-1] == 3
        codes = prepared.encoders[place](words_of(prepared.splits[place].train))
        assert np.abs(codes.mean(0)).max() < 1e-5
        assert np.square(codes).sum(1).mean() == pytest.approx(3, rel=1e-5)


def test_an_encoder_that_tells_no_words_apart_is_refused(tmp_path):
    file = tmp_path / "flat.py"
    file.write_text(COUNTS.replace("self.factor *", "0 *"))
    with pytest.raises(Refusal, match="every training word the same code"):
        prepare(data(encoder=f"{file}:Counts"))


def test_too_many_dimensions_get_a_sentence():
    with pytest.raises(Refusal, match="lower `dims`"):
        prepare(data(dims=40))


@pytest.mark.parametrize("encoder", ["pca", "autoencoder:steps=5"])
def test_a_part_of_the_seeds_keeps_their_own_words_and_codes(encoder):
    every = prepare(data(encoder=encoder, seeds=[3, 5, 8]))
    part = every.only([8, 3])
    assert part.seeds == (8, 3)
    for mine, whole in ((0, 2), (1, 0)):
        words = words_of(every.splits[whole].train)
        assert (words_of(part.splits[mine].train) == words).all()
        assert (part.encoders[mine](words) == every.encoders[whole](words)).all()
        assert part.curves[mine] == every.curves[whole]
    alone = prepare(data(encoder=encoder, seeds=[5]))
    words = words_of(every.splits[1].train)
    assert np.abs(alone.encoders[0](words) - every.encoders[1](words)).max() < 1e-3


def test_examples_are_words_of_their_kind():
    prepared = prepare(data())
    shown = prepared.examples(0)
    assert len(shown["members"]) == len(shown["others"]) == 4
    import re

    assert all(re.fullmatch("((a|b)c)*", word) for word in shown["members"])
    assert not any(re.fullmatch("((a|b)c)*", word) for word in shown["others"])


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


def test_the_autoencoder_is_shown_no_test_word():
    random = np.random.default_rng(0)
    every = np.unique(uniform(4000, range(1, 4), 2, random), axis=0)
    shown, tested = every[::2], every[1::2]
    given = with_others(Material(shown, tested, 2, range(1, 4), 3, 0))
    assert {tuple(row) for row in shown.tolist()} <= {tuple(row) for row in given.tolist()}
    assert not {tuple(row) for row in tested.tolist()} & {tuple(row) for row in given.tolist()}


def sample(count=4000, dx=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    x, query = torch.randn(count, 6, dx, generator=g).double(), torch.randn(count, 1, dx, generator=g).double()
    w = torch.randn(count, dx, 1, generator=g).double()
    return Episodes(x, x @ w, query, query @ w)


def test_the_ridge_penalty_is_at_its_best():
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


def test_one_hot_words_have_no_preconditioned_gd():
    (task, _), *_ = prepare(data()).tasks(4, False)
    assert set(references(task, 0, wide=True).learners) == {
        "gd", "ridge", "3 nearest", "no context", "stored × hits",
    }  # fmt: skip
    assert "preconditioned gd" in references(task, 0, wide=False).learners


def drawn(task):
    return task.draw(4000, generator(77), queries=8, dtype=torch.float64)


def loss_of(predict, episodes):
    return float(half_square(predict(episodes), episodes.target))


def test_as_many_steps_as_layers_are_tuned_and_named():
    (task, _), *_ = prepare(data(k=4)).tasks(4, False)
    one, two = references(task, 0, False), references(task, 0, False, steps=2)
    assert [*one.learners][:2] == ["gd", "preconditioned gd"]
    assert [*two.learners][:2] == ["gd ×2", "preconditioned gd ×2"]
    episodes = drawn(task)
    for name in ("gd", "preconditioned gd"):
        assert loss_of(two.learners[f"{name} ×2"], episodes) < loss_of(one.learners[name], episodes) - 1e-3


def test_tuned_steps_cannot_be_bettered_on_other_training_episodes():
    (task, _), *_ = prepare(data(k=4)).tasks(4, False)
    rates = tuned(task, 0, torch.tensor(0.1, dtype=torch.float64), 2)
    episodes = drawn(task)
    best = loss_of(descent(rates), episodes)
    for change in ([0.3, 0], [-0.3, 0], [0, 0.3], [0, -0.3]):
        assert best < loss_of(descent(rates + torch.tensor(change)), episodes)


def test_two_steps_are_two_steps_of_gradient_descent():
    episodes = sample(5)
    rates = torch.tensor([0.3, 0.3], dtype=torch.float64)
    expected = learners.predict(learners.gd(episodes.x, episodes.y, 0.3, steps=2), episodes.query)
    assert torch.allclose(descent(rates)(episodes), expected, atol=1e-12)
    scaled = rates[:, None, None] * torch.eye(4, dtype=torch.float64)
    assert torch.allclose(descent(scaled)(episodes), expected, atol=1e-12)


def test_hits_less_misses_by_hand():
    """w = (1, 0): labels agree with the sign of the first number in three demonstrations of four."""
    x = torch.tensor([[[2.0, 9.0], [-1.0, 0.0], [0.5, -7.0], [-3.0, 1.0]]])
    y = torch.tensor([[[1.0], [-1.0], [1.0], [1.0]]])
    query, w = torch.tensor([[[4.0, 1.0]]]), torch.tensor([1.0, 0.0])
    episodes = Episodes(x, y, query, torch.tensor([[[8.0]]]))
    assert float(hits(w, episodes)) == pytest.approx((3 - 1) / 4)
    assert hits_scale(w, episodes) == pytest.approx(4)
    control = stored_times_hits(w, hits_scale(w, episodes))  # one episode fixes the scale: ½ · 4 · s = 8
    assert float(control(episodes)) == pytest.approx(8)
    turned = episodes._replace(y=-y)
    assert float(control(turned)) == pytest.approx(-8)
    moved = episodes._replace(x=x * torch.tensor([1.0, -5.0]))
    assert float(control(moved)) == pytest.approx(8)  # only signs of w·x are read
    assert float(control(episodes._replace(query=2 * query))) == pytest.approx(16)


def test_words_are_counted_once_and_by_their_use():
    prepared = prepare(data(language="a*bc*", max_length=12, seeds=1))
    split = prepared.splits[0]
    rows = {
        "training": [row for side in split.train for role in side for part in role for row in part.tolist()],
        "shown": [row for side in split.test for part in side.demos for row in part.tolist()],
        "asked": [row for side in split.test for part in side.queries for row in part.tolist()],
    }
    assert prepared.counts(0) == {name: len(set(map(tuple, part))) for name, part in rows.items()}
    assert prepared.counts(0) == {"training": 94, "shown": 30, "asked": 32}


def test_the_autoencoder_is_judged_on_each_seeds_own_test_words(monkeypatch):
    from iclgd.small.languages import autoencoder

    judged, original = [], autoencoder.train_autoencoder

    def keeping(model, words, validation, seeds, steps):
        judged.extend(validation)
        return original(model, words, validation, seeds, steps)

    monkeypatch.setattr(autoencoder, "train_autoencoder", keeping)
    prepared = prepare(data(encoder="autoencoder:steps=2"))
    for mine, split in zip(judged, prepared.splits, strict=True):
        assert np.array_equal(mine, words_of(split.test))
    assert prepared.curves[0]["loss"] != prepared.curves[1]["loss"]
