"""A registered thing and its options, as they are written: `gd`, `gd:rate=0.01:trains=all`, `mine.py:Noise:scale=2`.

The options of a thing are the fields of its dataclass, so a learner, a null or a modified attention owns its own.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    ValidationError,
    create_model,
)

from iclgd.complaints import complaint
from iclgd.errors import Refusal
from iclgd.registry import Registry, absolute_name, suggest
from iclgd.spec import parts

OR_NONE = "or none"  # beside the registry of a field


@dataclasses.dataclass(frozen=True)
class Choice:
    """One thing of a registry with all of its options, those at their defaults too."""

    registry: Registry[Any] = dataclasses.field(repr=False, compare=False)
    name: str
    options: tuple[tuple[str, Any], ...] = ()

    def make(self) -> Any:
        """The thing itself: an instance where it has options or is a class, else what was registered."""
        thing = self.registry[self.name]
        return thing(**dict(self.options)) if isinstance(thing, type) else thing

    def __getitem__(self, option: str) -> Any:
        return dict(self.options)[option]

    def has(self, option: str) -> bool:
        return option in dict(self.options)

    def changed(self, **options: Any) -> "Choice":
        return parse_one({"name": self.name, **dict(self.options), **options}, self.registry)

    @property
    def kind(self) -> str:
        """The name without the file it may come from."""
        return self.name.rpartition(":")[2] if ".py:" in self.name else self.name

    @property
    def label(self) -> str:
        """What a row of a table calls it: the rate, where there is one, and every option that is not the default."""
        defaults = _defaults(self.registry[self.name])
        words = [self.kind]
        for option, value in self.options:
            if option == "rate":
                words.insert(1, f"{value:g}")
            elif value != defaults[option]:
                words.append(f"{option}={value:g}" if isinstance(value, float) else f"{option}={value}")
        return " ".join(words)

    @property
    def typed(self) -> str:
        """`gd:rate=0.01`: as it is typed, without the options that are at their defaults."""
        defaults = _defaults(self.registry[self.name])
        changed = ((option, value) for option, value in self.options if value != defaults[option])
        return ":".join([self.name, *(f"{option}={'none' if value is None else value}" for option, value in changed)])

    @property
    def at_any_rate(self) -> str:
        """The label without the rate: what choices that differ in nothing else have in common."""
        return self.label.replace(f" {self['rate']:g}", "", 1) if self.has("rate") else self.label

    def plain(self, info: Any) -> dict[str, Any]:
        """As data; in a key the name carries the thing's version."""
        keyed = bool((info.context or {}).get("keyed"))
        return {"name": self.registry.identity(self.name) if keyed else self.name, **dict(self.options)}


def _defaults(thing: Any) -> dict[str, Any]:
    return {field.name: default_of(field) for field in option_fields(thing)}


