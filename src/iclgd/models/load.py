"""From a name to a subject: embedded models, folders, GGUF files and the Hugging Face hub."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from iclgd.errors import Refusal
from iclgd.models.budget import keep_to_share
from iclgd.models.cache import digest
from iclgd.models.embedded import EMBEDDED, fetch, gguf_path, is_cached
from iclgd.models.gguf import conversion_folder, converted, is_whole
from iclgd.models.hub import ask_hub
from iclgd.models.identity import cached_commit, check_model
from iclgd.models.places import devices, not_here, places
from iclgd.models.subject import Subject
from iclgd.models.untrained import reinitialise
from iclgd.spec import ModelSpec

COARSER = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")  # read by oneDNN, whatever torch was told
WORDS = "It was a good film and not a bad one"
Note = Callable[[str], None]  # told what is being done, for a person who waits


def load_subject(spec: ModelSpec, note: Note = lambda _: None) -> Subject:
    """The model a spec names, in its dtype and on its device, ready to be traced."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    torch.set_float32_matmul_precision("highest")  # whether a model can be captured is asked in its full precision
    device = _device(spec.device)
    if spec.dtype == "tf32" and device.type != "cuda":
        raise Refusal("tf32 is the arithmetic of a GPU: set `dtype` to float32 or bfloat16.")
    for place in devices(places(spec)):  # refused before anything is fetched
        _device(place, "device_map")
    source = resolve(spec, note)
    keep_to_share(device)
    note(f"loading {spec.name}")
    model = _model(source, spec, device)
    if spec.init != "trained":
        reinitialise(model, spec.init, spec.init_seed)
    _refuse_bad_weights(model, spec.name)
    subject = Subject(model, load_tokenizer(source, spec), spec.name)
    set_products(spec)
    return subject


def set_products(spec: ModelSpec) -> None:
    """Products of float32 matrices in float32, but for tf32: what the key of a cell says, whatever was set before."""
    for name in COARSER:
        if os.environ.get(name, "STRICT").upper() not in ("", "STRICT"):
            raise Refusal(f"{name} lets products of float32 be rounded further than `dtype` says: unset it.")
    torch.set_float32_matmul_precision("high" if spec.dtype == "tf32" else "highest")


def resolve(spec: ModelSpec, note: Note = lambda _: None) -> str:
    """The folder or hub name to load from; embedded models and GGUF files become folders of safetensors."""
    check_model(spec)
    if spec.name in EMBEDDED:
        return str(embedded_folder(spec.name, note))
    if Path(spec.name).suffix == ".gguf":
        note(f"unpacking {spec.name}, once")
        return str(converted(Path(spec.name)))
    ask_hub(spec)
    return spec.name


def embedded_folder(name: str, note: Note = lambda _: None) -> Path:
    """The folder of an embedded model, fetched and unpacked if the cache has none or a broken one."""
    model = EMBEDDED[name]
    if not is_cached(model):
        note(f"fetching {name} ({model.size / 1e6:.0f} MB), once")
    path = fetch(model)
    if not is_whole(conversion_folder(path, model.sha256)):
        note(f"unpacking {name}, once")
    return converted(path)


def recheck(spec: ModelSpec) -> None:
    """Read every cached file of a model again, so that one that changed under its stamp is found when it is loaded."""
    if spec.name in EMBEDDED:
        model = EMBEDDED[spec.name]
        path = gguf_path(model)
        if path.is_file():
            digest(path, fresh=True)
        is_whole(conversion_folder(path, model.sha256), fresh=True)
    elif Path(spec.name).suffix == ".gguf" and Path(spec.name).is_file():
        is_whole(conversion_folder(Path(spec.name), digest(Path(spec.name), fresh=True)), fresh=True)


