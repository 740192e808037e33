"""What `causal` shows: the answer in a few sentences, then layers, training's layers, heads, and heads taken out."""

from functools import partial

from iclgd.labs.causal import figures, tables
from iclgd.labs.causal.answer import answer
from iclgd.labs.causal.view import View
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
    "effect on label margins, and reading's of training's."
)
HEADS = (
    "Reading's output of one head put into the zero-shot run: the share of reading's effect that it carries, with its "
    "scores. Function vector: what its mean output does to the right answer where labels are permuted. Induction: "
    "attention to what followed the same token before. Dual step: the part of its output that the demonstrations make."
)
ABLATED = (
    "The foremost heads by each score give their mean over another task's prompt, at every token, also while the "
    "demonstrations are read. Effect left: reading's effect without these heads, of that with all. Random: as many "
    "heads of the same layers. As few left: the share of random sets that leave as little."
)


def page(study: Study) -> Page:
    view = View(study)
    sections = [
        Section("Layers exchanged", f"{LAYERS} {view.spec.interval_note}", tables.layers(view), brief=True),
        Section("By layer", "Bands are 95% intervals.", figure=Drawing("layers", partial(figures.draw_layers, view))),
        Section("Training and reading", TRAINING, tables.training(view), brief=True),
        Section("Heads taken out", ABLATED, tables.ablated(view), brief=True),
        Section("Heads put in", HEADS, tables.heads(view)),
    ]
    asked = what(view.spec, study.facts("demonstrations"), study.facts("queries"))
    return Page("What carries it", asked, answer(view), sections)
