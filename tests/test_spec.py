"""What was asked for: keys, complaints, and how a field becomes a flag."""

from typing import Literal

import pytest
from pydantic import model_validator

from iclgd.cli import flagged
from iclgd.errors import Refusal
from iclgd.spec import EpisodeSpec, ModelSpec, Names, Rates, Seeds, Spec, canonical, finite, option, read_yaml


class Small(Spec):
    count: int = option(3, "How many.", ge=1, le=9)
    size: float = option(1.0, "How large.", gt=0, lt=10)
    query_seed: int = option(0, "Which.")
    name: str = option("x", "What it is called.", keyed=False)
    word: Literal["red", "blue"] = option("red", "Which word.")
    on: bool = option(False, "Whether.")
    seeds: Seeds = option((0,), "Draws.")
    rates: Rates = option((), "Rates.")
    names: Names = option(("a",), "Names.")

    @model_validator(mode="after")
    def _together(self) -> "Small":
        if self.count == 8 and self.on:
            raise ValueError("`count` is at most 7 with `on`.")
        return self


class Needs(Spec):
    thing: int


COMPLAINTS = [
    ({"cuont": 3}, 'there is no field "cuont". Did you mean count?'),
    ({"count": 0}, "`count` must be at least 1, not 0."),
    ({"count": 10}, "`count` must be at most 9, not 10."),
    ({"size": 0}, "`size` must be above 0, not 0."),
    ({"size": 10}, "`size` must be below 10, not 10."),
    ({"count": "three"}, '`count` takes a whole number, not "three".'),
    ({"count": 1.5}, "`count` takes a whole number, not 1.5."),
    ({"count": None}, "`count` takes a whole number, not None."),
    ({"size": "wide"}, '`size` takes a finite number, not "wide".'),
    ({"size": float("nan")}, "`size` takes a finite number, not nan."),
    ({"word": "rad"}, '`word` takes red, blue; "rad" is none of them. Did you mean red?'),
    ({"on": "perhaps"}, '`on` takes true or false, not "perhaps".'),
    ({"name": 7}, "`name` takes a text, not 7: write it in quotes."),
    ({"names": ""}, "`names` needs at least 1 value, not 0."),
    ({"seeds": "0"}, "`seeds` takes from 1 to 10000 draws, or a list such as 2,3,4, not 0."),
    ({"seeds": f"{2**32},"}, "`seeds` must be below 4294967296"),
    ({"seeds": "x"}, '`seeds` takes a whole number, not "x".'),
    ({"rates": "-1"}, "`rates` must be at least 0"),
    ({"count": 8, "on": True}, "`count` is at most 7 with `on`."),
]


@pytest.mark.parametrize("given, complaint", COMPLAINTS, ids=[complaint for _, complaint in COMPLAINTS])
def test_a_complaint_is_one_sentence_that_names_the_field(given, complaint):
    with pytest.raises(Refusal) as refusal:
        Small.of(given)
    said = str(refusal.value)
    assert said.startswith(complaint)
    assert "\n" not in said
    assert said.endswith((".", "?"))


def test_a_field_that_has_to_be_given_is_missing_by_name():
    with pytest.raises(Refusal, match="`thing` is missing."):
        Needs.of({})


def test_the_command_line_spells_a_field_as_its_flag_and_a_command_as_it_is():
    assert flagged("`query_seed` must be at least 0; `iclgd tasks` lists all.") == (
        "--query-seed must be at least 0; `iclgd tasks` lists all."
    )


@pytest.mark.parametrize(
    "given, wanted", [("3", (0, 1, 2)), (2, (0, 1)), ("2,3,4", (2, 3, 4)), ("5,", (5,)), ([4, 4, 1], (4, 1))]
)
def test_seeds_are_how_many_or_which(given, wanted):
    assert Small(seeds=given).seeds == wanted


def test_lists_are_separated_by_commas_and_lose_their_repeats():
    assert Small(rates="1e-3, 0.1,0.001").rates == (0.001, 0.1)
    assert Small(rates=0.5).rates == (0.5,)
    assert Small(names="b,a,b").names == ("b", "a")


def test_a_key_names_the_content_and_not_how_it_was_written_down():
    assert EpisodeSpec(k=3, seed=1).key() == EpisodeSpec(seed=1, k=3).key() != EpisodeSpec(k=4, seed=1).key()
    assert len(ModelSpec().key()) == 64
    assert canonical({"b": 1, "a": "é"}) == '{"a":"é","b":1}'


def test_what_changes_no_number_is_not_in_the_key():
    assert Small(name="y").keyed() == Small().keyed()
    assert Small(count=4).keyed() != Small().keyed()

    class Outer(Spec):
        model: ModelSpec = ModelSpec()

    assert Outer(model=ModelSpec(device="cuda")).keyed() == Outer().keyed()
    assert Outer(model=ModelSpec(dtype="float64")).keyed() != Outer().keyed()


def test_a_part_takes_the_fields_that_both_have():
    class Wide(Spec):
        k: int = 5
        queries: int = 7
        other: str = "x"

    assert Wide().part(EpisodeSpec, seed=2) == EpisodeSpec(k=5, queries=7, seed=2)


def test_numbers_that_json_does_not_have_become_null():
    assert finite({"a": [1.0, float("nan")], "b": (float("inf"), "x")}) == {"a": [1.0, None], "b": [None, "x"]}


@pytest.mark.parametrize(
    "text, complaint",
    [("- a", "this is no spec"), ("{", "this is not valid YAML"), ("a: b: c", "line 1: this is not valid YAML")],
)
def test_a_yaml_file_that_holds_no_mapping_is_refused_by_its_path(tmp_path, text, complaint):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(Refusal, match=complaint) as refusal:
        read_yaml(tmp_path / "x.yaml", "spec")
    assert "x.yaml" in str(refusal.value)
    with pytest.raises(Refusal, match="No such file"):
        read_yaml(tmp_path / "none.yaml", "spec")
