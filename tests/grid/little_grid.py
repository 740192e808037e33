"""A small grid of the toy lab, and the numbers it must give."""

import numpy as np

TEXT = """\
name: mine
about: Whether k matters.
defaults: {seeds: 3}
parts:
  a:
    lab: toy
    grid: {k: [2, 3], scale: [1, 2]}
    exclude: [{k: 3, scale: 2}]
  b: {lab: toy, loud: true}
"""
PARTS = ["a-k=2-scale=1", "a-k=2-scale=2", "a-k=3-scale=1", "b"]


def drawn(seed: int, k: int = 4, scale: float = 1) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal(k) * scale
