"""The parts of a run by themselves, on inputs whose answer is known."""

import pytest
import torch
from language_studies import SMALL

from iclgd.errors import Refusal
from iclgd.labs.languages import run
from iclgd.labs.languages.measures import BYPASS, matrices
from iclgd.labs.languages.spec import RunSpec, Setting
from iclgd.small import learners
from iclgd.small.languages.prepare import Data, prepare
from iclgd.small.languages.references import references
from iclgd.small.models import Transformer, predictor
from iclgd.small.streams import generator
from iclgd.tasks.regression import Episodes
from iclgd.tools import silent


def setting(**given):
    return RunSpec.of(SMALL | given).part(Setting)


def episodes(dx=4, count=6, seed=0):
    g = torch.Generator().manual_seed(seed)
    x, query = torch.randn(count, 8, dx, generator=g), torch.randn(count, 3, dx, generator=g)
    y = (torch.randint(2, (count, 8, 1), generator=g) * 2 - 1).float()
    return Episodes(x, y, query, query[..., :1].sign())


@pytest.fixture(scope="module")
def prepared():
    return prepare(Data.of({"language": "((a|b)c)*", "encoder": "pca", "dims": 4, "k": 8, "seeds": 1}))


def test_the_start_near_gd_adds_a_step_of_gd_to_the_random_weights():
    model = Transformer(4, layers=2)
    plain, near = (run._start(setting(labels="sign", layers=2, start=s), model, 7) for s in ("random", "gd"))
    assert all(torch.equal(plain[name], value) for name, value in model.init(7).items())
    for layer in range(2):
        added = {name: (near[name] - plain[name])[layer : layer + 1].double() for name in plain}
        drawn = Episodes(*(part.double() for part in episodes()))
        expected = learners.predict(learners.gd(drawn.x, drawn.y, run.GD_START**2), drawn.query)
        assert torch.allclose(Transformer(4).predict(added, drawn), expected, atol=1e-6)
        assert added["qk"].abs().max() == pytest.approx(run.GD_START, rel=1e-5)


def test_without_attention_no_demonstration_is_read():
    model = Transformer(4, width=10, hidden=12, start=0.5)
    params = model.init(1)
    found = run._bypassed(setting(encoder="end-to-end"), model, params)
    drawn = episodes()
    turned = drawn._replace(y=-drawn.y)
    assert torch.equal(found[BYPASS](drawn), found[BYPASS](turned))
    assert found[BYPASS](drawn).abs().max() > 0
    assert not torch.allclose(predictor(model, params)(drawn), predictor(model, params)(turned))
    assert run._bypassed(setting(), model, params) == {}


def test_seeds_are_judged_on_their_own_episodes_and_shuffles(prepared):
    ((task, test),) = prepared.tasks(8, False)
    e, basis = setting(k=8, episodes=30), torch.eye(5)
    first, again, other = (run._seed(e, number, task, test, basis, {}) for number in (3, 3, 4))
    assert torch.equal(first.held.query, again.held.query)
    assert torch.equal(first.mixed.y, again.mixed.y)
    assert len(first.held.query) == 30
    assert not torch.equal(first.held.query, other.held.query)
    expected = test.draw(30, generator(run.EVALUATION, 3))
    assert torch.equal(first.held.x, expected.x)
    same = [run.shuffled(first.held, generator(run.SHUFFLING, number)).y for number in (3, 4)]
    assert torch.equal(first.mixed.y, same[0])
    assert not torch.equal(first.mixed.y, same[1])


def test_training_asks_as_many_queries_at_the_rate_that_was_asked_for(prepared, monkeypatch):
    seen = {}

    def watching(members, batch):
        seen["queries"] = [draw(2, generator(1)).query.shape[1] for _, draw in members]
        seen["batch"] = batch
        return original(members, batch)

    def adam(rates, **rest):
        seen["rates"] = rates.tolist()
        return adam_(rates, **rest)

    original, adam_ = run.stream, run.Adam
    monkeypatch.setattr(run, "stream", watching)
    monkeypatch.setattr(run, "Adam", adam)
    given = {"k": 8, "labels": "sign", "queries": 5, "rate": 0.25, "batch": 6, "steps": 1, "episodes": 10}
    run.trained(setting(**given), prepared, silent)
    assert seen == {"queries": [5], "batch": 6, "rates": [0.25]}


