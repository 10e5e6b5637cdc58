"""The filters of Appendix B, the matrices of Appendix C and their picture."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import conv2d

from seunet.errors import InputError
from seunet.evaluation.figures.filters import (
    HEIGHT_PX,
    WIDTH_PX,
    filters_figure,
    on_common_grid,
    percent_label,
)
from seunet.evaluation.figures.style import write_png
from seunet.evaluation.filter_study import (
    APPENDIX_SCALES,
    FilterStudy,
    ScaleMatch,
    filter_study,
    layer_filters,
    random_filter_layer,
    standardised_grey,
)
from support.images import band_limited


def as_image(smooth: Tensor) -> Tensor:
    """[3, H, W] of variance 1 → uint8 [H, W, 3]."""
    return (128 + 32 * smooth).clamp(0, 255).to(torch.uint8).permute(1, 2, 0)


@pytest.fixture(scope="module")
def smooth_study() -> FilterStudy:
    return filter_study(as_image(band_limited(1, 128, cutoff=0.1)[0]))


def match_at(study: FilterStudy, scale: float) -> ScaleMatch:
    return next(match for match in study.matches if match.scale == scale)


def correlation(first: Tensor, second: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([first.flatten(), second.flatten()]))[0, 1])


def test_the_sigmas_are_those_of_appendix_c() -> None:
    assert random_filter_layer().sigmas().tolist() == [0.5, 1.0, 1.5, 2.0, 2.5]


def test_the_filter_sizes_are_those_of_equation_7() -> None:
    assert [tuple(weights.shape) for weights in layer_filters(random_filter_layer())] == [
        (size, size) for size in (3, 5, 7, 9, 11)
    ]


@pytest.mark.parametrize(("small", "factor"), [(0, 2), (1, 2), (0, 3), (0, 4), (0, 5)])
def test_a_filter_at_a_multiple_of_sigma_has_the_same_shape(small: int, factor: int) -> None:
    filters = layer_filters(random_filter_layer())
    large = filters[(small + 1) * factor - 1]
    middle, reach = len(large) // 2, len(filters[small]) // 2
    # F(factor · x; factor · σ) is F(x; σ) up to a constant: every factor-th pixel from the middle.
    start, stop = middle - factor * reach, middle + factor * reach + 1
    assert correlation(large[start:stop:factor, start:stop:factor], filters[small]) > 0.9999


def test_the_drawn_filters_are_those_that_are_applied() -> None:
    layer = random_filter_layer()
    impulse = torch.zeros(1, 1, 21, 21)
    impulse[0, 0, 10, 10] = 1
    for response, weights in zip(layer(impulse)[0, :, 0], layer_filters(layer), strict=True):
        reach = len(weights) // 2
        window = slice(10 - reach, 10 + reach + 1)
        torch.testing.assert_close(response[window, window], weights, rtol=1e-5, atol=1e-6)


def test_the_same_seed_gives_the_same_filters_and_another_seed_others() -> None:
    first, again, other = (layer_filters(random_filter_layer(seed))[0] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_the_filter_depends_on_its_seed_and_not_on_the_global_generator() -> None:
    torch.manual_seed(1)
    first = random_filter_layer(7).coefficients
    torch.manual_seed(2)
    assert torch.equal(first, random_filter_layer(7).coefficients)


@pytest.mark.parametrize("scale", [0.5, 2.0, 4.0])
def test_the_best_pair_has_the_ratio_of_the_scales_where_the_grid_of_sigmas_has_it(
    smooth_study: FilterStudy, scale: float
) -> None:
    assert match_at(smooth_study, scale).ratio == scale


def test_the_best_pair_at_059_is_the_paper_s_15_on_25(smooth_study: FilterStudy) -> None:
    match = match_at(smooth_study, 0.59)
    assert [match.sigmas[k] for k in match.best] == [2.5, 1.5]


@pytest.mark.parametrize("scale", [0.42, 0.5, 0.59, 1.68, 2.0])
def test_the_best_pair_has_the_closest_ratio_there_is(smooth_study: FilterStudy, scale: float) -> None:
    match = match_at(smooth_study, scale)
    ratios = [rescaled / original for rescaled in match.sigmas for original in match.sigmas]
    closest = min(ratios, key=lambda ratio: abs(math.log(ratio / scale)))
    assert match.ratio == pytest.approx(closest)


def test_an_error_is_the_one_computed_by_hand(smooth_study: FilterStudy) -> None:
    match = match_at(smooth_study, 2.0)
    image = standardised_grey(smooth_study.image)

    def answer(k: int, source: Tensor) -> Tensor:
        weights = smooth_study.filters[k]
        return conv2d(source, weights.flip(0, 1)[None, None], padding=len(weights) // 2)

    def double(source: Tensor) -> Tensor:
        return torch.nn.functional.interpolate(source, scale_factor=2, mode="bilinear")

    expected, actual = double(answer(1, image)), answer(3, double(image))
    by_hand = float((expected - actual).square().sum() / expected.square().sum())
    assert float(match.errors[1, 3]) == pytest.approx(by_hand, rel=1e-3)


def test_the_scales_are_the_sixteen_of_appendix_d(smooth_study: FilterStudy) -> None:
    assert len(smooth_study.matches) == len(APPENDIX_SCALES) == 16
    assert all(match.errors.shape == (5, 5) for match in smooth_study.matches)


def test_the_grey_image_has_mean_0_and_variance_1(smooth_study: FilterStudy) -> None:
    grey = standardised_grey(smooth_study.image)
    assert float(grey.mean()) == pytest.approx(0, abs=1e-5)
    assert float(grey.var(correction=0)) == pytest.approx(1, abs=1e-4)


def test_an_image_of_another_shape_or_type_is_refused() -> None:
    with pytest.raises(InputError) as error:
        standardised_grey(torch.zeros(8, 8))
    assert str(error.value) == "image of shape [8, 8] and type torch.float32 must be uint8 [height, width, 3]"


def test_a_flat_image_is_refused() -> None:
    with pytest.raises(InputError) as error:
        standardised_grey(torch.full((8, 8, 3), 7, dtype=torch.uint8))
    assert str(error.value) == "the image has one grey value only; choose one with structures"


def test_smaller_filters_are_centred_on_the_common_grid() -> None:
    grid = on_common_grid((torch.full((1, 1), 2.0), torch.full((3, 3), 5.0)))
    assert grid.shape == (2, 3, 3)
    assert float(grid[0, 1, 1]) == 2.0
    assert int(grid[0].isnan().sum()) == 8


@pytest.mark.parametrize(
    ("value", "label"), [(0.0312, "0.03"), (0.994, "0.99"), (0.997, "1.0"), (2.14, "2.1"), (9.97, "10"), (30.2, "30")]
)
def test_a_cell_has_two_digits(value: float, label: str) -> None:
    assert percent_label(value) == label


def test_the_picture_is_a_png_of_the_stated_size_and_no_text_leaves_it(
    smooth_study: FilterStudy, tmp_path: Path
) -> None:
    figure = filters_figure(smooth_study)
    write_png(figure, tmp_path / "picture.png")
    with Image.open(tmp_path / "picture.png") as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", (WIDTH_PX, HEIGHT_PX))
    box = figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 * figure.dpi <= WIDTH_PX
    assert box.y1 * figure.dpi <= HEIGHT_PX


def test_the_best_pair_of_every_matrix_is_in_a_red_box() -> None:
    errors = torch.ones(2, 2)
    errors[1, 0] = 0.001
    study = FilterStudy(
        torch.zeros(4, 4, 3, dtype=torch.uint8),
        (1.0, 2.0),
        (torch.ones(3, 3), torch.ones(5, 5)),
        (ScaleMatch(0.5, (1.0, 2.0), errors),),
    )
    axis = next(axis for axis in filters_figure(study).axes if axis.get_title().startswith("s ="))
    assert axis.get_title() == "s = 0.5 · best pair 0.50"
    assert [patch.get_xy() for patch in axis.patches] == [(-0.5, 0.5)]
    assert [text.get_text() for text in axis.texts] == ["100", "100", "0.10", "100"]
