"""The lab `implicit`, put together."""

from iclgd.lab import Lab, later
from iclgd.labs.implicit.spec import ImplicitSpec

IMPLICIT = Lab(
    ImplicitSpec,
    run=later("iclgd.labs.implicit.run:run"),
    page=later("iclgd.labs.implicit.page:page"),
    identity=later("iclgd.labs.implicit.run:identity"),
    flops=later("iclgd.labs.implicit.cost:flops"),
    version=5,
    examples=(
        "  iclgd implicit                                        embedded model and task, a few minutes\n"
        "  iclgd implicit --task sentiment,kinds,continents --seeds 5\n"
        "  iclgd implicit --calibration 1,2,4,8,16,32 --ranks 1,2,4,8,16\n"
        "  iclgd implicit --rates 1e-3,1e-2,1e-1                 likeness to training against step size\n"
    ),
)
