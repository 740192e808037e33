"""A thing and its options, as they are written."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from pydantic import Field

from iclgd.choices import Choice, one_of, parse_one, some_of
from iclgd.errors import Refusal
from iclgd.labs.compare.spec import CompareSpec
from iclgd.labs.order.spec import OrderSpec
from iclgd.learners import LEARNERS
from iclgd.registry import Registry
from iclgd.spec import Spec

THINGS: Registry = Registry("thing", "iclgd things of these tests")


@dataclass(frozen=True)
class Brush:
    rate: Annotated[float, Field(ge=0)] = 0.5
    colour: Literal["red", "blue"] = "red"
    width: int | None = None
    hidden: int = field(default=7, repr=False)


@dataclass(frozen=True)
class Needy:
    size: int

    def __post_init__(self) -> None:
        if self.size == 13:
            raise Refusal("13 is unlucky.")


THINGS.add("brush", Brush)
THINGS.add("needy", Needy)
THINGS.add("plain", object())


class Painting(Spec):
    one: one_of(THINGS) | None = None
    some: some_of(THINGS, ("brush", "plain")) = ()


def parsed(text: object) -> Choice:
    return parse_one(text, THINGS)


def test_what_is_not_said_keeps_its_default_and_is_part_of_the_choice():
    assert parsed("brush").options == (("rate", 0.5), ("colour", "red"), ("width", None))
    assert parsed("brush:rate=2:width=3").make() == Brush(rate=2.0, width=3)
    assert parsed("brush:width=none") == parsed("brush")


def test_text_mapping_and_instance_are_the_same_choice():
    wanted = parsed("brush:colour=blue")
    assert parsed({"name": "brush", "colour": "blue"}) == wanted
    assert parsed(Brush(colour="blue")) == wanted
    assert parsed(wanted) is wanted
    assert wanted.changed(rate=0.5) == wanted != wanted.changed(rate=1)


def test_a_label_has_the_rate_and_every_option_that_is_not_the_default():
    assert parsed("brush").label == "brush 0.5"
    assert parsed("brush:rate=1e-3:colour=blue").label == "brush 0.001 colour=blue"
    assert parsed("needy:size=3").label == "needy size=3"
    assert parsed("plain").label == "plain"


def test_two_choices_that_differ_in_an_option_have_two_labels_and_two_keys():
    one, two = Painting(some="brush,brush:colour=blue").some
    assert one.label != two.label
    assert Painting(one=one).keyed() != Painting(one=two).keyed()


def test_repeats_go_and_default_stands_for_the_usual_ones():
    assert [c.name for c in Painting(some="plain,brush,plain").some] == ["plain", "brush"]
    assert [c.name for c in Painting(some="default").some] == ["brush", "plain"]
    assert [c.name for c in Painting(some=["needy:size=1", "default"]).some] == ["needy", "brush", "plain"]
    assert [c.name for c in Painting(some=Brush()).some] == ["brush"]


def test_a_spec_of_choices_survives_being_written_down():
    made = Painting(one="brush:rate=3", some="brush,plain")
    assert Painting(**made.model_dump(mode="json")) == made


@pytest.mark.parametrize(
    "given, complaint",
    [
        ("brusch", 'no thing "brusch". Did you mean brush?'),
        ("brush:colur=red", 'brush has no option "colur". Did you mean colour? It has rate, colour, width.'),
        ("plain:size=1", 'plain has no option "size". It has none.'),
        ("brush:rate=-1", "brush: rate must be at least 0, not -1."),
        ("brush:rate=fast", 'brush: rate takes a finite number, not "fast".'),
        ("brush:rate=nan", "brush: rate takes a finite number"),
        ("brush:colour=green", 'brush: colour takes red, blue; "green" is none of them.'),
        ("brush:rate", '"brush:rate": an option is written as name=value, which "rate" is not.'),
        ("brush:rate=1:rate=2", '"brush:rate=1:rate=2" has rate twice; give it once.'),
        ("needy", "needy: size is missing: give it."),
        ("needy:size=13", "13 is unlucky."),
        ("brush:hidden=1", 'brush has no option "hidden".'),
        (3, 'a thing is written as its name, or as a mapping with "name" and its options.'),
        ({"rate": 3}, "a thing is written as its name"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_in_a_sentence_that_names_no_flag(given, complaint):
    with pytest.raises(Refusal) as refusal:
        parsed(given)
    assert str(refusal.value).startswith(complaint)
    assert "`rate`" not in str(refusal.value)


def test_two_things_that_a_table_could_not_tell_apart_are_refused():
    with pytest.raises(Refusal, match='two things would both be called "brush 0.5"'):
        Painting(some="brush:rate=0.5,brush:rate=0.50000001")


@pytest.mark.parametrize("name", ["icl", "zero-shot"])
@pytest.mark.parametrize("spec", [CompareSpec, OrderSpec])
def test_nobody_elses_learner_takes_the_name_of_reading_or_of_no_demonstrations(spec, name, monkeypatch):
    """Its numbers would stand in their rows."""
    monkeypatch.setattr(LEARNERS, "_things", {**LEARNERS._things, name: type("Mine", (), {"learn": None})})
    with pytest.raises(
        Refusal, match=f'your learner cannot be called "{name}", which every table has: give it another name'
    ):
        spec.of({"learners": ["gd", name]})


def test_an_instance_of_a_class_that_is_not_registered_is_refused():
    @dataclass(frozen=True)
    class Other:
        pass

    with pytest.raises(Refusal, match="Other is not registered as a thing"):
        parsed(Other())
