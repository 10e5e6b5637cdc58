"""The scaling operator S_s."""

from __future__ import annotations

import pytest
import torch

from seunet.errors import InputError
from seunet.maths.rescaling import rescale, rescale_mask


def test_a_linear_ramp_stays_a_linear_ramp_in_the_interior() -> None:
    ramp = torch.arange(16.0).expand(1, 1, 16, 16)
    for scale in (0.5, 2.0):
        size = int(16 * scale)
        expected = (torch.arange(size) + 0.5) / scale - 0.5  # (S_s f)(x) = f(x/s), pixel centres at i + ½
        torch.testing.assert_close(rescale(ramp, scale)[0, 0, 3, 2:-2], expected[2:-2])


def test_masks_keep_their_codes() -> None:
    mask = torch.tensor([[0, 255], [7, 3]], dtype=torch.uint8)[None]
    assert rescale_mask(mask, 2)[0].tolist() == [[0, 0, 255, 255], [0, 0, 255, 255], [7, 7, 3, 3], [7, 7, 3, 3]]
    assert rescale_mask(mask, 2).dtype == torch.uint8


def test_antialiasing_averages_when_shrinking() -> None:
    noise = torch.randn(1, 1, 64, 64)
    assert float(rescale(noise, 0.25, antialias=True).std()) < 0.6 * float(rescale(noise, 0.25).std())


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_must_be_positive_and_finite(scale: float) -> None:
    with pytest.raises(InputError, match=r"`scale` \(=.*\) must be a positive number"):
        rescale(torch.zeros(1, 1, 4, 4), scale)


def test_a_scale_that_leaves_less_than_a_pixel_is_refused() -> None:
    with pytest.raises(InputError, match=r"scale 0\.1 leaves less than one pixel of a 4×100 image"):
        rescale(torch.zeros(1, 1, 4, 100), 0.1)
