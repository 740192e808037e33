"""Untrained baselines keep what they say and nothing else."""

import pytest
import torch

from iclgd.models.untrained import reinitialise
from tiny import ARCHITECTURES, tiny_model

NORMS = ("norm", "ln_")


def changed(architecture: str, init: str) -> dict[str, bool]:
    model = tiny_model(architecture)
    before = {name: p.clone() for name, p in model.named_parameters()}
    reinitialise(model, init, seed=1)
    return {name: not torch.equal(p, before[name]) for name, p in model.named_parameters()}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_random_replaces_every_parameter(architecture):
    kept = [name for name, moved in changed(architecture, "random").items() if not moved]
    assert kept == []


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_embeddings_keeps_embeddings_unembedding_and_norms_and_replaces_the_rest(architecture):
    model = tiny_model(architecture)
    tables = {name for name, m in model.named_modules() if isinstance(m, torch.nn.Embedding)}
    for name, moved in changed(architecture, "embeddings").items():
        parent = name.rsplit(".", 1)[0]
        kept = parent in tables or parent == "lm_head" or any(norm in parent.lower() for norm in NORMS)
        assert moved is not kept, name


def test_a_seed_names_the_weights():
    models = [tiny_model("llama") for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        reinitialise(model, "random", seed)
    first, same, other = (model.model.layers[0].self_attn.q_proj.weight for model in models)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_fresh_weights_are_spread_as_the_architecture_spreads_its_own(architecture):
    """Beside a model made the library's own way: another seed of the same distributions."""
    theirs, ours = tiny_model(architecture), tiny_model(architecture)
    theirs = type(theirs)(theirs.config)
    reinitialise(ours, "random", seed=5)
    for (name, a), (_, b) in zip(theirs.named_parameters(), ours.named_parameters(), strict=True):
        spread, found = float(a.double().std(correction=0)), float(b.double().std(correction=0))
        assert found == pytest.approx(spread, abs=5 * spread / a.numel() ** 0.5 + 1e-12), name
        assert float(b.double().mean()) == pytest.approx(float(a.double().mean()), abs=8 * spread / a.numel() ** 0.5), (
            name
        )


def test_the_callers_random_numbers_are_not_disturbed():
    torch.manual_seed(3)
    wanted = torch.rand(4)
    torch.manual_seed(3)
    reinitialise(tiny_model_without_seeding(), "random", 7)
    assert torch.equal(torch.rand(4), wanted)


def tiny_model_without_seeding():
    with torch.random.fork_rng(devices=[]):
        return tiny_model("gpt2")
