"""The smallest object: in µm² where the size of a pixel is known, in pixels of the slide where it is asked for."""

from __future__ import annotations

import pytest

from seunet.segmentation.options import Choices, area_name, least_area


@pytest.mark.parametrize(
    ("chosen", "mpp", "downsample", "working_px"),
    [
        ("auto", 0.25, 1.0, 64),  # 4 µm²
        ("auto", 0.5, 1.0, 16),
        ("auto", 0.5, 0.5, 64),  # a working pixel is half as wide as one of the slide
        ("auto", 0.5, 4.0, 1),
        ("auto", None, 1.0, 10),
        ("8um2", 0.5, 1.0, 32),
        ("10px", 0.5, 0.5, 40),
        ("10px", 0.25, 2.0, 3),
        ("10px", None, 1.0, 10),
        ("0um2", 0.25, 1.0, 1),
    ],
)
def test_an_area_is_so_many_working_pixels(chosen: str, mpp: float | None, downsample: float, working_px: int) -> None:
    found = least_area(chosen, mpp, downsample)
    assert (found.working_px, found.note) == (working_px, None)


def test_square_micrometres_without_a_resolution_are_said_not_to_count() -> None:
    found = least_area("8um2", None, 1.0)
    assert (found.working_px, found.slide_px, found.um2) == (10, 10, None)
    assert found.note == "no µm per pixel is known: objects from 10 px on are kept (--min-area 8um2)"


def test_an_area_is_written_in_many_ways_and_kept_in_one() -> None:
    texts = ("4", "4.0", "4 µm²", "4 μm^2", "4UM2", ".5", "10px", "10 px²", "auto")
    expected = ["4um2", "4um2", "4um2", "4um2", "4um2", "0.5um2", "10px", "10px", "auto"]
    assert [area_name(text) for text in texts] == expected
    assert Choices(min_area="10 px").min_area == "10px"
    for text in ("", "-1", "nan", "inf", "4mm2", "px", "1e3"):
        with pytest.raises(ValueError, match=r"write µm² or pixels of the slide, e\.g\. 4um2 or 10px"):
            area_name(text)
