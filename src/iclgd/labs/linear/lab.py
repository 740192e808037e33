"""The labs `linear train` and `linear optimum`, put together."""

from iclgd.lab import Lab
from iclgd.labs.linear import optimum
from iclgd.labs.linear.page import page
from iclgd.labs.linear.run import run, together
from iclgd.labs.linear.spec import OptimumSpec, TrainSpec

TRAIN = Lab(
    TrainSpec,
    run,
    page,
    together=together,
    examples="  iclgd linear train --layers 1 --learners gd           one layer against one gradient step\n"
    "  iclgd linear train --layers 2 --learners gd,gd++      two layers against two steps\n"
    "  iclgd linear train --task sine                        with an MLP in front\n",
)
OPTIMUM = Lab(
    OptimumSpec,
    optimum.run,
    optimum.page,
    quick=True,
    examples="  iclgd linear optimum --task gaussian --dx 5 --k 20 --steps 2\n",
)
