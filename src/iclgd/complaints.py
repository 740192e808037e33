"""What does not fit a field, as one sentence about the field: what it takes, and what was given."""

import re
from typing import Any

from pydantic import BaseModel, ValidationError

from iclgd.registry import suggest

# kind of error → sentence; bounds stand in it by the names they have in the error's context
SENTENCES = {
    "invalid_key": '"{where}" is no name of a field: write names as texts.',
    "missing": "{name} is missing: give it.",
    "greater_than_equal": "{name} must be at least {ge}, not {given}.",
    "greater_than": "{name} must be above {gt}, not {given}.",
    "less_than_equal": "{name} must be at most {le}, not {given}.",
    "less_than": "{name} must be below {lt}, not {given}.",
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "{name} takes a whole number, not {shown}."),
    "int_parsing_size": "{name} takes a whole number of fewer digits.",
    **dict.fromkeys(("float_parsing", "float_type", "finite_number"), "{name} takes a finite number, not {shown}."),
    **dict.fromkeys(("bool_parsing", "bool_type"), "{name} takes true or false, not {shown}."),
    **dict.fromkeys(("string_type", "path_type"), "{name} takes a text, not {shown}: write it in quotes."),
    "string_pattern_mismatch": "{name} cannot be {shown}: use lower-case letters, digits, - and _.",
    "string_unicode": "{name} holds characters that are none: write it anew.",
    "too_short": "{name} needs at least {min_length} values, not {length}.",
    "too_long": "{name} needs at most {max_length} values, not {length}.",
    **dict.fromkeys(("tuple_type", "list_type", "iterable_type"), "{name} takes a list of values, not {shown}."),
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type", "mapping_type"),
        "{name} takes a mapping of fields to values, not {shown}.",
    ),
}
TRUTH = '{name} takes a text; YAML reads a bare Yes, No, On or Off as {truth}: write it in quotes, "Yes".'


def complaint(error: ValidationError, kind: type[BaseModel]) -> str:
    """The first complaint of a validation error as one sentence about a field, which it names in backticks."""
    first = main_error(error)
    where = ".".join(str(step) for step in first["loc"]) or "it"
    name = f"`{first['loc'][0]}`" if first["loc"] else "it"
    given, context = first.get("input"), first.get("ctx", {})
    shown = f'"{given}"' if isinstance(given, str) else str(given)[:60]
    match first["type"]:
        case "extra_forbidden":
            near = suggest(where, kind.model_fields).strip()
            return f'there is no field "{where}". {near or "It has " + ", ".join(kind.model_fields) + "."}'
        case "literal_error":
            known = [word.strip("' ") for word in str(context["expected"]).replace(" or ", ",").split(",")]
            return f"{name} takes {', '.join(known)}; {shown} is none of them. {suggest(str(given), known)}".strip()
        case "string_type" if isinstance(given, bool):
            return TRUTH.format(name=name, truth=str(given).lower())
        case "value_error":
            said = str(context["error"]).rstrip(".")
            return f"{name} {said}." if first["loc"] else f"{said}."
    # a bound of 0.0 reads as 0
    bounds = {what: int(x) if isinstance(x, float) and x.is_integer() else x for what, x in context.items()}
    facts = {"name": name, "where": where, "given": given, "shown": shown, "length": _length(given), **bounds}
    sentence = SENTENCES.get(first["type"], "{name} cannot be {shown}.").format(**facts)
    return sentence.replace("least 1 values", "least 1 value")


def main_error(error: ValidationError) -> Any:
    """The error to speak of: a name that is unknown, which may explain one that is missing, or the first."""
    return min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")


def _length(given: Any) -> int:
    return len(given) if isinstance(given, list | tuple | dict) else 0


def in_a_file(sentence: str) -> str:
    """A complaint about the field of a file, which has no flag."""
    return re.sub(r"`(\w+)`", r'"\1"', sentence)
