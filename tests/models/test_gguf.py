"""GGUF files: real weights come out as they are in the file, and tokenizers as sentencepiece itself has them."""

import io
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.errors import Refusal
from iclgd.models.gguf import converted, faithful, sentencepiece_tokenizer
from iclgd.prompts import tokenize, tokenize_after
from iclgd.spec import EpisodeSpec
from iclgd.tasks.episodes import load_episode

SENTENCES = [e.fields["text"] for e in load_episode("sentiment", EpisodeSpec(k=90)).demos]


@dataclass
class Fields:
    """The part of a GGUF reader that tells of a tokenizer."""

    fields: dict[str, Any]

    def get_field(self, name: str) -> Any:
        value = self.fields.get(name.removeprefix("tokenizer.ggml."))
        return None if value is None else SimpleNamespace(contents=lambda: value)


def train_sentencepiece(prefix: bool) -> tuple[Any, Fields]:
    """A small sentencepiece BPE model, and what a GGUF file would say of it."""
    import sentencepiece

    buffer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=buffer,
        vocab_size=600,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=prefix,
        minloglevel=2,
    )
    made = sentencepiece.SentencePieceProcessor(model_proto=buffer.getvalue())
    every = range(made.vocab_size())
    kinds = [2 if made.is_unknown(i) else 3 if made.is_control(i) else 6 if made.is_byte(i) else 1 for i in every]
    pieces, scores = [made.id_to_piece(i) for i in every], [made.get_score(i) for i in every]
    roles = {"bos_token_id": made.bos_id(), "eos_token_id": made.eos_id(), "unknown_token_id": made.unk_id()}
    fields = {"tokens": pieces, "scores": scores, "token_type": kinds, "add_space_prefix": prefix, **roles}
    return made, Fields(fields)


TRAINED = {prefix: train_sentencepiece(prefix) for prefix in (False, True)}


BUILT = {prefix: sentencepiece_tokenizer(fields) for prefix, (_, fields) in TRAINED.items()}


@pytest.mark.parametrize("prefix", [False, True])
@given(text=st.one_of(st.sampled_from(SENTENCES), st.text(alphabet="the andgo.,'é中😀\n  ", min_size=1, max_size=40)))
@settings(max_examples=150, deadline=None)
def test_a_sentencepiece_tokenizer_is_rebuilt_exactly(prefix, text):
    assert list(tokenize(BUILT[prefix], text)) == TRAINED[prefix][0].encode(text)


def test_a_rebuilt_tokenizer_knows_its_control_tokens_and_finds_none_in_a_text():
    tokenizer = BUILT[False]
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<s>", "</s>")
    assert tokenizer.bos_token_id == TRAINED[False][0].bos_id()
    assert tokenizer.bos_token_id not in tokenize(tokenizer, "a <s> b")


LIKE_TEXT = [(join, word) for join in (" ", "") for word in ("good", "bad", "the", "Positive", "1", "中")]


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("join, word", LIKE_TEXT)
def test_a_label_word_is_tokenised_as_it_is_in_running_text(prefix, join, word):
    """Against sentencepiece itself, whatever it puts before a text."""
    whole, head = (TRAINED[prefix][0].encode(text) for text in (f"Label:{join}{word}", "Label:"))
    assert whole[: len(head)] == head
    found = tokenize_after(BUILT[prefix], join + word)
    assert list(found) == whole[len(head) :]
    if not prefix:
        assert found == tokenize(BUILT[prefix], join + word)


def test_without_care_a_space_before_every_text_would_come_before_the_label():
    assert tokenize(BUILT[True], " the") != tokenize_after(BUILT[True], " the")
    first = BUILT[True].convert_ids_to_tokens(list(tokenize_after(BUILT[True], " the")))[0]
    assert first.startswith("▁t")


def test_a_separator_after_a_text_has_no_space_of_its_own():
    assert "".join(BUILT[True].convert_ids_to_tokens(list(tokenize_after(BUILT[True], "\n\n")))) == "<0x0A><0x0A>"


def test_a_word_that_melts_into_whatever_stands_before_it_is_refused():
    class Melting:
        """Every text is one piece."""

        def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
            return {"input_ids": [sum(map(ord, text))]}

        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return ["▁" for _ in ids]

    with pytest.raises(Refusal, match="joins ' good' to whatever stands before it"):
        tokenize_after(Melting(), " good")


def test_a_tokenizer_that_splits_common_words_is_not_trusted():
    from tiny import tiny_tokenizer

    tokenizer = BUILT[False]
    pieces = set(TRAINED[False][1].fields["tokens"])
    assert faithful(tokenizer, pieces)
    assert not faithful(tokenizer, pieces | {"▁Positive"})
    assert not faithful(tiny_tokenizer(), {"Ġgood"})  # it does not give the text back


@pytest.mark.parametrize("content", [b"", b"GGU", b"not a model", b"GGUF", b"GGUF" + b"\x03" * 50])
def test_a_file_that_is_no_gguf_file_is_refused_and_nothing_is_left(tmp_path, monkeypatch, content):
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(Refusal, match=r"model\.gguf (is not a GGUF file|cannot be read)"):
        converted(path)
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file() or p.name.startswith(".")]
