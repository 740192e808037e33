"""`iclgd doctor`: whether the labs can work with a model, by trying what they will do."""

import shlex
from typing import TYPE_CHECKING, Any

import click

from iclgd.cli.completion import completed, model_names
from iclgd.cli.early import check_weights
from iclgd.cli.examples import epilog
from iclgd.cli.forms import Form, forms
from iclgd.cli.lab import options_of
from iclgd.options import ModelOptions

if TYPE_CHECKING:
    from iclgd.models.doctor import Parity
    from iclgd.models.subject import Subject

EXAMPLES = """\
  iclgd doctor smollm2-135m
  iclgd doctor ./my-model --dtype bfloat16
  iclgd doctor Qwen/Qwen3-0.6B
"""
CAPTURES = {
    "registered": "registered attention function",
    "intercepted": "softmax intercepted under eager attention",
}


def _examine(form: Form, **given: Any) -> None:
    """Whether the labs can work with MODEL: what it is, and what `iclgd compare` will do with it, tried out."""
    from iclgd.errors import Refusal
    from iclgd.report.page import Table
    from iclgd.report.terminal import window, working
    from iclgd.study import flags

    spec = ModelOptions.of({name: value for name, value in given.items() if value is not None})
    with working("starting", form.quiet) as note:
        from iclgd.models.hub import ask_hub

        check_weights(spec.model_spec())
        ask_hub(spec.model_spec())  # before anything heavy is imported
        from iclgd.models.doctor import no_layer_causal, parities
        from iclgd.models.load import load_subject, recheck

        note("reading every file again")
        recheck(spec.model_spec())
        subject = load_subject(spec.model_spec(), note)
        note("comparing captured attention with the model's own")
        compared = dict(parities(subject))
        note("trying what learners and the noise floor need")
        unlike = no_layer_causal(subject)
        rows = [*_what_it_is(subject), *_captured(compared), ["layer-causal", unlike or "descent can be had"]]
        rows += [["noise floor", _floor(subject)], ["weights", _weights(spec)]]
    told = Table(["", ""], rows)
    if wrong := [name for name, parity in compared.items() if not parity.holds]:
        form.tell(_data(rows), lambda: told.text(window()))
        raise Refusal(
            f"{spec.model} cannot be used in {spec.dtype}: captured attention differs from its own ({wrong[0]})."
        )
    only = ["--learners", "gd"] if unlike else []
    ready = f"iclgd compare {shlex.join([*flags(spec), *only])}".rstrip()
    form.tell({**_data(rows), "ready": ready}, lambda: f"{told.text(window())}\n\nready   {ready}", ready)


def _data(rows: list[list[str]]) -> dict[str, str]:
    """What is known by name; of parity the line of each length."""
    found: dict[str, str] = {}
    for name, text in rows:
        last = name or next(reversed(found))
        found[last] = f"{found[last]}; {text}" if last in found else text
    return found


def _what_it_is(subject: "Subject") -> list[list[str]]:
    from iclgd.models.doctor import long_labels

    layout, bos, long = subject.layout, subject.tokenizer.bos_token, long_labels(subject)
    grouped = f"on {layout.key_heads} key heads" if layout.key_heads < layout.heads else "a key head each"
    return [
        ["architecture", f"{type(subject.model).__name__} ({layout.family})"],
        ["layers", str(layout.layers)],
        ["heads", f"{layout.heads}, {grouped}"],
        ["context", f"{subject.room:,} tokens" if subject.room else "no limit known"],
        ["starts with", bos if bos else "nothing (the tokenizer has no bos)"],
        ["attention", CAPTURES[subject.capture]],
        ["K and V", layout.projections()],
        ["label words", "; ".join(long) if long else "one token each, in every task of the library"],
    ]


def _captured(compared: "dict[str, Parity]") -> list[list[str]]:
    """Parity, a line for each length of text."""
    return [
        [
            "parity" if i == 0 else "",
            f"max |Δlogits| = {found.difference:.2g}, behind a shared prefix {found.behind:.2g}, "
            f"of {found.scale:.3g}{'' if found.holds else ': too far apart'} ({name})",
        ]
        for i, (name, found) in enumerate(compared.items())
    ]


def _floor(subject: "Subject") -> str:
    from iclgd.models.doctor import noise_floor

    without, narrow = noise_floor(subject)
    return without or "can be had in wider precision" + (f", but for {', '.join(narrow)}" if narrow else "")


def _weights(spec: ModelOptions) -> str:
    """The name of the exact weights, from their files as they are now."""
    from iclgd.models.identity import weights_identity

    return weights_identity(spec.model_spec(), fresh=True)[:16]


command = forms(
    click.Command(
        "doctor",
        callback=_examine,
        params=[
            click.Argument(["model"], shell_complete=completed(model_names, files=True)),
            *options_of(ModelOptions, leave_out=("model",)),
        ],
        help=_examine.__doc__,
        epilog=epilog(EXAMPLES),
    )
)
