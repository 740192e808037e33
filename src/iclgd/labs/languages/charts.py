"""Charts of the whole study, to be pointed at: the two questions, and every setting."""

from collections.abc import Iterator, Sequence

from iclgd.labs.languages.figures import DESCENTS
from iclgd.labs.languages.measures import TRAINED
from iclgd.labs.languages.page import difference, number
from iclgd.labs.languages.reading import Reading
from iclgd.labs.languages.widgets import LIKENESS
from iclgd.report.charts import NULL, OWN, Looks, Series, dots
from iclgd.report.numbers import Number
from iclgd.report.widgets import Widget

LOST = "fixed labels: accuracy lost when they are shuffled"
NEAR = "labels drawn: cosine of a descent's sensitivities to the layers'"


def questions(parts: Sequence[Reading]) -> Widget:
    """Whether fixed labels are read, and which descent is like the layers where labels are drawn."""

    def made() -> Iterator[Series]:
        for part in parts:
            labels = {"panel": language(part), "question": LOST if part.setting.labels == "fixed" else NEAR}
            if part.setting.labels == "fixed":
                yield _dot(labels, kind(part), difference(part))
            else:
                yield from _descents(part, labels, "cosine")

    looks = Looks(choose={"question": "what is shown"}, colour="learner")
    about = "What shuffling fixed labels costs in every setting, and how like the layers descents are where they vary."
    return dots(lambda: list(made()), looks, about)


def settings(parts: Sequence[Reading]) -> Widget:
    """Accuracy of the layers with labels as they are and shuffled, and how near descents are to them."""
    far = {part.setting.language: f"{language(part)}: {LIKENESS['mse']}" for part in parts}

    def made() -> Iterator[Series]:
        for part in parts:
            shown = {"labels": part.setting.labels, "panel": language(part)}
            right = shown | {"quantity": "accuracy"}
            yield _dot(right, kind(part), number(part, TRAINED, "accuracy"), TRAINED)
            yield _dot(right, f"{kind(part)}: shuffled", number(part, TRAINED, "accuracy", shuffled=True), role=NULL)
            yield from _descents(part, shown | {"quantity": LIKENESS["cosine"]}, "cosine")
            apart = {"quantity": LIKENESS["mse"], "panel": far[part.setting.language]}
            yield from _descents(part, shown | apart, "mse")

    choose = {"quantity": "what is shown", "labels": "labels"}
    looks = Looks(choose=choose, colour="learner", log=tuple(far.values()))
    about = "Every setting: accuracy with labels as they are and shuffled, and likeness to steps of gradient descent."
    return dots(lambda: list(made()), looks, about)


def language(part: Reading) -> str:
    return "random languages" if part.setting.language == "random" else part.setting.language


def kind(part: Reading) -> str:
    """A setting without its language and its labels, which are told beside it."""
    _, negatives, encoder, _, *unusual = part.setting.name().split(" · ")
    return " · ".join([negatives, encoder, *unusual])


def _descents(part: Reading, labels: dict[str, str], quantity: str) -> Iterator[Series]:
    for learner in DESCENTS:
        if name := part.called(learner):
            yield _dot(labels, f"{kind(part)}: {name}", number(part, name, quantity), learner)


def _dot(labels: dict[str, str], name: str, found: Number, learner: str = "", role: str = OWN) -> Series:
    return Series(labels | {"name": name, "role": role, "learner": learner}, [found.value], [found.low], [found.high])
