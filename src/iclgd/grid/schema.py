"""A JSON schema of study files, from the specs of the labs: editors complete and check fields with it.

It takes what reading a file takes, and refuses what a field alone shows to be wrong. What fields say of one another,
and names that a plugin may bring, are seen only when the file is read.
"""

import re
from typing import Any

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from iclgd.lab import LABS, LabSpec
from iclgd.registry import Registry
from iclgd.spec import MOST_DRAWS, seeds

Schema = dict[str, Any]
# a folder's name: letters of any alphabet, digits, and of the other characters of ASCII only + , - . = _
NAME = r"^(?!\.)[^\s!-*/:-<>-@\[-^`{-~]{1,100}$"
WHOLE, NUMBER = r"[+-]?\d[\d_]*(\.0*)?", r"[+-]?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?"
# `1e-3` is a text to some readers of YAML
TEXTS = {
    "integer": WHOLE,
    "number": NUMBER,
    "boolean": "|".join(
        f"[{one[0].upper()}{one[0]}]{one[1:]}|{one.upper()}" for one in ("true", "false", "yes", "no", "on", "off")
    )
    + "|[TtYyFfNn01]",
    "string": "[^,]*[^,\\s][^,]*",
}
NONE: Schema = {"type": "null"}  # a name with nothing behind it
CHOICE: Schema = {"anyOf": [{"type": "string"}, {"type": "object", "required": ["name"]}]}
CHOICES: Schema = {"anyOf": [*CHOICE["anyOf"], {"type": "array", "items": CHOICE}]}


def schema() -> Schema:
    """Of a whole file: named parts or a list of them, each the spec of one lab."""
    part = {"anyOf": [{"$ref": f"#/$defs/{lab}"} for lab in LABS]}
    named, listed = {"type": "object", "additionalProperties": part, "minProperties": 1}, _list(part)
    fields = {lab: _fields_of(LABS[lab].spec) for lab in LABS}
    whole = {
        **_mapping(
            {
                "name": {"anyOf": [{"type": "string", "pattern": NAME}, NONE], "description": "Of the study's folder."},
                "about": {"type": ["string", "null"], "description": "A sentence for the study's page."},
                "defaults": _or_none(_mapping(_defaults(list(fields.values())))),
                "parts": {"anyOf": [named, listed]},
            }
        ),
        "required": ["parts"],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study of iclgd",
        "anyOf": [whole, listed],
        "$defs": {lab: _part(lab, LABS[lab].spec, fields[lab]) for lab in LABS},
    }


def _part(lab: str, spec: type[LabSpec], fields: dict[str, Schema]) -> Schema:
    rule = {**_mapping({name: {} for name in fields}), "minProperties": 1}
    own = {
        "lab": {"const": lab, "description": (spec.__doc__ or "").strip().split("\n")[0]},
        "grid": _or_none(_mapping({name: _list(field) for name, field in fields.items()})),
        "exclude": _or_none({"type": "array", "items": rule}),
    }
    return {**_mapping({**own, **fields}), "required": ["lab"]}


def _defaults(labs: list[dict[str, Schema]]) -> dict[str, Schema]:
    """A default fits the field of its name in one of the labs."""
    found: dict[str, list[Schema]] = {}
    for fields in labs:
        for name, field in fields.items():
            kinds = found.setdefault(name, [])
            if field not in kinds:
                kinds.append(field)
    return {name: kinds[0] if len(kinds) == 1 else {"anyOf": kinds} for name, kinds in found.items()}


def _mapping(properties: dict[str, Any]) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of, "minItems": 1}


def _or_none(what: Schema) -> Schema:
    return {"anyOf": [what, NONE]}


class _Lenient(GenerateJsonSchema):
    """What has no schema (a class that is no plain data) may be anything; the file is checked when it is read."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  pydantic declares it so

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> Schema:
        return {}


def _fields_of(spec: type[LabSpec]) -> dict[str, Schema]:
    whole = spec.model_json_schema(schema_generator=_Lenient)
    return {name: _field(found, spec.model_fields[name]) for name, found in whole["properties"].items()}


def _field(found: Schema, field: FieldInfo) -> Schema:
    """A field as it may be written in a file, where texts stand for lists and numbers too."""
    described = {"description": found.get("description", "")}
    bare = {name: value for name, value in found.items() if name not in ("description", "default", "title", "keyed")}
    if "$ref" in str(bare):  # a thing with its options
        named = any(isinstance(one, Registry) for one in field.metadata)
        return {**((CHOICES if bare.get("type") == "array" else CHOICE) if named else {}), **described}
    kinds = [one for part in bare.get("anyOf", [bare]) for one in part.get("anyOf", [part])]
    if not all("type" in one for one in kinds):
        return described
    counted = any(getattr(one, "func", None) is seeds for one in field.metadata)
    return {"anyOf": [form for one in kinds for form in _written(one, counted)], **described}


def _written(kind: Schema, counted: bool) -> list[Schema]:
    """One kind of value in every way in which it may be written; of seeds a bare number is how many."""
    if kind["type"] == "array" and "items" in kind:
        item = kind["items"]
        text = TEXTS.get(item.get("type", ""), "") if "enum" not in item else "|".join(map(re.escape, item["enum"]))
        listed = {name: value for name, value in kind.items() if name != "minLength"}  # as pydantic has it
        least = kind.get("minLength", kind.get("minItems", 0))
        listed |= {"items": {"anyOf": [item, *_texts(item)]}, "minItems": least}
        alone = {"type": "integer", "minimum": 1, "maximum": MOST_DRAWS} if counted else item
        several = rf"\s*({text})\s*"
        commas = rf"^\s*(,\s*)*{several}(,({several})?)*$"
        forms = [] if item.get("type") == "string" else [alone]
        return [listed, *forms, {"type": "string", "pattern": commas if least else rf"^\s*$|{commas}"}]
    return [kind, *_texts(kind)]


def _texts(kind: Schema) -> list[Schema]:
    """A number or a truth value as text; a truth value is 0 or 1 as well."""
    if kind.get("type") not in ("integer", "number", "boolean"):
        return []
    text: Schema = {"type": "string", "pattern": rf"^\s*({TEXTS[kind['type']]})\s*$"}
    return [text, {"enum": [0, 1]}] if kind["type"] == "boolean" else [text]
