"""What `iclgd languages` shows and leaves: tables, figures, the page and the record."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from iclgd.languages.experiment import Experiment, Result, record
from iclgd.report import languages_figures as figures
from iclgd.report.figures import save
from iclgd.report.page import Section, write_page
from iclgd.report.terminal import number, table

COLUMNS = {
    "accuracy": "accuracy",
    "shuffled": "labels shuffled",
    "loss": "½ sq. error",
    "cosine": "cosine to trained",
    "mse": "MSE to trained",
}


def over_seeds(values: Sequence[float]) -> str:
    """Mean ± half its 95% interval over seeds, by Student's t; `n/a` where a seed has no value."""
    mean = float(np.mean(values))
    if len(values) < 2 or not np.isfinite(mean):
        return number(mean)
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)
    return f"{number(mean)} ±{number(half)}"


def title(e: Experiment) -> str:
    layers = "one LSA layer" if e.layers == 1 else f"{e.layers} LSA layers"
    return (
        f"{e.language} · {e.labels} labels · {e.negatives} negatives · {e.encoder} · {layers} · "
        f"{e.demos} demonstrations · {e.seeds} seeds × {e.episodes} episodes"
    )


def learners(result: Result) -> tuple[list[str], list[list[str]]]:
    rows = [
        [name, *("" if name == "trained" and c in ("cosine", "mse") else over_seeds(row[c]) for c in COLUMNS)]
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
    _write_record(folder, record(result))
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


def name_of(e: Experiment) -> str:
    """A cell in a few words."""
    parts = [e.language, e.negatives, e.encoder, e.labels]
    parts += [f"length {e.max_length}"] if e.min_length == e.max_length else []
    parts += [f"{e.layers} layers"] if e.layers > 1 else []
    parts += ["random start"] if e.start == "random" and e.labels != "fixed" and not e.end_to_end else []
    parts += ["gd start"] if e.start == "gd" and e.labels == "fixed" else []
    return " · ".join(parts)


def accuracies(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    names = ["trained", "gd", "preconditioned gd", "ridge", "3 nearest"]
    header = ["", "trained", "labels shuffled", *names[1:]]
    rows = []
    for result in results:
        found = [over_seeds(result.learners[n]["accuracy"]) if n in result.learners else "" for n in names]
        found.insert(1, over_seeds(result.learners["trained"]["shuffled"]))
        rows.append([name_of(result.experiment), *found])
    return header, rows


def likeness(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    names = ["gd", "preconditioned gd", "rank-one gd", "ridge", "gd on learned features"]
    header = ["", *(f"cos {name}" for name in names), "MSE gd", "MSE preconditioned gd"]
    rows = []
    for result in results:
        found = [over_seeds(result.learners[n]["cosine"]) if n in result.learners else "" for n in names]
        found += [over_seeds(result.learners[n]["mse"]) if n in result.learners else "" for n in names[:2]]
        rows.append([name_of(result.experiment), *found])
    return header, rows


def text_of_all(results: Sequence[Result]) -> str:
    return f"accuracy\n\n{table(*accuracies(results))}\n\nlikeness to the trained layer\n\n{table(*likeness(results))}"


def write_all(results: Sequence[Result], folder: Path, command: str) -> None:
    """record.json, tables, figures and index.html of the whole set."""
    _write_record(folder, [record(result) for result in results])
    shown = {
        labels: [
            result
            for result in results
            if (e := result.experiment).encoder == "autoencoder"
            and e.negatives == "complement"
            and e.labels == labels
            and e.start == start
        ]
        for labels, start in (("fixed", "random"), ("sign", "gd"))
    }
    made = {"summary": figures.summary(results, [name_of(result.experiment) for result in results])}
    for labels, chosen in shown.items():
        made |= {f"{labels}-{name}": drawing for name, drawing in drawings(chosen).items()}
    for name, drawing in made.items():
        save(drawing, folder, name)
    sections = [
        Section("Accuracy", "Means over seeds ± half of their 95% interval.", *accuracies(results)),
        Section("Likeness to the trained layer", "Cosine of sensitivities and MSE of predictions.", *likeness(results)),
        *(Section(name.replace("-", " ").capitalize(), figure=drawing) for name, drawing in made.items()),
    ]
    e = results[0].experiment
    write_page(folder / "index.html", "The languages lab", f"{len(results)} cells · {e.seeds} seeds", sections, command)


def _write_record(folder: Path, data: object) -> None:
    (folder / "record.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
