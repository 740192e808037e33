"""Names of models and of their exact weights, without loading either: no torch is imported here."""

import hashlib
import re
from pathlib import Path

from iclgd.errors import Refusal
from iclgd.files import check_file
from iclgd.models.cache import digest
from iclgd.models.embedded import EMBEDDED
from iclgd.registry import suggest
from iclgd.spec import ModelSpec

PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
SHARDS = ("pytorch_model-*.bin",)  # what the index of a large pickled model names: the index itself has no numbers
# what can change a number, in a folder: weights, configuration, tokenizer, and code that comes with a model
PARTS = (
    *("*.safetensors", "*.safetensors.index.json", "config.json", "adapter_config.json"),
    *("*token*.json", "*.model", "vocab*", "merges.txt"),
)
CODE = ("*.py",)
UNTRAINED = 2  # rises when a seed would give other fresh weights
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*", re.ASCII)
CAN_BE_GIVEN = (
    "`iclgd models` lists the embedded ones; a folder, a .gguf file or a hub name (owner/name) can be given too."
)


class NotHere(Refusal):
    """A hub model that has not been downloaded yet: which weights its name stands for is not known here."""


def check_model_name(name: str) -> None:
    """Refuse what is no embedded model, no folder, no .gguf file and cannot be a hub name."""
    path = Path(name)
    if not name.strip():
        raise Refusal(f"no model was named: {CAN_BE_GIVEN}")
    if name in EMBEDDED or path.is_dir():
        return
    if path.suffix == ".gguf":
        check_file(path)
        return
    if not HUB_NAME.fullmatch(name):
        raise Refusal(f'no model "{name}". {suggest(name, EMBEDDED)}{CAN_BE_GIVEN}')


def check_model(spec: ModelSpec) -> None:
    """Refuse a wrong name, a revision of what has none, and a folder without weights that may be read."""
    check_model_name(spec.name)
    path = Path(spec.name)
    if spec.revision and is_local(spec):
        raise Refusal(f"{spec.name} has no revisions: `revision` is for hub names (owner/name).")
    if spec.name in EMBEDDED or not path.is_dir():
        return
    if spec.allow_pickle or any(path.glob("*.safetensors")):
        if not (path / "config.json").is_file():
            raise Refusal(f"{path} has no config.json: name a folder that holds a model as transformers saves it.")
        return
    if any((path / name).exists() for name in PICKLES):
        raise Refusal(
            f"{path} holds its weights as a pickle, which can run code when it is read: convert them to "
            "safetensors, or set `allow_pickle` if you trust their author."
        )
    raise Refusal(f"{path} holds no safetensors file: name the folder that holds a model's weights.")


def weights_identity(spec: ModelSpec, fresh: bool = False) -> str:
    """What names the exact weights of a trained model: a SHA-256 of what is read, or a hub commit.

    An embedded model's is known; a .gguf file's is the file's own; a folder's covers weights, configuration and
    tokenizer; a hub model's is the commit of the snapshot in the cache, which is also the one that is loaded.
    ``fresh`` reads files that were read before.
    """
    check_model(spec)
    path = Path(spec.name)
    if spec.name in EMBEDDED:
        return EMBEDDED[spec.name].sha256
    if path.suffix == ".gguf":
        return digest(path, fresh)
    if path.is_dir():
        patterns = PARTS + (PICKLES + SHARDS if spec.allow_pickle else ()) + (CODE if spec.trust_remote_code else ())
        files = sorted({file for pattern in patterns for file in path.glob(pattern) if file.is_file()})
        lines = "".join(f"{file.name} {digest(file, fresh)}\n" for file in files)
        return hashlib.sha256(lines.encode()).hexdigest()
    commit = cached_commit(spec)
    if commit is None:
        raise NotHere(f"{spec.name} is not in the hub's cache: `iclgd doctor {spec.name}` fetches it.")
    return f"{commit} with its code" if spec.trust_remote_code else commit


def cached_commit(spec: ModelSpec) -> str | None:
    """The commit of a hub model's snapshot in the cache; None for what is not there, or is no hub model."""
    if is_local(spec):
        return None
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(spec.name, "config.json", revision=spec.revision)
    return Path(found).parent.name if isinstance(found, str) else None


def is_local(spec: ModelSpec) -> bool:
    """Whether a model is embedded, a .gguf file or a folder, and so not of the hub."""
    path = Path(spec.name)
    return spec.name in EMBEDDED or path.suffix == ".gguf" or path.is_dir()
