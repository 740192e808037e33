"""What every lab does unasked, which values it takes, and which of its options change no number."""

import pytest

import iclgd.labs  # noqa: F401  registers the labs
from iclgd.errors import Refusal
from iclgd.lab import LABS
from iclgd.spec import is_keyed

MODEL = {"model": "smollm2-135m", "allow_pickle": False, "trust_remote_code": False}
READ = MODEL | {"query_seed": 1, "balanced": False, "separator": "\n\n", "truncate": False, "start": "bos"}
ASKED = READ | {"task": "sentiment", "seed": 0}
FAMILY = {"task": "linear", "dx": 10, "k": 10, "noise": 0, "law": "family", "covariance": (), "weight_mean": ()}
WORDS = {"negatives": "complement", "min_length": 1, "max_length": 12, "dims": 10, "languages": 1000, "k": 20}
UNASKED = {
    "compare": MODEL
    | {
        "k": 8,
        "queries": 40,
        "query_seed": 1,
        "balanced": False,
        "separator": "\n\n",
        "truncate": False,
        "start": "bos",
    }
    | {
        "task": ("sentiment",),
        "seeds": (0,),
        "init": ("trained", "random"),
        "rates": (),
        "contrast": True,
        "floor": True,
    },
    "implicit": READ
    | {"task": ("sentiment",), "k": 8, "queries": 12, "seeds": (0,), "init": ("trained", "random"), "other": None}
    | {"calibration": (1, 4, 12), "ranks": (1, 4), "ridge": 0.1, "rates": (0.1,), "exact": 2, "tokens": 4}
    | {"precisions": ("float64", "float32")},
    "causal": READ
    | {"task": ("sentiment",), "k": 8, "queries": 16, "seeds": (0,), "init": ("trained", "random"), "other": None}
    | {"rates": (0.01,), "heads": 10, "sets": 20},
    "trace": ASKED | {"dtype": "float32", "k": 32, "queries": 100, "init": "trained", "init_seed": 0},
    "exits": ASKED | {"dtype": "float32", "k": 8, "queries": 40, "init": "trained", "init_seed": 0},
    "dual check": ASKED | {"dtype": "float64", "k": 8, "queries": 4},
    "dual bound": ASKED | {"dtype": "float64", "k": 24, "queries": 2, "held": 8},
    "dual modify": ASKED | {"dtype": "float32", "k": 16, "queries": 100},
    "dual train": {"seeds": tuple(range(8)), "dx": 10, "k": 15, "alphabet": "", "max_length": None, "epochs": 100}
    | {"steps": 20, "batch": 128, "rate": 0.01, "episodes": 4096},
    "languages run": WORDS
    | {"language": "a*bc*", "labels": "fixed", "layers": 1, "start": "random", "steps": 2000, "batch": 128}
    | {"queries": 1, "rate": 0.03, "episodes": 2000, "seeds": (0, 1, 2, 3, 4)},
    "languages all": {"seeds": (0, 1, 2, 3, 4), "shrink": 1},
    "languages sample": {"language": "a*bc*", "length": 8, "count": 10, "complement": False, "seed": 0},
    "languages list": {"max_length": 12},
    "linear train": FAMILY
    | {
        "dy": 1,
        "layers": 1,
        "heads": 1,
        "attention": "linear",
        "shared": False,
        "width": 0,
        "hidden": 160,
        "steps": 4000,
    }
    | {"batch": 64, "rate": 0.02, "clip": 0.1, "episodes": 4000, "learners": ("gd",), "seeds": tuple(range(8))},
    "order": READ
    | {"task": ("sentiment",), "seeds": (0,), "k": 4, "queries": 10, "orders": 20, "top": 10, "rates": ()}
    | {"init": ("trained",), "dtype": "float32"},
    "linear layers": FAMILY
    | {"dx": 5, "noise": 0.2, "layers": 1, "steps": 2000, "batch": 64, "rate": 0.02, "clip": 0.1, "episodes": 2000}
    | {"kinds": ("linear", "softmax", "delta", "gated-delta", "longhorn", "ttt", "mesa"), "seeds": (0, 1, 2)},
    "linear depth": FAMILY
    | {"task": "gaussian", "dx": 5, "k": 20, "noise": 0, "layers": 3, "steps": 3000, "batch": 64, "rate": 0.01}
    | {"clip": 0.1, "episodes": 2000, "seeds": (0, 1, 2)},
    "linear optimum": FAMILY | {"steps": 3, "sample": 5000},
    "identities": {"seeds": (0, 1, 2)},
}
# which need k of their own, or allow a small one
WITH = {
    "dual modify": {"modifications": "plain"},
    "dual train": {"arms": "plain"},
    "order": {"orders": 2},
    "linear depth": {"dx": 1},
}
# the smallest value taken; one less is refused
SMALLEST = {
    "compare": {"k": 1, "queries": 1, "query_seed": 0, "batch_tokens": 1},
    "implicit": {"k": 1, "queries": 2, "ridge": 0, "exact": 2, "tokens": 0},
    "causal": {"k": 2, "queries": 2, "heads": 1, "sets": 2},
    "trace": {"k": 1, "queries": 1, "query_seed": 0, "seed": 0, "init_seed": 0},
    "exits": {"k": 1, "queries": 1, "query_seed": 0, "seed": 0, "init_seed": 0},
    "dual check": {"k": 1, "queries": 1, "seed": 0},
    "dual bound": {"queries": 1, "held": 1},
    "dual modify": {"k": 1, "queries": 1},
    "dual train": {"dx": 1, "k": 1, "epochs": 1, "steps": 1, "batch": 1, "episodes": 1},
    "languages run": {"min_length": 1, "k": 2, "layers": 1, "steps": 1, "batch": 1, "queries": 1, "episodes": 1},
    "languages all": {"shrink": 1},
    "languages sample": {"length": 1, "count": 1, "seed": 0},
    "languages list": {"max_length": 1},
    "linear train": {"dx": 1, "k": 1, "noise": 0, "dy": 1, "layers": 1, "heads": 1, "hidden": 1, "steps": 1, "batch": 1}
    | {"episodes": 1, "width": 0},
    "linear layers": {"dx": 1, "noise": 0, "layers": 1, "steps": 1, "batch": 1, "episodes": 1},
    "linear depth": {"dx": 1, "k": 1, "noise": 0, "layers": 1, "steps": 1, "batch": 1, "episodes": 1},
    "order": {"k": 2, "queries": 1, "orders": 2, "top": 1},
    "linear optimum": {"steps": 1, "sample": 1, "dx": 1, "k": 1, "noise": 0},
}
LARGEST = {"languages sample": {"length": 40, "count": 1_000_000}, "languages list": {"max_length": 40}}
POSITIVE = {"dual train": ["rate"], "languages run": ["rate"]}
POSITIVE |= {lab: ["rate", "clip"] for lab in ("linear train", "linear layers", "linear depth")}
ELSEWHERE = {"plugin", "model", "revision", "device", "device_map", "allow_pickle", "trust_remote_code", "data"}
NOT_KEYED = {
    "compare": ELSEWHERE | {"batch_tokens", "position"},
    **dict.fromkeys(("implicit", "causal"), ELSEWHERE | {"other"}),
    **dict.fromkeys(("trace", "exits", "dual check", "dual bound", "dual modify"), ELSEWHERE | {"task"}),
    "order": ELSEWHERE,
    **{lab: {"plugin"} for lab in ("languages run", "languages all", "linear train", "linear optimum", "dual train")},
    **{lab: {"plugin"} for lab in ("linear layers", "linear depth")},
}
# of a cell: what its identity names by content, and what only decides how fast it is
NOT_KEYED_IN_CELLS = {
    "compare": {"task", "batch_tokens"},
    "trace": {"task"},
    "implicit": {"task", "other"},
    **{lab: {"task", "episode"} for lab in ("exits", "order")},
    **{lab: {"task", "episode", "query"} for lab in ("dual check", "dual bound", "dual modify")},
    **{lab: set() for lab in ("languages run", "linear train", "linear layers", "linear depth", "linear optimum")},
}


