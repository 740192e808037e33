"""The command line. Each command lives in its own module and is imported when it is asked for."""

import sys
from importlib import import_module

import click

from iclgd.errors import Refusal, visible
from iclgd.registry import suggest

# command → (module, what it does). The sentence stands here so that `iclgd --help` imports nothing else.
COMMANDS = {
    "compare": ("iclgd.cli.compare", "The main job: reading demonstrations against training on them."),
    "claims": ("iclgd.cli.claims", "Sentences of the papers, run: expected, measured, verdict."),
    "trace": ("iclgd.cli.trace", "What reading demonstrations changes inside a language model."),
    "dual": ("iclgd.cli.dual", "Softmax attention is one gradient step on a kernel model."),
    "doctor": ("iclgd.cli.doctor", "Whether the lab can work with a model, in seconds."),
    "tasks": ("iclgd.cli.tasks", "List the tasks, or show one."),
    "models": ("iclgd.cli.models", "List the embedded models, or fetch one."),
    "linear": ("iclgd.cli.linear", "Linear self-attention that is gradient descent."),
    "languages": ("iclgd.cli.languages", "Membership of strings in a regular language, learned in context."),
}


class Commands(click.Group):
    """A group whose commands are found by name in ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        return import_module(COMMANDS[name][0]).command

    def resolve_command(self, ctx: click.Context, args: list[str]):  # type: ignore[no-untyped-def]
        if args[0] not in COMMANDS:
            raise Refusal(f'no command "{args[0]}". {suggest(args[0], COMMANDS)}`iclgd --help` lists all.')
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in COMMANDS.items()])


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `iclgd compare`, which needs nothing but this package.",
)
@click.version_option(package_name="iclgd")
def group() -> None:
    """Is in-context learning gradient descent? A laboratory where every answer can be run."""


def main(args: list[str] | None = None) -> None:
    """Run the command line; a refusal is one sentence and exit code 2, Ctrl-C is exit code 130."""
    try:
        group.main(args=args, prog_name="iclgd", standalone_mode=False)
    except Refusal as refusal:
        print(f"iclgd: {visible(str(refusal))}", file=sys.stderr)
        sys.exit(2)
    except click.exceptions.NoArgsIsHelpError as bare:
        print(bare.ctx.get_help() if bare.ctx else bare.format_message())
    except click.UsageError as usage:
        command = usage.ctx.command_path if usage.ctx else "iclgd"
        print(f"iclgd: {visible(usage.format_message())} See `{command} --help`.", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        print("iclgd: stopped.", file=sys.stderr)
        sys.exit(130)
