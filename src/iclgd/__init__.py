"""Is in-context learning gradient descent? A laboratory where every answer can be run.

The public names below are imported when they are first used: `import iclgd` itself loads neither torch nor
transformers.
"""

from importlib import import_module
from typing import Any

_PUBLIC = {
    "Refusal": "iclgd.errors",
    "ModelSpec": "iclgd.spec",
    "EpisodeSpec": "iclgd.spec",
    "PromptSpec": "iclgd.spec",
    "load_subject": "iclgd.models.load",
    "load_episode": "iclgd.tasks.episodes",
    "build_prompts": "iclgd.prompts",
    "ZeroShot": "iclgd.learners.prompted",
    "InContext": "iclgd.learners.prompted",
    "GradientDescent": "iclgd.learners.descent",
    "LayerCausal": "iclgd.learners.layercausal",
    "LayerCausalPaper": "iclgd.learners.layercausal",
    "sim_am": "iclgd.metrics.likeness",
    "sim_am_delta": "iclgd.metrics.likeness",
    "sim_aou": "iclgd.metrics.likeness",
    "sim_aou_norm": "iclgd.metrics.likeness",
    "update_size": "iclgd.metrics.updates",
}

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'iclgd' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
