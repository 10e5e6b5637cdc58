"""Vahadane stain separation."""

from __future__ import annotations

import numpy as np
import pytest

from seunet.data import STAIN_METHODS, VahadaneTransform, normalise_stain
from seunet.errors import InputError
from seunet.maths.stain import NoStains, Stains, apply_stains, concentrations, fit_stains, tissue
from support.stained import (
    MATRICES,
    angle_degrees,
    concentrations_of_tissue,
    render,
    stained_image,
    unit,
)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("seed", [0, 1])
def test_known_stains_are_found_within_three_and_a_half_and_three_degrees(name: str, seed: int) -> None:
    image, matrix = stained_image(name, 300, seed)
    fitted = fit_stains(image)
    assert isinstance(fitted, Stains)
    assert angle_degrees(fitted.matrix[0], matrix[0]) <= 3.5
    assert angle_degrees(fitted.matrix[1], matrix[1]) <= 3.0
    assert (fitted.matrix >= 0).all()


def test_a_smaller_penalty_comes_closer() -> None:
    image, matrix = stained_image("ruifrok", 300, 0)
    published, small = fit_stains(image), fit_stains(image, penalty=0.02)
    assert isinstance(published, Stains)
    assert isinstance(small, Stains)
    for k in (0, 1):
        assert angle_degrees(small.matrix[k], matrix[k]) < angle_degrees(published.matrix[k], matrix[k])


def test_concentrations_equal_a_brute_force_search() -> None:
    matrix = unit(MATRICES["macenko"])
    random = np.random.default_rng(0)
    density = random.uniform(-0.1, 1.5, (60, 3))
    found = concentrations(density, matrix, 0.1)
    grid = np.stack(np.meshgrid(np.linspace(0, 3, 301), np.linspace(0, 3, 301)), axis=-1).reshape(-1, 2)

    def cost(amount: np.ndarray, x: np.ndarray) -> np.ndarray:
        return 0.5 * ((x - amount @ matrix) ** 2).sum(-1) + 0.1 * amount.sum(-1)

    for x, amount in zip(density, found, strict=True):
        assert cost(amount.astype(float), x) <= cost(grid, x).min() + 1e-6
    assert (found >= 0).all()


def test_an_image_restained_has_the_targets_stains() -> None:
    image, _ = stained_image("blue", 300, 3)
    target = Stains(unit(MATRICES["pale"]), np.array([1.5, 1.0]))
    fitted = fit_stains(image)
    assert isinstance(fitted, Stains)
    again = fit_stains(apply_stains(image, fitted, target))
    assert isinstance(again, Stains)
    for k in (0, 1):
        assert angle_degrees(again.matrix[k], target.matrix[k]) <= 3.5
    assert np.allclose(again.strength, target.strength, rtol=0.15)


def test_two_stainings_of_one_tissue_come_closer() -> None:
    amounts = concentrations_of_tissue(300, 4)
    first, second = (render(amounts, unit(MATRICES[name]), 300, 4).astype(float) for name in ("blue", "pale"))
    before = np.abs(first - second).mean()
    after = np.abs(
        normalise_stain(first.astype(np.uint8))[0].astype(float) - normalise_stain(second.astype(np.uint8))[0]
    ).mean()
    assert after < before / 3


def test_the_same_image_gives_the_same_bytes() -> None:
    image, _ = stained_image("pale", 200, 0)
    assert (normalise_stain(image)[0] == normalise_stain(image.copy())[0]).all()


@pytest.mark.parametrize("value", [255, 250, 0])
def test_a_blank_image_comes_back_unchanged_and_is_reported(value: int) -> None:
    image = np.full((50, 50, 3), value, dtype=np.uint8)
    out, sentence = normalise_stain(image)
    assert (out == image).all()
    assert sentence.startswith("stain not normalised (")


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("stain", [0, 1])
def test_a_single_stain_comes_back_unchanged_and_is_reported(name: str, stain: int) -> None:
    amounts = concentrations_of_tissue(200, 0)
    amounts[:, 1 - stain] = 0
    image = render(amounts, unit(MATRICES[name]), 200, 0)
    out, sentence = normalise_stain(image)
    assert (out == image).all()
    assert sentence.startswith("stain not normalised (one stain: ")


