"""Families of regressions by name; nothing is imported before one is asked for."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from iclgd.errors import Refusal
from iclgd.registry import Registry

if TYPE_CHECKING:
    from iclgd.tasks.regression import Regression

FAMILIES: "Registry[Callable[..., Regression]]" = Registry("regression family", "iclgd linear train --help")
"""Builders: each takes dx, dy, demos and noise, and what `regression.build` may change."""

for _name in ("linear", "gaussian", "skewed", "sine", "sine-one-key", "sparse", "quadratic", "relu", "tree"):
    FAMILIES.add(_name, f"iclgd.tasks.regression:{_name.replace('-', '_')}")


def check_deviations(given: Sequence[float], dx: int) -> None:
    """Of independent inputs: one for all, or one each."""
    if len(given) not in (0, 1, dx):
        raise Refusal(f"`covariance` takes 1 or {dx} standard deviations, not {len(given)}.")
    if not all(0 < deviation < math.inf for deviation in given):
        raise Refusal("`covariance` takes positive standard deviations.")


def check_mean(given: Sequence[float], dx: int) -> None:
    """Of the weights of linear functions: one number for all, or one each."""
    if len(given) not in (0, 1, dx):
        raise Refusal(f"`weight_mean` takes 1 or {dx} numbers, not {len(given)}.")
