"""The models: counts, shapes, sizes, scales, loss."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch

import seunet
from seunet.errors import InputError
from seunet.layers import SteerableConv2d
from seunet.maths import TRUNCATED_ORDERS
from seunet.models.seunet import SEUNet

SMALL: dict[str, Any] = {"widths": (10, 20, 40)}


def count(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


@pytest.mark.parametrize(
    ("name", "classes", "parameters"),
    [
        ("seunet", 2, 366_841),
        ("seunet", 5, 366_880),
        ("unet", 2, 25_449_602),
        ("unet", 5, 25_449_785),
        ("sesn", 2, 1_021_058),
        ("disco", 2, 1_021_058),
        ("njet", 2, 8_897_420),
        ("gaussder", 2, 697_771),
    ],
)
def test_parameters_are_those_of_the_paper_or_of_the_account_in_the_docs(
    name: str, classes: int, parameters: int
) -> None:
    assert count(seunet.create_model(name, classes=classes)) == parameters


def test_the_parameters_of_seunet_are_what_the_layers_sum_up_to() -> None:
    """α: 3·c·c′ a layer; norm: 2·5·c a layer; shared 1×1 with bias; head; 18·5 σ; 5 η."""
    widths = [12, 24, 48, 96, 192]
    blocks = [(3, 12), *pairwise(widths), *((2 * c, c) for c in reversed(widths[:-1]))]
    coefficients = sum(3 * (i * o + o * o) for i, o in blocks)
    norms = sum(2 * 2 * 5 * o for _, o in blocks)
    reducers = sum(deep * c + c for c, deep in pairwise(widths))
    assert coefficients + norms + reducers + (12 * 2 + 2) + 18 * 5 + 5 == 366_841


def test_the_default_model_has_the_papers_sigmas() -> None:
    sigmas = seunet.create_model("seunet").sigmas()
    assert sigmas.shape == (18, 5)
    assert sigmas[0].tolist() == pytest.approx([0.25, 0.75, 1.25, 1.75, 2.25])
    assert sigmas[9].tolist() == pytest.approx([2.25, 2.75, 3.25, 3.75, 4.25])


@pytest.mark.parametrize("name", seunet.list_models())
@pytest.mark.parametrize("size", [(16, 16), (37, 50), (3, 5), (1, 1), (100, 7)])
def test_every_model_takes_every_size(name: str, size: tuple[int, int]) -> None:
    model = seunet.create_model(name, classes=3, **SMALL).eval()
    with torch.no_grad():
        logits = model(torch.rand(2, 3, *size))
    assert logits.shape == (2, 5 if name in ("seunet", "gaussder") else 1, 3, *size)
    assert bool(logits.isfinite().all())


@pytest.mark.parametrize("name", seunet.list_models())
def test_every_model_learns_from_one_step_in_all_its_parameters(name: str) -> None:
    model = seunet.create_model(name, **SMALL)
    logits = model(torch.rand(2, 3, 20, 24))
    model.loss(logits, torch.randint(0, 2, (2, 20, 24))).backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())


@pytest.mark.parametrize("name", seunet.list_models())
def test_frozen_norms_folded_into_the_convolutions_change_nothing(name: str) -> None:
    model = seunet.create_model(name, **SMALL)
    images = torch.rand(2, 3, 24, 20)
    for _ in range(3):
        model(images)  # statistics that are not the initial ones
    model.eval()
    unfolded = model(images).detach()  # with autograd on, nothing is folded
    with torch.no_grad():
        torch.testing.assert_close(model(images), unfolded, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"order": 2},
        {"order": 0},
        {"scales": 3, "widths": (9, 18)},
        {"scales": 1, "widths": (4, 8)},
        {"sigma": "fixed"},
        {"sigma": "free"},
        {"norm": "shared"},
        {"pooling": "average"},
        {"pooling": "none"},
        {"preset": "geometric"},
        {"discretisation": "discrete"},
        {"head_weights": "uniform"},
        {"in_channels": 1},
    ],
)
def test_every_option_builds_a_network_that_trains(options: dict[str, Any]) -> None:
    model = seunet.create_model("seunet", **(SMALL | options))
    logits = model(torch.rand(1, options.get("in_channels", 3), 16, 16))
    model.loss(logits, torch.zeros(1, 16, 16, dtype=torch.long)).backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())


def test_head_weights_are_trained_or_uniform() -> None:
    trained = seunet.create_model("seunet", **SMALL)
    uniform = seunet.create_model("seunet", head_weights="uniform", **SMALL)
    assert trained.head_weights().requires_grad
    assert not uniform.head_weights().requires_grad
    assert trained.head_weights().tolist() == pytest.approx([0.2] * 5)
    assert uniform.head_weights().tolist() == pytest.approx([0.2] * 5)
    assert count(trained) == count(uniform) + 5


def test_at_scale_multiplies_every_sigma_and_shares_the_parameters() -> None:
    model = seunet.create_model("seunet", **SMALL)
    assert isinstance(model, SEUNet)
    doubled = model.at_scale(2.0)
    torch.testing.assert_close(doubled.sigmas(), 2 * model.sigmas())
    assert all(a is b for a, b in zip(model.parameters(), doubled.parameters(), strict=True))
    assert all(a is b for a, b in zip(model.encoder.buffers(), doubled.encoder.buffers(), strict=True) if a.ndim == 0)
    with torch.no_grad():
        for layer in model.gaussian_layers():
            assert layer.sigma_position is not None
            layer.sigma_position.add_(0.5)
    torch.testing.assert_close(doubled.sigmas(), 2 * model.sigmas())
    torch.testing.assert_close(doubled.at_scale(0.25).sigmas(), 0.5 * model.sigmas())
    assert model.factor == 1


@pytest.mark.parametrize("mode", ["constrained", "fixed", "free"])
@pytest.mark.parametrize("factor", [0.3, 1.7, 6.0])
def test_at_scale_runs_at_any_factor_and_mode(mode: str, factor: float) -> None:
    model = seunet.create_model("seunet", sigma=mode, **SMALL).eval()
    assert isinstance(model, SEUNet)
    with torch.no_grad():
        assert bool(model.at_scale(factor)(torch.rand(1, 3, 30, 30)).isfinite().all())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: seunet.create_model("seunt"), "unknown model 'seunt'; did you mean 'seunet'"),
        (lambda: seunet.create_model("seunet", preset="papr"), "unknown preset of seunet 'papr'; did you mean 'paper'"),
        (lambda: seunet.create_model("seunet", clases=3), "unknown option 'clases'; did you mean 'classes'"),
        (lambda: seunet.create_model("unet", order=2), "unknown option 'order'"),
        (lambda: seunet.create_model("seunet", classes=0), r"`classes` \(=0\): Input should be greater"),
        (
            lambda: seunet.create_model("seunet", classes="two"),
            r"`classes` \(='two'\): Input should be a valid integer",
        ),
        (
            lambda: seunet.create_model("seunet", widths=(61,)),
            r"`widths` \(=\[61\]\) must be divisible by `scales` \(=5\)",
        ),
        (lambda: seunet.create_model("seunet", widths=(0,)), r"`widths` \(=\[0\]\) must be from 1 to 65536"),
        (
            lambda: seunet.create_model("sesn", widths=(61,)),
            r"`widths` \(=\[61\]\) must be divisible by the 5 `scales`",
        ),
        (lambda: seunet.create_model("seunet", sigma="loose"), r"`sigma` \(='loose'\): Input should be 'constrained'"),
        (lambda: seunet.create_model("seunet").at_scale(-1), r"`factor` \(=-1"),  # type: ignore[attr-defined]
        (
            lambda: seunet.create_model("seunet", **SMALL)(torch.rand(1, 4, 8, 8)),
            r"must be \[batch, 3, height, width\]",
        ),
        (lambda: seunet.create_model("seunet", **SMALL)(torch.rand(3, 8, 8)), r"must be \[batch, 3, height, width\]"),
        (
            lambda: seunet.create_model("seunet", **SMALL)(torch.zeros(1, 3, 8, 8, dtype=torch.uint8)),
            r"`images` of type torch.uint8 must be floating point, e.g. images.float\(\) / 255",
        ),
    ],
)
def test_wrong_names_options_and_images_get_one_clear_line(call: Any, text: str) -> None:
    with pytest.raises(InputError, match=text) as error:
        call()
    assert "\n" not in str(error.value)


def test_sesn_has_the_basis_of_the_released_code_on_request() -> None:
    grid, truncated = (seunet.create_model("sesn", widths=(10, 20), basis=basis) for basis in ("grid", "truncated"))
    truncated.load_state_dict(grid.state_dict())
    image = torch.rand(1, 3, 24, 24)
    assert sum(p.numel() for p in grid.parameters()) == sum(p.numel() for p in truncated.parameters())
    assert not torch.allclose(grid(image), truncated(image))
    layer = next(module for module in truncated.modules() if isinstance(module, SteerableConv2d))
    assert layer.orders == TRUNCATED_ORDERS
    with pytest.raises(InputError, match="`basis` \\(='b'\\)"):
        seunet.create_model("sesn", basis="b")
