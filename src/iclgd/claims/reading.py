"""What claims read from studies of the labs: pure functions of a study, one number a seed."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iclgd.study import Study

Numbers = list[float]
Reader = Callable[..., Numbers]  # of one study, or of one a draw


# linear train


def likeness_to(learner: str, metric: str = "cosine") -> Reader:
    """Likeness of the trained model to a learner at its best."""
    return lambda study: [
        float(one.at(metric=metric).values) for one in study.arrays(quantity="likeness", learner=learner)
    ]


def cosines(values: Numbers) -> Any:
    """Their mean with an interval that ends at 1."""
    from iclgd.metrics.estimates import COSINE, over_seeds

    return over_seeds(values, COSINE)


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


# dual check: a study a draw, with one query


def over_heads(quantity: str, reduce: str = "max", size: int | None = None) -> Reader:
    """A quantity of all heads, reduced to a number for each draw: max, mean or median."""

    def read(*studies: "Study") -> Numbers:
        import numpy as np

        found = [one for study in studies for one in study.arrays(quantity=quantity)]
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
        view = Comparison(study)
        found = view.difference(view.spec.task, position, *both)
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

        view = Comparison(study)
        return view.estimate(view.spec.task, position, **({"init": "trained"} | labels))

    return read


def recall_by_task(learner: str) -> Callable[["Study"], Any]:
    """Rec2FTP above its base rate, task by task."""

    def read(study: "Study") -> Any:
        from iclgd.labs.compare.view import Comparison

        view = Comparison(study)
        return {task: view.recall("trained", [task], learner)[1].estimate for task in view.spec.task}

    return read


def by_init(metric: str, learner: str, position: str = "label") -> Callable[["Study"], Any]:
    """Values of a metric for untrained and trained weights, over (task, seed): means over queries and layers."""

    def read(study: "Study") -> Any:
        import numpy as np

        from iclgd.labs.compare.view import Comparison

        view = Comparison(study)
        labels = {"learner": learner, "metric": metric}
        both = [view.values(view.spec.task, position, init=init, **labels) for init in ("random", "trained")]
        return [np.nanmean(values, axis=tuple(range(2, values.ndim))) for values in both]

    return read


def untrained_less_trained(metric: str, trained_by: str = "gd 0.001") -> Callable[["Study"], Any]:
    """Of gd on untrained weights less a learner on trained ones, task by task, paired by draw."""

    def read(study: "Study") -> Any:
        untrained, trained = by_init(metric, "gd 0.001")(study)[0], by_init(metric, trained_by)(study)[1]
        names = study.spec.task  # type: ignore[attr-defined]  # of `compare`
        return {task: list(a - b) for task, a, b in zip(names, untrained, trained, strict=True)}

    return read


def alphas(position: str) -> Callable[["Study"], Any]:
    """Of the first pair of finetuned learners."""

    def read(study: "Study") -> Any:
        from iclgd.labs.compare.view import Comparison

        view = Comparison(study)
        (one, two), *_ = view.spec.pairs
        labels = {"init": "trained", "learner": one.label, "versus": two.label, "metric": "alpha"}
        return view.estimate(view.spec.task, position, **labels)

    return read


def gradient_ratio(study: "Study") -> Numbers:
    """The least ratio, over layers, of LCGD's gradient norms to gradient descent's: one number a draw."""
    both = [study.arrays(init="trained", learner=n, quantity="gradient norm") for n in ("lcgd 0.001", "gd 0.001")]
    return [float((a.values.mean(-1) / b.values.mean(-1)).min()) for a, b in zip(*both, strict=True)]


def by_depth(metric: str, position: str = "label") -> Callable[["Study"], Any]:
    """LCGD less GD over the first half and the third quarter of the layers: one number a task, mean over draws."""

    def read(study: "Study") -> Any:
        import numpy as np

        from iclgd.labs.compare.view import Comparison

        view = Comparison(study)
        both = [
            view.values(view.spec.task, position, init="trained", learner=name, metric=metric)
            for name in ("lcgd 0.001", "gd 0.001")
        ]
        layers = np.nanmean(both[0] - both[1], axis=(1, 2))  # task layer
        half, quarter = layers.shape[1] // 2, max(1, layers.shape[1] // 4)
        parts = {"first half": layers[:, :half], "third quarter": layers[:, half : half + quarter]}
        return {name: list(np.nanmean(part, axis=1)) for name, part in parts.items()}

    return read


def tokens_over(printed: dict[str, float]) -> Callable[["Study"], Any]:
    """Tokens of a demonstration, its template included, over a printed number: one number a task."""

    def read(study: "Study") -> Any:
        titles = study.spec.task_titles  # type: ignore[attr-defined]  # of `compare`
        found: dict[str, list[float]] = {}
        for cell, result in study.found():
            if cell.labels.get("learner") is None and cell.labels["init"] == "trained":
                each = result.facts["context_tokens"] / result.facts["demonstrations"]
                found.setdefault(titles[cell.labels["task"]], []).append(each)
        return [sum(each) / len(each) / printed[task] for task, each in found.items()]

    return read


# dual bound: a study a draw, with one query


def _bounds(studies: "Sequence[Study]", quantity: str, split: str) -> list[Any]:
    """Each is (demonstrations, layer, head)."""
    return [one.values for study in studies for one in study.arrays(quantity=quantity, split=split)]


def violations(*studies: "Study") -> Numbers:
    """In how many heads and counts the measured gap is above the bound, of both splits: one number a draw."""
    splits = ("own", "best")
    pairs = [zip(_bounds(studies, "gap", s), _bounds(studies, "bound", s), strict=True) for s in splits]
    counts = [[float((gap > bound).sum()) for gap, bound in both] for both in pairs]
    return [sum(one) for one in zip(*counts, strict=True)]


def bound_slope(split: str) -> Reader:
    """log₁₀ of the median head's bound at the most demonstrations less that at one: one number a draw."""

    def read(*studies: "Study") -> Numbers:
        import numpy as np

        medians = [np.nanmedian(one.reshape(len(one), -1), axis=1) for one in _bounds(studies, "bound", split)]
        return [float(one[-1] - one[0]) for one in medians]

    return read


