"""A prompt as a change of weights: exact for every family, for one query only, and of rank one."""

from contextlib import contextmanager

import pytest
import torch

from iclgd.errors import Refusal
from iclgd.models.added import Added, written
from iclgd.models.faithful import generate, generate_patched, residual
from iclgd.models.mlps import matrix
from iclgd.models.patches import FORMS, at, gain_of, patches, read
from tiny import ARCHITECTURES, REGISTERED, tiny_model, tiny_subject, tiny_tokenizer, tokens

BOS = (1,)
NAMED = ("llama", "qwen3", "gpt2", "gpt-neox", "olmo2", "gemma3")  # families that the papers speak of
OTHERS = sorted(set(ARCHITECTURES) - set(NAMED) - {"gpt-oss"})


def ids(length: int, seed: int) -> tuple[int, ...]:
    return tuple(tokens(1, length, seed)[0].tolist())


@contextmanager
def doubled(architecture: str):
    subject = tiny_subject(architecture)
    with subject.in_precision(torch.float64):
        yield subject


def asked(subject, seeds=(1, 2), context=9):
    """Queries of different lengths from bos on, and what the model does on them behind a context."""
    queries = [BOS + ids(4 + 3 * place, seed) for place, seed in enumerate(seeds)]
    return queries, read(subject, [query[1:] for query in queries], subject.encode(BOS + ids(17, context)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("architecture", NAMED)
def test_patched_weights_give_without_the_context_what_the_model_gives_behind_it(architecture, form):
    with doubled(architecture) as subject:
        queries, target = asked(subject)
        found = patches(subject, queries, target, form)
        for i, query in enumerate(queries):
            left = residual(subject, query, target.of([i]), [layer.of(i) for layer in found])
            assert left.blocks.max() <= 1e-12
            assert left.logits <= 1e-12 < 0.5 < left.gap
            assert left.same_token


@pytest.mark.parametrize("architecture", OTHERS)
def test_the_last_map_alone_is_enough_in_every_family_with_a_last_map(architecture):
    with doubled(architecture) as subject:
        queries, target = asked(subject)
        found = patches(subject, queries, target, "C")
        left = residual(subject, queries[1], target.of([1]), [layer.of(1) for layer in found])
        assert left.blocks.max() <= 1e-12
        assert left.logits <= 1e-12 < 0.1 < left.gap


def test_what_is_left_in_a_coarse_arithmetic_is_measured_in_a_fine_one():
    subject = tiny_subject("llama", dtype=torch.bfloat16)
    queries, target = asked(subject)
    own = [layer.of(0) for layer in patches(subject, queries, target, "C")]
    left = residual(subject, queries[0], target.of([0]), own)
    assert left.blocks.dtype == torch.float64
    assert 1e-4 < left.blocks.max() < 0.1
    assert left.logits < 0.2 * left.gap


def test_a_mixture_of_experts_is_refused_by_name():
    with pytest.raises(Refusal, match="GptOssForCausalLM cannot be patched: its MLPs are mixtures of experts"):
        tiny_subject("gpt-oss").layout.mlps()


def test_a_block_that_ends_in_a_norm_of_the_stream_is_refused():
    subject = tiny_subject("opt")
    subject.layout.config.do_layer_norm_before = False
    with pytest.raises(Refusal, match="end in a norm of the residual stream"):
        subject.layout.mlps()


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3"])
def test_a_patch_of_one_query_fails_on_another(architecture):
    with doubled(architecture) as subject:
        queries, target = asked(subject)
        found = patches(subject, queries, target, "C")
        left = residual(subject, queries[1], target.of([1]), [layer.of(0) for layer in found])
        assert left.logits > 0.1


@pytest.mark.parametrize("layer", [0, 2])
def test_without_the_patch_of_one_block_that_block_is_off(layer):
    with doubled("llama") as subject:
        queries, target = asked(subject)
        added = [one.of(0) for one in patches(subject, queries, target, "C")]
        added[layer] = Added(torch.zeros_like(added[layer].last))
        left = residual(subject, queries[0], target.of([0]), added)
        assert left.blocks[layer] > 1e-3
        assert (left.blocks[:layer] <= 1e-12).all()


def test_form_c_is_the_formula_of_the_last_map():
    """ΔW = (y_C − y_0) g_0ᵀ / ‖g_0‖² in the first block, where nothing before it is patched."""
    with doubled("llama") as subject:
        queries, target = asked(subject)
        seen = {}
        block = subject.layout.blocks[0]
        hooks = [
            block.register_forward_hook(lambda _m, _a, y: seen.update(y=y if torch.is_tensor(y) else y[0])),
            block.mlp.down_proj.register_forward_pre_hook(lambda _m, args: seen.update(g=args[0])),
        ]
        with torch.no_grad():
            subject.model(torch.tensor([queries[0]]))
        for hook in hooks:
            hook.remove()
        y, g = seen["y"][0, -1], seen["g"][0, -1]
        expected = torch.outer(target.blocks[0, 0] - y, g) / (g @ g)
        torch.testing.assert_close(patches(subject, queries, target, "C")[0].of(0).last, expected, rtol=0, atol=1e-13)


def test_form_a_gives_the_first_maps_what_they_give_behind_the_context():
    with doubled("qwen3") as subject:
        queries, target = asked(subject)
        own = patches(subject, queries, target, "A")[1].of(0)
        mlp = subject.layout.mlps()[1]
        with written(subject, [one.of(0) for one in patches(subject, queries, target, "A")]):
            now = read(subject, [queries[0]], None).inputs[0, 1]
            for module, change in zip(mlp.first, own.first, strict=True):
                old = matrix(module) - change
                torch.testing.assert_close(matrix(module) @ now, old @ target.inputs[0, 1], rtol=0, atol=1e-12)


def test_forms_a_and_b_patch_the_first_maps_alike_and_form_c_none():
    """Without them a bias alone would do, and be another form."""
    with doubled("llama") as subject:
        queries, target = asked(subject)
        a, b, c = (patches(subject, queries, target, form) for form in FORMS)
        for first, second, third in zip(a, b, c, strict=True):
            assert [len(one.first) for one in (first, second, third)] == [2, 2, 0]
            assert first.bias is third.bias is second.last is None
            assert second.bias is not None
        for one, other in zip(a[0].first, b[0].first, strict=True):  # later blocks are given other tokens
            torch.testing.assert_close(one.of(0), other.of(0), rtol=0, atol=1e-12)


def test_no_smaller_change_of_the_last_map_does_it():
    """The patch is the least of all that give the block's output: what is added to it vanishes on g_0."""
    with doubled("llama") as subject:
        queries, target = asked(subject)
        outer = patches(subject, queries, target, "C")[0].last
        other = torch.randn(outer.of(0).shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        direction = outer.right[0] / outer.right[0].norm()
        other -= torch.outer(other @ direction, direction)
        assert (outer.of(0) + other).norm() > outer.of(0).norm()
        added = [one.of(0) for one in patches(subject, queries, target, "C")]
        assert torch.linalg.matrix_rank(added[0].last) == 1
        torch.testing.assert_close(outer.norms[0], torch.linalg.matrix_norm(added[0].last, 2))


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3"])
def test_weights_come_back_bit_for_bit_after_an_exception(architecture):
    subject = tiny_subject(architecture)
    queries, target = asked(subject)
    before = subject.fingerprint()
    for form in FORMS:
        own = [layer.of(0) for layer in patches(subject, queries, target, form)]
        with pytest.raises(KeyError):
            with written(subject, own):
                assert subject.fingerprint() != before
                raise KeyError
        assert subject.fingerprint() == before
    assert [name for name, _ in subject.model.named_parameters() if name.endswith("down_proj.bias")] == []


def test_what_is_read_of_a_query_is_its_own_in_whatever_order_and_batches_they_come():
    """Batches are of similar length: the longest is asked first here, and the shortest between the others."""
    subject = tiny_subject("llama")
    queries = [ids(length, seed) for seed, length in enumerate((9, 3, 7, 4, 8))]
    prefix = subject.encode(BOS + ids(6, 9))
    for tokens_at_once in (2048, 18):
        found = read(subject, queries, prefix, tokens_at_once)
        for i, query in enumerate(queries):
            alone = read(subject, [query], prefix)
            for name in ("blocks", "inputs", "logits"):
                one, other = getattr(found.of([i]), name), getattr(alone, name)
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_what_is_read_of_an_mlp_is_what_comes_into_that_layer_s():
    subject, ids, seen = tiny_subject("llama"), tokens(1, 6), list[torch.Tensor]()
    for mlp in subject.layout.mlps():
        mlp.first[0].register_forward_pre_hook(lambda _module, args: seen.append(args[0][0, -1]))
    found = read(subject, [tuple(ids[0].tolist())], None).inputs[0]
    torch.testing.assert_close(found, torch.stack(seen))
    assert not torch.allclose(found[0], found[-1])


def test_many_queries_at_once_have_the_patches_they_have_alone():
    with doubled("gemma3") as subject:
        queries, target = asked(subject, seeds=(1, 2, 3))
        together = patches(subject, queries, target, "C")
        for i, query in enumerate(queries):
            alone = patches(subject, [query], target.of([i]), "C")
            for one, other in zip(together, alone, strict=True):
                torch.testing.assert_close(one.of(i).last, other.of(0).last, rtol=0, atol=1e-12)


@pytest.mark.parametrize("gain", [0.0, 1e-5])
@pytest.mark.parametrize("architecture", ["olmo2", "gemma3"])
def test_a_coordinate_with_next_to_no_gain_gets_one_of_its_own(architecture, gain):
    """Without it the others would be what is left of numbers 10⁵ times their size."""
    with doubled(architecture) as subject:
        for mlp in subject.layout.mlps():
            offset = 1.0 if architecture == "gemma3" else 0.0
            with torch.no_grad():
                mlp.norm.weight[3] = gain - offset
            assert abs(gain_of(mlp.norm)[3] - gain) < 1e-12
        queries, target = asked(subject)
        own = [layer.of(0) for layer in patches(subject, queries, target, "C")]
        left = residual(subject, queries[0], target.of([0]), own)
        assert left.blocks.max() <= 1e-13
        assert all(abs(layer.gain[3]) > 0.02 for layer in own)


def test_an_empty_context_needs_no_patch():
    with doubled("llama") as subject:
        queries = [BOS + ids(6, 1)]
        target = read(subject, [queries[0][1:]], subject.encode(BOS))
        for layer in patches(subject, queries, target, "C"):
            assert layer.last.norms.max() < 1e-13


@pytest.mark.parametrize("architecture, form", [("llama", "C"), ("gpt2", "A"), ("gemma3", "C")])
def test_generation_with_recomputed_patches_is_generation_with_the_prompt(architecture, form):
    with doubled(architecture) as subject:
        context, query = BOS + ids(20, 1), ids(4, 2)
        behind = generate(subject, context, query, 50)
        assert generate_patched(subject, BOS, context, query, 50, form) == behind
        assert generate(subject, BOS, query, 50) != behind


def test_what_stands_at_the_last_token_is_taken_from_padded_rows():
    hidden = torch.arange(24.0).reshape(2, 4, 3)
    assert at(hidden, torch.tensor([[1], [3]])).tolist() == [[3, 4, 5], [21, 22, 23]]


def test_models_trained_and_untrained_pass_alike():
    """The identity asks nothing of the weights: fresh ones of the architecture's own initialisation pass too."""
    from transformers import AutoModelForCausalLM

    from iclgd.models.subject import Subject

    torch.manual_seed(0)
    fresh = AutoModelForCausalLM.from_config(REGISTERED["llama"](), attn_implementation="eager")
    assert not torch.equal(fresh.lm_head.weight, tiny_model("llama").lm_head.weight)
    subject = Subject(fresh, tiny_tokenizer(), "fresh")
    with subject.in_precision(torch.float64):
        queries, target = asked(subject)
        own = [layer.of(0) for layer in patches(subject, queries, target, "C")]
        assert residual(subject, queries[0], target.of([0]), own).blocks.max() <= 1e-12


@pytest.mark.slow
def test_the_embedded_model_generates_fifty_tokens_from_recomputed_patches(smollm2):
    text = "Paris is the capital of France.\n\nRome is the capital of Italy.\n\n"
    context, query = (tuple(smollm2.tokenizer(part)["input_ids"]) for part in (text, "Oslo is the capital of"))
    behind = generate(smollm2, context, query, 50)
    assert generate_patched(smollm2, (), context, query, 50, "C") == behind
    with smollm2.in_precision(torch.float64):
        target = read(smollm2, [query], smollm2.encode(context))
        for form in FORMS:
            own = [layer.of(0) for layer in patches(smollm2, [query], target, form)]
            left = residual(smollm2, query, target, own)
            assert left.blocks.max() <= 1e-12
            assert left.logits <= 1e-12 * left.gap
