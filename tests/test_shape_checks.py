"""What is checked while tests run: types, shapes, one length for one name of an axis; in `iclgd` and nowhere else."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from iclgd.metrics.likeness import sim_aou
from iclgd.models.looks import coded
from iclgd.report.numbers import Number
from shape_checks import checked

Rows = Float[Tensor, "row column"]


@checked
def product(one: Float[Tensor, "a b"], other: "Float[Tensor, 'b c']", wrong: bool = False) -> Float[Tensor, "a c"]:
    return (one @ other).mT if wrong else one @ other


@checked
def doubled(number: int, name: "Unknown" = None) -> int:
    return number * 2


@checked
def chosen(of: Rows, words: list[int]) -> Float[Tensor, "row {len(words)}"]:
    return of[:, words] if words else of


@checked
def rows(of: Rows) -> Iterator[Rows]:
    yield of
    yield product(of, of.mT)


@checked
@dataclass(frozen=True)
class Pair:
    one: Float[Tensor, "a"]
    other: Float[Tensor, "a"]


def test_one_name_of_an_axis_is_one_length_in_all_that_a_function_takes_and_gives():
    assert product(torch.ones(2, 3), torch.ones(3, 4)).shape == (2, 4)
    with pytest.raises(BeartypeCallHintViolation):
        product(torch.ones(2, 3), torch.ones(4, 3))
    with pytest.raises(BeartypeCallHintViolation):
        product(torch.ones(2, 3), torch.ones(3, 4), wrong=True)
    assert product(torch.ones(5, 6), torch.ones(6, 7)).shape == (5, 7)  # another call, other lengths


def test_a_length_may_be_that_of_an_argument():
    assert chosen(torch.ones(2, 3), [0, 2]).shape == (2, 2)
    with pytest.raises(TypeCheckError):
        chosen(torch.ones(2, 3), [])


def test_the_number_of_axes_and_the_kind_of_numbers_are_checked():
    for wrong in (torch.ones(3), torch.ones(2, 3).int(), [[1.0]]):
        with pytest.raises(BeartypeCallHintViolation):
            product(wrong, torch.ones(3, 4))


def test_types_without_shapes_are_checked_and_names_that_are_not_known_are_not():
    assert doubled(2, name="anything") == 4
    with pytest.raises(BeartypeCallHintViolation):
        doubled("2")


def test_the_fields_of_a_dataclass_are_checked_together():
    assert Pair(torch.ones(2), torch.ones(2)).one.shape == (2,)
    with pytest.raises(BeartypeCallHintViolation):
        Pair(torch.ones(2), torch.ones(3))


def test_what_a_generator_calls_between_two_steps_has_axes_of_its_own():
    first, second = rows(torch.ones(2, 3))
    assert (first.shape, second.shape) == ((2, 3), (2, 2))


def test_functions_methods_and_dataclasses_of_the_package_are_checked():
    with pytest.raises(BeartypeCallHintViolation):
        sim_aou(torch.ones(2, 3, 4), torch.ones(2, 3, 4), torch.ones(2, 3, 5))
    with pytest.raises(BeartypeCallHintViolation):
        Number("many")
    with pytest.raises(BeartypeCallHintViolation):
        coded("not an array")


@pytest.mark.usefixtures("without_shape_checks")
def test_shapes_are_not_checked_where_a_test_asks_for_it():
    with pytest.raises(RuntimeError):  # torch itself
        sim_aou(torch.ones(2, 3, 4), torch.ones(2, 3, 4), torch.ones(2, 3, 5))