def best_arm_less_step(study: "Study", task: str, arms: list[str]) -> Numbers:
    """The least last loss among some arms less that of the centred gradient step, on the same seeds."""
    losses = [last_losses(study, task, arm) for arm in arms]
    references = study.arrays(quantity="reference", learner="centred gd step", task=task)
    return [min(one) - float(step.values) for one, step in zip(zip(*losses, strict=True), references, strict=True)]


# dual modify


def log_p_less_plain(studies: "Sequence[Study]", modification: str) -> Numbers:
    """log p of the right label word less plain attention's, mean over queries: one number a draw."""

    def right(study: "Study", name: str) -> Any:
        import numpy as np
        from scipy.special import log_softmax

        (scores,) = study.arrays(quantity="scores", modification=name)
        (answers,) = study.arrays(quantity="answers", modification=name)
        log_p = log_softmax(scores.values.astype(float), -1)
        return np.take_along_axis(log_p, answers.values[:, None].astype(int), 1)[:, 0]

    return [float((right(study, modification) - right(study, "plain")).mean()) for study in studies]


def encoder_fall(study: "Study") -> Numbers:
    """The encoder's last validation loss over its first."""
    return [float(one.values[-1] / one.values[0]) for one in study.arrays(part="encoder", quantity="loss")]


# trace


def label_gap(study: "Study") -> Numbers:
    """log p of the second label word less that of the first, after reading: one number a query."""
    return [float(two - one) for found in study.arrays(quantity="scores", learner="icl") for one, two in found.values]


# exits


def agreement_at_two_thirds(*studies: "Study") -> Numbers:
    """How often the layer at two thirds of the depth says what the model says, after reading: one number a draw."""
    curves = [one.values.mean(0) for study in studies for one in study.arrays(quantity="agrees", learner="icl")]
    return [float(curve[round(len(curve) * 2 / 3)]) for curve in curves]
