"""What one run of `iclgd languages` shows and leaves: tables, figures, the page and the record."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from iclgd.labs.languages.run import Experiment, Result, record
from iclgd.metrics.statistics import half_width
from iclgd.report import languages_figures as figures
from iclgd.report.figures import save
from iclgd.report.page import Section, write_page
from iclgd.report.terminal import number, table

COLUMNS = {
    "accuracy": "accuracy",
    "shuffled": "labels shuffled",
    "loss": "½ sq. error",
    "cosine": "cosine to trained",
    "cosine_shuffled": "cosine, shuffled",
    "mse": "MSE to trained",
}


def over_seeds(values: Sequence[float]) -> str:
    """Mean ± half its 95% interval over seeds, by Student's t; `n/a` where a seed has no value."""
    mean, half = float(np.mean(values)), half_width(values)
    return f"{number(mean)} ±{number(half)}" if np.isfinite(half) else number(mean)


def title(e: Experiment) -> str:
    layers = "one LSA layer" if e.layers == 1 else f"{e.layers} LSA layers"
    return (
        f"{e.language} · {e.labels} labels · {e.negatives} negatives · {e.encoder} · {layers} · "
        f"{e.demos} demonstrations · {e.seeds} seeds × {e.episodes} episodes"
    )


def learners(result: Result) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            name,
            *(
                "" if name == "trained" and c in ("cosine", "cosine_shuffled", "mse") else over_seeds(row[c])
                for c in COLUMNS
            ),
        ]
        for name, row in result.learners.items()
    ]
    return ["", *COLUMNS.values()], rows


def notes(result: Result) -> list[str]:
    """What else was measured, a line each."""
    lines = [f"words    members {', '.join(result.examples['members'])}; others {', '.join(result.examples['others'])}"]
    if result.autoencoder:
        last = {name: over_seeds(result.autoencoder[name][-1]) for name in ("symbols", "words")}
        lines.append(f"codes    {last['symbols']} of positions and {last['words']} of held-out words restored")
    for name, values in result.weights.items():
        if name != "matrices":
            lines.append(f"weights  {over_seeds(values)} {name}")
    return lines


def text(result: Result) -> str:
    return "\n".join([title(result.experiment), "", table(*learners(result)), "", *notes(result)])


def drawings(results: Sequence[Result]) -> dict[str, Figure]:
    """The figures of one run, or of runs side by side."""
    made = {"training": figures.training(results)}
    coded = [result for result in results if result.autoencoder]
    if coded:
        made["autoencoder"] = figures.autoencoder(coded)
    for i, result in enumerate(results, 1):
        if result.weights:
            made["weights" if len(results) == 1 else f"weights-{i}"] = figures.weights(result)
    return made


def write(result: Result, folder: Path, command: str) -> None:
    """record.json, figures and index.html of one run."""
    made = drawings([result])
    for name, drawing in made.items():
        save(drawing, folder, name)
    write_record(folder, record(result))
    captions = {
        "training": "Accuracy and loss on held-out episodes, and how near the trained layer comes to its references.",
        "autoencoder": "The autoencoder sees no labels; its words are those of the language and as many uniform ones.",
        "weights": "Constructed and learned, first seed.",
    }
    sections = [
        Section("Learners", "Means over seeds ± half of their 95% interval.", *learners(result)),
        *(Section(name.capitalize(), captions[name], figure=drawing) for name, drawing in made.items()),
        Section("Also", rows=[[line] for line in notes(result)]),
    ]
    write_page(folder / "index.html", "Membership learned in context", title(result.experiment), sections, command)


def write_record(folder: Path, data: object) -> None:
    (folder / "record.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
