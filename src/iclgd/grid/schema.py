"""A JSON schema of study files, from the specs of the labs: editors complete and check fields with it."""

from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from iclgd.grid.file import OWN
from iclgd.lab import LABS, LabSpec

WRITTEN = {"type": ["string", "number", "boolean"]}  # a list may be written as one value, or as `a,b`


def schema() -> dict[str, Any]:
    """Of a whole file: named parts or a list of them, each the spec of one lab."""
    parts = {"anyOf": [{"$ref": f"#/$defs/{lab}"} for lab in LABS]}
    many = {"anyOf": [{"type": "object", "additionalProperties": parts}, {"type": "array", "items": parts}]}
    fields: dict[str, Any] = {name: {} for lab in LABS for name in LABS[lab].spec.model_fields}
    whole = {
        "type": "object",
        "required": ["parts"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "description": "Of the study's folder below runs.  [default: the file's name]"},
            "about": {"type": "string", "description": "A sentence for the study's page."},
            "defaults": {"type": "object", "properties": fields, "additionalProperties": False},
            "parts": many,
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study of iclgd",
        "anyOf": [whole, {"type": "array", "items": parts}],
        "$defs": {lab: _part(lab, LABS[lab].spec) for lab in LABS},
    }


def _part(lab: str, spec: type[LabSpec]) -> dict[str, Any]:
    fields = {name: _field(info) for name, info in spec.model_fields.items()}
    any_of = {
        name: {"type": "array", "minItems": 1, "description": info["description"]} for name, info in fields.items()
    }
    own = {
        "lab": {"const": lab, "description": (spec.__doc__ or "").strip().split("\n")[0]},
        "grid": {"type": "object", "properties": any_of, "additionalProperties": False},
        "exclude": {
            "type": "array",
            "items": {"type": "object", "properties": {name: {} for name in fields}, "additionalProperties": False},
        },
    }
    assert set(own) == set(OWN)
    return {"type": "object", "required": ["lab"], "additionalProperties": False, "properties": {**own, **fields}}


class _Lenient(GenerateJsonSchema):
    """What has no schema (a learner with its options) may be anything here; the file is checked when it is read."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
        return {}


def _field(info: FieldInfo) -> dict[str, Any]:
    try:
        found = TypeAdapter(_annotated(info)).json_schema(schema_generator=_Lenient)
    except PydanticInvalidForJsonSchema:
        found = {}
    inline = "$defs" in found or "$ref" in found
    kinds = {one.get("type") for one in found.get("anyOf", [found])}
    if "array" in kinds and not inline:
        found = {"anyOf": [found, WRITTEN]}
    elif kinds & {"number", "integer", "boolean"} and not inline:
        found = {"anyOf": [found, {"type": "string"}]}  # `1e-3` is a text to some readers of YAML
    return {**({} if inline else found), "description": info.description or ""}


def _annotated(info: FieldInfo) -> Any:
    from typing import Annotated

    return Annotated[info.annotation, info] if info.annotation is not None else Any
