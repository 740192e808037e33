"""Families of regressions by name; nothing is imported before one is asked for."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from iclgd.registry import Registry

if TYPE_CHECKING:
    from iclgd.tasks.regression import Regression

FAMILIES: "Registry[Callable[..., Regression]]" = Registry("regression family", "iclgd linear train --help")
"""Builders: each takes dx, dy, demos and noise, and what `regression.build` may change."""

for _name in ("linear", "gaussian", "skewed", "sine", "sine-one-key", "sparse", "quadratic", "relu", "tree"):
    FAMILIES.add(_name, f"iclgd.tasks.regression:{_name.replace('-', '_')}")
