"""The embedded model's real file: its weights, its tokenizer, and what a part of it is worth."""

import numpy as np
import pytest
import torch

from iclgd.errors import Refusal
from iclgd.models.embedded import EMBEDDED, gguf_path
from iclgd.models.gguf import conversion_folder, converted
from iclgd.prompts import label_ids, tokenize, tokenize_after
from iclgd.spec import EpisodeSpec
from iclgd.tasks.episodes import load_episode
from iclgd.tasks.text import all_tasks

SENTENCES = [e.fields["text"] for e in load_episode("sentiment", EpisodeSpec(k=20)).demos]


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


@pytest.mark.parametrize("sentence", SENTENCES)
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
