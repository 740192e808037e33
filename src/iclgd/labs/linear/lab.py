"""The labs `linear train` and `linear optimum`, put together; what they run is imported when they run."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from iclgd.lab import Cell, Lab, later
from iclgd.labs.linear.spec import OptimumSpec, TrainSpec
from iclgd.labs.linear.stacks import DepthSpec, LayersSpec

if TYPE_CHECKING:
    from iclgd.report.page import Page
    from iclgd.results import Result
    from iclgd.study import Study
    from iclgd.tools import Tools


def _run(cell: Cell, tools: "Tools") -> "Result":
    from iclgd.labs.linear.run import run

    return run(cell, tools)


def _together(cells: Sequence[Cell], tools: "Tools") -> "Iterable[Result]":
    from iclgd.labs.linear.run import together

    return together(cells, tools)


def _page(study: "Study") -> "Page":
    from iclgd.labs.linear.page import page

    return page(study)


def _optimum(cell: Cell, tools: "Tools") -> "Result":
    from iclgd.labs.linear.optimum import run

    return run(cell, tools)


def _optimum_page(study: "Study") -> "Page":
    from iclgd.labs.linear.optimum import page

    return page(study)


TRAIN = Lab(
    TrainSpec,
    _run,
    _page,
    together=_together,
    version=2,
    examples="  iclgd linear train --layers 1 --learners gd           one layer against one gradient step\n"
    "  iclgd linear train --layers 2 --learners gd,gd++      two layers against two steps\n"
    "  iclgd linear train --task sine                        with an MLP in front\n",
)
LAYERS = Lab(
    LayersSpec,
    later("iclgd.labs.linear.layers:run"),
    later("iclgd.labs.linear.layers:page"),
    together=later("iclgd.labs.linear.layers:together"),
    version=2,
    examples="  iclgd linear layers --kinds linear,delta,mesa\n  iclgd linear layers --layers 2 --noise 0\n",
)
DEPTH = Lab(
    DepthSpec,
    later("iclgd.labs.linear.depth:run"),
    later("iclgd.labs.linear.depth:page"),
    together=later("iclgd.labs.linear.depth:together"),
    version=2,
    examples="  iclgd linear depth --layers 4\n  iclgd linear depth --covariance 1,1,1,0.5,0.25\n",
)
OPTIMUM = Lab(
    OptimumSpec,
    _optimum,
    _optimum_page,
    quick=True,
    examples="  iclgd linear optimum --task gaussian --dx 5 --k 20 --steps 2\n",
)
