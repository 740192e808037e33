"""`iclgd linear`: train self-attention on regressions and hold it against the learners it may have become."""

import hashlib
import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from iclgd.errors import Refusal

if TYPE_CHECKING:
    from iclgd.labs.linear.run import Experiment, Result


EXAMPLES = """\b
Examples:
  iclgd linear train --layers 1 --compare gd           one layer is one step of gradient descent
  iclgd linear train --layers 2 --compare gd,gd++      two layers are more than two steps
  iclgd linear train --task sine                       with an MLP in front
"""


@click.group(epilog=EXAMPLES)
def command() -> None:
    """Linear self-attention that is gradient descent."""


@command.command()
@click.option(
    "--task",
    default="linear",
    show_default=True,
    help="linear, gaussian, skewed, sine, sine-one-key, sparse, quadratic, relu or tree.",
)
@click.option("--dx", type=int, help="Inputs.  [default: 10; 1 for sine]")
@click.option("--dy", default=1, show_default=True, help="Outputs.")
@click.option("--demos", default=10, show_default=True, help="Demonstrations in an episode.")
@click.option("--noise", default=0.0, show_default=True, help="Standard deviation of the demonstrations' labels.")
@click.option("--layers", default=1, show_default=True)
@click.option("--heads", default=1, show_default=True)
@click.option("--attention", default="linear", show_default=True, help="linear, softmax, exponential, relu or rbf.")
@click.option("--shared", is_flag=True, help="The same weights in every layer.")
@click.option("--width", type=int, help="Put an MLP of this width in front.  [default: none; 40 for sine]")
@click.option("--hidden", default=160, show_default=True, help="Hidden units of that MLP.")
@click.option("--seeds", default=8, show_default=True, help="Members trained together.")
@click.option("--steps", default=4000, show_default=True)
@click.option("--batch", default=64, show_default=True, help="Episodes in a step, for each seed.")
@click.option("--rate", type=float, help="Adam's learning rate.  [default: 0.02; 0.003 with an MLP]")
@click.option("--clip", default=0.1, show_default=True, help="Clip each seed's gradient to this norm.")
@click.option(
    "--compare",
    default="gd",
    show_default=True,
    help="Learners, separated by commas: gd, gd++, momentum, preconditioned, ridge, newton, "
    "least-squares, averaging, nearest.",
)
@click.option("--episodes", default=4000, show_default=True, help="Episodes to judge on.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the figures and the record.  [default: runs/linear-KEY]"
)
@click.option("--overwrite", is_flag=True, help="Write into the folder although it has files.")
def train(out: Path | None, overwrite: bool, compare: str, **given: Any) -> None:
    """Train, compare, and leave a folder of figures and a record.

    Example: iclgd linear train --layers 1 --compare gd
    """
    from iclgd.labs.linear.figures import draw
    from iclgd.labs.linear.run import Experiment, record, run

    sine = given["task"].startswith("sine")
    mlp = given["width"] if given["width"] is not None else 40 * sine
    defaults = {"dx": 1 if sine else 10, "width": mlp, "rate": 0.003 if mlp else 0.02}
    given |= {name: value for name, value in defaults.items() if given[name] is None}
    experiment = Experiment(**given, compare=tuple(name.strip() for name in compare.split(",")))
    folder = claim_folder(out or Path("runs") / f"linear-{key(experiment)}", overwrite)
    with Console(stderr=True).status(f"training {experiment.seeds} seeds together …"):
        result = run(experiment)
        folder.mkdir(parents=True, exist_ok=True)
        draw(result, folder)
    (folder / "record.json").write_text(json.dumps(record(result), indent=1))
    show(result, folder)


@command.command()
@click.option("--task", default="linear", show_default=True, help="linear, gaussian or skewed.")
@click.option("--dx", default=10, show_default=True)
@click.option("--demos", default=10, show_default=True)
@click.option("--noise", default=0.0, show_default=True)
@click.option("--steps", default=3, show_default=True, help="The most steps to tune GD and GD++ for.")
@click.option("--sample", default=5000, show_default=True, help="Episodes whose inputs the tuned risks average over.")
def optimum(task: str, dx: int, demos: int, noise: float, steps: int, sample: int) -> None:
    """The best that each learner can do on a linear family, without training anything."""
    import torch

    from iclgd.small import optimum as best
    from iclgd.small.train import one_thread
    from iclgd.tasks.regression import FAMILIES

    if min(steps, sample) < 1:
        raise Refusal("--steps and --sample are counts of at least one.")
    family = FAMILIES[task](dx, 1, demos, noise)
    rate, risk = best.one_step(family)
    table = Table("", "risk", "rate", "curvature", box=None, pad_edge=False)
    zero = float((best.weights_of(family).moment @ family.inputs.covariance).trace()) / 2
    table.add_row("zero", number(zero))
    table.add_row("gd ×1", number(risk), number(rate))
    table.add_row("preconditioned gd", number(best.best_preconditioner(family)[1]))
    with one_thread():
        drawn = family.draw(sample, torch.Generator().manual_seed(0), dtype=torch.float64)
        for k in range(2, steps + 1):
            rate, risk = best.best_gd(family, drawn, k)
            table.add_row(f"gd ×{k}", number(risk), number(rate))
        for k in range(2, steps + 1):
            rates, curvatures, risk = best.best_gdpp(family, drawn, k)
            table.add_row(f"gd++ ×{k}", number(risk), number(rates[0]), number(curvatures[0]))
            for i, (rates, curvatures, risk) in enumerate(best.gdpp_minima(family, drawn, k), 1):
                columns = (" ".join(map(number, part)) for part in (rates, curvatures[:-1]))
                table.add_row(f"gd++ ×{k} untied {i}", number(risk), *columns)
    console = Console(highlight=False)
    console.print(f"\n{task} · {dx} inputs · {demos} demonstrations · noise {noise:g} · risk is ½ squared error\n")
    console.print(table)
    console.print(
        f"\nzero, gd ×1 and preconditioned gd in closed form; the others tuned on the inputs of {sample} episodes\n"
    )


