"""What a comparison shows: the answer in a sentence, tables with nulls and baselines, figures."""

from collections.abc import Callable, Iterator

from iclgd.labs.compare import absent, charts, equal, figures, floors, sweep_charts
from iclgd.labs.compare.answer import answer, found
from iclgd.labs.compare.evidence import Evidence
from iclgd.labs.compare.explore import explored
from iclgd.labs.compare.nearer import METRIC, nearer
from iclgd.labs.compare.spoken import spoken_of
from iclgd.labs.compare.view import Comparison, title_of
from iclgd.learners import LEARNERS
from iclgd.metrics import METRICS
from iclgd.nulls import NULLS
from iclgd.papers import PAPERS
from iclgd.prompts import WHERE
from iclgd.report.page import Drawing, Page, Section
from iclgd.report.what import what
from iclgd.report.widgets import Widget
from iclgd.study import Study

SOURCES = ("dai2022", "deutch2023")
SPREAD = "Mean ± standard deviation over seeds; the mean over tasks weighs tasks alike, its 95% interval is over them."
SHORT = "Below each learner its nulls, and a model that was never trained; accuracy where a null gives answers."
ANSWERS = (
    "Margins are the log-probabilities of label words less their mean. Of what reading changes in them, missed is the "
    "squared distance to it beyond the shift that queries share (0 is reading, 1 doing nothing); recovered how far one "
    "goes along it, with that shift and without (1 is as far as reading, more too far). Both are of the effect of all "
    "draws of a task together, so that a draw in which reading changes little counts little. One answer for all "
    "queries is reading's own mean over them. It tells no query from another; any other one misses as much, and may "
    "agree more often."
)
NEARER = (
    "What each learner's answers miss, and than whose they surely miss less or more: doing nothing, one answer for all "
    "queries, the same learner trained on something else. P-values are corrected for those of all tasks (Holm); of a "
    "single task, what its table of differences has is corrected for all rows there. What is missed is skewed where it "
    "varies much from draw to draw: less is then said too easily."
)
LABELS = (
    "Accuracy after right and after wrong labels, how much of the update labels make, and the cosine of what they "
    "change in reading and in training; below each learner its nulls."
)
DIFFERENCES = (
    "First minus second on the same draws and queries; p-values corrected for all rows (Holm). Where some draws lack "
    "one of the two, what is left may be a selection, and nothing is decided."
)
ONE_SEED = "1 seed: they are about other queries after the same demonstrations, and decide nothing."
TRAINING = (
    "Means over draws, tasks alike; 95% intervals are over tasks, or over the draws of a single one. Draws that "
    "diverged are left out. Weights moved: the share of those that were trained that are not what they were. A cosine "
    "near 1 says that training hardly looked at the labels."
)
CAPTIONS = {
    "layers-prompt": (
        "Likeness by layer, at the prompt's last token",
        "Bands are 95% intervals; thin dotted and dashed lines are nulls.",
    ),
    "layers-label": (
        "Likeness by layer, at the class-0 label word",
        "Where the code of Dai 2022 and Deutch 2023 measured; chosen under `where` above, its lines can be pointed at.",
    ),
    "alpha": ("α by task", "SimAM_Δ between two finetuned learners at one learning rate, at the label word."),
    "gradients": (
        "Gradient norms",
        "Of the trained parameters, by layer and demonstration, before clipping; first task and seed.",
    ),
    "sizes": (
        "Likeness at equal size",
        "The same learners and rates, against how far their weights went.",
    ),
    "rates": (
        "Likeness and accuracy against learning rate",
        "Likeness that follows the step size says little by itself.",
    ),
}

CHARTS: dict[str, Callable[[Comparison], Widget | None]] = {
    "alpha": charts.alpha,
    "gradients": charts.gradients,
    "rates": sweep_charts.by_rate,
    "sizes": sweep_charts.by_size,
}


def page(study: Study) -> Page:
    comparison = Comparison(study)
    position = comparison.spec.position
    others = [where for where in WHERE if where != position]
    first = list(_tables(comparison, position, brief=True))
    drawings = [
        Section(*CAPTIONS[name], figure=Drawing(name, draw), widget=_widget(name, comparison))
        for name, draw in figures.drawings(comparison).items()
    ]
    rest = [section for where in others for section in _tables(comparison, where, brief=False)]
    return Page(
        "Reading against training",
        f"{what(comparison.spec, study.facts('demonstrations'), study.facts('queries'))} · {WHERE[position]}",
        answer(comparison),
        [*first[:1], *drawings[:1], *explored(comparison), *drawings[1:], *first[1:], *rest],
        picture=charts.picture(comparison),
        found=found(comparison),
        glossary=glossary(comparison),
        sources=[PAPERS[name].bibtex(name) for name in SOURCES],
    )


