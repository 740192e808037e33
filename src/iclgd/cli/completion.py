"""What a shell can complete: names of tasks, models, learners, claims, … in the place where each is typed.

eval "$(_ICLGD_COMPLETE=bash_source iclgd)"        in ~/.bashrc; zsh_source and fish_source for other shells
"""

from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from iclgd.errors import Refusal

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completed(names: Callable[[], Iterable[str]], files: bool = False) -> Complete:
    """Names that begin as the last one of a list with commas does; where none does, files if there may be one."""

    def complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        before, comma, last = typed.rpartition(",")
        try:
            found = [name for name in names() if name.startswith(last)]
        except Refusal:  # a shell is no place for a sentence
            found = []
        if not found and files:
            return [CompletionItem(typed, type="file")]
        return [CompletionItem(f"{before}{comma}{name}") for name in found]

    return complete


def model_names() -> list[str]:
    from iclgd.models.embedded import EMBEDDED

    return list(EMBEDDED)


def task_names() -> list[str]:
    from iclgd.tasks.text import TASKS

    return list(TASKS)


def claim_names() -> list[str]:
    from iclgd.claims.claim import CLAIMS

    return list(CLAIMS)


def paper_names() -> list[str]:
    return list(dict.fromkeys(name.partition(".")[0] for name in claim_names()))


def of_field(name: str, known: list[Any], words: tuple[str, ...]) -> Complete | None:
    """Of a field of a spec: what its registries know, its own words, or what its name says."""
    if known or words:
        return completed(lambda: [*words, *(one for registry in known for one in registry)], files=bool(known))
    return completed(model_names, files=True) if name == "model" else None
