"""The command line. The labs' commands come from their specs; the others live in a module each."""

import atexit
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from io import TextIOWrapper

import click

from iclgd.cli.denied import denied
from iclgd.errors import Refusal, Stopped, Unfinished, memory_told, visible
from iclgd.lab import GROUPS, LABS
from iclgd.registry import load_plugin, suggest

# command → (module, what it does). The sentence stands here so that `iclgd --help` imports nothing else.
OTHERS = {
    "claims": ("iclgd.cli.claims", "Sentences of the papers, made executable: list them, or run them."),
    "doctor": ("iclgd.cli.doctor", "Whether the labs can work with a model, in seconds."),
    "study": ("iclgd.cli.study", "Grids of studies from one file: run, plan, status, table, verify, compare."),
    "store": ("iclgd.cli.store", "The cells that were kept: check, clear up, export, import."),
    "tasks": ("iclgd.cli.tasks", "List the tasks, or show one."),
    "models": ("iclgd.cli.models", "List the embedded models, or fetch one."),
    "known": ("iclgd.cli.known", "List the learners, metrics, nulls, … that can be named, with their options."),
}


class Commands(click.Group):
    """The labs and the other commands; a lab called `dual check` is the command `check` of the group `dual`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*dict.fromkeys(name.split()[0] for name in LABS), *OTHERS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in OTHERS:
            return import_module(OTHERS[name][0]).command
        if name in LABS:
            return import_module("iclgd.cli.lab").command(name)
        return Members(name) if name in self.list_commands(ctx) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not ctx.resilient_parsing:  # a shell that completes asks about half a line
            raise Refusal(f'no command "{args[0]}". {suggest(args[0], known)}`{ctx.command_path} --help` lists all.')
        return super().resolve_command(ctx, args)

    def what(self, name: str) -> str:
        """What a command does, without importing it."""
        if name in OTHERS:
            return OTHERS[name][1]
        return LABS.summary(name) or Members(name).short()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.what(name)) for name in self.list_commands(ctx)])


class Members(Commands):
    """The labs of one group."""

    def __init__(self, name: str):
        self.about = GROUPS.get(name, "")
        self.members = {lab.split()[1]: lab for lab in LABS if lab.split()[0] == name and " " in lab}
        super().__init__(name, help=self.about, no_args_is_help=True)

    def short(self) -> str:
        """What the labs are about, and which there are."""
        return " ".join(filter(None, [self.about, f"({', '.join(self.members)})"]))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.members)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return import_module("iclgd.cli.lab").command(self.members[name])

    def what(self, name: str) -> str:
        return LABS.summary(self.members[name])


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `iclgd compare`, which needs nothing but this package.",
)
@click.version_option(None, "-V", "--version", package_name="iclgd")
def group() -> None:
    """Is in-context learning gradient descent? A laboratory where every answer can be run.

    --plugin FILE, anywhere on the line, makes the learners, metrics, labs, … of a Python file of yours known.
    """


STOPPED: list[int] = []  # the exit status of a process that was told to stop


@atexit.register
def _end_at_once() -> None:
    """The interpreter would look through all that torch and transformers made for garbage first: a second of processor
    time in which a command that was told to stop seems not to. What was registered later has run by now."""
    if STOPPED:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(STOPPED[0])


def main(args: list[str] | None = None) -> None:
    """Run the command line. A refusal is one sentence and exit code 2, a study with cells that failed is exit code 1,
    Ctrl-C is 130 and SIGTERM, which ends like it, 143.

    A stream that cannot say a letter gets its number instead, and one that is full costs no result.
    """
    own = args is None  # the process is this command's
    args = list(sys.argv[1:] if args is None else args)
    line = tuple(args)
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # a cache that it cannot write costs time and nothing else
    _streams()
    try:
        with terminable(), memory_told():
            plugins = named_plugins(args)
            for file in plugins:
                load_plugin(file)
            group.main(args=args, prog_name="iclgd", standalone_mode=False, obj=plugins)
            print(end="", flush=True)
    except Unfinished as unfinished:
        print(*unfinished.traces, f"iclgd: {visible(flagged(str(unfinished)))}", sep="\n", file=sys.stderr)
        sys.exit(1)
    except Refusal as refusal:
        print(f"iclgd: {visible(flagged(str(refusal)))}", file=sys.stderr)
        sys.exit(2)
    except click.exceptions.NoArgsIsHelpError as bare:
        print(bare.ctx.get_help() if bare.ctx else bare.format_message())
    except click.UsageError as usage:
        command = usage.ctx.command_path if usage.ctx else "iclgd"
        said = usage.format_message().rstrip(".")
        said += "" if said.endswith(("?", "?)")) else "."
        print(f"iclgd: {visible(said)} See `{command} --help`.", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort) as stop:
        cause = stop.__cause__ if isinstance(stop, click.Abort) else stop
        said = str(cause) if isinstance(cause, Stopped) else "stopped; the same command goes on where it was."
        print(f"iclgd: {visible(flagged(said))}", file=sys.stderr)
        status = 143 if TERMINATED else 130
        STOPPED.extend([status] if own else [])
        sys.exit(status)
    except OSError as error:
        if _output_is_lost():
            print(f"iclgd: the output cannot be written ({error.strerror}); what was run is kept.", file=sys.stderr)
            sys.exit(1)
        if (told := denied(error, line)) is None:
            raise
        print(f"iclgd: {visible(told)}", file=sys.stderr)
        sys.exit(2)


def _streams() -> None:
    """A stream that was closed, as cron and `>&-` do it, takes what is said and drops it.

    It gets the lowest number that is free, its own, and hands it on: a worker would find another file there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(nowhere, True)
            setattr(sys, name, open(nowhere, mode, encoding="utf-8"))  # noqa: SIM115  for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


TERMINATED: list[int] = []  # whether SIGTERM came


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM, which a batch system sends before it kills, ends a command as Ctrl-C does."""

    def stop(number: int, _frame: object) -> None:
        TERMINATED.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    TERMINATED.clear()
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _output_is_lost() -> bool:
    """Whether nothing can be written to the output; what waits to be written is then dropped."""
    try:
        print(end="", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def named_plugins(args: list[str]) -> list[str]:
    """The files of `--plugin`, which is taken off the line wherever it stands."""
    files, rest = [], iter(list(args))
    args.clear()
    for word in rest:
        if word == "--plugin" or word.startswith("--plugin="):
            files.append(word.partition("=")[2] if "=" in word else next(rest, ""))
        else:
            args.append(word)
    if not all(files):
        raise Refusal("`plugin` needs the path of a Python file.")
    return [file for part in files for file in part.split(",")]


def flagged(sentence: str) -> str:
    """A field named in a refusal, as the flag that sets it."""
    return re.sub(r"`([a-z][a-z_]*)`", lambda field: f"--{field[1].replace('_', '-')}", sentence)