def cases(table: dict) -> list[tuple]:
    return [(lab, *one) for lab, fields in table.items() for one in fields.items()]


def not_keyed(spec) -> set[str]:
    return {name for name, field in spec.model_fields.items() if not is_keyed(field)}


@pytest.mark.parametrize("lab", UNASKED)
def test_what_is_run_unasked(lab):
    spec = LABS[lab].spec.of({})
    assert {name: getattr(spec, name) for name in UNASKED[lab]} == UNASKED[lab]


def test_labs_of_seconds_leave_no_folder_unasked():
    quick = {lab for lab in LABS if LABS[lab].quick}
    assert quick == {"identities", "languages sample", "languages list", "linear optimum"}


@pytest.mark.parametrize("lab, field, value", cases(SMALLEST))
def test_the_smallest_value_is_taken_and_a_smaller_one_refused(lab, field, value):
    assert getattr(LABS[lab].spec.of({**WITH.get(lab, {}), field: value}), field) == value
    with pytest.raises(Refusal, match=f"`{field}` must be at least {value}"):
        LABS[lab].spec.of({**WITH.get(lab, {}), field: value - 1})


@pytest.mark.parametrize("lab, field, value", cases(LARGEST))
def test_the_largest_value_is_taken_and_a_larger_one_refused(lab, field, value):
    assert getattr(LABS[lab].spec.of({field: value}), field) == value
    with pytest.raises(Refusal, match=field):
        LABS[lab].spec.of({field: value + 1})


