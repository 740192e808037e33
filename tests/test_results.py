"""Numbers with labels."""

import numpy as np
import pytest
import torch

from iclgd import results
from iclgd.results import Array, Result, array


def test_an_array_takes_tensors_lists_and_numbers():
    assert array(torch.ones(2, 3), "a", "b").values.shape == (2, 3)
    assert array([1, 2], "a").values.tolist() == [1, 2]
    assert array(3.5, quantity="loss").labels == {"quantity": "loss"}


def test_axes_and_coordinates_have_to_fit_the_numbers():
    with pytest.raises(ValueError, match="2 axes of numbers have 1 names"):
        array(np.zeros((2, 3)), "a")
    with pytest.raises(ValueError, match="3 coordinates do not fit the axis a"):
        array(np.zeros(2), "a", coordinates={"a": ("x", "y", "z")})


def test_a_place_is_taken_by_its_coordinate_or_its_number():
    values = np.arange(12).reshape(2, 3, 2)
    made = array(values, "position", "query", "layer", coordinates={"position": ("prompt", "label")}, metric="m")
    label = made.at(position="label")
    assert label.axes == ("query", "layer")
    assert label.labels == {"metric": "m", "position": "label"}
    assert np.array_equal(label.values, values[1])
    assert np.array_equal(made.at(layer=1, position="prompt").values, values[0, :, 1])
    assert made.at(query=2).coordinates == {"position": ("prompt", "label")}


def test_arrays_are_selected_by_labels_and_none_means_that_a_label_is_not_there():
    plain, null = array(1.0, metric="m"), array(2.0, metric="m", null="random")
    result = Result({}, [plain, null])
    assert result.select(metric="m") == [plain, null]
    assert result.select(metric="m", null=None) == [plain]
    assert result.select(null="random") == [null]
    assert result.select(metric="other") == []
    assert isinstance(result.select(metric="m")[0], Array)


def test_numbers_that_are_on_a_device_come_to_the_host_in_one_copy_of_each_format(monkeypatch):
    monkeypatch.setattr(results, "_waits", lambda values: hasattr(values, "detach"))
    copies = list[int]()
    cpu = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: copies.append(tensor.numel()) or cpu(tensor))
    drawn = torch.Generator().manual_seed(0)
    wide, narrow = torch.randn(2, 3, generator=drawn), torch.randn(4, generator=drawn).double()
    given = [wide.T, narrow, torch.ones(0), torch.tensor(2.5), torch.tensor([True, False])]
    arrays = [array(values, *"ab"[: values.ndim], metric=str(i)) for i, values in enumerate(given)]
    found = Result({}, [*arrays, array([7], "a")]).arrays
    assert sorted(copies) == [2, 4, 7]
    for one, values in zip(found, given, strict=False):
        assert isinstance(one.values, np.ndarray)
        assert one.values.dtype == values.numpy().dtype
        assert np.array_equal(one.values, values.numpy())
    assert [one.labels for one in found] == [*({"metric": str(i)} for i in range(5)), {}]
    assert found[5].values.tolist() == [7]
