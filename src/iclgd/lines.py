"""A YAML file with the line of every value, so that a complaint can say where."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from iclgd.errors import Refusal
from iclgd.files import content

TEXTS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")  # what is read as it is written
DEEPEST = 20  # levels, and so no end of aliases within aliases


@dataclass(frozen=True)
class Lines:
    """What a file holds, and the nodes it was read from."""

    path: Path
    data: Any
    node: yaml.Node

    @classmethod
    def read(cls, path: Path) -> "Lines":
        """A file that is YAML, says nothing twice and holds something."""
        raw = content(path)
        try:
            text = raw.decode("utf-8-sig")
            node = yaml.compose(text, Loader=yaml.SafeLoader)
            if node is None:
                raise Refusal(f"{path} is empty: it must be a mapping of fields to values.")
            _check(node, path)
            return cls(path, yaml.safe_load(text), node)
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            raise Refusal(f"{path}, line {line}: this is not UTF-8; save the file in that encoding.") from None
        except yaml.MarkedYAMLError as error:
            where = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
            if "'\\t'" in str(error.problem):
                raise Refusal(f"{path}{where}: YAML cannot be indented with tabs; use spaces.") from None
            raise Refusal(f"{path}{where}: this is not valid YAML ({error.problem}): correct it.") from None
        except yaml.reader.ReaderError as error:
            line = text[: error.position].count("\n") + 1
            raise Refusal(f"{path}, line {line}: this is not valid YAML ({error.reason}): correct it.") from None
        except RecursionError:
            raise Refusal(f"{path} is nested too deep: write it flatter.") from None
        except ValueError as error:
            raise Refusal(f"{path} is not valid YAML ({error}): correct it.") from None

    def mapping(self, what: str) -> dict[str, Any]:
        """What the file holds, if it is fields with values."""
        if not isinstance(self.data, dict):
            raise self.refusal((), f"this is no {what}: it must be a mapping of fields to values.")
        return self.data

    def at(self, place: tuple[Any, ...]) -> Any:
        value = self.data
        for step in place:
            value = value[step]
        return value

    def has(self, place: tuple[Any, ...]) -> bool:
        try:
            self.at(place)
        except (KeyError, IndexError, TypeError):
            return False
        return True

    def line(self, place: tuple[Any, ...]) -> int:
        """The line of the value at a place, or of what it would stand in."""
        node = self.node
        line = node.start_mark.line + 1
        for step in place:
            found = _inside(node, step)
            if found is None:
                break
            line, node = found
        return line

    def refusal(self, place: tuple[Any, ...], sentence: str) -> Refusal:
        return Refusal(f"{self.path}, line {self.line(place)}: {sentence}")


def _inside(node: yaml.Node, step: Any) -> tuple[int, yaml.Node] | None:
    """The line and node of one entry; of a mapping, the line of its name."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark.line + 1, node.value[step]
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == str(step) or (not isinstance(step, str) and _read(name) == step):
                return name.start_mark.line + 1, value
    return None


def _read(name: yaml.Node) -> Any:
    """What YAML reads a name as: `yes` as true."""
    return name.value if name.tag in TEXTS else yaml.safe_load(name.value)


def _check(node: yaml.Node, path: Path, depth: int = 0) -> None:
    """Refuse a name that is said twice, of which YAML would drop one, and nesting without end."""
    if depth > DEEPEST:
        raise Refusal(
            f"{path}, line {node.start_mark.line + 1}: it is nested more than {DEEPEST} levels deep: write it flatter."
        )
    if isinstance(node, yaml.SequenceNode):
        for inner in node.value:
            _check(inner, path, depth + 1)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for name, value in node.value:
            if name.value in seen:
                raise Refusal(f'{path}, line {name.start_mark.line + 1}: "{name.value}" is said twice: leave one out.')
            seen.add(name.value)
            _check(value, path, depth + 1)
