"""The state of the question: a few sentences, each resting on claims of the ledger, under what the ledger says of them.

A line of a section may rest only on claims that stand as the section says; `pages.state` shows what was measured.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stand:
    """One sentence on the question, and the claims it rests on."""

    section: str
    says: str
    names: str  # of claims, separated by spaces

    @property
    def claims(self) -> tuple[str, ...]:
        return tuple(self.names.split())


SECTIONS = {  # name → title and what it means; docs/state.md has them as headings
    "exact": ("Exact", "Algebra: it holds for any inputs, and often for any weights, trained or not."),
    "holds": ("Holds", "Measured, and confirmed where it was measured."),
    "fails": ("Fails", "Said in this literature, or meant to be shown by it; measured, and not so."),
    "depends": ("Depends", "True in some settings and false in others."),
    "open": ("Open", "Measured without a verdict to confirm, or not yet measured."),
}

STANDS = (
    Stand(
        "exact",
        "A layer of linear attention with the right weights is one step of gradient descent on a linear regression "
        "over the demonstrations; the same layer again is the next step, and variants are GD++, preconditioned and "
        "functional gradient descent.",
        "vonoswald2023.step-on-every-token vonoswald2023.step-on-the-test-token vonoswald2023.k-layers-k-steps "
        "vonoswald2023.gdpp-layers vonoswald2023.separate-tokens ahn2023.layer-is-preconditioned "
        "cheng2024.functional-gd",
    ),
    Stand(
        "exact",
        "Whatever its weights, a linear transformer keeps a linear model that depends on the demonstrations' "
        "second moment alone. So that a trained one looks like a gradient step is no discovery.",
        "vladymyrov2024.implicit-linear-model vladymyrov2024.moment-is-enough",
    ),
    Stand(
        "exact",
        "Training a linear map by SGD is linear attention to its error signals; in linear attention reading is a map "
        "without demonstrations plus an update.",
        "dai2022.dual-form dai2022.error-signals dai2022.sgd-is-attention dai2022.icl-is-zsl-plus-update "
        "dai2022.ft-is-zsl-plus-update",
    ),
    Stand(
        "exact",
        "Softmax attention is one gradient step on a kernel model built for the query at hand, for any weights.",
        "ren2024.thm31 ren2024.thm31-taylor ren2024.thm31-large-scores ren2024.thm31-any-weights "
        "ren2024.rate-cancels ren2024.siamese ren2024.relu ren2024.chain",
    ),
    Stand(
        "exact",
        "A context is a patch of rank one to the weights behind attention, for any block: gated, with norms before "
        "or behind the MLP, and block after block through a whole model, which then generates the same tokens.",
        "dherin2025.rank-one-patch dherin2025.rank dherin2025.with-a-skip dherin2025.not-unique "
        "innocenti2025.any-block-with-norms goldwaser2026.gated-blocks goldwaser2026.last-map-is-enough "
        "goldwaser2026.norm-behind goldwaser2026.same-tokens goldwaser2026.pretrained goldwaser2026.fifty-tokens",
    ),
    Stand(
        "exact",
        "Layers with a state that is trained as they read (delta rule, mesa layer, test-time training) are SGD, "
        "ridge regression or linear attention.",
        "yang2024.delta-is-sgd yang2024.gated-delta yang2024.chunks vonoswald2023b.mesa "
        "mesanet2025.conjugate-gradients sun2024.linear-attention-is-batch-gd sun2024.linear-attention-is-sgd "
        "liu2026.ascent-is-minus-descent",
    ),
    Stand(
        "exact",
        "Reading and layer-causal training change a layer without knowing deeper ones; gradient descent does not.",
        "deutch2023.icl-is-layer-causal deutch2023.gd-is-not deutch2023.lcgd-is deutch2023.parallel-sum",
    ),
    Stand(
        "holds",
        "One change of weights for all queries, fitted on a few, brings back much of what a prompt does to others, "
        "and more than a shift that all share; that its labels matter is not shown.",
        "mazzawi2025.thought-matrix mazzawi2025.more-than-a-shift",
    ),
    Stand(
        "holds",
        "For regressions with weights of mean zero the best single layer of linear attention is one preconditioned "
        "step, the only kind of step that such a layer can take, and training finds it. With another mean no "
        "number of heads does what one step from that mean does.",
        "ahn2023.best-matrix ahn2023.preconditioned ahn2023.not-a-rate mahankali2023.noisy-rate "
        "zhang2023.other-length vonoswald2023.training-finds-the-step xie2025.mean-is-missed",
    ),
    Stand(
        "holds",
        "Two trained layers end nearer to GD++ than to gradient descent, and deeper stacks get ahead at the pace "
        "of Newton's iteration or faster, where gradient descent would take one step a layer.",
        "vonoswald2023.curvature-beats-gd vonoswald2023.two-layers-are-gdpp fu2023.stacks-keep-newtons-pace",
    ),
    Stand(
        "holds",
        "Every head of a pretrained model is a part that reads the query's own tokens plus one step on the "
        "demonstrations, in its kernel space; the step hardly changes when every label is wrong.",
        "ren2024.w0-is-the-own-tokens ren2024.thm31-real-heads ren2024.feature-map-real ren2024.unsupervised-flip",
    ),
    Stand(
        "holds",
        "The similarity of updates on which the case for language models rested (SimAOU with each output scaled to "
        "length one) sees the size of updates, and gives random ones a score: a quarter where they are √3 times as "
        "long as the output. Without that scaling they score nothing.",
        "deutch2023.noise-quarter deutch2023.noise-zero deutch2023.norm-sees-size deutch2023.simam-punishes-drift "
        "deutch2023.normalisation-inflates",
    ),
    Stand(
        "holds",
        "In a pretrained model reading and finetuning move attention outputs in a common direction, more than with "
        "random directions, and finetuning brings attention maps a little nearer to those of reading.",
        "dai2022.updates-are-alike dai2022.simam-rises",
    ),
    Stand(
        "holds",
        "On six tasks, at the rate 10⁻³, that direction is in part about the query: reading's update is more like "
        "training's of the same query than of another. And training learns the labels, where its loss is on them "
        "alone.",
        "dai2022.alike-beyond-another-query-on-six-tasks dai2022.label-loss-learns-labels-on-six-tasks",
    ),
    Stand(
        "holds",
        "Full-batch gradient descent ignores the order of demonstrations; reading and sequential training do not.",
        "shen2023.order shen2023.order-of-reading deutch2023.sequential-order yang2024.order",
    ),
    Stand(
        "holds",
        "At the rate 10⁻³ layer-causal training is above gradient descent in the normalised likeness of updates, and "
        "below it in the likeness of attention maps.",
        "deutch2023.lcgd-simaou-norm deutch2023.lcgd-simam-lower",
    ),
    Stand(
        "fails",
        "That a high Rec2FTP shows that reading and finetuning correct the same queries: without its base rate it "
        "says how many queries reading corrects.",
        "dai2022.rec2ftp-without-a-base-rate",
    ),
    Stand(
        "fails",
        "That what reading changes is what the labels say: they make a small part of its update, so that a likeness of "
        "whole updates is mostly one of the rest: format, topic, position, the query.",
        "dai2022.update-is-labels",
    ),
    Stand(
        "fails",
        "That reading and finetuning rank the tokens of the demonstrations as much alike as was published (Kendall's "
        "τ of .19: here it is below .1), and, on the one task asked, that changing their order moves reading's updates "
        "more than those of training one by one.",
        "dai2022.attention-ranks shen2023.updates-by-order",
    ),
    Stand(
        "fails",
        "Said of layer-causal training: that it costs no more than gradient descent, that the two change attention "
        "maps as differently as was published, that layers two thirds of the way up already say what the model says, "
        "that on a trained model it beats gradient descent on an untrained one in SimAM_Δ on all tasks; and that the "
        "tokens of the paper's table 3 are tokens.",
        "deutch2023.low-resource deutch2023.alpha deutch2023.early-exit deutch2023.lcgd-over-untrained "
        "deutch2023.table-3-tokens",
    ),
    Stand(
        "fails",
        "That the kernel model is a descent: its loss has no minimum, its scale (the theorem's constant D) changes "
        "with the query, and its start is not the zero-shot model.",
        "ren2024.one-step-is-descent ren2024.d-is-constant ren2024.w0-is-zero-shot",
    ),
    Stand(
        "fails",
        "Printed formulas that are not what their losses give.",
        "ren2024.regularised-as-printed ren2024.negative-as-printed ren2024.thm32-needs-d_o "
        "natan2023.eq1-as-printed fu2023.largest-rate",
    ),
    Stand(
        "fails",
        "Identities taken for evidence of learning: any path of matrices is such a descent, untrained blocks converge "
        "as well, and the patch of one query is of no use to another in an untrained model.",
        "dherin2025.descent-is-evidence dherin2025.convergence-is-evidence dherin2025.serves-other-queries",
    ),
    Stand(
        "fails",
        "That the change of weights which a prompt amounts to is the one that training on its demonstrations "
        "makes: in the same matrices of a language model the two are next to orthogonal.",
        "dherin2025.is-training",
    ),
    Stand(
        "fails",
        "Of the kernel model on real heads: that its bound falls with the number of demonstrations (with the "
        "head's own kernel), that a thousand random features reproduce a head, that label words weigh no more than "
        "other tokens; and that a penalty on its weights changes what a layer is trained to.",
        "ren2024.thm32-falls-with-n choromanski2021.real-heads ren2024.unsupervised-parts ren2024.panel-left",
    ),
    Stand(
        "fails",
        "That a gate on the delta rule's state is of use on regressions, which do not change while they are read.",
        "yang2025.gate-is-of-use",
    ),
    Stand(
        "fails",
        "The explanations that the regular-languages report gives for its mismatch: trained end to end the layer does "
        "not read the labels of a fixed language either, and with a random sign it is a preconditioned step.",
        "languages2024.because-apart languages2024.because-nonlinear",
    ),
    Stand(
        "depends",
        "Whether demonstrations raise a small model's accuracy depends on calibration.",
        "brown2020.icl-improves",
    ),
    Stand(
        "depends",
        "What negative samples gain when trained depends on the task, and so does whether it is more than centring: "
        "where labels have mean zero, subtracting the mean of all values does more; where they have not, it ruins the "
        "layer.",
        "ren2024.panel-right-all ren2024.negatives-not-centring",
    ),
    Stand(
        "open",
        "Whether untrained models reach trained ones in likeness to reading, of updates and of attention maps: no task "
        "of either model is surely against it, and not all are for it. Whether reading recovers what finetuning "
        "corrects beyond what it corrects anyway, on every task.",
        "deutch2023.untrained-simaou deutch2023.untrained-simam-delta dai2022.rec2ftp",
    ),
    Stand(
        "open",
        "Whether the common direction is learning: on neither model is it shown to be larger than with training on "
        "wrong labels or on other demonstrations; nor, on SmolLM2, to make a finetuned model answer more like one that "
        "read.",
        "dai2022.alike-beyond-nulls dai2022.alike-beyond-wrong-labels-on-six-tasks dai2022.same-functions",
    ),
    Stand(
        "open",
        "The question itself, asked of the labels: whether what right labels change, against wrong ones, is the same "
        "in reading and in training. On six tasks of both models no interval leaves zero. And whether training on all "
        "tokens learns the labels: on six tasks it does on Gemma and is undecided on SmolLM2.",
        "dai2022.labels-alike dai2022.labels-alike-on-six-tasks dai2022.training-learns-labels "
        "dai2022.training-learns-labels-on-six-tasks",
    ),
    Stand(
        "open",
        "Whether layer-causal training is more like reading than gradient descent, without normalisation: at the rate "
        "10⁻³ in updates (on Gemma on all six tasks, on SmolLM2 on five) and in changes of attention maps (Gemma is "
        "against it). And whether it learns the tasks: Gemma answers worse after it, SmolLM2 is undecided.",
        "deutch2023.lcgd-simaou deutch2023.lcgd-simam-delta deutch2023.by-layer deutch2023.lcgd-at-chance",
    ),
    Stand(
        "open",
        "Whether training's attention, put into the model that read nothing, does what reading does; and whether "
        "order moves answers, and next tokens come nearer, as the comparison of reading and training would have "
        "it.",
        "dai2022.training-carries-reading shen2023.answers-by-order shen2023.next-tokens-come-nearer",
    ),
    Stand(
        "open",
        "The rivals of gradient descent, on the one small model that was asked: whether one vector, a few heads or "
        "a patch of weights does the task without the demonstrations, and whether such a patch knows the labels.",
        "hendel2023.one-vector todd2024.few-heads todd2024.triggers-the-task yin2025.function-vector-heads "
        "yin2025.induction-heads liu2024.better-than-reading mazzawi2025.knows-the-labels",
    ),
    Stand(
        "open",
        "Whether augmented attention gains over plain attention, and the best modified softmax layer over one "
        "preconditioned gradient step, on every task; whether negative samples help inside a pretrained model.",
        "ren2024.panel-centre ren2024.beats-one-gd-step ren2024.pretrained-negatives",
    ),
    Stand(
        "open",
        "How well a layer tells members of a fixed regular language, how far it is from one gradient step, and "
        "whether it reads its labels at all, on every language.",
        "languages2024.75-percent languages2024.no-match languages2024.fixed-language-is-no-icl",
    ),
    Stand(
        "open",
        "Whether a layer behind a network does gradient descent on what the network makes of its inputs.",
        "vonoswald2023.deep-representations",
    ),
)