def test_noise_never_gives_negative_stains() -> None:
    for seed in range(20):
        image = np.random.default_rng(seed).integers(0, 256, (40, 40, 3), dtype=np.uint8)
        fitted = fit_stains(image)
        assert isinstance(fitted, NoStains) or ((fitted.matrix >= 0).all() and (fitted.strength > 0).all())


def test_tissue_is_darker_than_four_fifths_of_luminosity() -> None:
    greys = np.arange(256, dtype=np.uint8)[:, None].repeat(3, axis=1)
    # L* = 80 is the grey 198.3 of sRGB.
    assert tissue(greys).sum() == 199


def test_a_transform_with_a_given_source_treats_every_tile_alike() -> None:
    image, _ = stained_image("blue", 200, 3)
    fitted = fit_stains(image)
    assert isinstance(fitted, Stains)
    transform = VahadaneTransform(source=fitted)
    whole = transform(image)
    assert (transform(image[:50, :50]) == whole[:50, :50]).all()
    assert transform.report == "stain normalised (vahadane, given source)"
    own = VahadaneTransform()
    assert (own(image) == whole).all()
    assert own.report == "stain normalised (vahadane)"


@pytest.mark.parametrize("method", STAIN_METHODS)
def test_a_target_is_two_unit_vectors(method: str) -> None:
    target = STAIN_METHODS[method].target
    assert np.allclose(np.linalg.norm(target.matrix, axis=1), 1, atol=1e-3)
    assert target.matrix[0, 0] > target.matrix[1, 0]


def test_the_tuned_method_finds_stains_closer_to_the_known_ones_and_names_itself() -> None:
    image, known = stained_image("macenko", 300, 0)
    fits = [fit_stains(image, STAIN_METHODS[name].penalty) for name in ("vahadane", "vahadane-tuned")]
    errors = [[angle_degrees(fit.matrix[k], known[k]) for k in (0, 1)] for fit in fits if isinstance(fit, Stains)]
    assert max(errors[1]) < min(errors[0])
    out, sentence = normalise_stain(image, method="vahadane-tuned")
    assert sentence == "stain normalised (vahadane-tuned)"
    assert (VahadaneTransform(method="vahadane-tuned")(image) == out).all()
    assert (out != normalise_stain(image)[0]).any()


def test_an_image_stained_like_the_target_stays_as_it_is() -> None:
    """Each method has a target found by its own λ."""
    for name, (penalty, target) in STAIN_METHODS.items():
        image, _ = stained_image("macenko", 300, 0)
        fitted = fit_stains(image, penalty)
        assert isinstance(fitted, Stains)
        once = normalise_stain(image, method=name)[0]
        twice = normalise_stain(once, method=name)[0]
        assert np.abs(once.astype(int) - twice).mean() < 2
        assert target.strength.min() > 1


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match="unknown stain method 'vahadan'; did you mean 'vahadane'"):
        normalise_stain(np.zeros((4, 4, 3), dtype=np.uint8), method="vahadan")


def test_what_is_not_an_rgb_image_is_refused() -> None:
    with pytest.raises(InputError, match=r"`rgb` \(=float64 \[4, 4, 3\]\) must be uint8 \[height, width, 3\]"):
        normalise_stain(np.zeros((4, 4, 3)))  # type: ignore[arg-type]


def test_the_density_of_haematoxylin_is_what_was_mixed() -> None:
    """255 · 10^(−C·M) of QuPath's stains, back to C: to a few hundredths, which is what 8 bits allow."""
    from seunet.maths.stain import QUPATH, haematoxylin_density

    matrix = QUPATH / np.linalg.norm(QUPATH, axis=1, keepdims=True)
    amounts = np.stack(np.meshgrid(np.linspace(0, 1.5, 31), np.linspace(0, 0.8, 17)), axis=-1)
    rgb = np.clip(np.rint(255 * 10.0 ** -(amounts @ matrix)), 0, 255).astype(np.uint8)
    assert np.abs(haematoxylin_density(rgb) - amounts[..., 0]).max() < 0.04
    assert (haematoxylin_density(np.full((2, 3), 255, dtype=np.uint8)) == 0).all()
