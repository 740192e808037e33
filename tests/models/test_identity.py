"""What names exact weights: quick, without torch, and different whenever a number could be."""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iclgd.errors import Refusal
from iclgd.models import cache
from iclgd.models.embedded import EMBEDDED
from iclgd.models.identity import NotHere, check_model_name, weights_identity
from iclgd.spec import ModelSpec
from tiny import tiny_model, tiny_tokenizer


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path) -> Path:
    tiny_model("llama").save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def age(path: Path, seconds: float = 60) -> None:
    """As if the file had been written a while ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.fixture
def reads(monkeypatch) -> list[str]:
    """Names of the files that are read to be hashed, in order."""
    seen: list[str] = []
    plain = cache.file_sha256

    def counted(path: Path) -> str:
        seen.append(path.name)
        return plain(path)

    monkeypatch.setattr(cache, "file_sha256", counted)
    return seen


def test_neither_torch_nor_transformers_is_imported_for_a_name_or_an_identity(tmp_path):
    code = (
        "import sys; from iclgd.models.identity import *; from iclgd.spec import ModelSpec\n"
        "check_model_name('smollm2-135m'); weights_identity(ModelSpec()); weights_identity(ModelSpec(name=sys.argv[1]))"
        "\nprint({'torch', 'transformers', 'numpy'} & set(sys.modules))"
    )
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.gguf"], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_an_embedded_models_identity_is_known_and_nothing_is_read(reads):
    assert weights_identity(ModelSpec(name="smollm2-135m")) == EMBEDDED["smollm2-135m"].sha256
    assert reads == []


def test_a_gguf_files_identity_is_its_sha256(tmp_path):
    (tmp_path / "a.gguf").write_bytes(b"GGUF and more")
    assert weights_identity(ModelSpec(name=str(tmp_path / "a.gguf"))) == hashlib.sha256(b"GGUF and more").hexdigest()


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_folders_identity_changes_with_any_file_that_changes_a_number(folder, name):
    spec = ModelSpec(name=str(folder))
    for path in folder.iterdir():
        age(path)
    before = weights_identity(spec)
    data = bytearray((folder / name).read_bytes())
    data[-3] ^= 1
    (folder / name).write_bytes(data)
    assert weights_identity(spec) != before


def test_a_folders_identity_changes_with_the_scale_of_an_adapter(folder):
    """transformers adds an adapter that it finds beside a model, as much of it as its configuration says."""
    (folder / "adapter_config.json").write_text('{"lora_alpha": 8}')
    before = weights_identity(ModelSpec(name=str(folder)))
    (folder / "adapter_config.json").write_text('{"lora_alpha": 16}')
    assert weights_identity(ModelSpec(name=str(folder))) != before


def test_the_identity_of_a_pickled_model_changes_with_any_of_its_parts(folder):
    """The index names the parts and says nothing of what is in them."""
    (folder / "pytorch_model.bin.index.json").write_text('{"weight_map": {}}')
    for number in (1, 2):
        (folder / f"pytorch_model-0000{number}-of-00002.bin").write_bytes(b"weights")
    spec = ModelSpec(name=str(folder), allow_pickle=True)
    before = weights_identity(spec)
    (folder / "pytorch_model-00002-of-00002.bin").write_bytes(b"others!")
    assert weights_identity(spec) != before


def test_a_folders_identity_does_not_change_with_its_place_or_its_notes(folder, tmp_path):
    before = weights_identity(ModelSpec(name=str(folder)))
    (folder / "README.md").write_text("about it")
    folder.rename(tmp_path / "moved")
    assert weights_identity(ModelSpec(name=str(tmp_path / "moved"))) == before


def test_code_counts_where_it_would_be_run(folder):
    quiet, trusting = ModelSpec(name=str(folder)), ModelSpec(name=str(folder), trust_remote_code=True)
    before = weights_identity(quiet), weights_identity(trusting)
    (folder / "modeling.py").write_text("x = 1")
    assert weights_identity(quiet) == before[0]
    assert weights_identity(trusting) != before[1]


def test_what_was_read_once_is_not_read_again(folder, reads):
    for path in folder.iterdir():
        age(path)
    first = weights_identity(ModelSpec(name=str(folder)))
    count = len(reads)
    assert count >= 3
    assert weights_identity(ModelSpec(name=str(folder))) == first
    assert len(reads) == count
    assert weights_identity(ModelSpec(name=str(folder)), fresh=True) == first
    assert len(reads) == 2 * count


def test_a_digest_of_a_file_that_was_just_written_is_not_remembered(tmp_path, reads):
    """Two versions of one size within a tick of the clock would have one stamp."""
    path = tmp_path / "a.gguf"
    path.write_bytes(b"one")
    stamp = path.stat().st_mtime_ns
    first = cache.digest(path)
    path.write_bytes(b"two")
    os.utime(path, ns=(stamp, stamp))
    assert cache.digest(path) != first


def test_a_fresh_digest_replaces_a_remembered_one(tmp_path):
    path = tmp_path / "a.gguf"
    path.write_bytes(b"one")
    age(path)
    stamp = path.stat().st_mtime_ns
    first = cache.digest(path)
    path.write_bytes(b"two")
    os.utime(path, ns=(stamp, stamp))  # as a failing disk would
    assert cache.digest(path) == first
    second = cache.digest(path, fresh=True)
    assert second == hashlib.sha256(b"two").hexdigest()
    assert cache.digest(path) == second


def test_an_unwritable_cache_costs_time_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path / "file"))
    path = tmp_path / "a.gguf"
    path.write_bytes(b"one")
    age(path)
    assert cache.digest(path) == cache.digest(path) == hashlib.sha256(b"one").hexdigest()


def test_a_hub_models_identity_is_the_commit_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    spec = ModelSpec(name="nobody/nothing")
    with pytest.raises(NotHere, match="nobody/nothing is not in the hub's cache"):
        weights_identity(spec)
    commit = "0123456789abcdef0123456789abcdef01234567"
    snapshot = tmp_path / "hub" / "models--nobody--nothing" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    refs = tmp_path / "hub" / "models--nobody--nothing" / "refs"
    refs.mkdir()
    (refs / "main").write_text(commit)
    assert weights_identity(spec) == commit
    assert weights_identity(spec.model_copy(update={"trust_remote_code": True})) == f"{commit} with its code"


def test_a_hub_model_is_loaded_from_the_commit_that_names_it(folder, tmp_path, monkeypatch):
    """Asked for by name, the loader would take whatever the hub has now; a key names what is in the cache."""
    from iclgd.models import load

    commit = "0123456789abcdef0123456789abcdef01234567"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    home = tmp_path / "hub" / "models--nobody--llama"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    shutil.copytree(folder, home / "snapshots" / commit)
    asked = []
    for loader in (load.AutoConfig, load.AutoTokenizer, load.AutoModelForCausalLM):
        plain = loader.from_pretrained

        def watched(source, *args, plain=plain, **options):
            if source == "nobody/llama":  # not what a loader asks of the folder by itself
                asked.append(revision := options.pop("revision"))
                source = home / "snapshots" / str(revision)
            return plain(source, *args, **options)

        monkeypatch.setattr(loader, "from_pretrained", watched)
    load.load_subject(ModelSpec(name="nobody/llama"))
    assert asked == [commit] * 3


@pytest.mark.parametrize("name", ["smolm2-135m", "./none", "/none/at/all", "zzz", "a/b/c", "a b/c", "a/", "~/mine"])
def test_a_wrong_name_is_refused_and_its_identity_too(name):
    with pytest.raises(Refusal, match="no model"):
        check_model_name(name)
    with pytest.raises(Refusal, match="no model"):
        weights_identity(ModelSpec(name=name))


def test_names_that_may_be_right_are_let_through(folder):
    for name in ("smollm2-135m", "owner/name", str(folder)):
        check_model_name(name)
