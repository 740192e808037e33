"""What claims read from studies of `implicit` and `causal`: what stands in for a prompt, and what carries it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iclgd.study import Study

Reader = Callable[["Study"], Any]


# implicit


def block_residuals(study: "Study") -> list[float]:
    """The largest residual of a block with a query's own patches: one number a form."""
    return [float(one.values.max()) for one in study.arrays(quantity="block", patch="own")]


def tokens_alike(study: "Study") -> list[float]:
    """The share of generated tokens that are those behind the prompt: one number a prompt."""
    pairs = zip(study.facts("same_tokens"), study.facts("tokens"), strict=True)
    return [same / tokens for same, tokens in pairs]


def missed_less(centred: bool) -> Reader:
    """What one matrix for all queries misses of reading's effect on label margins, less what knows nothing misses.

    Doing nothing misses 1; one answer for all queries misses less than that where reading, too, hardly tells them
    apart.
    """

    def read(study: "Study") -> dict[str, Any]:
        from iclgd.labs.implicit.view import CONSTANT, WHOLE, View

        view = View(study)
        own = view.missing("trained", centred, patch=WHOLE, fitted=view.most)
        return {
            "less doing nothing": _less(own, view.missing("trained", centred, patch="zero-shot")),
            "less one answer for all": _less(own, view.missing("trained", centred, patch=CONSTANT)),
        }

    return read


def recovery_less(null: str) -> Reader:
    """What it recovers without the mean shift, less what the matrix that a null gives does."""

    def read(study: "Study") -> Any:
        from iclgd.labs.implicit.view import WHOLE, View

        view = View(study)
        return _less(
            *(view.recovery("trained", True, patch=WHOLE, fitted=view.most, **more) for more in ({}, {"null": null}))
        )

    return read


def _less(one: Any, two: Any) -> Any:
    """The paired difference; nothing where there is none."""
    from iclgd.labs.implicit.view import NOTHING
    from iclgd.metrics.differences import difference

    return difference(one, two).estimate if one.size and one.shape == two.shape else NOTHING


def patch_cosine(study: "Study") -> Any:
    """The cosine of one matrix for all queries with training's update, at the rate that the page speaks of."""
    from iclgd.labs.implicit.view import NOTHING, WHOLE, View

    view = View(study)
    rate = view.most_alike("trained")
    return NOTHING if rate is None else view.cosine("trained", "cosine", WHOLE, rate)


# causal


def carried(source: str, of: str, centred: bool = False) -> Reader:
    """The share of one run's effect on label margins that another's attention carries into the zero-shot run."""

    def read(study: "Study") -> Any:
        from iclgd.labs.causal.view import View, mean

        view = View(study)
        places: dict[str, Any] = {"source": source, "into": "zero-shot", "of": of, "site": "attention", "layers": "all"}
        return mean(view.layer_shares("trained", view.spec.rates[0], centred=centred, **places))

    return read


def foremost_layer(study: "Study") -> Any:
    """The share of reading's effect that the foremost single layer's attention carries."""
    from iclgd.labs.causal.tables import foremost
    from iclgd.labs.causal.view import NOTHING, View

    view = View(study)
    shares = view.layer_shares("trained", view.spec.rates[0], "icl", "zero-shot", False, site="attention")
    found = foremost(shares)
    return NOTHING if found is None else found[1]


def left_less(one: str, two: str | None = None) -> Reader:
    """What is left of reading's effect without one score's heads, less without another's, or random ones'."""

    def read(study: "Study") -> Any:
        from iclgd.labs.causal.view import View
        from iclgd.metrics.differences import difference

        view = View(study)
        other = view.random_left(one).mean(0) if two is None else view.left(two)
        return difference(view.left(one), other).estimate

    return read
