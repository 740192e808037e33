"""What claims read from studies of the labs: pure functions of a study, one number a seed. Nothing heavy is imported."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iclgd.study import Study

Numbers = list[float]
Reader = Callable[["Study"], Numbers]


# linear train


def likeness_to(learner: str, metric: str = "cosine") -> Reader:
    """Likeness of the trained model to a learner at its best."""
    return lambda study: [
        float(one.at(metric=metric).values) for one in study.arrays(quantity="likeness", learner=learner)
    ]


def loss_over(learner: str) -> Reader:
    """The trained model's loss over a learner's, on the same episodes."""

    def read(study: "Study") -> Numbers:
        losses = [[float(one.values) for one in study.arrays(quantity="loss", learner=n)] for n in ("trained", learner)]
        return [a / b for a, b in zip(*losses, strict=True)]

    return read


# languages run


def of_words(quantity: str, learner: str = "trained", shuffled: bool = False) -> Reader:
    """A number of the trained layers, or of a learner beside them."""
    labels: dict[str, Any] = {"part": "learner", "learner": learner, "quantity": quantity, "shuffled": shuffled}
    return lambda study: [float(one.values) for one in study.arrays(**labels)]


def cost_of_shuffling(study: "Study") -> Numbers:
    """Accuracy with the demonstrations' labels as they are, less with them shuffled."""
    pairs = zip(of_words("accuracy")(study), of_words("accuracy", shuffled=True)(study), strict=True)
    return [right - mixed for right, mixed in pairs]


# dual check: one cell a query


def over_heads(quantity: str, reduce: str = "max", size: int | None = None) -> Reader:
    """A quantity of all heads, reduced to a number for each query: max, mean or median."""

    def read(study: "Study") -> Numbers:
        import numpy as np

        found = study.arrays(quantity=quantity)
        values = [one.values if size is None else one.at(size=size).values for one in found]
        return [float(getattr(np, f"nan{reduce}")(one)) for one in values]

    return read


# dual train: one cell a seed of an arm on a task


def last_losses(study: "Study", task: str, arm: str) -> Numbers:
    """Test loss after the last epoch."""
    return [float(one.values[-1]) for one in study.arrays(quantity="loss", task=task, arm=arm)]


def minus_plain(study: "Study", task: str, arm: str, relative: bool = False) -> Numbers:
    """An arm's last loss less plain attention's on the same seed; ``relative``: in parts of the latter."""
    pairs = zip(last_losses(study, task, arm), last_losses(study, task, "plain"), strict=True)
    return [(a - b) / (b if relative else 1.0) for a, b in pairs]


# compare


def difference(one: dict[str, str], two: dict[str, str], position: str = "prompt") -> Callable[["Study"], Any]:
    """One quantity less another, with its interval over draws or tasks; labels as a study's arrays have them."""

    def read(study: "Study") -> Any:
        from iclgd.labs.compare.view import NOTHING, Comparison

        both = [{"init": "trained"} | labels for labels in (one, two)]
        found = Comparison(study).difference(study.spec.task, position, *both)  # type: ignore[attr-defined]
        return NOTHING if found is None else found.estimate

    return read


def differences_by_task(one: dict[str, str], two: dict[str, str], position: str = "label") -> Callable[["Study"], Any]:
    """The same task by task."""

    def read(study: "Study") -> Any:
        from iclgd.labs.compare.view import NOTHING, Comparison

        view, both = Comparison(study), [{"init": "trained"} | labels for labels in (one, two)]
        found = {task: view.difference([task], position, *both) for task in view.spec.task}
        return {task: NOTHING if gap is None else gap.estimate for task, gap in found.items()}

    return read


def estimate(position: str | None = "prompt", **labels: str) -> Callable[["Study"], Any]:
    """A quantity with its interval over draws or tasks."""

    def read(study: "Study") -> Any:
        from iclgd.labs.compare.view import Comparison

        return Comparison(study).estimate(study.spec.task, position, **({"init": "trained"} | labels))  # type: ignore[attr-defined]

    return read


def recall_by_task(learner: str) -> Callable[["Study"], Any]:
    """Rec2FTP above its base rate, task by task."""

    def read(study: "Study") -> Any:
        from iclgd.labs.compare.view import Comparison

        view = Comparison(study)
        return {task: view.recall("trained", [task], learner)[1].estimate for task in view.spec.task}

    return read
