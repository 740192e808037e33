"""A lab's command, made from its spec: each field is an option, and what every study can be told comes with it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from iclgd.choices import OR_NONE
from iclgd.cli.completion import of_field
from iclgd.cli.early import check_files, check_places
from iclgd.cli.examples import epilog
from iclgd.cli.forms import JSON, QUIET, Form
from iclgd.cli.summary import summary
from iclgd.cli.values import Named, Whole
from iclgd.errors import Refusal
from iclgd.lab import LABS, Lab, LabSpec
from iclgd.registry import Registry
from iclgd.spec import read_yaml

FRAME = (
    click.Option(
        ["--spec", "file"], type=Named(), metavar="FILE", help="Fields from a YAML file; options given beside it win."
    ),
    click.Option(["--out"], type=Named(), metavar="DIR", help="Folder for the page.  [default: runs/<what>-<key>]"),
    click.Option(["--overwrite"], is_flag=True, help="Replace the folder's study, and run every cell anew."),
    click.Option(
        ["--store"], type=Named(), metavar="DIR", help="Where cells are kept.  [default: ICLGD_STORE, or runs/cells]"
    ),
    click.Option(["--jobs"], type=Whole(), metavar="N", help="Workers; more than one are processes.  [default: 1]"),
    click.Option(
        ["--engine"],
        type=Named(),
        metavar="NAME",
        help="Where cells run: serial, processes, or ray (all of a cluster).",
    ),
    click.Option(
        ["--address"], type=Named(), metavar="TEXT", help="Of a running Ray cluster.  [default: Ray on this machine]"
    ),
    click.Option(["--full"], is_flag=True, help="Print every table."),
    JSON,
    QUIET,
)


def command(name: str) -> click.Command:
    """The command of a lab."""
    lab = LABS[name]

    def run(**given: Any) -> None:
        _run(name, lab, given)

    return click.Command(
        name.split()[-1],
        callback=run,
        params=[*options_of(lab.spec), *_frame(lab)],
        help=lab.spec.__doc__,
        epilog=epilog(lab.examples) if lab.examples else None,
    )


def _frame(lab: Lab) -> list[click.Option]:
    """What every study can be told; a quick lab leaves no folder unless it is asked to."""
    if not lab.quick:
        return list(FRAME)
    out = click.Option(
        ["--out"], type=Named(), metavar="DIR", help="Folder for a page.  [default: the page is only shown]"
    )
    return [out if option.name == "out" else option for option in FRAME]


def options_of(spec: type[BaseModel], leave_out: Sequence[str] = ()) -> list[click.Parameter]:
    """The fields of a spec as options."""
    fields = {name: info for name, info in spec.model_fields.items() if name not in leave_out}
    return [one for name, info in fields.items() for one in (_option(name, info), *_without(name, info))]


def _option(name: str, field: FieldInfo) -> click.Option:
    """A field as an option: its text goes to the spec as it is, which checks it."""
    flag, help_ = f"--{name.replace('_', '-')}", field.description or ""
    if field.annotation is bool:
        both = f"{flag}/--no-{flag[2:]}" if field.default else flag
        return click.Option([both, name], is_flag=True, default=None, help=help_)
    known = list(registries([*field.metadata, field.annotation]))
    for registry in known:
        text, bracket, default = help_.partition("  [default")
        help_ = f"{text} Known: {', '.join(registry)}.{bracket}{default}"
    shown = _shown(field.default)
    if shown and "[default" not in help_:
        help_ += f"  [default: {shown}]"
    words = tuple(map(str, get_args(field.annotation))) if get_origin(field.annotation) is Literal else ()
    complete = of_field(name, known, words)
    return click.Option(
        [flag, name], default=None, help=help_, metavar=_metavar(field.annotation), shell_complete=complete
    )


def _without(name: str, field: FieldInfo) -> Iterator[click.Option]:
    """The flag that says none of a list of choices; of this and the list the one that is given last counts."""
    if OR_NONE in field.metadata:
        flag = name.replace("_", "-")
        said: dict[str, Any] = {"is_flag": True, "flag_value": "none", "default": None}
        yield click.Option([f"--no-{flag}", name], help=f"The same as --{flag} none.", **said)


def registries(found: Iterable[Any]) -> Iterator[Registry[Any]]:
    """The registries that a field's type names, wherever in it they stand."""
    for one in found:
        if isinstance(one, Registry):
            yield one
        else:
            yield from registries(get_args(one))


def _shown(default: Any) -> str:
    if default is None or default is PydanticUndefined or default == ():
        return ""
    if isinstance(default, tuple):
        return ",".join(_shown(part) for part in default)
    if isinstance(default, str):
        return default.encode("unicode_escape").decode()  # a line break as it is typed
    return str(getattr(default, "label", default))


def _metavar(annotation: Any) -> str | None:
    if get_origin(annotation) is Literal:
        return "[" + "|".join(map(str, get_args(annotation))) + "]"
    return {int: "N", float: "X"}.get(annotation, "TEXT")


def _run(name: str, lab: Lab, given: dict[str, Any]) -> None:
    from iclgd.engine.engines import Engine
    from iclgd.overview import listed
    from iclgd.report.terminal import cell_progress, say
    from iclgd.running import Where, run_study
    from iclgd.store.cells import default_store

    file, out, overwrite, store, jobs, engine, address, full, as_json, quiet = (given.pop(str(o.name)) for o in FRAME)
    engine = Engine(engine, jobs, address)
    said = {field: value for field, value in given.items() if value is not None}
    for field, value in said.items():
        kind = lab.spec.model_fields[field].annotation
        if value == "" and kind is not str and get_origin(kind) is not tuple:  # of a list it is nothing
            raise Refusal(f"`{field}` is empty: give a value, or leave it out.")
    if plugins := click.get_current_context().obj:
        said["plugin"] = tuple(str(Path(one).resolve()) for one in plugins)
    check_places(out, store)
    fields = {**(read_yaml(Path(file), "spec") if file else {}), **said}
    lab.spec.check_light(fields)
    check_files(lab.spec, fields)
    spec = lab.spec.of(fields)
    out, store = _places(name, lab, spec, file, out, store)
    with cell_progress(quiet) as progress:
        where = Where(Path(store) if store else default_store(), Path(out) if out else None, overwrite)
        study = run_study(name, spec, where, engine, progress)
        page = study.page
    record = {"lab": name, "spec": spec.model_dump(mode="json"), "cells": list(study.keys), **page.plain()}
    Form(as_json, quiet).tell(record, lambda: summary(page, full), page.answer)
    if as_json or quiet:
        return
    say()
    if out:
        say(f"page     {Path(out) / 'index.html'}" + ("" if full else "  (--full prints all of it)"))
        listed(Path(out))
    say(f"repeat   {page.repeat}")


def _places(
    name: str, lab: Lab, spec: LabSpec, file: str | None, out: str | None, store: str | None
) -> tuple[str | None, str | None]:
    """Folder and store; the spec of a study's own folder is shown again in its place, from the store it had."""
    from iclgd.overview import RUNS
    from iclgd.study import SPEC, read_record, study_key

    own = study_key(name, spec)
    origin = Path(file).parent if file and Path(file).name == SPEC else None
    record = read_record(origin) if origin is not None else {}
    if record.get("key") == own:
        return out or str(origin), store or record["store"]
    if out is None and not lab.quick:
        out = str(RUNS / f"{spec.title() or name.replace(' ', '-')}-{own[:8]}")
    return out, store
