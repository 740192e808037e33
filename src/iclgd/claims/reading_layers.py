"""What claims read from studies of kinds of layers, of depths and of orders: pure functions of a study."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iclgd.study import Study

Numbers = list[float]


# linear layers


def own_over_others(kinds: dict[str, str]) -> Callable[["Study"], dict[str, Numbers]]:
    """By kind of layer, its distance to its own learner over that to the nearest other: one number a seed."""

    def read(study: "Study") -> dict[str, Numbers]:
        found = {}
        for kind, own in kinds.items():
            by_learner: dict[str, Numbers] = {}
            for one in study.arrays(quantity="spd", attention=kind):
                by_learner.setdefault(str(one.labels["name"]), []).append(float(one.values))
            mine = by_learner.pop(own)
            found[kind] = [a / min(others) for a, *others in zip(mine, *by_learner.values(), strict=True)]
        return found

    return read


# linear depth


def growth_by_layer(layers: int) -> Callable[["Study"], Numbers]:
    """How many times as far along gradient descent's path a layer is as the one before: one number a seed."""

    def read(study: "Study") -> Numbers:
        from iclgd.labs.linear.depth import growth, of_layers

        return [float(x) for x in growth(of_layers(study, layers, "gd", "steps"))]

    return read


# order


def of_orders(measure: str, learner: str, less: str = "", init: str = "trained") -> Callable[["Study"], Any]:
    """A spread over orders, of p or of updates, or what it is above another learner's; with its interval over draws."""

    def read(study: "Study") -> Any:
        from iclgd.labs.order import page

        of = {"p": page.spread_of_p, "updates": page.spread_of_updates}[measure]
        own = of(study, learner, init)
        return _share(own, of(study, less, init) if less else None)

    return read


def tokens_with_reading(learner: str, less: str = "") -> Callable[["Study"], Any]:
    """The share of the likeliest next tokens that a learner has in common with reading, or what it is above another."""

    def read(study: "Study") -> Any:
        def values(name: str) -> Any:
            seeds = study.spec.seeds  # type: ignore[attr-defined]  # of `order`
            return study.stack("seed", seeds, quantity="overlap with icl", learner=name, init="trained")

        return _share(values(learner), values(less) if less else None)

    return read


def _share(one: Any, less: Any = None) -> Any:
    """The mean of what is between 0 and 1, or of the difference of two such things; no interval reaches beyond."""
    from iclgd.metrics.differences import bounds_apart
    from iclgd.metrics.estimates import SHARE, estimate

    return estimate(one, SHARE) if less is None else estimate(one - less, bounds_apart(SHARE))
