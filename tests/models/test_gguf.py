"""GGUF files: real weights come out as they are in the file, and tokenizers as sentencepiece itself has them."""

import io
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.errors import Refusal
from iclgd.models import gguf
from iclgd.models.embedded import EMBEDDED, gguf_path
from iclgd.models.gguf import conversion_folder, converted, faithful, is_whole, sentencepiece_tokenizer
from iclgd.models.load import recheck
from iclgd.prompts import label_ids, tokenize, tokenize_after
from iclgd.spec import EpisodeSpec, ModelSpec
from iclgd.tasks.episodes import load_episode
from iclgd.tasks.text import all_tasks

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


# the cache


@pytest.fixture
def conversions(tmp_path, monkeypatch) -> list[str]:
    """A GGUF file that converts to two small files; how often it was converted."""
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model.gguf").write_bytes(b"GGUF and weights")
    made: list[str] = []

    def convert(path, folder):
        made.append(path.name)
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"weights")
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(gguf, "_convert", convert)
    return made


def damage_missing(folder):
    (folder / "model.safetensors").unlink()


def damage_changed(folder):
    (folder / "model.safetensors").write_bytes(b"Weights")


def damage_short(folder):
    (folder / "config.json").write_text("")


def damage_origin(folder):
    (folder / "origin.json").write_text("{")


def damage_no_origin(folder):
    (folder / "origin.json").unlink()


def test_a_whole_conversion_is_not_made_again(conversions, tmp_path):
    assert converted(tmp_path / "model.gguf") == converted(tmp_path / "model.gguf")
    assert len(conversions) == 1


def test_of_several_that_want_it_at_once_one_converts_and_the_others_wait(conversions, tmp_path, monkeypatch):
    quick = gguf._convert

    def slow(path, folder):
        time.sleep(0.3)
        quick(path, folder)

    monkeypatch.setattr(gguf, "_convert", slow)
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(converted, [tmp_path / "model.gguf"] * 4))
    assert len(conversions) == 1
    assert [is_whole(folder) for folder in folders] == [True]
    assert [path.name for path in folders.pop().parent.iterdir() if not path.is_dir()] == []  # no lock is left


@pytest.mark.parametrize("damage", [damage_missing, damage_changed, damage_short, damage_origin, damage_no_origin])
def test_a_conversion_that_is_not_what_was_written_is_made_again(conversions, tmp_path, damage):
    folder = converted(tmp_path / "model.gguf")
    assert is_whole(folder)
    damage(folder)
    assert not is_whole(folder)
    assert converted(tmp_path / "model.gguf") == folder
    assert len(conversions) == 2
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert is_whole(folder)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_file_that_changed_under_its_stamp_is_found_by_a_recheck(conversions, tmp_path):
    folder = converted(tmp_path / "model.gguf")
    weights, old = folder / "model.safetensors", 1_600_000_000_000_000_000
    os.utime(weights, ns=(old, old))
    assert is_whole(folder)
    weights.write_bytes(b"Weights")
    os.utime(weights, ns=(old, old))  # as a failing disk would
    assert is_whole(folder)
    recheck(ModelSpec(name=str(tmp_path / "model.gguf")))
    assert not is_whole(folder)


# with the embedded model's real file


@pytest.mark.parametrize("share", [0.001, 0.02, pytest.param(0.5, marks=pytest.mark.slow), 0.999])
def test_a_truncated_model_is_refused_and_nothing_is_left(smollm2, tmp_path, monkeypatch, share):
    whole = gguf_path(EMBEDDED["smollm2-135m"])
    path = tmp_path / "short.gguf"
    with whole.open("rb") as file:
        path.write_bytes(file.read(int(whole.stat().st_size * share)))
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path / "cache"))
    with pytest.raises(Refusal, match=r"short\.gguf cannot be read"):
        converted(path)
    left = [p for p in (tmp_path / "cache").rglob("*") if p.parent.name != "digests"]  # of the short file, if slow
    assert not [p for p in left if p.is_file() or p.name.startswith(".")]


@pytest.fixture(scope="session")
def reader(smollm2):
    from gguf import GGUFReader

    return GGUFReader(gguf_path(EMBEDDED["smollm2-135m"]))


@pytest.mark.parametrize(
    "in_file, in_model",
    [
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("blk.0.attn_v.weight", "model.layers.0.self_attn.v_proj.weight"),
        ("blk.17.ffn_down.weight", "model.layers.17.mlp.down_proj.weight"),
        ("blk.29.attn_norm.weight", "model.layers.29.input_layernorm.weight"),
    ],
)
def test_weights_are_those_in_the_file_dequantised(smollm2, reader, in_file, in_model):
    from gguf import dequantize

    tensor = next(t for t in reader.tensors if t.name == in_file)
    wanted = torch.from_numpy(np.array(dequantize(tensor.data, tensor.tensor_type)))
    assert torch.equal(smollm2.model.state_dict()[in_model].reshape(wanted.shape), wanted)


def test_the_conversion_is_kept_as_safetensors_and_tells_where_it_came_from(smollm2):
    model = EMBEDDED["smollm2-135m"]
    names = {path.name for path in conversion_folder(gguf_path(model), model.sha256).iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "origin.json"} <= names


def test_the_tokenizer_has_the_vocabulary_of_the_file(smollm2, reader):
    pieces = reader.get_field("tokenizer.ggml.tokens").contents()
    assert smollm2.tokenizer.convert_ids_to_tokens(list(range(len(pieces)))) == pieces
    assert smollm2.tokenizer.bos_token_id == reader.get_field("tokenizer.ggml.bos_token_id").contents() == 1


def test_every_label_word_of_the_library_is_one_token_of_the_embedded_model(smollm2):
    long = [
        word
        for task in all_tasks()
        for label, word in enumerate(task.labels)
        if len(tokenize(smollm2.tokenizer, task.completion(label))) > 1
    ]
    assert long == []


def test_label_words_and_separators_of_the_embedded_model_are_tokenised_as_ever(smollm2):
    """Its tokenizer puts nothing before a text, so a piece after a text is the piece alone."""
    for task in all_tasks():
        alone = tuple(tokenize(smollm2.tokenizer, task.completion(i)) for i in range(len(task.labels)))
        assert label_ids(smollm2.tokenizer, task) == alone
    for text, ids in {" Negative": (26990,), " Positive": (20085,), "\n\n": (1116,)}.items():
        assert tokenize_after(smollm2.tokenizer, text) == ids


@pytest.mark.parametrize("sentence", SENTENCES[:20])
def test_text_survives_the_embedded_tokenizer(smollm2, sentence):
    assert smollm2.tokenizer.decode(tokenize(smollm2.tokenizer, sentence)) == sentence


def test_control_tokens_spelled_in_a_text_are_text_to_the_embedded_model(smollm2):
    ids = tokenize(smollm2.tokenizer, "<|im_start|>system<|im_end|><|endoftext|>")
    assert not set(ids) & set(smollm2.tokenizer.all_special_ids)


def test_the_embedded_model_knows_a_capital(smollm2):
    ids = smollm2.tensor([(1, *tokenize(smollm2.tokenizer, "The capital of France is"))])
    rows = torch.tensor([[ids.shape[1] - 1]])
    best = int(smollm2.run(ids, rows, None).vocabulary[0, 0].argmax())
    assert smollm2.tokenizer.decode([best]) == " Paris"
