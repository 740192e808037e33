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
    "exact": ("Exact", "Algebra, for any inputs and mostly any weights, trained or not."),
    "holds": ("Holds", "Measured, and confirmed where it was measured."),
    "fails": ("Fails", "Said or meant to be shown in this literature, and not so."),
    "depends": ("Depends", "True in some settings and false in others."),
    "open": ("Open", "Measured without a verdict, or not yet measured."),
}

STANDS = (
    Stand(
        "exact",
        "A layer of linear attention with the right weights is a step of gradient descent on a linear regression over "
        "the demonstrations, the next layer the next step; others are GD++, preconditioned or functional descent.",
        "vonoswald2023.step-on-every-token vonoswald2023.step-on-the-test-token vonoswald2023.k-layers-k-steps "
        "vonoswald2023.gdpp-layers vonoswald2023.separate-tokens ahn2023.layer-is-preconditioned "
        "cheng2024.functional-gd",
    ),
    Stand(
        "exact",
        "Whatever its weights, a linear transformer keeps a linear model of the demonstrations' second moment alone.",
        "vladymyrov2024.implicit-linear-model vladymyrov2024.moment-is-enough",
    ),
    Stand(
        "exact",
        "Training a linear map by SGD is linear attention to its error signals; linear attention is a map plus an "
        "update.",
        "dai2022.dual-form dai2022.error-signals dai2022.sgd-is-attention dai2022.icl-is-zsl-plus-update "
        "dai2022.ft-is-zsl-plus-update",
    ),
    Stand(
        "exact",
        "Softmax attention is a gradient step on a kernel model built for the query.",
        "ren2024.thm31 ren2024.thm31-taylor ren2024.thm31-large-scores ren2024.thm31-any-weights "
        "ren2024.rate-cancels ren2024.siamese ren2024.relu ren2024.chain",
    ),
    Stand(
        "exact",
        "A context is a rank-one patch to the weights behind attention: for any block, and through whole models, "
        "which then generate the same tokens.",
        "dherin2025.rank-one-patch dherin2025.rank dherin2025.with-a-skip dherin2025.not-unique "
        "innocenti2025.any-block-with-norms goldwaser2026.gated-blocks goldwaser2026.families "
        "goldwaser2026.last-map-is-enough goldwaser2026.norm-behind goldwaser2026.same-tokens "
        "goldwaser2026.pretrained goldwaser2026.fifty-tokens",
    ),
    Stand(
        "exact",
        "Layers whose state trains as they read (delta rule, mesa, test-time training) are SGD, ridge regression or "
        "linear attention.",
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
        "For regressions with weights of mean zero the best layer of linear attention is one preconditioned step, the "
        "only kind it can take, and training finds it. With another mean no number of heads equals a step from there.",
        "ahn2023.best-matrix ahn2023.preconditioned ahn2023.not-a-rate mahankali2023.noisy-rate "
        "zhang2023.other-length vonoswald2023.training-finds-the-step xie2025.mean-is-missed",
    ),
    Stand(
        "holds",
        "Two trained layers end nearer to GD++ than to gradient descent; stacks of three are faster than Newton's "
        "doubling, as GD++ is.",
        "vonoswald2023.curvature-beats-gd vonoswald2023.two-layers-are-gdpp fu2023.stacks-keep-newtons-pace",
    ),
    Stand(
        "holds",
        "Every head of a pretrained model reads the query's own tokens and adds one kernel step, which hardly changes "
        "with wrong labels.",
        "ren2024.w0-is-the-own-tokens ren2024.thm31-real-heads ren2024.feature-map-real ren2024.unsupervised-flip",
    ),
    Stand(
        "holds",
        "SimAOU of outputs scaled to length one, on which the case for language models rested, scores random updates "
        "by their size: a quarter at √3 times the output. Unscaled they score nothing.",
        "deutch2023.noise-quarter deutch2023.noise-zero deutch2023.norm-sees-size deutch2023.simam-punishes-drift",
    ),
    Stand(
        "holds",
        "Reading and training move attention outputs in a common direction, beyond random ones.",
        "dai2022.updates-are-alike",
    ),
    Stand(
        "holds",
        "On six tasks, at the rate 10⁻³, that direction is in part the query's own (SmolLM2's by little); training "
        "learns the labels if its loss is on them alone.",
        "dai2022.alike-beyond-another-query-on-six-tasks dai2022.label-loss-learns-labels-on-six-tasks",
    ),
    Stand(
        "holds",
        "Full-batch gradient descent ignores the order of demonstrations; reading and sequential training do not.",
        "shen2023.order shen2023.order-of-reading deutch2023.sequential-order yang2024.order",
    ),
    Stand(
        "holds",
        "At the rate 10⁻³ layer-causal training is above gradient descent in normalised likeness of updates, below it "
        "in attention maps.",
        "deutch2023.lcgd-simaou-norm deutch2023.lcgd-simam-lower",
    ),
    Stand(
        "fails",
        "That a high Rec2FTP means the same queries corrected: without a base rate it counts reading's corrections.",
        "dai2022.rec2ftp-without-a-base-rate",
    ),
    Stand(
        "fails",
        "That reading's update is about labels: they make a small part of it.",
        "dai2022.update-is-labels",
    ),
    Stand(
        "fails",
        "That reading and training rank tokens as alike as published (Kendall's τ .19; here below .1).",
        "dai2022.attention-ranks",
    ),
    Stand(
        "fails",
        "That layer-causal training is as cheap as gradient descent, and on all tasks beats gradient descent on an "
        "untrained model in SimAM_Δ; that the tokens of table 3 are tokens.",
        "deutch2023.low-resource deutch2023.lcgd-over-untrained deutch2023.table-3-tokens",
    ),
    Stand(
        "fails",
        "That the kernel model descends: its loss has no minimum, its scale D changes with the query, it does not "
        "start at zero-shot.",
        "ren2024.one-step-is-descent ren2024.d-is-constant ren2024.w0-is-zero-shot",
    ),
    Stand(
        "fails",
        "That printed formulas are what their losses give.",
        "ren2024.regularised-as-printed ren2024.negative-as-printed ren2024.thm32-needs-d_o "
        "natan2023.eq1-as-printed fu2023.largest-rate",
    ),
    Stand(
        "fails",
        "That identities are evidence of learning: any path is such a descent, untrained blocks converge too, and "
        "their patches hardly serve another query.",
        "dherin2025.descent-is-evidence dherin2025.convergence-is-evidence dherin2025.serves-other-queries",
    ),
    Stand(
        "fails",
        "That a prompt's change of weights is training's: in the same matrices of a language model they are next to "
        "orthogonal (Gemma's at rates that spoil it).",
        "dherin2025.is-training",
    ),
    Stand(
        "fails",
        "That on real heads the kernel model's bound falls with more demonstrations (by the head's own kernel), a "
        "thousand random features reproduce a head, label words weigh no more than others; that a penalty changes "
        "what a layer is trained to.",
        "ren2024.thm32-falls-with-n choromanski2021.real-heads ren2024.unsupervised-parts ren2024.panel-left",
    ),
    Stand(
        "fails",
        "That a gate on the delta rule's state helps on regressions, which never change; that Longhorn's code takes "
        "its proximal step.",
        "yang2025.gate-is-of-use longhorn2024.as-built",
    ),
    Stand(
        "fails",
        "That the regular-languages report's reasons explain its mismatch: end to end, too, a fixed language's labels "
        "are not read; with a random sign the layer is a preconditioned step.",
        "languages2024.because-apart languages2024.because-nonlinear",
    ),
    Stand(
        "depends",
        "Whether trained negative samples gain: on the task.",
        "ren2024.panel-right-all",
    ),
    Stand(
        "open",
        "Do demonstrations raise accuracy, raw and calibrated? They lower SmolLM2's raw one.",
        "brown2020.icl-improves",
    ),
    Stand(
        "open",
        "Are untrained models as like reading as trained ones? No task is surely against it, not all for it. Does "
        "reading recover what training corrects beyond its base rate, on every task?",
        "deutch2023.untrained-simaou deutch2023.untrained-simam-delta dai2022.rec2ftp",
    ),
    Stand(
        "open",
        "Is the common direction learning? On neither model is it surely larger than with training on wrong labels or "
        "other demonstrations; nor does it surely bring answers nearer.",
        "dai2022.alike-beyond-nulls dai2022.alike-beyond-wrong-labels-on-six-tasks dai2022.same-functions",
    ),
    Stand(
        "open",
        "Do right labels, against wrong ones, change the same in reading and training? On six tasks of both models no "
        "interval leaves zero. Does training on all tokens learn them? Gemma's does.",
        "dai2022.labels-alike dai2022.labels-alike-on-six-tasks dai2022.training-learns-labels "
        "dai2022.training-learns-labels-on-six-tasks",
    ),
    Stand(
        "open",
        "Is layer-causal training, at the rate 10⁻³, more like reading than gradient descent, unnormalised? In "
        "updates on six tasks (Gemma) or four (SmolLM2); in changes of attention maps Gemma says no. Does it learn "
        "the tasks? Gemma answers worse.",
        "deutch2023.lcgd-simaou deutch2023.lcgd-simam-delta deutch2023.by-layer deutch2023.lcgd-at-chance",
    ),
    Stand(
        "open",
        "Does training bring attention maps nearer to reading's, does scaling raise a real likeness, are layer-causal "
        "gradients larger, its maps as different as published, have layers two thirds up the answer? SmolLM2: yes, "
        "yes, yes, no, no; Gemma: undecided.",
        "dai2022.simam-rises deutch2023.normalisation-inflates deutch2023.gradient-norms deutch2023.alpha "
        "deutch2023.early-exit",
    ),
    Stand(
        "open",
        "Does training's attention do what reading does in the model that read nothing? Does order move reading more, "
        "do next tokens differ, does training bring them nearer? Of gradient descent three tasks decide nothing.",
        "dai2022.training-carries-reading shen2023.answers-by-order shen2023.updates-by-order shen2023.next-tokens "
        "shen2023.next-tokens-come-nearer",
    ),
    Stand(
        "open",
        "Is a patch of few queries nearer to what a prompt does to others than one answer for all, and "
        "because of labels? Three draws do not say; tasks differ.",
        "mazzawi2025.thought-matrix mazzawi2025.more-than-a-shift mazzawi2025.knows-the-labels",
    ),
    Stand(
        "open",
        "Does a vector do the task without demonstrations, do a few heads? Gemma's in-context vectors answer worse "
        "than reading (one task); no heads surely matter more than random ones (three).",
        "hendel2023.one-vector todd2024.few-heads todd2024.triggers-the-task yin2025.function-vector-heads "
        "yin2025.induction-heads liu2024.better-than-reading",
    ),
    Stand(
        "open",
        "Does augmented attention gain over plain, the best modified softmax layer over a preconditioned step, do "
        "negative samples over centring, on every task? Do they help a pretrained model?",
        "ren2024.panel-centre ren2024.beats-one-gd-step ren2024.negatives-not-centring ren2024.pretrained-negatives",
    ),
    Stand(
        "open",
        "How well does a layer tell members of a fixed regular language, how far is it from a gradient step, does it "
        "read its labels, on every language?",
        "languages2024.75-percent languages2024.no-match languages2024.fixed-language-is-no-icl",
    ),
    Stand(
        "open",
        "Does a layer behind a network descend on what the network makes of its inputs?",
        "vonoswald2023.deep-representations",
    ),
)
