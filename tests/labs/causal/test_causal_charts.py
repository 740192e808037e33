"""The chart of `causal` has the numbers that were planted, at every rate, with the nulls beside them."""

from planted_causal import planted

from charted import charted
from iclgd.labs.causal.charts import layers
from iclgd.labs.causal.figures import SITES


def test_every_exchange_has_its_panel_and_the_share_of_every_layer():
    found = charted(layers(planted(seeds=3)), "panel", "name", site=SITES["attention"], rate="0.01", role="own")
    assert found["icl into zero-shot", "icl"] == [0.1, 0.1, 0.5, 0.1]
    assert {panel for panel, _ in found} == {
        "icl into zero-shot", "gd into zero-shot", "icl into gd", "gd into icl", "zero-shot into icl",
    }  # fmt: skip


def test_exchanges_with_the_zero_shot_run_have_their_nulls_and_every_rate_can_be_chosen():
    widget = layers(planted(rates="0.01,0.1", init="trained"))
    nulls = charted(widget, "panel", "name", "rate", role="null", site=SITES["attention"])
    names = {("icl into zero-shot", "icl: another query's update"), ("gd into zero-shot", "gd: random, as long")}
    assert {(*panel_and_name, rate) for panel_and_name in names for rate in ("0.01", "0.1")} <= set(nulls)
    assert {panel for panel, _, _ in nulls} == {"icl into zero-shot", "gd into zero-shot"}
    assert widget.data["choose"] == {"site": "what is exchanged", "rate": "rate"}
