"""What `implicit` shows: the answer in a few sentences, then patches for one query, for all, and training."""

from functools import partial

import numpy as np

from iclgd.labs.implicit import charts, figures, tables
from iclgd.labs.implicit.against import Against
from iclgd.labs.implicit.answer import answer, found
from iclgd.labs.implicit.beside import Beside
from iclgd.labs.implicit.view import View
from iclgd.report.charts import picture
from iclgd.report.numbers import number, significant
from iclgd.report.page import Drawing, Page, Section
from iclgd.report.what import what
from iclgd.study import Study

SHORT = (
    "Margins: log p of the label words less their mean; recovered: how much of what reading changes in them is there "
    "without the demonstrations, raw and after the mean over queries is taken off both; missed: how far from it, after "
    "that (0 is reading, 1 is doing nothing). Hold recovered against what tells no query from another, the mean of "
    "reading's scores over the calibration queries as the answer to all: it takes off what the model says of each by "
    "itself, and so recovers more or less than 0."
)
EXACT = (
    "Each query's own patches written into the weights, the demonstrations gone. Block: the largest ‖y − y_C‖ / ‖y_C‖ "
    "over blocks and queries; logits: the largest difference over tokens and queries. Gap: the largest over tokens "
    "without patches, and with another query's patch; of these the means over queries. Forms: A first and last "
    "maps, B first maps and a bias, C the last map alone, D behind a norm of the MLP's output. It holds for any "
    "weights: of what a model has learned it says nothing."
)
SIZES = (
    "Medians over layers and queries, form C. Size: ‖ΔW‖₂ / ‖W‖₂; along W: cosine with the weights; two queries: "
    "cosine of their patches. Settling: how ‖ΔW_i+1 − ΔW_i‖ falls with the number i of context tokens; −1 is what an "
    "average of i values does, trained or not, and no sign of a learning rule."
)
LABELS = "Right minus wrong labels, in the patch or the training, against the same in reading."
ALIKE = (
    "Cosine of patches (each query's own, one matrix for all) with the update that gradient descent makes of the same "
    "matrices, mean over layers; labels' part: of right minus wrong labels in both. Below, nulls: another training or "
    "noise in the place of training, or patches of another reading in the place of reading's."
)
BESIDE = (
    "Cosines less those of every null, on the same draws, at the rate whose update is most alike to the patch for all "
    "queries; p-values corrected for all rows, at all rates that it was chosen from (Holm), but those of a lone draw, "
    "which has none."
)
OVERLAPS = (
    "‖UᵀV‖² / r of the first r singular directions of one matrix for all and of training: 1 is the same space. Own "
    "patches have one direction: how much of it lies in training's first r. Labels' part: right minus wrong labels in "
    "the matrix and in training. Nulls stand below the largest rank at the rate that the answer speaks of."
)
STEPS = "Medians over layers. Best step: the number by which training's update comes closest to the patch."
BEST = (
    "Medians over layers, draws and queries of the number by which training's update comes closest to the patch; of "
    "labels, what right ones have more than wrong ones, in both. Below 0: they point away from each other."
)
BY_LAYER = "At the rate that the answer speaks of."
BY_TASK = (
    "What the matrix misses of reading's effect, and what one answer for all queries misses, without the mean shift; "
    "below, what each recovers of it. Intervals are over draws; p-values corrected for all tasks (Holm)."
)
ON_INTERVALS = "95% intervals: bands in the figure as printed; of a point in the chart, where it is pointed at."
CURVE = "Kind of patch and number of queries it was fitted on."
DEPTH = (
    "The patch for all queries in all layers up to one, and in a part of the layers, fitted for that part alone. Bands "
    "are 95% intervals."
)


def page(study: Study) -> Page:
    view = View(study)
    against = Against(view)
    sections = [
        Section("In short", f"{SHORT} {view.spec.interval_note}", tables.short(view), brief=True),
        Section("The patch against training", against.note, against.table(), brief=True),
        Section(
            "Fitted on more queries",
            ON_INTERVALS,
            figure=Drawing("curve", partial(figures.draw_curve, view)),
            widget=charts.curve(view),
        ),
        Section("Task by task", BY_TASK, tables.by_task(view)),
        Section("For one query", f"{EXACT} {path_note(view)}", tables.exact(view), brief=True),
        Section("Patches beside the weights", f"{SIZES} {settling_note(view)}", tables.sizes(view)),
        Section("One patch for all queries", CURVE, tables.curve(view)),
        Section(
            "By depth",
            DEPTH,
            tables.depth(view),
            figure=Drawing("depth", partial(figures.draw_depth, view)),
            widget=charts.depth(view),
        ),
        Section("What labels change", LABELS, tables.labels_made(view)),
        Section("The same matrices, trained", ALIKE, tables.alike(view)),
        Section("Beside its nulls", BESIDE, Beside(view).table()),
        Section(
            "By layer",
            BY_LAYER,
            figure=Drawing("layers", partial(figures.draw_layers, view)),
            widget=charts.layers(view),
        ),
        Section("The same directions", OVERLAPS, tables.overlaps(view)),
        Section("Sizes of both changes", STEPS, tables.steps(view)),
        *([Section("Best steps", BEST, best)] if (best := tables.best_steps(view)) else []),
    ]
    asked = what(view.spec, study.facts("demonstrations"), study.facts("queries"), query="held-out query")
    drawn = picture(tables.short(view), "margins missed")
    return Page("Prompt into weights", asked, answer(view), sections, picture=drawn, found=found(view))


def path_note(view: View) -> str:
    """That any path of matrices is gradient descent on losses made from it."""
    found = view.study.facts("random_path")
    if not found:
        return ""
    return (
        f'A path of random matrices is "gradient descent" on trace losses to {significant(max(found), 2)}: so is any.'
    )


def settling_note(view: View) -> str:
    """How patches settle in a layer that knows nothing."""
    found = view.study.facts("attention_alone")
    return f"In one layer of random softmax attention it is {number(float(np.mean(found)), 2)}." if found else ""
