"""The charts of `implicit` have the numbers that were planted."""

from planted_implicit import LAYERS, Plant, planted

from charted import charted
from iclgd.labs.implicit.charts import curve, depth, layers

CENTRED = "without the mean shift"


def test_recovery_goes_over_calibration_queries_and_depth():
    view = planted(seeds=2)
    found = charted(curve(view), "panel", "name")
    assert found[CENTRED, "matrix"] == [0.25] * 3
    assert found[CENTRED, "vector"] == [0] * 3
    assert {name for _, name in found} == {"vector", "rank 1", "rank 4", "matrix"}
    assert curve(view).data["points"] == [1, 4, 16]
    assert curve(view).data["apart"]  # dots: rank 4 has one point, and a line of one point is nothing to see
    parts = charted(depth(view), "panel", "name")
    assert parts[CENTRED, "all layers up to here"] == [0.2, 0.4]
    assert parts[CENTRED, "a part alone"] == [0.1, 0.1]


def test_likeness_goes_over_layers_with_its_nulls():
    found = charted(layers(planted(seeds=2)), "panel", "name", "role")
    whole = {(name, role): values for (panel, name, role), values in found.items() if panel == "one matrix for all"}
    assert whole == {
        ("gd", "own"): [0.0202] * LAYERS,
        ("gd, random weights", "null"): [-0.01] * LAYERS,
        ("gd, wrong labels", "null"): [0.01] * LAYERS,
        ("gd, other demonstrations", "null"): [0.012] * LAYERS,
        ("gd, another task", "null"): [0.005] * LAYERS,
        ("reading filler", "null"): [0.003] * LAYERS,
        ("labels' part", "own"): [0.03] * LAYERS,
    }


def test_where_every_training_diverged_there_is_no_likeness_to_chart():
    plant = Plant()
    plant.diverged = True
    assert layers(planted(plant)) is None
