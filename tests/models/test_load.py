"""Loading: what can be loaded, and one clear sentence for everything else."""

import json
import time
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

from iclgd.errors import Refusal
from iclgd.models.load import load_subject
from iclgd.models.precision import tolerance
from iclgd.spec import ModelSpec
from iclgd.tools import Tools
from tiny import tiny_model, tiny_tokenizer, tokens


@pytest.fixture
def folder(tmp_path):
    """A tiny model saved as anybody would save one."""
    tiny_model("llama").save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def refusal(name, **options) -> str:
    with pytest.raises(Refusal) as refused:
        load_subject(ModelSpec(name=str(name), device="cpu", **options))
    text = str(refused.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def test_a_folder_is_loaded_in_float32_with_its_own_weights_and_tokenizer(folder):
    subject = load_subject(ModelSpec(name=str(folder)))
    ids = tokens(1, 9)
    with torch.no_grad():
        own = tiny_model("llama")(ids).logits
    assert subject.dtype == torch.float32
    assert torch.equal(subject.run(ids, torch.arange(9)[None], None).vocabulary, own)
    assert subject.tokenizer.bos_token_id == 1
    assert not any(p.requires_grad for p in subject.model.parameters())


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_the_dtype_is_the_one_asked_for(folder, dtype):
    assert load_subject(ModelSpec(name=str(folder), dtype=dtype)).dtype == getattr(torch, dtype)


def test_a_setting_of_the_environment_that_rounds_products_is_refused(folder, monkeypatch):
    """It would give other numbers under the same key."""
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "strict")
    load_subject(ModelSpec(name=str(folder)))
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16")
    with pytest.raises(Refusal, match="ONEDNN_DEFAULT_FPMATH_MODE lets products of float32 be rounded"):
        load_subject(ModelSpec(name=str(folder)))


def test_a_device_map_changes_nothing_but_the_place(folder):
    plain, spread = (load_subject(ModelSpec(name=str(folder), device_map=where)) for where in (None, "auto"))
    ids, rows = tokens(1, 4), torch.tensor([[3]])
    places = [
        subject.run(ids.to(subject.device), rows.to(subject.device), None).vocabulary for subject in (plain, spread)
    ]
    torch.testing.assert_close(places[0].cpu(), places[1].cpu())


def test_a_device_map_that_makes_no_sense_is_refused(folder):
    said = refusal(folder, device_map="everywhere")
    assert said == 'the device "everywhere" is not available here: set `device_map` to cpu.'
    assert "`device_map` is not valid JSON" in refusal(folder, device_map="{1")
    assert "where it cannot be trained" in refusal(folder, device_map='{"": "disk"}')


def test_baselines_are_made_from_the_same_folder(folder):
    trained, random, kept = (
        load_subject(ModelSpec(name=str(folder), init=init)).model for init in ("trained", "random", "embeddings")
    )
    embedding = [model.get_input_embeddings().weight for model in (trained, random, kept)]
    assert torch.equal(embedding[0], embedding[2])
    assert not torch.equal(embedding[0], embedding[1])


def test_an_unknown_name_is_answered_with_the_nearest():
    assert 'no model "smolm2-135m". Did you mean smollm2-135m?' in refusal("smolm2-135m")
    assert "Did you mean" not in refusal("zzz")


def test_a_missing_folder_is_refused(tmp_path):
    assert "no model" in refusal(tmp_path / "none")
    assert "no model" in refusal("./none")


def test_a_missing_gguf_file_is_refused(tmp_path):
    assert "No such file or directory; check the name." in refusal(tmp_path / "none.gguf")


def test_an_empty_folder_is_refused(tmp_path):
    assert "holds no safetensors file" in refusal(tmp_path)


def test_a_pickle_is_refused_unless_asked_for(folder):
    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert "pickle, which can run code" in refusal(folder)
    assert load_subject(ModelSpec(name=str(folder), allow_pickle=True)).layout.layers == 3


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused_by_parameter(folder, bad):
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][0, 0] = bad
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert "model.layers.1.mlp.up_proj.weight holds NaN or infinite numbers" in refusal(folder)


@pytest.mark.parametrize("keep", [0, 4, 1000, -100])
def test_truncated_weights_are_refused(folder, keep):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    assert "cannot load" in refusal(folder)


def test_missing_weights_are_refused_rather_than_made_up(folder):
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert "not complete: model.layers.1.mlp.up_proj.weight is missing" in refusal(folder)


def test_weights_of_another_shape_are_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 50}))
    assert "cannot load" in refusal(folder)