@pytest.mark.parametrize("lab, field", [(lab, field) for lab, fields in POSITIVE.items() for field in fields])
def test_a_rate_is_above_zero_and_may_be_small(lab, field):
    assert getattr(LABS[lab].spec.of({field: 1e-9}), field) == 1e-9
    with pytest.raises(Refusal, match=field):
        LABS[lab].spec.of({field: 0})


@pytest.mark.parametrize("lab", NOT_KEYED)
def test_options_that_change_no_number_are_not_in_the_key(lab):
    assert not_keyed(LABS[lab].spec) == NOT_KEYED[lab]


@pytest.mark.parametrize("lab", NOT_KEYED_IN_CELLS)
def test_only_what_its_identity_names_is_not_in_a_cells_own_key(lab):
    for kind in {type(cell.spec) for cell in LABS[lab].spec.of({}).cells()}:
        assert not_keyed(kind) == NOT_KEYED_IN_CELLS[lab]


@pytest.mark.parametrize(
    "given, wanted",
    [
        ({"labels": "sign"}, (32, "gd", 0.03)),
        ({"labels": "fixed"}, (1, "random", 0.03)),
        ({"encoder": "end-to-end"}, (1, "random", 0.003)),
        ({"encoder": "end-to-end", "labels": "sign"}, (1, "random", 0.003)),
        ({"labels": "sign", "queries": 5, "rate": 0.1, "start": "random"}, (5, "random", 0.1)),
    ],
)
def test_how_layers_are_trained_on_languages_depends_on_labels_and_encoder(given, wanted):
    spec = LABS["languages run"].spec.of(given)
    assert (spec.queries, spec.start, spec.rate) == wanted


def test_a_sine_has_one_input_and_an_mlp_with_its_own_rate():
    sine = LABS["linear train"].spec.of({"task": "sine"})
    assert (sine.dx, sine.width, sine.rate, sine.learners) == (1, 40, 0.003, ())
    assert LABS["linear train"].spec.of({"width": 5}).rate == 0.003
    assert LABS["linear train"].spec.of({"width": 5, "rate": 0.5}).rate == 0.5
    with pytest.raises(Refusal, match="not linear in its input"):
        LABS["linear train"].spec.of({"task": "sine", "width": 0, "learners": "nearest"})


def test_moments_are_drawn_where_they_are_exact_and_tokens_elsewhere_or_where_asked_for():
    def draws(**given):
        return LABS["linear train"].spec.of(given).draws

    assert draws(task="gaussian") == "moments"
    assert draws(task="gaussian", draws="tokens") == "tokens"
    assert draws(task="linear") == draws(task="gaussian", attention="softmax") == "tokens"
    assert draws(task="gaussian", width=4) == "tokens"
    with pytest.raises(Refusal, match="draws"):
        draws(task="linear", draws="moments")


@pytest.mark.parametrize("change", [{"layers": 2}, {"heads": 2}, {"width": 4}, {"attention": "softmax"}])
def test_only_one_linear_layer_with_one_head_has_a_construction_beside_it(change):
    assert LABS["linear train"].spec.of({}).plain
    assert not LABS["linear train"].spec.of(change).plain
