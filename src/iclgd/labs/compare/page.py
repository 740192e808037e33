"""What a comparison shows: the answer in a sentence, tables with nulls and baselines, figures."""

from collections.abc import Iterator

from iclgd.labs.compare import figures
from iclgd.labs.compare.answer import answer
from iclgd.labs.compare.tables import Tables
from iclgd.labs.compare.view import Comparison
from iclgd.prompts import WHERE
from iclgd.report.numbers import counted
from iclgd.report.page import Drawing, Page, Section
from iclgd.study import Study

CAPTIONS = {
    "layers-prompt": (
        "Likeness by layer, at the prompt's last token",
        "Bands are 95% intervals; thin dotted and dashed lines are nulls.",
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


def page(study: Study) -> Page:
    comparison = Comparison(study)
    position = comparison.spec.position
    others = [where for where in WHERE if where != position]
    first = list(_tables(comparison, position, brief=True))
    drawings = [
        Section(*CAPTIONS[name], figure=Drawing(name, draw)) for name, draw in figures.drawings(comparison).items()
    ]
    rest = [section for where in others for section in _tables(comparison, where, brief=False)]
    return Page(
        "Reading against training",
        f"{what(comparison)} · {WHERE[position]}",
        answer(comparison),
        [*first[:1], *drawings, *first[1:], *rest],
    )


def what(comparison: Comparison) -> str:
    """What was run, in one line."""
    spec = comparison.spec
    shown, asked = (sorted(set(comparison.study.facts(name))) for name in ("demonstrations", "queries"))
    k = f"{shown[0]}" if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"
    queries = counted(asked[0], "query") if len(asked) == 1 else f"{asked[0]} to {asked[-1]} queries"
    return (
        f"{spec.model_title} · {', '.join(spec.task_titles.values())} · k = {k} · "
        f"{counted(len(spec.seeds), 'seed')} × {queries} · {spec.dtype}"
    )


def _tables(comparison: Comparison, position: str, brief: bool) -> Iterator[Section]:
    tables, spec, where = Tables(comparison, position), comparison.spec, WHERE[position]
    several = len(spec.task) > 1
    if several:
        if brief:
            for name, metric in tables.accuracies.items():
                yield Section(
                    metric.title.capitalize(),
                    "Mean ± standard deviation over seeds.",
                    tables.by_task(name),
                    brief=name == next(iter(tables.accuracies)),
                )
        last = [chosen[-1].label for chosen in tables.kinds().values()]
        for name, metric in tables.likeness.items():
            yield Section(
                f"{metric.title}, {where}", "Mean ± standard deviation over seeds.", tables.by_task(name), brief=brief
            )
            nulls = tables.nulls_by_task(name, last)
            yield Section(f"{metric.title}: nulls and noise floor, {where}", "", nulls, brief=brief)
    for task, title in spec.task_titles.items():
        yield Section(
            f"{title}, {where}", "Means with 95% intervals.", tables.one_task(task), brief=brief and not several
        )
        yield Section(f"{title}: what is predicted, {where}", "", tables.predictions(task), brief=brief and not several)
    if spec.pairs:
        yield Section(
            f"Paired differences, {where}", "Sign-flip p-values over queries.", tables.pairs(spec.task), brief=brief
        )
