"""What was asked for, as frozen data: canonical JSON and the key that names it."""

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Init = Literal["trained", "random", "embeddings"]


class Spec(BaseModel):
    """A frozen description. Unknown fields are refused, so a typing error never passes for a default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def canonical(self) -> str:
        return canonical(self.model_dump(mode="json"))

    def key(self) -> str:
        return key(self.model_dump(mode="json"))


def canonical(data: Any) -> str:
    """JSON with sorted keys and no spaces: the same text for the same content."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def key(data: Any) -> str:
    """SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


class ModelSpec(Spec):
    """Which weights, in which arithmetic."""

    name: str = "smollm2-135m"
    revision: str | None = None
    dtype: Literal["float32", "float64", "bfloat16", "float16"] = "float32"
    device: str = "auto"  # a GPU where there is one
    device_map: str | None = None
    init: Init = "trained"
    init_seed: int = Field(0, ge=0, lt=2**32)
    allow_pickle: bool = False
    trust_remote_code: bool = False


class EpisodeSpec(Spec):
    """Which demonstrations and which queries."""

    k: int = Field(32, ge=0)
    seed: int = Field(0, ge=0, lt=2**32)
    queries: int = Field(100, ge=1)  # at most: a task may have fewer
    query_seed: int = Field(1, ge=0, lt=2**32)
    balanced: bool = False


class PromptSpec(Spec):
    """How an episode becomes tokens."""

    separator: str = "\n\n"  # "eos": the end-of-text token, as in the papers
    truncate: bool = False  # drop the last demonstrations that do not fit the context
