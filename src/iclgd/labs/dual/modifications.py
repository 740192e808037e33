"""The modifications of attention that can be named, with their options: `negative:k=3:beta=0.1`."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from iclgd.choices import Choice, parse_one
from iclgd.errors import Refusal
from iclgd.registry import Registry

if TYPE_CHECKING:
    from iclgd.labs.dual.modified import Modification

MODIFICATIONS: "Registry[type[Modification]]" = Registry("modification", "iclgd known", "iclgd.modifications")
for _name, _class, _summary in (
    ("plain", "Modification", "Softmax attention as it is."),
    ("regularised", "Regularised", "The query's own tokens scaled by 1 − α, as L + α/(2η) ‖W‖² does."),
    ("regularised-slide", "RegularisedSlide", "V (A − αI) as printed: the query's own value subtracted α times."),
    ("augmented", "Augmented", "Parallel adapters on values and keys."),
    ("negative", "Negative", "Each demonstration's value loses β times the mean value of its negatives."),
    ("arbitrary", "Arbitrary", "A control for negative: k demonstrations that have nothing to do with scores."),
    ("centred", "Centred", "A control for negative: the mean value of all demonstrations' tokens, β times."),
):
    MODIFICATIONS.add(_name, f"iclgd.labs.dual.modified:{_class}", _summary)

PLAIN = Choice(MODIFICATIONS, "plain")
IN_A_MODEL = (
    "regularised:alpha=0.1",
    "regularised:alpha=-0.1",
    "regularised-slide:alpha=0.1",
    "regularised-slide:alpha=-0.1",
    "negative:k=1:beta=0.1",
    "negative:k=3:beta=0.1",
    "arbitrary:k=3:beta=0.1",
    "centred:beta=0.1",
    "augmented:c=0.1",
)
TRAINED = (
    *(f"{name}:alpha={alpha:g}" for name in ("regularised", "regularised-slide") for alpha in (0.5, -0.5)),
    *(f"augmented:adapters={adapters}" for adapters in ("g1", "g2", "both")),
    *(f"negative:k={k}:beta={beta:g}" for k in (1, 3) for beta in (0.1, 0.5)),
    "arbitrary:k=3:beta=0.5",
    "centred:beta=1",
)


def chosen(texts: Iterable[str]) -> tuple[Choice, ...]:
    return tuple(parse_one(text, MODIFICATIONS) for text in texts)


def beside_plain(choices: Sequence[Choice]) -> list[Choice]:
    """The choices behind unmodified attention, which each is compared with."""
    return [PLAIN, *(choice for choice in choices if choice != PLAIN)]


def family(choice: Choice) -> str:
    """Modifications of one family are drawn in one panel; what names no family is one of its own."""
    return getattr(MODIFICATIONS[choice.name], "family", "") or choice.kind


def check_enough(choices: Iterable[Choice], k: int) -> None:
    """A modification whose option k asks for more demonstrations than there are is refused."""
    for choice in choices:
        if choice.has("k") and choice["k"] > k:
            raise Refusal(f"{choice.label} needs {choice['k']} demonstrations to choose from, not {k}: raise `k`.")