def test_a_random_sign_is_drawn_only_where_it_was_asked_for(prepared, monkeypatch):
    for labels, expected in (("sign", True), ("fixed", False)):
        kept = []
        original = run._seed

        def keeping(e, number, task, test, basis, more, kept=kept, original=original):
            kept.append((task.signs, test.signs))
            return original(e, number, task, test, basis, more)

        monkeypatch.setattr(run, "_seed", keeping)
        run.trained(setting(k=8, labels=labels, steps=1, batch=4, episodes=10), prepared, silent)
        monkeypatch.setattr(run, "_seed", original)
        assert kept == [(expected, expected)]


def test_constructed_weights_are_the_learners_they_are_named_after(prepared):
    ((task, test),) = prepared.tasks(8, False)
    tuned = references(task, 0, wide=False)
    model = Transformer(4)
    params = model.init(2)
    drawn = test.draw(20, generator(5))
    found = {(a.labels.get("learner"), a.labels.get("matrix")): a.values for a in matrices(params, tuned)}
    for name in ("gd", "preconditioned gd"):
        built = {part: torch.tensor(found[name, part])[None, None] for part in ("qk", "pv")}
        assert torch.allclose(model.predict(built, drawn), tuned.learners[name](drawn), atol=1e-4)
    assert torch.equal(torch.tensor(found["trained", "qk"]), params["qk"][0, 0])


def test_a_seed_whose_weights_are_not_finite_is_named(prepared, monkeypatch):
    assert run._finite({"qk": torch.ones(2)})
    assert not run._finite({"qk": torch.ones(2), "pv": torch.tensor([1.0, torch.inf])})
    monkeypatch.setattr(run, "_finite", lambda params: False)
    with pytest.raises(Refusal, match=r"diverged for seeds \[0\] with a rate of 0.03; lower `rate`"):
        run.trained(setting(k=8, steps=1, batch=4, episodes=10), prepared, silent)


def test_as_many_layers_are_trained_as_were_asked_for(prepared, monkeypatch):
    made, original = [], run.Transformer

    def keeping(dx, **given):
        made.append(given["layers"])
        return original(dx, **given)

    monkeypatch.setattr(run, "Transformer", keeping)
    run.trained(setting(k=8, labels="sign", layers=2, steps=1, batch=4, episodes=10), prepared, silent)
    assert made == [2]


def test_progress_is_told_as_many_steps_as_are_trained_and_curves_have_as_many_moments(prepared):
    told = []
    given = {"k": 8, "labels": "sign", "batch": 2, "steps": 65, "episodes": 5}
    (found,) = run.trained(setting(**given), prepared, lambda *what: told.append(what))
    assert told == [("training 1 seed", 2)] * 34  # before the first step, 30 times or a little more, and at the end
    (curve,) = found.select(part="training", learner="trained", quantity="loss")
    assert curve.coordinates["step"] == (*range(0, 65, 2), 65)


def test_what_is_trained_end_to_end_is_an_mlp_of_40_with_80_hidden_units(prepared, monkeypatch):
    made = []
    for name in ("Transformer", "DeepFeatures"):
        kind = getattr(run, name)
        monkeypatch.setattr(run, name, lambda *a, kind=kind, **more: made.append(more) or kind(*a, **more))
    told = []
    given = {"k": 8, "encoder": "end-to-end", "batch": 2, "steps": 1, "episodes": 5}
    run.trained(setting(**given), prepared, lambda *what: told.append(what))
    assert [(more["width"], more["hidden"]) for more in made] == [(40, 80), (40, 80)]
    assert told[0] == ("training features", 0)
