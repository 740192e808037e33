"""Names, and what an unknown one is answered with."""

import pytest

from iclgd.errors import Refusal, visible
from iclgd.registry import Registry, suggest
from iclgd.spec import EpisodeSpec, ModelSpec


def test_an_unknown_name_is_answered_with_the_nearest_and_where_all_are_listed():
    things: Registry[int] = Registry("thing", "iclgd things")
    things.add("alpha", 1)
    with pytest.raises(Refusal, match=r'no thing "alhpa"\. Did you mean alpha\? `iclgd things` lists all\.'):
        things["alhpa"]
    assert things["alpha"] == 1


def test_nothing_is_suggested_where_nothing_is_near():
    assert suggest("zzzzzz", ["alpha", "beta"]) == ""


def test_two_things_cannot_have_one_name():
    things: Registry[int] = Registry("thing", "iclgd things")
    things.add("alpha", 1)
    with pytest.raises(ValueError, match="two things are called 'alpha'"):
        things.add("alpha", 2)


def test_control_characters_are_spelled_out():
    assert visible("a\x1b[31mb\u202ec\nd é") == "a\\x1b[31mb\\u202ec\nd é"


def test_a_key_names_the_content_and_not_how_it_was_written_down():
    assert EpisodeSpec(k=3, seed=1).key() == EpisodeSpec(seed=1, k=3).key() != EpisodeSpec(k=4, seed=1).key()
    assert len(ModelSpec().key()) == 64


def test_a_misspelled_field_of_a_spec_is_refused():
    with pytest.raises(ValueError, match="demos"):
        EpisodeSpec(demos=3)
