"""Dai et al. 2022, asked of the labels alone: what right labels change, against wrong ones, in reading and training.

The papers compare whole updates, most of which labels have no part in. Nothing here is theirs but the question.
"""

from typing import Any

from iclgd.claims.claim import Measure, Place, claim
from iclgd.claims.expect import Above, AtLeast
from iclgd.claims.reading import difference, estimate
from iclgd.claims.studies import LABELS, STRONG_LABELS

AUDITED = Place("natan2023", "last paragraph, asked of the labels")
NULLS = {"another query's": "other-query", "other demonstrations'": "other-demos"}
HERE: dict[str, Any] = {"tier": "minutes", "needs": ("model",), "chosen_after": True}
SIX: dict[str, Any] = {
    "tier": "hours",
    "gpu": True,
    "needs": ("model", "data"),
    "over": "task",
    "chosen_after": True,
}


def beyond_nulls(rate: str) -> Measure:
    """The cosine of the two contrasts less that of each null, under the loss on all tokens and on the label alone."""

    def read(study: Any) -> dict[str, Any]:
        found = {}
        for loss, learner in (("all tokens", f"gd {rate}"), ("label", f"gd {rate} target=label")):
            own = {"learner": learner, "metric": "contrast-AOU"}
            for title, null in NULLS.items():
                found[f"{loss}, {title}"] = difference(own, {**own, "null": null})(study)
        return found

    return read


def right_less_wrong(rate: str) -> Measure:
    """Accuracy after training on right labels less on wrong ones, under either loss."""

    def read(study: Any) -> dict[str, Any]:
        learners = {"all tokens": f"gd {rate}", "label": f"gd {rate} target=label"}
        pairs = {loss: {"learner": name, "metric": "accuracy"} for loss, name in learners.items()}
        return {loss: difference(own, {**own, "null": "wrong-labels"})(study) for loss, own in pairs.items()}

    return read


claim(
    "dai2022.labels-alike",
    "What labels change in reading is what they change in training, more than another query's change or that of "
    "training on other demonstrations.",
    AUDITED,
    Above(0.0),
    LABELS,
    beyond_nulls("0.01"),
    stands="open",
    of="cosine of the contrasts of right and wrong labels, less that of a null",
    **HERE,
)
claim(
    "dai2022.training-learns-labels",
    "Training learns the labels: on wrong ones the model answers worse.",
    AUDITED,
    Above(0.0),
    LABELS,
    right_less_wrong("0.01"),
    stands="open",
    of="accuracy after right labels less after wrong ones",
    note="Where it does not, there is nothing that reading could be like.",
    **HERE,
)
claim(
    "dai2022.update-is-labels",
    "What reading changes is what the labels say: they make half of its update or more.",
    AUDITED,
    AtLeast(0.5),
    LABELS,
    estimate(learner="icl", metric="label-share"),
    stands="fails",
    of="length of the contrast of right and wrong labels over that of reading's update, mean over layers",
    note="So a likeness of whole updates is mostly about the rest.",
    **HERE,
)
claim(
    "dai2022.labels-alike-on-six-tasks",
    "What labels change in reading is what they change in training, on the papers' six tasks.",
    AUDITED,
    Above(0.0),
    STRONG_LABELS,
    beyond_nulls("0.001"),
    stands="open",
    of="cosine of the contrasts of right and wrong labels, less that of a null",
    **SIX,
)


def _learns(name: str, how: str, loss: str, **more: Any) -> None:
    claim(
        f"dai2022.{name}-on-six-tasks",
        f"On the papers' six tasks training {how} learns the labels.",
        AUDITED,
        Above(0.0),
        STRONG_LABELS,
        lambda study: right_less_wrong("0.001")(study)[loss],
        of="accuracy after right labels less after wrong ones",
        **more,
        **SIX,
    )


_learns(
    "training-learns-labels",
    "on all tokens of the demonstrations",
    "all tokens",
    stands="open",
    note="It holds on Gemma and is undecided on SmolLM2. It was one claim with the next until that one was decided.",
)
_learns(
    "label-loss-learns-labels",
    "with the loss on the labels alone",
    "label",
    note="So there is something that reading could be like; that what labels change is alike is not shown.",
)