def key(experiment: "Experiment") -> str:
    return hashlib.sha256(json.dumps(asdict(experiment), sort_keys=True).encode()).hexdigest()[:6]


def claim_folder(folder: Path, overwrite: bool) -> Path:
    if folder.exists() and not folder.is_dir():
        raise Refusal(f"{folder} is a file; give --out another name.")
    if folder.is_dir() and any(folder.iterdir()) and not overwrite:
        raise Refusal(f"{folder} has files in it; give --out another name, or --overwrite.")
    return folder


def counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def number(value: Any, digits: int = 4) -> str:
    """A few significant digits, without the zero before the point."""
    text = f"{float(value):.{digits}g}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def interval(values: Sequence[float]) -> str:
    """Mean over seeds ± half its 95% interval by Student's t, to the digit where the interval begins."""
    from iclgd.metrics.statistics import half_width

    mean, half = sum(values) / len(values), half_width(values)
    if not math.isfinite(half):
        return number(mean)
    places = min(5, max(0, -math.floor(math.log10(half)))) if half else 4
    return " ± ".join(
        f"{v:.{places}f}".replace("0.", ".", 1) if abs(v) < 1 else f"{v:.{places}f}" for v in (mean, half)
    )


def repeat(experiment: "Experiment", folder: Path) -> str:
    """The command that gives these numbers again: every option that is not at its default."""
    words = ["iclgd", "linear", "train"]
    for field in fields(experiment):
        value = getattr(experiment, field.name)
        if value == field.default:
            continue
        words.append(f"--{field.name}")
        if field.name == "compare":
            words.append(",".join(value))
        elif value is not True:
            words.append(str(value))
    return shlex.join([*words, "--out", str(folder), "--overwrite"])


def show(result: "Result", folder: Path) -> None:
    e, console = result.experiment, Console(highlight=False)
    console.width = max(console.width, 110)  # a table broken inside its numbers reads worse than a wrapped line
    console.print(
        f"\n{e.task} · {e.dx} → {e.dy} · {e.demos} demonstrations"
        f" · {counted(e.layers, 'layer')} of {e.attention} attention\n"
        f"{counted(e.seeds, 'seed')} × {e.steps} steps of {e.batch} · judged on {e.episodes} fresh episodes\n"
    )
    table = Table("", "loss", "cosine", "|Δŷ|", "SPD", "ILWD", box=None, pad_edge=False)
    table.add_row("trained", interval(result.loss))
    columns = ("cosine", "prediction", "spd", "implied")
    for name, reference in result.references.items():
        alike = [interval([row[column] for row in reference["likeness"]]) for column in columns]
        table.add_row(name, number(reference["loss"]), *alike)
    table.add_section()
    start = [
        [seed[0] for seed in result.curves[name][0]] for name in ("cosine", "prediction")
    ]  # to the first reference
    table.add_row("null: untrained", interval(result.curves["loss"][0]), *map(interval, start))
    console.print(table)
    exact = [f"{name} {number(r['risk'])}" for name, r in result.references.items() if "risk" in r]
    if exact:
        console.print(f"\nexact risk       {', '.join(exact)}")
    if result.weights:
        w = result.weights
        console.print(f"learned rate/N   {interval(w['implied rate / N'])}, optimal {number(w['optimal rate / N'])}")
        console.print(
            f"weights          {interval(w['distance']['preconditioned'])} from the best construction, relative"
        )
        console.print(f"half-way loss    {interval(w['half-way loss'])}, weights averaged with the construction")
    for layer, ranked in result.layers.items():
        near = ", ".join(f"{name} {number(alike['spd'], 2)}" for name, alike in list(ranked.items())[:3])
        console.print(f"after layer {layer:<4} {near}  (nearest by SPD)", soft_wrap=True)
    console.print(
        f"\nfigures  {folder}\nrecord   {folder / 'record.json'}\nrepeat   {repeat(e, folder)}\n", soft_wrap=True
    )
