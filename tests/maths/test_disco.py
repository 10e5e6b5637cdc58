"""DISCO's basis: exact where it can be, and the least commutation error where it cannot."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from seunet.maths.disco import CORRELATION, _discrete_basis, _terms, dilated_deltas, discrete_basis
from support.scale_bases import discrete_bases


def commutation_error(basis: Tensor, scale: float, correlation: float = CORRELATION) -> float:
    """The root of (2) in `maths.disco` over all nine functions, relative to what the integer filters give (0 is exact).

    `basis` is any [9, size, size], size odd, meant as the nine deltas at the non-integer `scale`.
    """
    radius = basis.shape[-1] // 2
    taps = basis.to(torch.float64).reshape(3, 3, 2 * radius + 1, 2 * radius + 1)
    error, energy = 0.0, 0.0
    for term in _terms(scale, radius, correlation):
        ours = torch.einsum("abij,ik,jl,abkl->", taps, term.gram, term.gram, taps)
        both = torch.einsum("abij,ia,jb->", taps, term.cross, term.cross)
        wanted = term.energy.sum().square()
        error += float(ours - 2 * both + wanted)
        energy += float(wanted)
    return math.sqrt(max(error, 0.0) / energy)


def interpolated_deltas(scale: float, mode: str) -> Tensor:
    """Naive: deltas at −s, 0, s shared among the nearest pixels by linear or cubic interpolation."""
    radius = math.ceil(scale) + 1
    impulses = torch.eye(2 * radius + 1, dtype=torch.float64)
    positions = torch.tensor([-scale, 0.0, scale], dtype=torch.float64) / (radius + 0.5)
    grid = torch.stack([positions, torch.zeros_like(positions)], -1)[None, None]
    taps = F.grid_sample(impulses[None, :, None], grid, mode=mode, align_corners=False)[0, :, 0].T
    return torch.einsum("ai,bj->abij", taps, taps).flatten(0, 1)


def filtered(image: Tensor, basis: Tensor) -> Tensor:
    return F.conv2d(image, basis[:, None], padding=basis.shape[-1] // 2)


def shrunk(image: Tensor, ratio: float) -> Tensor:
    return F.interpolate(image, scale_factor=1 / ratio, mode="bicubic", recompute_scale_factor=False)


def error_on_images(basis: Tensor, scale: float, images: Tensor) -> float:
    """The same commutation error from images and PyTorch's resampling, away from the borders."""
    below, above = math.floor(scale), math.ceil(scale)
    pairs = [
        (
            shrunk(filtered(images, dilated_deltas(above)), above / scale),
            filtered(shrunk(images, above / scale), basis),
        )
    ]
    if below:
        ratio = scale / below
        pairs.append((filtered(shrunk(images, ratio), dilated_deltas(below)), shrunk(filtered(images, basis), ratio)))
    inner = [(wanted[..., 12:-12, 12:-12], ours[..., 12:-12, 12:-12]) for wanted, ours in pairs]
    error = sum(float((wanted - ours).square().mean()) for wanted, ours in inner)
    return math.sqrt(error / sum(float(wanted.square().mean()) for wanted, _ in inner))


