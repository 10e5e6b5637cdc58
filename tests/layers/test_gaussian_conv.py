"""GaussianConv2d as a layer in anybody's network."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from seunet.errors import InputError
from seunet.layers import GaussianConv2d
from seunet.maths import equal_range, geometric_range


def test_the_lifting_form_takes_an_image_and_the_hidden_form_keeps_the_scales() -> None:
    lift, hidden = GaussianConv2d(3, 20, lifting=True), GaussianConv2d(20, 40)
    features = lift(torch.rand(2, 3, 17, 31))
    assert features.shape == (2, 5, 4, 17, 31)
    assert hidden(features).shape == (2, 5, 8, 17, 31)


def test_the_layer_stands_alone_in_an_ordinary_network() -> None:
    network = nn.Sequential(GaussianConv2d(3, 20, lifting=True), nn.Flatten(1, 2), nn.ReLU(), nn.Conv2d(20, 2, 1))
    network(torch.rand(1, 3, 16, 16)).sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_coefficients_are_shared_by_the_scales() -> None:
    layer = GaussianConv2d(60, 60, order=2)
    assert layer.coefficients.shape == (6, 12, 12)


def test_scales_do_not_mix() -> None:
    layer = GaussianConv2d(10, 10)
    image = torch.randn(1, 5, 2, 12, 12)
    changed = image.clone()
    changed[:, 2] += 1
    same = (layer(image) == layer(changed)).flatten(2).all(2)[0]
    assert same.tolist() == [True, True, False, True, True]


@pytest.mark.parametrize("mode", ["constrained", "fixed", "free", "free_from_one"])
def test_derived_filters_never_enter_the_state(mode: str) -> None:
    layer = GaussianConv2d(10, 10, sigma=mode)
    layer(torch.randn(1, 5, 2, 8, 8))
    expected = {"coefficients"} if mode == "fixed" else {"coefficients", "sigma_position"}
    assert set(layer.state_dict()) == expected


def test_sigma_starts_at_the_midpoints_and_at_one_where_it_is_said_so() -> None:
    middle = [0.25, 0.75, 1.25, 1.75, 2.25]
    for mode in ("constrained", "fixed", "free"):
        assert GaussianConv2d(10, 10, sigma=mode).sigmas().tolist() == pytest.approx(middle), mode
    assert GaussianConv2d(10, 10, sigma="free_from_one").sigmas().tolist() == pytest.approx([1.0] * 5)


def test_sigma_that_is_only_used_follows_whoever_changes_it() -> None:
    layer = GaussianConv2d(3, 10, lifting=True)
    assert layer.sigma_position is not None
    with torch.inference_mode():
        before = layer.sigmas()
    layer.sigma_position.data.fill_(0.5)
    with torch.no_grad():
        after = layer.sigmas()
    assert (after > before).all()
    assert torch.equal(after, layer.sigmas().detach())
    layer.rescale_sigma(2.0)
    with torch.no_grad():
        assert torch.equal(layer.sigmas(), 2 * after)


def test_a_tied_range_has_one_trained_number() -> None:
    layer = GaussianConv2d(10, 10, sigma_range=geometric_range(0.7, 1.5, 5))
    assert layer.sigma_position is not None
    assert layer.sigma_position.shape == (1,)


def test_constrained_radii_are_those_of_the_paper_and_do_not_change_in_training() -> None:
    layer = GaussianConv2d(10, 10)
    assert layer.sigma_position is not None
    for x in (-5.0, 0.0, 5.0):
        layer.sigma_position.data.fill_(x)
        assert layer.filters()[1] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("lifting", [True, False])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_white_noise_keeps_its_variance_on_average_over_the_scales(order: int, lifting: bool) -> None:
    layer = GaussianConv2d(40, 200, order=order, lifting=lifting)
    noise = torch.randn(1, 40, 64, 64) if lifting else torch.randn(1, 5, 8, 64, 64)
    with torch.no_grad():
        variance = float(layer(noise)[..., 8:-8, 8:-8].square().mean())
    assert variance == pytest.approx(1, abs=0.35)


def test_the_state_moves_between_layers() -> None:
    first, second = GaussianConv2d(10, 10), GaussianConv2d(10, 10)
    second.load_state_dict(first.state_dict())
    image = torch.randn(1, 5, 2, 9, 9)
    assert torch.equal(first(image), second(image))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"in_channels": 12}, r"`in_channels` \(=12\) must be divisible by `scales` \(=5\)"),
        ({"out_channels": 12}, r"`out_channels` \(=12\) must be divisible by `scales` \(=5\)"),
        ({"in_channels": 0}, r"`in_channels` \(=0\) must be from 1 to 65536"),
        ({"scales": 65}, r"`scales` \(=65\) must be from 1 to 64"),
        ({"order": -1}, r"`order` \(=-1\) must be from 0 to 8"),
        ({"sigma": "fix"}, "unknown sigma mode 'fix'; did you mean 'fixed'"),
        ({"discretisation": "discret"}, "unknown discretisation 'discret'; did you mean 'discrete'"),
        ({"truncation": 0.0}, r"`truncation` \(=0\) must be above 0 and at most 16"),
        ({"sigma_range": equal_range(0, 2, 4)}, r"`sigma_range` has 4 intervals for `scales` \(=5\)"),
    ],
)
def test_wrong_arguments_are_named_with_their_value(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        GaussianConv2d(**({"in_channels": 10, "out_channels": 10} | arguments))


@pytest.mark.parametrize(
    ("image", "text"),
    [
        (
            torch.zeros(1, 10, 8, 8),
            r"input of shape \[1, 10, 8, 8\] must be \[batch, scales, channels, height, width\]",
        ),
        (torch.zeros(1, 5, 3, 8, 8), r"must have 5 scales of 2 channels"),
        (torch.zeros(1, 4, 2, 8, 8), r"must have 5 scales of 2 channels"),
        (torch.zeros(1, 5, 2, 8, 8, dtype=torch.uint8), r"input of type torch.uint8 must be floating point"),
        (torch.zeros(1, 5, 2, 0, 8), r"input of shape \[1, 5, 2, 0, 8\] has no pixels"),
    ],
)
def test_wrong_input_is_refused_by_shape_and_type(image: torch.Tensor, text: str) -> None:
    with pytest.raises(InputError, match=text):
        GaussianConv2d(10, 10)(image)


def test_a_scale_beyond_the_largest_filter_is_refused() -> None:
    layer = GaussianConv2d(10, 10)
    layer.rescale_sigma(200)
    with pytest.raises(InputError, match="the largest is 512"):
        layer(torch.zeros(1, 5, 2, 8, 8))


@pytest.mark.parametrize("mode", ["constrained", "free", "free_from_one"])
def test_whatever_updates_sigma_gets_the_layer_answers_with_numbers_and_learns_on(mode: str) -> None:
    random = torch.Generator().manual_seed(0)
    layer = GaussianConv2d(3, 10, sigma=mode, lifting=True)
    position = layer.sigma_position
    assert position is not None
    image = torch.rand(1, 3, 8, 8, generator=random)
    for size in (1e-3, 0.1, 1.0, 10.0, 1e4, 1e30):
        with torch.no_grad():
            position.add_(size * torch.randn(position.shape, generator=random)).clamp_(
                max=5 if "free" in mode else 1e38
            )
        result = layer(image)
        result.square().mean().backward()
        assert bool(result.isfinite().all())
        assert position.grad is not None
        assert bool(position.grad.isfinite().all())
        assert layer.coefficients.grad is not None
        assert bool(layer.coefficients.grad.isfinite().all())
        if mode == "constrained":
            assert bool(
                ((layer.sigmas() > layer.get_buffer("lower")) & (layer.sigmas() < layer.get_buffer("upper"))).all()
            )
