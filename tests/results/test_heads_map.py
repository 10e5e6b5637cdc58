"""heads.png: the colour of a place is that of the heads that won there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import seunet
from seunet.results.pictures.heads_map import TINT, head_colors, head_lines, write_heads
from seunet.segmentation import HeadwiseNetwork
from support.planes import ArrayPlane


def test_a_pixel_has_the_mean_colour_of_the_heads_below_it_and_none_where_nobody_looked(tmp_path: Path) -> None:
    won = np.zeros((400, 600), dtype=np.uint8)
    won[:200, :300] = 3
    won[:200, 300:] = np.where(np.arange(300) % 2, 1, 2)
    thumbnail = np.full((200, 300, 3), (200, 100, 150), dtype=np.uint8)
    write_heads(tmp_path / "heads.png", thumbnail, ArrayPlane(won), (30_000, 30_000, 60_000), um_per_px=0.25)
    with Image.open(tmp_path / "heads.png") as image:
        picture = np.asarray(image).astype(int)
    grey = 0.299 * 200 + 0.587 * 100 + 0.114 * 150
    fine, middle, coarse = np.array(head_colors(3))
    assert np.abs(picture[50, 50] - ((1 - TINT) * grey + TINT * coarse)).max() <= 1
    assert np.abs(picture[50, 250] - ((1 - TINT) * grey + TINT * (fine + middle) / 2)).max() <= 1
    assert np.abs(picture[150, 50] - grey).max() <= 1
    legend = picture[200:]
    for color in (fine, middle, coarse):
        assert (legend == color).all(axis=2).sum() > 100
    assert np.ptp(np.array(head_colors(3)).sum(axis=1)) > 150  # from dark to bright


def test_the_legend_says_how_wide_the_filters_are_and_how_much_each_head_won() -> None:
    model = seunet.create_model("seunet", widths=(10, 20), preset="geometric").at_scale(2.0)
    sigmas = HeadwiseNetwork(model).sigmas_px
    assert sigmas is not None
    assert np.allclose([low for low, _ in sigmas], model.sigmas().detach().amin(0))
    assert np.allclose([high for _, high in sigmas], model.sigmas().detach().amax(0))
    lines = head_lines(head_colors(5), (0, 0, 1, 3, 0), sigmas)
    low, high = sigmas[3]
    assert lines[3][1] == f"head 4 (σ {low:.2f}–{high:.2f} px): surest in 75.0 % of the tissue"
    assert head_lines(head_colors(1), (0,), None)[0][1] == "head 1: surest in 0.0 % of the tissue"
    assert HeadwiseNetwork(seunet.create_model("unet", widths=(4, 8))).sigmas_px is None


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_head_has_a_colour_of_its_own(count: int) -> None:
    assert len(set(head_colors(count))) == count
