"""Float32 products in parts that tensor cores do not round."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclgd.models import split


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=random) * torch.randn(shape, generator=random).exp()


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=2.0**-60, max_value=2.0**60), st.booleans())
def test_a_number_is_its_two_parts_and_a_rest_below_the_last_bits(value, negative):
    number = torch.tensor([-value if negative else value])
    large, small = split.split(number)
    for part in (large, small):
        assert int(part.view(torch.int32)) & split.LOW == 0  # a tensor core multiplies it as it is
    assert abs(float(number - large)) <= 2**-11 * value
    assert abs(float(number.double() - large.double() - small.double())) <= 2**-22 * value


@pytest.mark.parametrize("tokens, dim, rows", [(300, 64, 7), (50, 640, 33)])
def test_both_products_are_float32s(tokens, dim, rows):
    matrix, one, two = drawn(tokens, dim), drawn(rows, dim, seed=1), drawn(rows, tokens, seed=2)
    found = {}
    for kind in (split.Whole, split.Split):
        made = kind(matrix)
        found[kind] = made.right(one, torch.empty(rows, tokens)), made.left(two, torch.empty(rows, dim))
    exact = one.double() @ matrix.double().T, two.double() @ matrix.double()
    sizes = one.double().abs() @ matrix.double().abs().T, two.double().abs() @ matrix.double().abs()
    for kind, products in found.items():
        for product, wanted, size in zip(products, exact, sizes, strict=True):
            assert float(((product - wanted).abs() / size).max()) < 2**-20, kind


def test_what_is_multiplied_is_what_tensor_cores_do_not_round():
    made = split.Split(drawn(40, 24))
    assert made.parts.shape == (40, 72)
    assert not (made.parts.view(torch.int32) & split.LOW).any()


def test_one_part_alone_would_not_do():
    matrix, rows = drawn(40, 24), drawn(5, 24, seed=1)
    exact = rows.double() @ matrix.double().T
    coarse = split.rounded(rows) @ split.rounded(matrix).T
    fine = split.Split(matrix).right(rows, torch.empty(5, 40))
    assert float((coarse - exact).norm()) > 100 * float((fine - exact).norm())


def test_a_cpu_multiplies_a_matrix_as_it_is_and_the_setting_is_put_back():
    assert isinstance(split.multiplied(drawn(3, 2)), split.Whole)
    before = torch.get_float32_matmul_precision()
    made = split.Split(drawn(3, 2))
    made.right(drawn(4, 2), torch.empty(4, 3))
    made.left(drawn(4, 3), torch.empty(4, 2))
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU's tensor cores")
def test_on_a_gpu_the_errors_are_those_of_float32():
    matrix, rows = drawn(5000, 640).cuda(), drawn(300, 640, seed=1).cuda()
    exact = rows.double() @ matrix.double().T
    errors = [
        float((kind(matrix).right(rows, torch.empty(300, 5000).cuda()) - exact).norm())
        for kind in (split.Whole, split.Split)
    ]
    assert isinstance(split.multiplied(matrix), split.Split)
    assert errors[1] <= 2 * errors[0]