def _widget(name: str, comparison: Comparison) -> Widget | None:
    """The chart of what a figure shows; likeness by layer, which is chosen by place, is shown once."""
    if name == f"layers-{comparison.spec.position}":
        return charts.by_layer(comparison)
    return CHARTS[name](comparison) if name in CHARTS else None


def glossary(comparison: Comparison) -> dict[str, str]:
    """What the study's metrics, learners and nulls are, by what tables call them."""
    spec, found = comparison.spec, {}
    for choice in spec.metrics:
        found[comparison.metrics[choice.label].title] = METRICS.summary(choice.name)
    for choice in spec.learners:
        found[choice.kind] = LEARNERS.summary(choice.name)
    for choice in spec.nulls:
        found[title_of(choice.label)] = NULLS.summary(choice.name)
    return {title: f"{about[:1].upper()}{about[1:].rstrip('.')}." for title, about in found.items() if about}


def _tables(comparison: Comparison, position: str, brief: bool) -> Iterator[Section]:
    """What the answer rests on; the part that labels make; learners, nulls and baselines; every difference."""
    tables, spec, where = Evidence(comparison, position), comparison.spec, WHERE[position]
    if brief:
        note = f"{SHORT} {comparison.spec.interval_note}"
        yield Section(f"In short, {where}", note, tables.short(spec.task), brief=True)
        if tables.likeness_of_answers:
            yield Section("Answers beside reading's", f"{ANSWERS} {SHORT}", tables.answers(spec.task))
        if METRIC in comparison.metrics:
            yield Section("Nearer to reading, task by task", f"{NEARER} {spec.draws_note}", nearer(tables))
    if spec.contrast:
        yield Section(f"What labels change, {where}", LABELS, tables.labels(spec.task))
    if len(spec.task) > 1:
        yield from _by_task(tables, where, brief)
    for task, title in spec.task_titles.items():
        yield Section(f"{title}, {where}", spec.draws_note, tables.one_task(task))
        yield Section(f"{title}: what is predicted, {where}", "", tables.predictions(task))
    differences = f"{DIFFERENCES} {ONE_SEED}" if len(spec.seeds) == len(spec.task) == 1 else DIFFERENCES
    for name in comparison.metrics if brief else tables.likeness:
        metric = comparison.metrics[name]
        if metric.by == "query" or (metric.by == "layer" and metric.of != "training" and name != "label-share"):
            title = f"Differences in {metric.title}, {where}"
            yield Section(title, differences, tables.differences(spec.task, name))
    if (beside := equal.at_equal_size(tables)).rows:
        yield Section(f"{equal.TITLE}, {where}", equal.NOTE, beside)
    if (again := floors.by_rate(tables)).rows:
        yield Section(f"{floors.TITLE}, {where}", f"{floors.NOTE} {floors.known_to(tables)}".strip(), again)
    if spec.pairs:
        yield Section(f"Two finetuned learners, {where}", "α: SimAM_Δ between them.", tables.pairs(spec.task))
    if brief:
        yield Section("Training", TRAINING, tables.training(spec.task))
        if (gone := absent.left_out(comparison)).rows:
            yield Section("What is not there", absent.NOTE, gone)


def _by_task(tables: Evidence, where: str, brief: bool) -> Iterator[Section]:
    if brief:
        for name, metric in tables.accuracies.items():
            yield Section(
                metric.title.capitalize(), SPREAD, tables.by_task(name), brief=name == next(iter(tables.accuracies))
            )
    spoken = [choice.label for choice in spoken_of(tables.comparison)]
    for name, metric in tables.likeness.items():
        yield Section(
            f"{metric.title}, {where}",
            SPREAD,
            tables.by_task(name),
            brief=brief and name == next(iter(tables.likeness)),
        )
        note = f"{tables.comparison.spec.draws_note} The last column's are over tasks."
        yield Section(f"{metric.title}: nulls and noise floor, {where}", note, tables.nulls_by_task(name, spoken))
