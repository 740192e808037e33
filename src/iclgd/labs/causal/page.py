"""What `causal` shows: the answer in a few sentences, then layers, training's layers, heads, and heads taken out."""

from functools import partial
from itertools import combinations

import numpy as np

from iclgd.labs.causal import charts, exchanged, figures, tables
from iclgd.labs.causal.answer import answer, found
from iclgd.labs.causal.heads import Heads
from iclgd.labs.causal.view import View
from iclgd.report.numbers import number
from iclgd.report.page import Drawing, Page, Section
from iclgd.report.what import what
from iclgd.study import Study

LAYERS = (
    "Values of one run put in the place of another's at the prompt's last token. Share: how far label margins go from "
    "the second run's to the first's; the foremost layer is chosen after the fact. All layers: every attention output "
    "at once, which is the first run itself, but for positions that are added to the embedding. The stream: the "
    "residual stream after a block, put in whole. Nulls: the update of another query, or as long in random directions."
)
TRAINING = (
    "The same into the zero-shot run, measured along the other's effect: what training's attention has of reading's "
    "effect on label margins, and reading's of training's; below each, what another query's update and a random one as "
    "long have of it."
)
HEADS = (
    "Reading's output of one head put into the zero-shot run: the share of reading's effect that it carries, with its "
    "scores. Function vector: what its mean output does to the right answer where labels are permuted. Induction: "
    "attention to what followed the same token before. Dual step: the part of its output that the demonstrations make."
)
BOTH = (
    "Training's output of one head put into the zero-shot run in the same way. Rank correlation: over heads, of the "
    "share of reading's effect that reading's head carries and the share of training's effect that training's carries "
    "(a null: that another query's update of the head carries, or a random one as long). In common: of the {heads} "
    "foremost heads of either, the share that both have{chance}. P-values are corrected for all rates "
    "and nulls (Holm). They carry: the sum of the single shares of the "
    "foremost heads, chosen on every other query and measured on the rest."
)
EXCHANGED = (
    "Single heads put from one run into another: reading's into the finetuned model, which runs on its own weights "
    "from there on, and that model's into reading, beside both in the zero-shot run. Share: how far label margins go "
    "from the second run's to the first's; the foremost head is chosen after the fact. Foremost together: the sum of "
    "the single shares of the {heads} foremost heads, chosen on every other query and measured on the rest. Rank "
    "correlation: over heads, with what reading's carry into the zero-shot run."
)
LISTED = (
    "The heads that carry most of training's effect, in the mean over draws and chosen after the fact; how much of "
    "reading's effect the same outputs carry; and how much of it reading's own output of that head does."
)
ABLATED = (
    "The foremost heads by each score give their mean over another task's prompt, at every token, also while the "
    "demonstrations are read. Effect left: reading's effect without these heads, of that with all. Random: as many "
    "heads of the same layers. As few left: the share of random sets that leave as little{sets}."
)


def page(study: Study) -> Page:
    view = View(study)
    sections = [
        Section("Layers exchanged", f"{LAYERS} {view.spec.interval_note}", tables.layers(view), brief=True),
        Section(
            "By layer",
            "The share of the way between two runs. Bands are 95% intervals.",
            figure=Drawing("layers", partial(figures.draw_layers, view)),
            widget=charts.layers(view),
        ),
        Section("Training and reading", TRAINING, tables.training(view), brief=True),
        Section("Heads taken out", sets_note(view), tables.ablated(view), brief=True),
        Section("Heads put in", HEADS, tables.heads(view)),
        Section("Heads of reading and of training", both_note(view), Heads(view).table()),
        Section("Training's heads put in", LISTED, Heads(view).listed()),
        Section("Heads exchanged", EXCHANGED.format(heads=view.spec.heads), exchanged.table(view)),
    ]
    asked = what(view.spec, study.facts("demonstrations"), study.facts("queries"))
    return Page("What carries it", asked, answer(view), sections, found=found(view))


def both_note(view: View) -> str:
    """With how many of the foremost heads chance would have in common."""
    layers, heads = view.study.facts("layers"), view.study.facts("heads")
    chance = min(1, view.spec.heads / (layers[0] * heads[0])) if heads else None
    said = "" if chance is None else f" (by chance {number(chance, 2)})"
    return BOTH.format(heads=view.spec.heads, chance=said)


def sets_note(view: View) -> str:
    """With how many of the random sets are different ones, and how much two of them have in common."""
    drawn = [sets for score in view.known_scores() for sets in view.random_sets(score) if sets]
    if not drawn:
        return ABLATED.format(sets="")
    different = [len(set(sets)) for sets in drawn]
    common = [len(one & two) / len(one) for sets in drawn for one, two in combinations(sets, 2)]
    return ABLATED.format(
        sets=(
            f"; of {view.spec.sets} sets {min(different)} to {max(different)} are different ones, and two of them have "
            f"{number(float(np.mean(common)), 2)} of their heads in common, so that they are not independent, least of "
            "all where a layer has few heads"
        )
    )
