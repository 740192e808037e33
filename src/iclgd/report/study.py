"""What a study leaves: the record of its numbers, the figures, and the page that shows them."""

import json
import math
from pathlib import Path

import yaml

from iclgd.report.compare import WHERE, Tables
from iclgd.report.compare_figures import draw_all
from iclgd.report.comparison import NULLS, Comparison, Estimate
from iclgd.report.figures import save
from iclgd.report.page import Section, write_page
from iclgd.report.terminal import markdown
from iclgd.run import METRICS

CAPTIONS = {
    "layers-prompt": (
        "Likeness by layer, at the prompt's last token",
        "Bands are 95% intervals over queries and seeds; thin dotted and dashed lines are nulls.",
    ),
    "layers-label": (
        "Likeness by layer, at the class-0 label word",
        "Where the code of Dai 2022 and Deutch 2023 measured.",
    ),
    "alpha": ("α by task", "SimAM_Δ between two finetuned learners at one learning rate, at the label word."),
    "gradients": (
        "Gradient norms",
        "Of the trained parameters, by layer and demonstration, before clipping; first task and seed.",
    ),
    "rates": (
        "Likeness and accuracy against learning rate",
        "Likeness that follows the step size says little by itself.",
    ),
}


def write_study(folder: Path, comparison: Comparison, title: str, repeat: str) -> None:
    """spec.yaml, record.json, tables.md, figures and index.html, beside the cells."""
    spec = comparison.study.model_dump(mode="json")
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True), encoding="utf-8")
    record = {"spec": spec, "title": title, "estimates": _estimates(comparison), "cells": _facts(comparison)}
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / "record.json").write_text(text + "\n", encoding="utf-8")
    first, *others = _tables(comparison)
    figures = []
    for name, drawing in draw_all(comparison):
        save(drawing, folder, name)
        figures.append(Section(*CAPTIONS[name], figure=drawing))
    sections = [first, *figures, *others]
    write_page(folder / "index.html", "Reading against training", title, sections, repeat)
    text = "\n\n".join(f"### {s.title}\n\n{markdown(s.header, s.rows)}" for s in sections if s.rows)
    (folder / "tables.md").write_text(f"{title}\n\n{text}\n", encoding="utf-8")


def _tables(comparison: Comparison) -> list[Section]:
    sections = []
    for position, where in WHERE.items():
        tables = Tables(comparison, position)
        if len(comparison.study.tasks) > 1:
            for metric in METRICS:
                sections.append(
                    Section(f"{metric}, {where}", "Mean ± standard deviation over seeds.", *tables.by_task(metric))
                )
                nulls = tables.nulls_by_task(metric, comparison.study.learners)
                sections.append(Section(f"{metric}: nulls and noise floor, {where}", "", *nulls))
        for task in comparison.study.tasks:
            sections.append(Section(f"{task}, {where}", "Means with 95% intervals.", *tables.one_task(task)))
            sections.append(Section(f"{task}: what is predicted, {where}", "", *tables.predictions(task)))
        if (pairs := tables.pairs(comparison.study.tasks))[1]:
            sections.append(Section(f"Paired differences, {where}", "Sign-flip p-values over queries.", *pairs))
    if len(comparison.study.tasks) > 1:
        sections.insert(0, Section("Accuracy", "", *Tables(comparison, "prompt").accuracy_by_task()))
    return sections


def _estimates(comparison: Comparison) -> list[dict[str, object]]:
    """Every likeness and null, for every initialisation, task and position: the numbers behind the tables."""
    found: list[dict[str, object]] = []
    study = comparison.study
    for init in study.inits:
        for task in study.tasks:
            for spec in study.learners:
                for metric in (*METRICS, "τ"):
                    for what in ("", *(f"|{null}" for null in NULLS)):
                        for position in WHERE:
                            name = f"{spec.name}/{metric}{what}"
                            value = comparison.likeness(init, [task], name, position)
                            if math.isfinite(value.mean):
                                key = {"init": init, "task": task, "learner": spec.name, "metric": metric}
                                found.append({**key, "null": what[1:] or None, "position": position, **_plain(value)})
    return found


def _plain(value: Estimate) -> dict[str, float | None]:
    return {name: number if math.isfinite(number) else None for name, number in vars(value).items()}


def _facts(comparison: Comparison) -> dict[str, object]:
    return {cell.key()[:16]: comparison.results[cell.key()].facts for cell in comparison.study.cells()}
