"""The lab `causal`, put together."""

from iclgd.lab import Lab, later
from iclgd.labs.causal.spec import CausalSpec

CAUSAL = Lab(
    CausalSpec,
    run=later("iclgd.labs.causal.run:run"),
    page=later("iclgd.labs.causal.page:page"),
    identity=later("iclgd.labs.causal.run:identity"),
    version=2,
    examples=(
        "  iclgd causal                                          embedded model and task, a few minutes\n"
        "  iclgd causal --task sentiment,kinds,continents --seeds 5\n"
        "  iclgd causal --rates 1e-3,1e-2,1e-1                   what training's layers carry, against step size\n"
        "  iclgd causal --heads 20 --sets 100                    larger sets of heads, more random ones\n"
    ),
)
