"""GGUF files: dequantised once into safetensors, with a tokenizer that is checked rather than trusted."""

import json
import os
import tempfile
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from typing import Any

from iclgd.errors import Refusal
from iclgd.files import aside, file_sha256, held
from iclgd.models.cache import cache_folder, check_cache, digest

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # token types of the GGUF format
CONVERSION = 2  # rises when the files written here change
ORIGIN = "origin.json"  # where a conversion came from, and the digests of its files


def refuse_other_files(path: Path) -> None:
    """A GGUF file begins with its name."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise Refusal(f"cannot read {path}: {error.strerror}; name a file that can be read.") from None
    if magic != b"GGUF":
        raise Refusal(f"{path} is not a GGUF file: download it again.")


def converted(path: Path) -> Path:
    """The folder of float32 safetensors made from a GGUF file, made now if the cache has none or a broken one."""
    refuse_other_files(path)
    target = conversion_folder(path, digest(path))
    if not is_whole(target):
        check_cache()
        with held(target, wait=True):  # of several workers one converts
            if not is_whole(target):
                _write(path, target)
    return target


def _write(path: Path, target: Path) -> None:
    if target.exists():
        _discard(target)
    with aside(target) as folder:
        _convert(path, folder)
        files = {file.name: file_sha256(file) for file in folder.iterdir()}
        origin = {"gguf": path.name, "sha256": digest(path), "files": files}
        (folder / ORIGIN).write_text(json.dumps(origin) + "\n")


def is_whole(folder: Path, fresh: bool = False) -> bool:
    """Whether a conversion is there with all its files, each as it was written."""
    try:
        files = json.loads((folder / ORIGIN).read_text())["files"]
        return all(digest(folder / name, fresh) == wanted for name, wanted in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _discard(folder: Path) -> None:
    """Remove a folder at once, as others see it."""
    with tempfile.TemporaryDirectory(prefix=".broken-", dir=folder.parent) as away, suppress(FileNotFoundError):
        os.replace(folder, Path(away) / folder.name)  # not found: another process was faster


def conversion_folder(path: Path, sha256: str) -> Path:
    return cache_folder() / "models" / f"{path.stem}-{sha256[:12]}-v{CONVERSION}"


def _convert(path: Path, folder: Path) -> None:
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    tokenizer = _tokenizer(path)
    try:
        with redirect_stderr(StringIO()):  # its progress bar does not ask whether there is a terminal
            loader: Any = AutoModelForCausalLM
            model, info = loader.from_pretrained(
                path.parent, gguf_file=path.name, dtype=torch.float32, output_loading_info=True
            )
    except Exception as error:  # a truncated file fails wherever its tensors happen to end
        raise Refusal(
            f"{path} cannot be read as weights; the file may be truncated ({type(error).__name__})."
        ) from None
    if info["missing_keys"]:
        raise Refusal(f"{path} lacks weights of its architecture, for instance {min(info['missing_keys'])}.")
    folder.mkdir()
    config = model.config.to_dict()
    for unwanted in ("quantization_config", "_name_or_path"):
        config.pop(unwanted, None)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    tensors, seen = {}, set()
    for name, tensor in model.state_dict().items():
        if tensor.data_ptr() not in seen:  # tied weights once
            seen.add(tensor.data_ptr())
            tensors[name] = tensor.contiguous()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save_pretrained(folder)


def _tokenizer(path: Path) -> Any:
    """The tokenizer in the file, refused where it does not give back what goes in.

    Sentencepiece ones ("llama") are built here: transformers 5.17 reads them as unigram models with merge ranks for
    scores, which splits common words into pieces; later versions do not.
    """
    from gguf import GGUFReader
    from transformers import AutoTokenizer

    try:
        reader = GGUFReader(path)
        kind, pieces = (reader.get_field(f"tokenizer.ggml.{name}") for name in ("model", "tokens"))
    except (ValueError, IndexError, OSError) as error:
        raise Refusal(f"{path} cannot be read; the file may be truncated ({error}).") from None
    if kind is None or pieces is None:
        raise Refusal(f"{path} holds no tokenizer.")
    try:
        if kind.contents() == "llama":
            tokenizer = sentencepiece_tokenizer(reader)
        else:
            tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    except Exception as error:  # transformers raises many kinds for a tokenizer it does not know
        raise Refusal(f"the tokenizer in {path} cannot be read ({type(error).__name__}: {error}).") from None
    if not faithful(tokenizer, set(pieces.contents())):
        raise Refusal(f"the tokenizer in {path} is not read correctly by this version of transformers.")
    return tokenizer


def faithful(tokenizer: Any, pieces: set[str]) -> bool:
    """Whether text survives encoding, and common words that have a piece of their own are that piece."""
    text = "Sentence: It's a fine day, isn't it?\n\nLabel: Positive"
    words = [word for word in ("the", "and", "Positive", "good") if {f"Ġ{word}", f"▁{word}"} & pieces]
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return tokenizer.decode(ids, clean_up_tokenization_spaces=False).strip() == text and all(
        len(tokenizer(f"a {word}", add_special_tokens=False)["input_ids"]) == 2 for word in words
    )


def sentencepiece_tokenizer(reader: Any) -> Any:
    """A sentencepiece BPE tokenizer from the pieces, scores and types in a GGUF file.

    Sentencepiece joins the adjacent pair whose joint piece has the best score. As a list of merges: every way to
    split a piece into two known ones, best joint score first. Control pieces and pieces defined by the user are never
    put together from parts: they are found in the text first.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    def field(name: str, default: Any = None) -> Any:
        found = reader.get_field(f"tokenizer.ggml.{name}")
        return default if found is None else found.contents()

    pieces, scores, kinds = field("tokens"), field("scores"), field("token_type")
    ids = {piece: index for index, piece in enumerate(pieces)}
    model = models.BPE(ids, _merges(pieces, ids, scores, kinds), byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    tokenizer, added = Tokenizer(model), []
    steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", "▁")]
    if field("add_space_prefix", True):
        steps.insert(0, normalizers.Prepend(" "))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    for piece, kind in zip(pieces, kinds, strict=True):
        if kind in (CONTROL, USER_DEFINED):
            added.append(AddedToken(piece, special=kind == CONTROL, normalized=False))
    tokenizer.add_tokens(added)
    named = {role: field(f"{key}_token_id") for role, key in _ROLES.items()}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{role: pieces[index] for role, index in named.items() if index is not None}
    )


_ROLES = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}


def _merges(pieces: list[str], ids: dict[str, int], scores: list[float], kinds: list[int]) -> list[tuple[str, str]]:
    ranked = []
    for index, piece in enumerate(pieces):
        if kinds[index] != NORMAL:
            continue
        for cut in range(1, len(piece)):
            left, right = ids.get(piece[:cut]), ids.get(piece[cut:])
            if left is not None and right is not None:
                ranked.append((-scores[index], index, left, right))
    return [(pieces[left], pieces[right]) for *_, left, right in sorted(ranked)]
