"""From a name to a subject: embedded models, folders, GGUF files and the Hugging Face hub."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from iclgd.errors import Refusal
from iclgd.models.embedded import EMBEDDED, fetch, gguf_path
from iclgd.models.gguf import conversion_folder, converted
from iclgd.models.subject import Subject
from iclgd.models.untrained import reinitialise
from iclgd.registry import suggest
from iclgd.spec import ModelSpec

PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
Note = Callable[[str], None]  # told what is being done, for a person who waits


def load_subject(spec: ModelSpec, note: Note = lambda _: None) -> Subject:
    """The model a spec names, in its dtype and on its device, ready to be traced."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    torch.set_float32_matmul_precision("highest")  # updates are small differences of large numbers: no TF32
    device = _device(spec)
    source = resolve(spec, note)
    note(f"loading {spec.name}")
    model = _model(source, spec, device)
    if spec.init != "trained":
        reinitialise(model, spec.init, spec.init_seed)
    _refuse_bad_weights(model, spec.name)
    return Subject(model, _tokenizer(source, spec), spec.name)


def resolve(spec: ModelSpec, note: Note = lambda _: None) -> str:
    """The folder or hub name to load from; embedded models and GGUF files become folders of safetensors."""
    path = Path(spec.name)
    if spec.revision and (spec.name in EMBEDDED or path.suffix == ".gguf" or path.is_dir()):
        raise Refusal(f"{spec.name} has no revisions: --revision is for hub names (owner/name).")
    if spec.name in EMBEDDED:
        return str(embedded_folder(spec.name, note))
    if path.suffix == ".gguf":
        note(f"unpacking {spec.name}, once")
        return str(converted(path))
    if path.is_dir():
        if not spec.allow_pickle and not any(path.glob("*.safetensors")):
            if any((path / name).exists() for name in PICKLES):
                raise Refusal(
                    f"{path} holds its weights as a pickle, which can run code when it is read: convert them to "
                    "safetensors, or pass --allow-pickle if you trust their author."
                )
            raise Refusal(f"{path} holds no safetensors file.")
        return spec.name
    if "/" not in spec.name or path.is_absolute() or spec.name.startswith("."):
        raise Refusal(
            f'no model "{spec.name}". {suggest(spec.name, EMBEDDED)}`iclgd models` lists the embedded ones; a folder, '
            "a .gguf file or a hub name (owner/name) can be given too."
        )
    return spec.name


def embedded_folder(name: str, note: Note = lambda _: None) -> Path:
    """The folder of an embedded model, fetched and unpacked if the cache has none."""
    model = EMBEDDED[name]
    if not gguf_path(model).is_file():
        note(f"fetching {name} ({model.size / 1e6:.0f} MB), once")
    path = fetch(model)
    if not conversion_folder(path, model.sha256).is_dir():
        note(f"unpacking {name}, once")
    return converted(path, model.sha256)


def _model(source: str, spec: ModelSpec, device: torch.device) -> Any:
    options: dict[str, Any] = {"revision": spec.revision, "trust_remote_code": spec.trust_remote_code}
    try:
        config = AutoConfig.from_pretrained(source, **options)
        if type(config) not in AutoModelForCausalLM._model_mapping and not spec.trust_remote_code:
            raise Refusal(f"{spec.name} is a {config.model_type} model, not a causal language model.")
        loader: Any = AutoModelForCausalLM
        model, info = loader.from_pretrained(
            source,
            dtype=getattr(torch, spec.dtype),
            attn_implementation="eager",
            use_safetensors=None if spec.allow_pickle else True,
            device_map=spec.device_map,
            output_loading_info=True,
            **options,
        )
    except (Refusal, KeyboardInterrupt):
        raise
    except Exception as error:  # the loader raises many kinds for one thing: these weights cannot be had
        raise Refusal(f"cannot load {spec.name}: {_first_sentence(error)}") from None
    if info["missing_keys"]:  # transformers would go on with random numbers in their place
        raise Refusal(f"the weights of {spec.name} are not complete: {min(info['missing_keys'])} is missing.")
    if spec.dtype == "float64" and getattr(config, "num_local_experts", None):
        model.set_experts_implementation("eager")  # the fast kernels of mixtures of experts do not know float64
    return model if spec.device_map else model.to(device)


def _tokenizer(source: str, spec: ModelSpec) -> Any:
    try:
        return AutoTokenizer.from_pretrained(source, revision=spec.revision, trust_remote_code=spec.trust_remote_code)
    except Exception as error:
        raise Refusal(f"cannot load the tokenizer of {spec.name}: {_first_sentence(error)}") from None


def _first_sentence(error: Exception) -> str:
    line = " ".join(str(error).split()).split(". ")[0][:300].rstrip(".")
    return f"{line or type(error).__name__}."


def _device(spec: ModelSpec) -> torch.device:
    if spec.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(spec.device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise Refusal(f'the device "{spec.device}" is not available here: use --device cpu.') from None
    return device


def _refuse_bad_weights(model: Any, name: str) -> None:
    for parameter_name, parameter in model.named_parameters():
        if parameter.is_meta or not bool(torch.isfinite(parameter).all()):
            what = "was not loaded" if parameter.is_meta else "holds NaN or infinite numbers"
            raise Refusal(f"the weights of {name} cannot be used: {parameter_name} {what}.")
