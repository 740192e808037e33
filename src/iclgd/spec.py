"""What was asked for, as frozen data: canonical JSON and the key that names it."""

import hashlib
import json
import math
from typing import Annotated, Any, Literal

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
    init_seed: int = Field(default=0, ge=0, lt=2**32)
    allow_pickle: bool = False
    trust_remote_code: bool = False


class EpisodeSpec(Spec):
    """Which demonstrations and which queries."""

    k: int = Field(default=32, ge=0)
    seed: int = Field(default=0, ge=0, lt=2**32)
    queries: int = Field(default=100, ge=1)  # at most: a task may have fewer
    query_seed: int = Field(default=1, ge=0, lt=2**32)
    balanced: bool = False


class PromptSpec(Spec):
    """How an episode becomes tokens.

    ``start`` is the first token of every prompt, with demonstrations and without. "bos" is the tokenizer's own, and
    nothing where it has none: there the first token of the text becomes the sink that attention rests on, in reading
    a token of the demonstrations and without them one of the query. "eos" (the end-of-text token) and "separator" (the
    separator's first token) put the same sink before both.
    """

    separator: str = "\n\n"  # "eos": the end-of-text token, as in the papers
    truncate: bool = False  # drop the last demonstrations that do not fit the context
    start: Literal["bos", "eos", "separator"] = "bos"


class LearnerSpec(Spec):
    """A finetuned learner and its options; zero-shot and icl have none and are always run."""

    kind: Literal["gd", "lcgd", "lcgd-paper"]
    rate: float = Field(default=1e-3, ge=0)
    trains: Literal["kv", "qkv", "attention", "all"] = "kv"
    epochs: int = Field(default=1, ge=1)
    clip: float | None = Field(default=None, gt=0)
    target: Literal["all", "label"] = "all"
    order: int | None = Field(default=None, ge=0, lt=2**32)  # train in another order, by seed
    dropped_too: bool = False  # train also on demonstrations that did not fit the context

    @property
    def name(self) -> str:
        """`gd 0.001`: what a row of a table calls it."""
        return f"{self.kind} {self.rate:g}"


class CellSpec(Spec):
    """The smallest unit of work of a comparison: one model, one task, one draw of demonstrations, some learners.

    ``trained_nulls`` and ``floor`` are what costs more training: learners on shuffled labels and on ``other_task``,
    and the same thing computed twice. A study asks for them where they are needed once.
    """

    model: ModelSpec
    task: str
    episode: EpisodeSpec
    prompt: PromptSpec
    learners: tuple[LearnerSpec, ...]
    other_task: str
    trained_nulls: bool
    floor: bool


class StudySpec(Spec):
    """A grid of cells: tasks × seeds × initialisations, each with every learner at every rate."""

    model: ModelSpec = ModelSpec()
    tasks: tuple[str, ...] = Field(default=("sentiment",), min_length=1)
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**32)], ...] = Field(default=(0,), min_length=1)
    inits: tuple[Init, ...] = Field(default=("trained", "random"), min_length=1)
    learners: tuple[LearnerSpec, ...] = Field(default=(LearnerSpec(kind="gd"), LearnerSpec(kind="lcgd")), min_length=1)
    episode: EpisodeSpec = EpisodeSpec()
    prompt: PromptSpec = PromptSpec()

    def cells(self) -> list[CellSpec]:
        """The cells, model by model, so that each is loaded once.

        An untrained model's weights change with the seed, as in the papers. Nulls that need training of their own and
        the noise floor are asked of the first seed of the first initialisation.
        """
        return [
            CellSpec(
                model=self.model.model_copy(update={"init": init, "init_seed": 0 if init == "trained" else seed}),
                task=task,
                episode=self.episode.model_copy(update={"seed": seed}),
                prompt=self.prompt,
                learners=self.learners,
                other_task="sentiment" if task == "continents" else "continents",
                trained_nulls=init == self.inits[0] and seed == self.seeds[0],
                floor=init == self.inits[0] and seed == self.seeds[0],
            )
            for init in self.inits
            for seed in self.seeds
            for task in self.tasks
        ]


def with_nulls(data: Any) -> Any:
    """Plain data for JSON, which has no nan: numbers that are none are null."""
    if isinstance(data, dict):
        return {name: with_nulls(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [with_nulls(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
