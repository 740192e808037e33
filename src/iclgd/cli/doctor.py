"""`iclgd doctor`: whether the lab can work with a model."""

from typing import Any

import click

from iclgd.cli.lab import options_of
from iclgd.options import ModelOptions

EXAMPLES = """\b
Examples:
  iclgd doctor smollm2-135m
  iclgd doctor ./my-model --dtype bfloat16
  iclgd doctor Qwen/Qwen3-0.6B
"""


def _examine(**given: Any) -> None:
    """Whether the labs can work with MODEL, in seconds."""
    from iclgd.errors import Refusal
    from iclgd.report.page import Table
    from iclgd.report.terminal import say, window, working

    spec = ModelOptions.of({name: value for name, value in given.items() if value is not None})
    with working("starting") as note:
        from iclgd.models.doctor import long_labels, parity
        from iclgd.models.load import load_subject

        subject = load_subject(spec.model_spec(), note)
        note("comparing captured attention with the model's own")
        layout, long, found = subject.layout, long_labels(subject), parity(subject)
    how = {
        "registered": "registered attention function",
        "intercepted": "softmax intercepted under eager attention",
    }[subject.capture]
    grouped = f"on {layout.key_heads} key heads" if layout.key_heads < layout.heads else "a key head each"
    bos = subject.tokenizer.bos_token
    rows = [
        ["architecture", f"{type(subject.model).__name__} ({layout.family})"],
        ["layers", str(layout.layers)],
        ["heads", f"{layout.heads}, {grouped}"],
        ["context", f"{subject.room:,} tokens" if subject.room else "no limit known"],
        ["starts with", bos if bos else "nothing (the tokenizer has no bos)"],
        ["attention", how],
        ["K and V", layout.projections()],
        ["label words", "; ".join(long) if long else "one token each, in every task of the library"],
        [
            "parity",
            f"max |Δlogits| = {found.difference:.2g}, behind a shared prefix {found.behind:.2g}, of {found.scale:.3g}",
        ],
    ]
    say(Table(["", ""], rows).text(window()))
    if not found.holds:
        raise Refusal(f"{spec.model} cannot be used in {spec.dtype}: captured attention differs from its own.")
    say(f"\nready   iclgd trace --model {spec.model}")


command = click.Command(
    "doctor",
    callback=_examine,
    params=[click.Argument(["model"]), *options_of(ModelOptions, leave_out=("model",))],
    help=_examine.__doc__,
    epilog=EXAMPLES,
)
