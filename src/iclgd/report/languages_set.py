"""What the whole set of the languages lab shows and leaves: tables, figures, the page and the record."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from iclgd.labs.languages.run import Experiment, Result, record
from iclgd.report import languages_figures as figures
from iclgd.report.figures import save
from iclgd.report.languages import drawings, over_seeds, write_record
from iclgd.report.page import Section, write_page
from iclgd.report.terminal import markdown, number, table

PAIR = ("gd", "preconditioned gd", "gd on learned features")
SEEDS = "Means over seeds ± half of their 95% interval."


def name_of(e: Experiment) -> str:
    """A cell in a few words."""
    parts = [e.language, e.negatives, e.encoder, e.labels]
    parts += [f"length {e.max_length}"] if e.min_length == e.max_length else []
    parts += [f"{e.layers} layers"] if e.layers > 1 else []
    parts += ["random start"] if e.start == "random" and e.labels != "fixed" and not e.end_to_end else []
    parts += ["gd start"] if e.start == "gd" and e.labels == "fixed" else []
    return " · ".join(parts)


def tables(results: Sequence[Result]) -> list[Section]:
    """The two questions first, then every cell."""
    fixed = [result for result in results if result.experiment.labels == "fixed"]
    drawn = [result for result in results if result.experiment.labels != "fixed"]
    return [
        Section("Fixed labels: is anything learned in context?", SEEDS, *_shuffling(fixed)),
        Section("Sign or language drawn: which gradient descent?", SEEDS, *_descent(drawn)),
        Section("Accuracy of every learner", SEEDS, *_columns(results, "accuracy")),
        Section("Cosine of every learner's sensitivities to the trained layer's", SEEDS, *_columns(results, "cosine")),
    ]


def _shuffling(results: Iterable[Result]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for result in results:
        trained, gd = result.learners["trained"], result.learners["gd"]
        less = [a - b for a, b in zip(trained["accuracy"], trained["shuffled"], strict=True)]
        none = result.learners["no context"]
        found = [trained["accuracy"], trained["shuffled"], less, none["cosine"], none["mse"], gd["cosine"], gd["mse"]]
        shown = [*map(over_seeds, found), over_seeds(gd["accuracy"])]
        shown.insert(3, number(max(map(abs, less))))
        rows.append([name_of(result.experiment), *shown])
    names = ["accuracy", "labels shuffled", "difference", "largest of a seed", "cos no context", "MSE no context"]
    return ["", *names, "cos gd", "MSE gd", "accuracy of gd"], rows


def _descent(results: Iterable[Result]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for result in results:
        trained, row = result.learners["trained"], [name_of(result.experiment)]
        row += [over_seeds(trained["accuracy"]), over_seeds(trained["shuffled"])]
        for what, names in (("cosine", PAIR), ("cosine_shuffled", PAIR[:2]), ("mse", PAIR[:2])):
            row += [over_seeds(result.learners[n][what]) if n in result.learners else "" for n in names]
        matrices = result.weights.get("cosine to the best preconditioner")
        rows.append([*row, over_seeds(matrices) if matrices else ""])
    header = ["", "accuracy", "shuffled", "cos gd", "cos precond. gd", "cos learned features"]
    header += ["shuffled: cos gd", "cos precond. gd", "MSE gd", "MSE precond. gd", "cos A, best A"]
    return header, rows


def _columns(results: Sequence[Result], what: str) -> tuple[list[str], list[list[str]]]:
    names = [name for name in dict.fromkeys(n for result in results for n in result.learners) if name != "trained"]
    names = ["trained", *names] if what == "accuracy" else [name for name in names if "nearest" not in name]
    rows = [
        [name_of(r.experiment), *(over_seeds(r.learners[n][what]) if n in r.learners else "" for n in names)]
        for r in results
    ]
    return ["", *names], rows


def text_of_all(results: Sequence[Result]) -> str:
    """The answers to the two questions; the page has the rest."""
    return "\n\n".join(f"{part.title}\n\n{table(part.header, part.rows)}" for part in tables(results)[:2])


def write_all(results: Sequence[Result], folder: Path, command: str) -> None:
    """record.json, tables.md, figures and index.html of the whole set."""
    write_record(folder, [record(result) for result in results])
    made = {"summary": figures.summary(results, [name_of(result.experiment) for result in results])}
    for labels, start in (("fixed", "random"), ("sign", "gd")):
        kind = ("autoencoder", "complement", labels, start)
        cells = [r for r in results if (e := r.experiment) and (e.encoder, e.negatives, e.labels, e.start) == kind]
        made |= {f"{labels}-{name}": drawing for name, drawing in drawings(cells).items()}
    for name, drawing in made.items():
        save(drawing, folder, name)
    found = tables(results)
    text = "\n\n".join(f"### {part.title}\n\n{markdown(part.header, part.rows)}" for part in found)
    (folder / "tables.md").write_text(f"`{command}`\n\n{text}\n", encoding="utf-8")
    pictures = [Section(name.replace("-", " ").capitalize(), figure=drawing) for name, drawing in made.items()]
    e = results[0].experiment
    title = f"{len(results)} cells · seeds {e.members[0]} to {e.members[-1]}"
    sections = [pictures[0], *found, *pictures[1:]]
    write_page(folder / "index.html", "The languages lab", title, sections, command)
