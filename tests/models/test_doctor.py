"""The doctor: parity on real weights, and what it says of label words."""

import pytest
import torch

from iclgd.models.capture import NAME
from iclgd.models.doctor import (
    LONGEST,
    Parity,
    long_labels,
    no_layer_causal,
    noise_floor,
    parities,
    parity,
    prompt_length,
)
from iclgd.models.layout import COMMON
from iclgd.models.load import load_subject
from iclgd.models.subject import Subject
from iclgd.spec import ModelSpec
from tiny import ARCHITECTURES, tiny_subject


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_parity_holds_for_every_architecture_in_every_precision(architecture, dtype):
    found = parity(tiny_subject(architecture, dtype=dtype))
    assert found.difference == 0 or dtype != torch.float32
    assert found.holds


@pytest.mark.parametrize(
    "found, holds",
    [
        (Parity(0, 0, 10, 1e-5), True),
        (Parity(9e-5, 9e-5, 10, 1e-5), True),
        (Parity(2e-4, 0, 10, 1e-5), False),
        (Parity(0, 2e-4, 10, 1e-5), False),
        (Parity(float("nan"), 0, 10, 1e-5), False),
    ],
)
def test_parity_holds_within_the_bound_of_the_precision(found, holds):
    assert found.holds is holds


@pytest.mark.parametrize(
    "architecture, window",
    [
        ("llama", None),
        ("qwen2", None),
        ("mistral", 8),
        ("gemma3", 8),
        ("gemma3-sees", 8),
        ("cohere2", 8),
        ("gpt-oss", 8),
        ("gpt-neo", 8),
        ("bloom", None),
    ],
)
def test_parity_is_looked_at_beyond_a_window_and_at_the_length_of_a_real_prompt(architecture, window):
    subject = tiny_subject(architecture)
    assert subject.layout.window == window
    found = dict(parities(subject))
    assert all(parity.holds for parity in found.values())
    assert any("beyond the window of 8" in name for name in found) is (window is not None)
    length = min(prompt_length(subject), subject.room or LONGEST)
    assert length > 200
    assert f"{length} tokens, a prompt of 32 demonstrations" in found


def test_a_fault_that_only_long_texts_show_is_found(monkeypatch):
    """A window of 100 that captured attention does not know of."""
    subject = tiny_subject("llama")
    plain = Subject.run

    def forgetful(self, ids, rows, prefix, edit=None):
        if prefix is None and ids.shape[1] > 100:
            ids = ids.clone()
            ids[:, :-100] = 5
        return plain(self, ids, rows, prefix, edit)

    monkeypatch.setattr(Subject, "run", forgetful)
    found = list(parities(subject))
    assert [parity.holds for _, parity in found] == [True, False]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_layer_causal_descent_and_the_noise_floor_can_be_had_on_every_family(architecture):
    subject = tiny_subject(architecture)
    assert no_layer_causal(subject) is None
    assert noise_floor(subject) == (None, ("bfloat16",) if architecture == "falcon-alibi" else ())


def test_what_cannot_be_had_is_said_with_its_reason():
    subject = tiny_subject("cohere")
    subject.layout.names = COMMON  # as if its scale were not known
    assert "layer-causal descent is not supported for CohereForCausalLM" in no_layer_causal(subject)
    subject.layout.blocks[0].mlp.act_fn.register_forward_hook(refuses_float64)
    assert noise_floor(subject) == ("cohere cannot be computed in float64 on cpu: no such kernel.", ())


def refuses_float64(_module, _args, output):
    if output.dtype == torch.float64:
        raise RuntimeError("no such kernel")


def test_label_words_that_are_not_one_token_are_named():
    found = long_labels(tiny_subject("llama"))
    assert "sst2: Negative (2 tokens)" not in found
    assert any(entry.startswith("kinds: ") for entry in long_labels_of_a_speller())


def long_labels_of_a_speller() -> list[str]:
    """The same model with a tokenizer of single characters."""
    from tokenizers import Regex, pre_tokenizers

    subject = tiny_subject("llama")
    subject.tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    return long_labels(subject)


