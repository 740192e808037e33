"""What metrics say of themselves: tables, figures and nulls ask them that."""

import math

import torch

from iclgd.metrics import METRICS, OWN
from iclgd.metrics.compared import Metric, metric

INFINITE = math.inf
# by, bounds, alone, contrast, of, aside
DECLARED = {
    "SimAOU": ("layer", (-1, 1), False, False, "update", False),
    "SimAOU_norm": ("layer", (-1, 1), False, False, "update", False),
    "SimBlock": ("layer", (-1, 1), False, False, "update", False),
    "SimAM": ("layer", (-1, 1), False, False, "trace", False),
    "SimAM_Δ": ("layer", (-1, 1), False, False, "update", False),
    "contrast, outputs": ("layer", (-1, 1), False, True, "update", False),
    "contrast, outputs, centred": ("layer", (-1, 1), False, True, "update", False),
    "contrast, maps": ("layer", (-1, 1), False, True, "update", False),
    "contrast, maps, centred": ("layer", (-1, 1), False, True, "update", False),
    "contrast, blocks": ("layer", (-1, 1), False, True, "update", False),
    "contrast, blocks, centred": ("layer", (-1, 1), False, True, "update", False),
    "labels' share of the update": ("layer", (0, INFINITE), False, True, "update", False),
    "Kendall's τ": ("layer", (-1, 1), False, False, "training", False),
    "accuracy": ("query", (0, 1), True, False, "update", False),
    "calibrated": ("query", (0, 1), True, False, "update", False),
    "contextually calibrated": ("query", (0, 1), True, False, "update", True),
    "agrees with icl": ("query", (0, 1), False, False, "update", False),
    "KL(icl ‖ it)": ("query", (0, INFINITE), False, False, "update", False),
}


def said(one: Metric) -> tuple:
    return one.by, tuple(one.bounds), one.alone, one.contrast, one.of, one.aside


def test_every_metric_says_what_it_is():
    known = [METRICS[name] for name, _, _ in OWN]
    assert {one.title: said(one) for one in known} | DECLARED == {one.title: said(one) for one in known}


def test_a_metric_is_a_cosine_of_updates_by_layer_unless_it_says_otherwise():
    made = metric("mine")(lambda seen: torch.zeros(1))
    assert said(made) == ("layer", (-1, 1), False, False, "update", False)
    assert made.version == 1
    assert made == Metric(made.measure, "layer", (-1, 1), "mine")
    assert made.__wrapped__ is made.measure  # its own file is found by it
    assert metric("mine", version=3)(made.measure).version == 3