def _model(source: str, spec: ModelSpec, device: torch.device) -> Any:
    options, spread = _hub_options(spec), places(spec)
    try:
        config = AutoConfig.from_pretrained(source, **options)
        if type(config) not in AutoModelForCausalLM._model_mapping and not spec.trust_remote_code:
            raise Refusal(f"{spec.name} is a {config.model_type} model, not a causal language model.")
        dtype = torch.float32 if spec.dtype == "tf32" else getattr(torch, spec.dtype)
        options |= {"dtype": dtype, "use_safetensors": None if spec.allow_pickle else True}
        model, info = _spread(source, spread, options) if spread else _pretrained(source, None, options)
    except (Refusal, KeyboardInterrupt):
        raise
    except Exception as error:  # the loader raises many kinds for one thing: these weights cannot be had
        raise Refusal(f"cannot load {spec.name}: {_first_sentence(error)}") from None
    if info["missing_keys"]:  # transformers would go on with random numbers in their place
        raise Refusal(f"the weights of {spec.name} are not complete: {min(info['missing_keys'])} is missing.")
    if spec.dtype == "float64" and getattr(config, "num_local_experts", None):
        model.set_experts_implementation("eager")  # the fast kernels of mixtures of experts do not know float64
    return model if spread else model.to(device)


def _pretrained(source: str, places: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    loader: Any = AutoModelForCausalLM
    return loader.from_pretrained(
        source, device_map=places, attn_implementation="eager", output_loading_info=True, **options
    )


def _spread(source: str, places: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A model over several devices. What is in main memory is computed there.

    The loader would leave such parts without weights and lend them to a GPU layer by layer, which reads but cannot
    train; so they are loaded into main memory, and only the others go to their devices.
    """
    from accelerate import dispatch_model

    if not isinstance(places, dict) or not _rests(places):
        model, info = _pretrained(source, places, options)
        places = getattr(model, "hf_device_map", None) or {}
        if not _rests(places):
            return model, info
        del model
    places = {part: "cpu" if place == "disk" else place for part, place in places.items()}
    model, info = _pretrained(source, None, options)
    skipped = getattr(model, "_skip_keys_device_placement", None)
    return dispatch_model(model, places, main_device="cpu", skip_keys=skipped, force_hooks=True), info


def _rests(places: dict[str, Any]) -> bool:
    """Whether a part is not on a GPU."""
    return any(place in ("cpu", "disk") for place in places.values())


def _hub_options(spec: ModelSpec) -> dict[str, Any]:
    """The snapshot in the cache, where there is one: a newer one would not be the one that keys name."""
    return {"revision": cached_commit(spec) or spec.revision, "trust_remote_code": spec.trust_remote_code}


def load_tokenizer(source: str, spec: ModelSpec) -> Any:
    """The tokenizer beside the weights; where there is none, transformers may make one that knows no words."""
    try:
        found = AutoTokenizer.from_pretrained(source, **_hub_options(spec))
        pieces = set(found(WORDS, add_special_tokens=False)["input_ids"]) - {found.unk_token_id}
    except Exception as error:
        raise Refusal(f"cannot load the tokenizer of {spec.name}: {_first_sentence(error)}") from None
    if len(pieces) < 2:
        raise Refusal(f"the tokenizer of {spec.name} knows no words: put its tokenizer.json beside the weights.")
    return found


def _first_sentence(error: Exception) -> str:
    words = " ".join(str(error).split())
    line = re.split(r"(?<!e\.g)(?<!i\.e)\. ", words)[0][:300].rstrip(".")
    return f"{line or type(error).__name__}."


def _device(name: str, field: str = "device") -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise not_here(name, field) from None
    return device


def _refuse_bad_weights(model: Any, name: str) -> None:
    for parameter_name, parameter in model.named_parameters():
        if parameter.is_meta or not bool(torch.isfinite(parameter).all()):
            what = "was not loaded" if parameter.is_meta else "holds NaN or infinite numbers"
            raise Refusal(f"the weights of {name} cannot be used: {parameter_name} {what}.")
