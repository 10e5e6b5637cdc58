"""The signature moves along log σ when the image is rescaled, and templates find by how much."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from seunet.scale.moments import BLOCK_PX, block_counts, block_means, block_moments
from seunet.scale.signatures import LADDER, MOMENTS, SIGNATURE_LENGTH, signature, smoothing_taps
from seunet.scale.templates import GRID, fit_templates, read_scale

FloatImage = NDArray[np.float32]


def blobs(side_px: int, radius_px: float, seed: int = 0, noise: float = 0.01) -> FloatImage:
    """Discs with soft edges, as dense at every radius: the same picture at another scale."""
    random = np.random.default_rng(seed)
    plane = np.zeros((side_px, side_px), dtype=np.float32)
    for _ in range(round(0.06 * (side_px / radius_px) ** 2)):
        x, y = random.integers(0, side_px, 2).tolist()
        cv2.circle(plane, (x, y), round(radius_px * random.uniform(0.8, 1.25)), 1.0, -1)
    plane = cv2.GaussianBlur(plane, (0, 0), radius_px / 4)
    return np.asarray(plane + random.normal(0, noise, plane.shape), dtype=np.float32)


def test_the_ladder_rises_by_the_square_root_of_two() -> None:
    sigmas = np.array([rung.sigma * 2**rung.level for rung in LADDER])
    assert sigmas[0] == 0.5
    assert sigmas[1:] / sigmas[:-1] == pytest.approx(np.sqrt(2))
    for rung in LADDER[4:]:
        assert rung.added**2 + 0.5 == pytest.approx(rung.sigma**2)


def test_the_taps_have_the_variance_of_their_sigma() -> None:
    for sigma in (0.5, 1.0, 1.41):
        taps = smoothing_taps(sigma).astype(float)
        x = np.arange(len(taps)) - len(taps) // 2
        assert taps.sum() == pytest.approx(1)
        assert taps @ x**2 == pytest.approx(sigma**2, rel=0.02)


def test_moments_are_those_of_a_scale_space_without_a_pyramid() -> None:
    """The whole image smoothed at once by SciPy's sampled Gaussians, with differences over the pixels of the level."""
    plane = blobs(384, 12, noise=0)
    moments = block_moments(plane).mean(axis=(0, 1))
    for number, rung in enumerate(LADDER):
        step, sigma = 2**rung.level, rung.sigma * 2**rung.level
        if not 1 <= sigma < 6:  # beyond, mirrored edges weigh more than the middle
            continue
        smooth = ndimage.gaussian_filter(plane.astype(float), sigma, mode="mirror", truncate=6)
        ahead, behind, below, above = (np.roll(smooth, way * step, axis) for axis in (1, 0) for way in (-1, 1))
        gradient2 = (rung.sigma / 2) ** 2 * ((ahead - behind) ** 2 + (below - above) ** 2)
        laplacian = -(rung.sigma**2) * (ahead + behind + below + above - 4 * smooth)
        inner = (slice(step, -step), slice(step, -step))
        found = dict(zip(MOMENTS, moments[number], strict=True))
        assert found["value"] == pytest.approx(smooth.mean(), rel=0.02)
        assert found["gradient²"] == pytest.approx(gradient2[inner].mean(), rel=0.1)
        assert found["laplacian²"] == pytest.approx((laplacian[inner] ** 2).mean(), rel=0.1)
        skew = (laplacian[inner] ** 3).mean() / (laplacian[inner] ** 2).mean() ** 1.5
        assert found["laplacian³"] / found["laplacian²"] ** 1.5 == pytest.approx(skew, abs=0.2)


def test_blocks_are_equal_parts_and_their_mean_is_the_mean() -> None:
    plane = np.arange(35, dtype=np.float32).reshape(5, 7)
    assert block_means(plane, (1, 1))[0, 0] == pytest.approx(plane.mean())
    halves = block_means(plane, (2, 1))[:, 0]
    # The middle row belongs to both halves.
    assert halves[0] == pytest.approx((plane[0].sum() + plane[1].sum() + plane[2].sum() / 2) / 17.5)
    assert halves.mean() == pytest.approx(plane.mean())
    assert block_counts(250, 1000) == (2, 8)
    assert block_counts(10, BLOCK_PX) == (1, 1)


def test_twice_the_size_is_one_octave_further_along_the_ladder() -> None:
    small = block_moments(blobs(256, 6, noise=0)).mean(axis=(0, 1))
    large = block_moments(blobs(512, 12, noise=0)).mean(axis=(0, 1))
    column = MOMENTS.index("laplacian²")
    assert np.log2(large[4:10, column] / small[2:8, column]) == pytest.approx(0, abs=0.2)
    assert abs(np.log2(large[4:10, column] / small[4:10, column])).max() > 0.5


def test_gain_and_offset_do_not_change_the_signature() -> None:
    plane = blobs(256, 8)
    first, second = (signature(block_moments(each).mean(axis=(0, 1))) for each in (plane, 1.7 * plane + 0.2))
    assert len(first) == SIGNATURE_LENGTH
    assert second == pytest.approx(first, abs=0.02)


def test_templates_of_some_images_tell_the_scale_of_others() -> None:
    random = np.random.default_rng(0)
    scales = 2 ** random.uniform(-1.5, 1.5, 60)
    signatures = np.stack(
        [signature(block_moments(blobs(192, 8 * s, seed)).mean(axis=(0, 1))) for seed, s in enumerate(scales)]
    )
    templates = fit_templates(signatures[:48], np.log2(scales[:48]), np.ones(48))
    readings = [read_scale(templates, each) for each in signatures[48:]]
    errors = np.array([reading.log2_scale for reading in readings]) - np.log2(scales[48:])
    assert np.median(np.abs(errors)) < np.log2(1.2)
    assert templates.means.shape == (len(GRID), SIGNATURE_LENGTH)
    noise = signature(block_moments(np.random.default_rng(1).normal(size=(192, 192)).astype(np.float32)).mean((0, 1)))
    assert read_scale(templates, noise).distance > 10 * max(reading.distance for reading in readings)
