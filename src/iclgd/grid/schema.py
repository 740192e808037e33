"""A JSON schema of study files, from the specs of the labs: editors complete and check fields with it."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from iclgd.lab import LABS, LabSpec

WRITTEN = {"type": ["string", "number", "boolean"]}  # a list may be written as one value, or as `a,b`


def schema() -> dict[str, Any]:
    """Of a whole file: named parts or a list of them, each the spec of one lab."""
    part = {"anyOf": [{"$ref": f"#/$defs/{lab}"} for lab in LABS]}
    parts = {"anyOf": [{"type": "object", "additionalProperties": part}, {"type": "array", "items": part}]}
    labs = {lab: _part(lab, LABS[lab].spec) for lab in LABS}
    whole = {
        "type": "object",
        "required": ["parts"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "description": "Of the study's folder below runs.  [default: the file's name]"},
            "about": {"type": "string", "description": "A sentence for the study's page."},
            "defaults": _fields({name: {} for lab in LABS for name in LABS[lab].spec.model_fields}),
            "parts": parts,
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study of iclgd",
        "anyOf": [whole, {"type": "array", "items": part}],
        "$defs": labs,
    }


def _part(lab: str, spec: type[LabSpec]) -> dict[str, Any]:
    whole = spec.model_json_schema(schema_generator=_Lenient)
    fields = {name: _field(found) for name, found in whole["properties"].items()}
    own = {
        "lab": {"const": lab, "description": (spec.__doc__ or "").strip().split("\n")[0]},
        "grid": _fields({name: {"type": "array", "minItems": 1} for name in fields}),
        "exclude": {"type": "array", "items": _fields({name: {} for name in fields})},
    }
    return {**_fields({**own, **fields}), "required": ["lab"]}


def _fields(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


class _Lenient(GenerateJsonSchema):
    """What has no schema (a learner with its options) may be anything here; the file is checked when it is read."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  pydantic declares it so

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
        return {}


def _field(found: dict[str, Any]) -> dict[str, Any]:
    """A field as it may be written in a file, where texts stand for lists and numbers too."""
    described = {"description": found.get("description", "")}
    bare = {name: value for name, value in found.items() if name not in ("description", "default", "title", "keyed")}
    kinds = {one.get("type") for one in bare.get("anyOf", [bare])}
    if "$ref" in str(bare):
        return described
    if "array" in kinds:
        return {"anyOf": [bare, WRITTEN], **described}
    if kinds & {"number", "integer", "boolean"}:
        return {"anyOf": [bare, {"type": "string"}], **described}  # `1e-3` is a text to some readers of YAML
    return {**bare, **described}