def default_of(field: dataclasses.Field[Any]) -> Any:
    """What an option is if nobody says; `...` where it has to be said."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return ... if field.default is dataclasses.MISSING else field.default


def option_fields(thing: Any) -> list[dataclasses.Field[Any]]:
    """The options of a thing: the fields of its dataclass that are shown."""
    if not (isinstance(thing, type) and dataclasses.is_dataclass(thing)):
        return []
    return [field for field in dataclasses.fields(thing) if field.repr]


@lru_cache(maxsize=256)
def _model(thing: Any) -> type[BaseModel]:
    """What the options have to be, from the annotations of the dataclass."""
    hints = get_type_hints(thing, include_extras=True)
    fields: dict[str, Any] = {field.name: (hints[field.name], default_of(field)) for field in option_fields(thing)}
    return create_model(thing.__name__, __config__=ConfigDict(extra="forbid", allow_inf_nan=False), **fields)


def parse_one(given: Any, registry: Registry[Any]) -> Choice:
    """A choice from its text, from a mapping with `name`, or from an instance of a registered class."""
    if isinstance(given, Choice):
        return given
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        given = {
            "name": _name_of(given, registry),
            **{f.name: getattr(given, f.name) for f in option_fields(type(given))},
        }
    if isinstance(given, str):
        given = _from_text(given)
    if not isinstance(given, dict) or "name" not in given:
        raise Refusal(f'a {registry.kind} is written as its name, or as a mapping with "name" and its options.')
    options = {option: value for option, value in given.items() if option != "name"}
    name = absolute_name(str(given["name"]))
    thing = registry[name]
    known = [field.name for field in option_fields(thing)]
    for option in options:
        if option not in known:
            has = f"It has {', '.join(known)}." if known else "It has none."
            raise Refusal(f'{name} has no option "{option}". {suggest(option, known)}{has}')
    if not known:
        return Choice(registry, name)
    try:
        found = _model(thing).model_validate(options)
    except ValidationError as error:
        raise Refusal(f"{name}: {complaint(error, _model(thing)).replace('`', '')}") from None  # no flag of its own
    values = {option: getattr(found, option) for option in known}
    thing(**values)  # refuses what does not go together
    return Choice(registry, name, tuple(values.items()))


def _name_of(instance: Any, registry: Registry[Any]) -> str:
    for name in registry:
        if registry[name] is type(instance):
            return name
    raise Refusal(f"{type(instance).__name__} is not registered as a {registry.kind}: add it with a name first.")


def _from_text(text: str) -> dict[str, Any]:
    """`negative:k=3:beta=0.1` and the like; what is not said keeps its default."""
    file, dot, rest = text.partition(".py:")
    name, *given = (rest if dot else text).split(":")
    found: dict[str, Any] = {"name": f"{file}.py:{name}" if dot else name}
    for part in given:
        option, equals, value = part.partition("=")
        if not equals:
            raise Refusal(f'"{text}": an option is written as name=value, which "{part}" is not.')
        if option in found:
            raise Refusal(f'"{text}" has {option} twice; give it once.')
        found[option] = None if value in ("none", "None") else value
    return found


def in_key(named: Callable[[str], str]) -> PlainSerializer:
    """How a field that holds a bare name is written: ``named`` gives what stands for it in a key, with a version."""
    return PlainSerializer(lambda name, info: named(name) if (info.context or {}).get("keyed") else name)


def one_of(registry: Registry[Any]) -> Any:
    """The type of a field that holds one choice; it carries the registry, whose names the help lists."""
    return Annotated[
        Choice,
        BeforeValidator(lambda given: parse_one(given, registry)),
        PlainSerializer(lambda choice, info: choice.plain(info)),
        registry,
    ]


def some_of(registry: Registry[Any], usual: Iterable[str], or_none: bool = False, taken: Iterable[str] = ()) -> Any:
    """The type of a field that holds several, without repeats; `default` stands for the usual ones, `none` for none.

    With ``or_none`` none of them is a usual wish, and the command line has a flag for it. ``taken`` are what the lab's
    tables call something else, whose numbers would be mixed with those of a thing of that name.
    """
    usual, taken = tuple(usual), tuple(taken)

    def parse(given: Any) -> Any:
        given = parts(given)
        given = [given] if isinstance(given, dict | Choice) or dataclasses.is_dataclass(given) else given
        if not isinstance(given, list | tuple):
            raise ValueError(f"takes {registry.kind}s by name, not {given}; `{registry.listing}` lists all")
        words: list[Any] = []
        for one in given:
            words += usual if one == "default" else [] if one == "none" else [one]
        chosen = tuple(dict.fromkeys(parse_one(one, registry) for one in words))
        labels = [choice.label for choice in chosen]
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise Refusal(f'two {registry.kind}s would both be called "{twice[0]}" in a table: give one of them.')
        if mixed := [label for label in labels if label in taken]:
            raise Refusal(
                f'your {registry.kind} cannot be called "{mixed[0]}", which every table has: give it another name.'
            )
        return chosen

    return Annotated[
        tuple[Choice, ...],
        BeforeValidator(parse),
        PlainSerializer(lambda chosen, info: [choice.plain(info) for choice in chosen]),
        registry,
        *([OR_NONE] if or_none else []),
    ]


def at_rates(choices: Sequence[Choice], rates: Sequence[float]) -> tuple[Choice, ...]:
    """Every choice that has a rate at every rate, the others as they are; each once."""
    found: list[Choice] = []
    for choice in choices:
        found += [choice.changed(rate=rate) for rate in rates if choice.has("rate")] or [choice]
    return tuple(dict.fromkeys(found))