def test_captured_attention_is_the_embedded_models_own(smollm2):
    found = parity(smollm2)
    assert found.difference == 0
    assert found.behind <= 1e-5 * found.scale
    assert long_labels(smollm2) == []


@pytest.mark.slow
def test_captured_attention_is_gemmas_own_beyond_its_window(gemma3):
    length, prefix, kept = 700, 600, 8  # windows of 512
    ids = torch.randint(1000, 200_000, (1, length), generator=torch.Generator().manual_seed(0))
    gemma3.model.set_attn_implementation("eager")
    with torch.no_grad():
        own = gemma3.model(ids, logits_to_keep=kept).logits
    gemma3.model.set_attn_implementation(NAME)
    rows = torch.arange(length - kept, length)[None]
    whole = gemma3.run(ids, rows, None).vocabulary
    behind = gemma3.run(ids[:, prefix:], rows - prefix, gemma3.encode(ids[0, :prefix].tolist())).vocabulary
    scale = float(own.abs().max())
    assert float((whole - own).abs().max()) <= 1e-6 * scale
    assert float((behind - own).abs().max()) <= 1e-5 * scale


@pytest.mark.slow
def test_gemmas_tokenizer_is_sentencepieces_and_label_words_are_one_token(gemma3):
    """Against transformers' own reading of the same file, which is right from 5.22 on."""
    from packaging.version import Version
    from transformers import AutoTokenizer, __version__

    from iclgd.models.embedded import EMBEDDED, gguf_path
    from iclgd.prompts import tokenize, tokenize_after
    from iclgd.spec import EpisodeSpec
    from iclgd.tasks.episodes import load_episode

    assert gemma3.tokenizer.bos_token == "<bos>"
    assert long_labels(gemma3) == []
    for text in (" Negative", " Positive", "\n\n", "good", ")"):  # it puts nothing before a text
        assert tokenize_after(gemma3.tokenizer, text) == tokenize(gemma3.tokenizer, text)
    if Version(__version__) < Version("5.22"):
        pytest.skip("this version of transformers reads the tokenizer wrongly")
    path = gguf_path(EMBEDDED["gemma3-270m"])
    other = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    episode = load_episode("sentiment", EpisodeSpec(k=100))
    for text in [*(e.fields["text"] for e in episode.demos), "\n\n", "Label: 12 345\tñ 中文 😀"]:
        assert tokenize(gemma3.tokenizer, text) == tokenize(other, text), text


@pytest.mark.slow
def test_gemma_learns_in_context(gemma3):
    """Base model, labels that mean nothing by themselves: chance without demonstrations, far above with them."""
    from iclgd.learners.prompted import InContext, ZeroShot
    from iclgd.prompts import build_prompts
    from iclgd.spec import EpisodeSpec, PromptSpec
    from iclgd.tasks.episodes import load_episode

    episode = load_episode("kinds", EpisodeSpec(k=48, queries=60, balanced=True))
    prompts = build_prompts(gemma3.tokenizer, episode, PromptSpec(), gemma3.room)
    with ZeroShot().learn(gemma3, prompts) as predictor:
        zero = predictor.trace(prompts).accuracy
    with InContext().learn(gemma3, prompts) as predictor:
        icl = predictor.trace(prompts).accuracy
    assert zero < 0.5
    assert icl > zero + 0.2


@pytest.fixture(scope="module")
def gemma3():
    from iclgd.errors import Refusal
    from iclgd.models.embedded import EMBEDDED, terms_accepted

    if not terms_accepted(EMBEDDED["gemma3-270m"]):
        pytest.skip("Gemma's terms have not been accepted: iclgd models fetch gemma3-270m")
    try:
        return load_subject(ModelSpec(name="gemma3-270m", device="cpu"))
    except Refusal as refusal:
        if "could not download" not in str(refusal):
            raise
        pytest.skip(str(refusal))