def markov_images(correlation: float) -> Tensor:
    """[3, 1, 144, 144] with ⟨f(p) f(q)⟩ = correlation^|p − q| along each axis."""
    pixels = torch.arange(144, dtype=torch.float64)
    root = torch.linalg.cholesky(correlation ** (pixels - pixels[:, None]).abs())
    noise = torch.randn(3, 1, 144, 144, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return root @ noise @ root.T


def test_deltas_at_scale_two_are_a_dilated_3x3_filter() -> None:
    basis = discrete_basis(2)
    assert basis.shape == (9, 5, 5)
    for k in range(9):
        assert basis[k].nonzero().tolist() == [[2 * (k // 3), 2 * (k % 3)]]
        assert basis[k].sum() == 1


def test_the_bases_of_a_list_are_padded_to_the_largest() -> None:
    bases = discrete_bases((1, 1.41, 2))
    assert bases.shape == (9, 3, 7, 7)
    assert torch.equal(bases[:, 2, 1:-1, 1:-1], discrete_basis(2))
    assert torch.equal(bases[:, 1], discrete_basis(1.41))
    assert bases[:, 0].sum() == 9


@pytest.mark.parametrize(
    ("scale", "ours", "cubic", "linear"),
    [
        (0.71, 0.1555, 0.1566, 0.1681),
        (1.26, 0.1322, 0.1336, 0.1456),
        (1.41, 0.1489, 0.1497, 0.1652),
        (1.59, 0.1239, 0.1247, 0.1458),
        (2.5, 0.1191, 0.1206, 0.1441),
        (3.3, 0.0976, 0.0997, 0.1211),
        (4.7, 0.0792, 0.0817, 0.1069),
    ],
)
def test_between_integers_the_commutation_error_is_below_naive_interpolation(
    scale: float, ours: float, cubic: float, linear: float
) -> None:
    assert ours < cubic < linear
    assert commutation_error(discrete_basis(scale), scale) == pytest.approx(ours, abs=1e-4)
    assert commutation_error(interpolated_deltas(scale, "bicubic"), scale) == pytest.approx(cubic, abs=1e-4)
    assert commutation_error(interpolated_deltas(scale, "bilinear"), scale) == pytest.approx(linear, abs=1e-4)


@pytest.mark.parametrize("scale", [0.71, 1.41, 2.5, 4.7])
def test_on_images_resampled_by_torch_the_error_is_below_naive_interpolation_too(scale: float) -> None:
    images = markov_images(0.9)
    ours = error_on_images(discrete_basis(scale), scale, images)
    linear = error_on_images(interpolated_deltas(scale, "bilinear"), scale, images)
    cubic = error_on_images(interpolated_deltas(scale, "bicubic"), scale, images)
    assert ours < cubic < linear
    assert ours == pytest.approx(commutation_error(discrete_basis(scale), scale), rel=0.05)


@pytest.mark.parametrize("scale", [0.71, 1.41, 2.5])
def test_no_small_change_of_the_basis_lowers_the_error(scale: float) -> None:
    basis, least = discrete_basis(scale), commutation_error(discrete_basis(scale), scale)
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        step = torch.randn(basis.shape, dtype=torch.float64, generator=generator) * 1e-3
        assert commutation_error(basis + step, scale) > least
        assert commutation_error(basis - step, scale) > least


def test_the_error_is_stationary_at_the_closed_form() -> None:
    # Its slope along one tap, by differences, vanishes beside the slope at the interpolated deltas.
    def slope(basis: Tensor) -> float:
        bump = torch.zeros_like(basis)
        bump[8, 4, 4] = 1e-4
        up, down = commutation_error(basis + bump, 1.41), commutation_error(basis - bump, 1.41)
        return abs(up**2 - down**2)

    assert slope(discrete_basis(1.41)) < 1e-6 * slope(interpolated_deltas(1.41, "bilinear"))


def test_the_middle_delta_does_not_move() -> None:
    basis = discrete_basis(1.41)
    torch.testing.assert_close(basis[4], F.pad(torch.ones(1, 1, dtype=torch.float64), [3] * 4), atol=1e-12, rtol=0)


def test_the_basis_has_the_symmetry_of_the_square() -> None:
    basis = discrete_basis(2.5).unflatten(0, (3, 3))
    torch.testing.assert_close(basis, basis.transpose(0, 1).transpose(2, 3))
    torch.testing.assert_close(basis, basis.flip(0, 2))


def test_a_basis_is_computed_once() -> None:
    before = _discrete_basis.cache_info().misses
    for _ in range(3):
        discrete_basis(1.37)
        discrete_bases((1.37, 1.37))
    assert _discrete_basis.cache_info().misses == before + 1


def test_it_is_the_same_on_every_call_and_safe_to_write_to() -> None:
    first = discrete_basis(1.41)
    first.zero_()
    again = discrete_basis(1.41)
    assert again.abs().sum() > 1
    assert torch.equal(again, discrete_basis(1.41))
