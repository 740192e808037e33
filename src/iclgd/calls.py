"""Labs called from Python: the fields of a spec as arguments, a study as the answer."""

from collections.abc import Callable
from hashlib import sha256
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

from iclgd.errors import Refusal, memory_told
from iclgd.lab import LABS
from iclgd.study import Study

# what every call can be told besides the fields of its spec
FRAME = {"out": None, "store": None, "jobs": None, "engine": None, "address": None, "overwrite": False}


def lab_functions() -> dict[str, str]:
    """Python names of the labs: `dual check` is called as ``iclgd.dual_check``."""
    return {name.replace(" ", "_").replace("-", "_"): name for name in LABS}


def lab_function(name: str) -> "Callable[..., Study] | None":
    """The function of a lab; none where there is no such lab."""
    lab = lab_functions().get(name)
    if lab is None:
        return None

    def call(**given: Any) -> Study:
        return run_lab(lab, **given)

    spec = LABS[lab].spec
    call.__name__, call.__doc__ = name, _documented(spec)
    fields = {**{field: info.default for field, info in spec.model_fields.items()}, **FRAME}
    call.__signature__ = Signature(  # type: ignore[attr-defined]  # what help() shows
        [Parameter(field, Parameter.KEYWORD_ONLY, default=default) for field, default in fields.items()],
        return_annotation=Study,
    )
    return call


def run_lab(
    lab: str,
    *,
    out: str | Path | None = None,
    store: str | Path | None = None,
    jobs: int | None = None,
    engine: str | None = None,
    address: str | None = None,
    overwrite: bool = False,
    **given: Any,
) -> Study:
    """Run a lab. Cells are kept in the store and never run twice; ``out`` is a folder for the page, if one is wanted.

    ``jobs``, ``engine`` and ``address`` say where cells run (see `iclgd.engine.engines.Engine`).
    ``model`` is a name, or a pair of a loaded transformers model and its tokenizer.
    """
    from iclgd.engine.engines import Engine
    from iclgd.report.terminal import cell_progress
    from iclgd.running import Where, run_study
    from iclgd.store.cells import default_store

    subjects = {}
    if "model" in given and not isinstance(given["model"], str):
        name, subject = in_memory(given["model"])
        subjects, given = {name: subject}, {**given, "model": name}
    where = Where(
        Path(store) if store is not None else default_store(), Path(out) if out is not None else None, overwrite
    )
    with memory_told(), cell_progress() as progress:
        spec = LABS[lab].spec.of(given)
        return run_study(lab, spec, where, Engine(engine, jobs, address), progress, subjects)


def in_memory(given: Any) -> tuple[str, Any]:
    """A model that was handed over, under the name that its weights give it."""
    from iclgd.models.subject import Subject
    from iclgd.tools import MEMORY

    if isinstance(given, Subject):
        subject = given
    elif isinstance(given, tuple) and len(given) == 2 and hasattr(given[0], "config"):
        model, tokenizer = given
        subject = Subject(model, tokenizer, type(model).__name__)
    else:
        raise Refusal("`model` is a name, or a pair (model, tokenizer) of transformers objects.")
    told = f"{subject.fingerprint()} {subject.model.config.to_json_string()} {_content(subject.tokenizer)}"
    return f"{MEMORY}{type(subject.model).__name__}-{sha256(told.encode()).hexdigest()[:16]}", subject


def _content(tokenizer: Any) -> str:
    """What decides how a tokenizer splits a text: its special tokens and settings, and its whole vocabulary."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    words = backend.to_str() if backend is not None else sorted(tokenizer.get_vocab().items())
    return f"{tokenizer!r} {words}"


def _documented(spec: Any) -> str:
    lines = [f"    {name}: {info.description}" for name, info in spec.model_fields.items() if info.description]
    return "\n".join([(spec.__doc__ or "").strip(), "", *lines])
