"""The lab `order`, put together."""

from iclgd.lab import Lab, later
from iclgd.labs.order.spec import OrderSpec

ORDER = Lab(
    OrderSpec,
    later("iclgd.labs.order.run:run"),
    later("iclgd.labs.order.page:page"),
    identity=later("iclgd.labs.order.run:identity"),
    examples=(
        "  iclgd order                                        embedded model and task, 20 orders of 4 demonstrations\n"
        "  iclgd order --learners gd --k 8 --seeds 3 --init trained,random\n"
        "  iclgd order --learners gd --rates 1e-4,1e-3,1e-2   spread against step size\n"
    ),
)
