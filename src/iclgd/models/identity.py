"""What names the weights of a model, without loading them (stands in until the models branch is merged)."""

import hashlib
from pathlib import Path

from iclgd.errors import Refusal
from iclgd.files import file_sha256
from iclgd.models.embedded import EMBEDDED
from iclgd.registry import suggest
from iclgd.spec import ModelSpec


def weights_identity(spec: ModelSpec) -> str:
    if spec.name in EMBEDDED:
        return EMBEDDED[spec.name].sha256
    from iclgd.models.load import resolve

    digest = hashlib.sha256()
    for path in sorted(Path(resolve(spec)).iterdir()):
        if path.is_file():
            digest.update(file_sha256(path).encode())
    return digest.hexdigest()


def check_model_name(name: str) -> None:
    path = Path(name)
    if name in EMBEDDED or name.startswith("memory:") or path.is_dir() or path.suffix == ".gguf":
        return
    if "/" not in name or path.is_absolute() or name.startswith("."):
        raise Refusal(
            f'no model "{name}". {suggest(name, EMBEDDED)}`iclgd models` lists the embedded ones; a folder, '
            "a .gguf file or a hub name (owner/name) can be given too."
        )
