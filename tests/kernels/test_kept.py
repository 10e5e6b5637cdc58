"""What is kept of weights that no longer change is never that of other weights, and goes nowhere else."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import seunet
from seunet.kernels.kept import Kept


def small_network() -> nn.Module:
    torch.manual_seed(0)
    return seunet.create_model("seunet", widths=(10, 20)).eval()


def seen_by(network: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        return network(images)  # type: ignore[no-any-return]


def halve_in_place(tensor: Tensor) -> None:
    with torch.no_grad():
        tensor.mul_(0.5)


def halve_by_data(tensor: Tensor) -> None:
    tensor.data.mul_(0.5)


def halve_by_numpy(tensor: Tensor) -> None:
    tensor.detach().numpy()[...] *= 0.5


@pytest.mark.parametrize("halve", [halve_in_place, halve_by_data, halve_by_numpy])
def test_weights_changed_in_any_way_are_those_that_are_used(halve: Callable[[Tensor], None]) -> None:
    network, images = small_network(), torch.rand(1, 3, 16, 24)
    for name in network.state_dict():
        before = seen_by(network, images)
        if name == "eta" or name.endswith("num_batches_tracked"):
            continue  # seen by the loss and by nobody
        tensor = network.state_dict()[name]
        tensor += 0.25  # some are zero
        halve(tensor)
        fresh = small_network()
        fresh.load_state_dict(network.state_dict())
        found = seen_by(network, images)
        assert not torch.equal(found, before), name
        assert torch.equal(found, seen_by(fresh, images)), name


def test_it_is_made_once_for_the_same_numbers() -> None:
    kept, made, weight = Kept(), [], torch.ones(3)

    def make(tensor: Tensor, factor: float) -> Tensor:
        made.append(factor)
        return tensor * factor

    with torch.no_grad():
        first = kept.made(make, (weight,), 2.0)
        assert kept.made(make, (weight.clone(),), 2.0) is first
        assert kept.made(make, (weight,), 3.0).tolist() == [3, 3, 3]
        assert kept.made(make, (weight[:2],), 3.0).tolist() == [3, 3]
        assert kept.made(make, (weight[:2].double(),), 3.0).dtype == torch.float64
    assert made == [2, 3, 3, 3]
    trained = kept.made(make, (weight.requires_grad_(),), 3.0)
    assert trained.requires_grad
    assert len(made) == 5


def test_copies_and_files_have_nothing_of_it() -> None:
    network, images = small_network(), torch.rand(1, 3, 16, 24)
    names = list(network.state_dict())
    expected = seen_by(network, images)
    assert [*network.state_dict()] == names
    other = copy.deepcopy(network)
    assert torch.equal(seen_by(other, images), expected)
    layer = network.gaussian_layers()[0]  # type: ignore[operator]
    assert layer._kept._last is not None
    assert copy.deepcopy(layer)._kept._last is None