@pytest.mark.parametrize("config", ["{", "[]", "{}", '{"model_type": "no-such-thing"}'])
def test_an_unreadable_config_is_refused(folder, config):
    (folder / "config.json").write_text(config)
    assert "cannot load" in refusal(folder)


def test_a_model_that_is_no_causal_language_model_is_refused(folder):
    (folder / "config.json").write_text('{"model_type": "t5"}')
    assert "is a t5 model, not a causal language model" in refusal(folder)


def test_a_model_without_a_tokenizer_is_refused(folder):
    for path in folder.glob("tokenizer*"):
        path.unlink()
    assert "tokenizer" in refusal(folder)


@pytest.mark.parametrize("architecture", ["gpt2", "qwen2", "gemma3", "xglm"])
def test_a_tokenizer_made_up_for_want_of_one_is_refused(tmp_path, architecture):
    """For some architectures transformers makes one that knows no words, and says nothing."""
    tiny_model(architecture).save_pretrained(tmp_path)
    assert "knows no words: put its tokenizer.json beside the weights" in refusal(tmp_path)


def test_a_model_that_also_sees_is_loaded_for_its_text(tmp_path):
    tiny_model("gemma3-sees").save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    subject = load_subject(ModelSpec(name=str(tmp_path), device="cpu"))
    assert type(subject.model).__name__ == "Gemma3ForConditionalGeneration"
    assert (subject.layout.family, subject.layout.layers) == ("gemma3_text", 3)
    assert not any("vision" in slot.name for slot in subject.layout.slots("all"))


def test_code_that_comes_with_a_model_is_not_run(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "evil.py").write_text("import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n")
    changes = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"}}
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    assert "cannot load" in refusal(folder)
    assert not (folder / "ran").exists()


def test_a_device_that_is_not_here_is_refused(folder):
    with pytest.raises(Refusal, match='the device "cuda:77" is not available here'):
        load_subject(ModelSpec(name=str(folder), device="cuda:77"))
    with pytest.raises(Refusal, match='the device "toaster"'):
        load_subject(ModelSpec(name=str(folder), device="toaster"))


def test_a_revision_of_a_folder_is_refused(folder):
    assert "has no revisions" in refusal(folder, revision="main")


def test_a_hub_name_without_a_network_is_answered_at_once_in_one_sentence(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # where nobody listens
    begun = time.monotonic()
    said = refusal("nobody/nothing")
    assert time.monotonic() - begun < 3
    assert "not in the hub's cache, and the hub cannot be reached: check the network" in said
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("code, told", [(404, "the hub shows no such model"), (401, "log in if it is private")])
def test_a_hub_name_that_the_hub_does_not_show_is_refused(tmp_path, monkeypatch, code, told):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("iclgd.models.hub._head", lambda spec: SimpleNamespace(status_code=code))
    assert told in refusal("nobody/nothing")


def test_a_hub_name_is_not_asked_for_where_that_is_forbidden(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE forbids" in refusal("nobody/nothing")


def test_a_study_asks_the_hub_for_the_commit_of_a_model_that_the_cache_lacks(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("iclgd.models.hub._head", lambda spec: SimpleNamespace(status_code=200))
    commit = "0123456789abcdef0123456789abcdef01234567"

    def download(name, file, revision):
        home = tmp_path / "models--nobody--nothing"
        (home / "snapshots" / commit).mkdir(parents=True)
        (home / "snapshots" / commit / file).write_text("{}")
        (home / "refs").mkdir()
        (home / "refs" / "main").write_text(commit)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    assert Tools().weights(ModelSpec(name="nobody/nothing")) == commit


def test_what_is_being_done_is_told(folder):
    told: list[str] = []
    load_subject(ModelSpec(name=str(folder)), told.append)
    assert told == [f"loading {folder}"]


def test_tf32_is_refused_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Refusal, match="tf32 is the arithmetic of a GPU: set `dtype` to float32 or bfloat16"):
        load_subject(ModelSpec(dtype="tf32", device="cpu"))


def test_full_precision_comes_back_with_the_next_model(folder):
    torch.set_float32_matmul_precision("high")  # as a model in tf32 leaves it
    load_subject(ModelSpec(name=str(folder)))
    assert torch.get_float32_matmul_precision() == "highest"


def test_coarser_products_are_allowed_to_be_further_apart():
    torch.set_float32_matmul_precision("high")
    try:
        assert tolerance(torch.float32) == 16 * 2**-10
        assert tolerance(torch.float64) == 1e-5
    finally:
        torch.set_float32_matmul_precision("highest")
    assert tolerance(torch.float32) == 1e-5
