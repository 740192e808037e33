"""What was asked for, as frozen data: the fields of a spec are options of a command, keys of a YAML file, arguments.

A field's help and bounds stand beside it. A complaint about a field is one sentence that names it in backticks, which
the command line spells as the flag.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticKnownError

from iclgd.complaints import complaint
from iclgd.errors import Refusal
from iclgd.lines import Lines
from iclgd.registry import Registry

Init = Literal["trained", "random", "embeddings"]
Start = Literal["bos", "eos", "separator"]
Dtype = Literal["float32", "tf32", "float64", "bfloat16", "float16"]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Part = TypeVar("Part", bound="Spec")


MOST_DRAWS = 10_000
WORDS = ("default", "none")  # in the place of names: the usual ones, or nothing


def option(default: Any, help: str, *, keyed: bool = True, **bounds: Any) -> Any:
    """A field with its help; ``keyed=False``: it changes no number (a device), or its content is keyed elsewhere."""
    return Field(default=default, description=help, json_schema_extra={"keyed": keyed}, **bounds)


class Spec(BaseModel):
    """A frozen description. Unknown fields are refused, so a typing error never passes for a default."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False, validate_default=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """`k: yes` is true to YAML, and pydantic would take it for 1."""
        if isinstance(value, bool) and info.field_name:
            annotation = cls.model_fields[info.field_name].annotation
            kinds = {annotation, *get_args(annotation)}
            if bool not in kinds and kinds & {int, float}:
                raise PydanticKnownError("int_type" if int in kinds else "float_type")
        return value

    def canonical(self) -> str:
        return canonical(self.model_dump(mode="json"))

    def key(self) -> str:
        return key(self.model_dump(mode="json"))

    def keyed(self) -> dict[str, Any]:
        """The fields that change a number, as plain data."""
        kept = [name for name, field in type(self).model_fields.items() if is_keyed(field)]
        data = self.model_dump(mode="json", include=set(kept), context={"keyed": True})
        inner = {name: getattr(self, name) for name in kept}
        return data | {name: value.keyed() for name, value in inner.items() if isinstance(value, Spec)}

    def part(self, kind: type[Part], **more: Any) -> Part:
        """The smaller spec whose fields this one has among its own."""
        mine = {name: getattr(self, name) for name in kind.model_fields if name in type(self).model_fields}
        return kind(**(mine | more))

    @classmethod
    def of(cls: type[Part], given: dict[str, Any]) -> Part:
        """The spec of given fields; what does not fit is refused in a sentence."""
        cls.check_light(given)
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise Refusal(complaint(error, cls)) from None

    @classmethod
    def check_light(cls, given: dict[str, Any]) -> None:
        """Refuse what can be seen to be wrong without importing anything: what a registry names may need torch.

        Fields that are unknown, or that name nothing of a registry; then names alone.
        """
        plain = {name: field for name, field in cls.model_fields.items() if name in given and not _named(field)}
        naming, fields = cls.model_fields.keys() - plain.keys(), dict[str, Any]()
        for name, field in plain.items():
            fields[name] = (field.annotation, field)
        try:
            create_model(cls.__name__, __config__=Spec.model_config, **fields).model_validate(
                {name: value for name, value in given.items() if name not in naming}
            )
        except ValidationError as error:
            raise Refusal(complaint(error, cls)) from None
        for name, field in cls.model_fields.items():
            for registry in (one for one in field.metadata if isinstance(one, Registry)):
                check_names(given.get(name), registry)


def check_names(given: Any, registry: Registry[Any]) -> None:
    """Refuse names that a registry does not have; options, files and what is no name are left to whoever reads them."""
    given = parts(given)
    for one in given if isinstance(given, list | tuple) else [given]:
        text = one.get("name") if isinstance(one, dict) else one
        name = text.partition(":")[0] if isinstance(text, str) and not set(text) & set("/\\") else ""
        if name and "." not in name and name not in WORDS:
            registry.check(name)


def _named(field: FieldInfo) -> bool:
    return any(isinstance(one, Registry) for one in field.metadata)


def is_keyed(field: Any) -> bool:
    return bool((field.json_schema_extra or {}).get("keyed", True))


def canonical(data: Any) -> str:
    """JSON with sorted keys and no spaces: the same text for the same content."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def key(data: Any) -> str:
    """SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


def finite(data: Any) -> Any:
    """Plain data for JSON, which has no nan: numbers that are none become null."""
    if isinstance(data, dict):
        return {name: finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def read_yaml(path: Path, what: str) -> dict[str, Any]:
    """A YAML file that holds a mapping, or a sentence on why it does not, with the line."""
    return Lines.read(path).mapping(what)


# values that may be written as text


def parts(value: Any) -> Any:
    """`a,b` is a and b; an empty text is nothing."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def unique(values: Any) -> Any:
    """A list without its repeats; anything else as it is."""
    values = parts(values)
    if isinstance(values, bool | dict):
        return values
    values = [values] if isinstance(values, int | float) else values
    try:
        return tuple(dict.fromkeys(values))
    except TypeError:
        return values


def seeds(value: Any) -> Any:
    """`3` is the seeds 0, 1, 2; `2,3,4` is just those, and `5,` is the seed 5 alone."""
    text = str(value).strip() if isinstance(value, int | str) else ""
    if text.isdigit():
        count = int(text)
        if not 1 <= count <= MOST_DRAWS:
            raise ValueError(f"takes from 1 to {MOST_DRAWS} draws, or a list such as 2,3,4, not {count}")
        return tuple(range(count))
    return unique(value)


Names = Annotated[tuple[str, ...], BeforeValidator(unique), Field(min_length=1)]
Seeds = Annotated[tuple[Seed, ...], BeforeValidator(seeds), AfterValidator(unique), Field(min_length=1)]
Rates = Annotated[tuple[Annotated[float, Field(ge=0)], ...], BeforeValidator(unique), AfterValidator(unique)]
Inits = Annotated[tuple[Init, ...], BeforeValidator(unique), Field(min_length=1)]


# what a model, an episode and a prompt are


class ModelSpec(Spec):
    """Which weights, in which arithmetic. A key has the weights' own hash in the place of their name."""

    name: str = option("smollm2-135m", "Embedded name, folder, .gguf file or hub name.", keyed=False)
    revision: str | None = option(None, "Revision of a hub model.", keyed=False)
    dtype: Dtype = "float32"
    device: str = option("auto", "A GPU where there is one.", keyed=False)
    device_map: str | None = option(None, "Spread over devices.", keyed=False)
    init: Init = "trained"
    init_seed: Seed = 0
    allow_pickle: bool = option(False, "Read pickled weights too.", keyed=False)
    trust_remote_code: bool = option(False, "Run code that comes with a hub model.", keyed=False)


class EpisodeSpec(Spec):
    """Which demonstrations and which queries."""

    k: int = Field(default=32, ge=0)
    seed: Seed = 0
    queries: int = Field(default=100, ge=1)  # at most: a task may have fewer
    query_seed: Seed = 1
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
    start: Start = "bos"
