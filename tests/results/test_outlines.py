"""Outlines along pixel edges, against shapely and the pixels they came from."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from seunet.results.find_objects import Object, objects
from seunet.results.geojson import outline_length
from seunet.results.measures import circularity
from seunet.results.outlines import edges_and_corners, through_middles, trace_rings
from seunet.results.texts import coordinates_texts
from support.planes import ArrayPlane, Codes, discs, nuclei_frame, random_codes

FRAME = nuclei_frame()


def check(one: Object) -> shapely.Polygon:
    outer, *holes = one.rings()
    polygon = shapely.Polygon(outer, holes)
    assert polygon.is_valid, shapely.is_valid_reason(polygon)
    assert polygon.area == one.area_px
    assert polygon.exterior.is_ccw
    assert not any(hole.is_ccw for hole in polygon.interiors)
    corners = np.concatenate([outer, *holes])
    assert all(
        len(ring) == len(shapely.remove_repeated_points(shapely.LinearRing(ring)).coords) - 1 for ring in [outer]
    )
    assert len(corners) == edges_and_corners(*trace_rings(*one.runs))[1]
    return polygon


def all_valid(codes: Codes, *, split: bool) -> None:
    polygons = [check(one) for one in objects(ArrayPlane(codes), FRAME, split=split)]
    assert sum(polygon.area for polygon in polygons) == int((codes > 0).sum())
    boxes = shapely.union_all([shapely.box(c, r, c + 1, r + 1) for r, c in np.argwhere(codes > 0)])
    assert shapely.symmetric_difference(shapely.union_all(polygons), boxes).area == 0


@given(arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.integers(0, 2)))
def test_every_small_mask_has_valid_outlines_of_its_own_area(codes: Codes) -> None:
    all_valid(codes, split=False)


@pytest.mark.parametrize("seed", range(8))
def test_labyrinths_with_holes_have_valid_outlines_split_or_not(seed: int) -> None:
    codes = random_codes(np.random.default_rng(seed), 37, 41)
    all_valid(codes, split=seed % 2 == 0)


def test_pixels_that_touch_at_a_corner_are_two_objects() -> None:
    codes = np.array([[1, 0], [0, 1]], dtype=np.uint8)
    found = list(objects(ArrayPlane(codes), FRAME))
    assert [one.rings()[0].tolist() for one in found] == [
        [[0, 0], [1, 0], [1, 1], [0, 1]],
        [[1, 1], [2, 1], [2, 2], [1, 2]],
    ]


def test_a_ring_that_touches_itself_at_a_corner_is_an_outline_with_a_hole() -> None:
    codes = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=np.uint8)
    (one,) = objects(ArrayPlane(codes), FRAME, split=False)
    polygon = check(one)
    assert len(polygon.interiors) == 1
    assert polygon.interiors[0].bounds == (1, 1, 2, 2)


@pytest.mark.parametrize("seed", range(6))
def test_outlines_with_cut_corners_are_valid_and_keep_every_pixel_centre(seed: int) -> None:
    codes = random_codes(np.random.default_rng(seed), 33, 39)
    centres = [(r, c, shapely.Point(c + 0.5, r + 0.5)) for r, c in np.ndindex(codes.shape)]
    for one in objects(ArrayPlane(codes), FRAME, split=False):
        points, stops = through_middles(*trace_rings(*one.runs))
        outer, *holes = np.split(points / 2, stops[:-1])
        polygon = shapely.Polygon(outer, holes)
        assert polygon.is_valid, shapely.is_valid_reason(polygon)
        assert polygon.area == one.area_px - 0.5 + 0.5 * len(holes)
        assert len(shapely.simplify(polygon, 0).exterior.coords) - 1 <= len(outer)
        shapely.prepare(polygon)
        mask = {(int(row), column) for row, start, end in one.runs.T for column in range(start, end)}
        assert {(r, c) for r, c, centre in centres if polygon.contains(centre)} == mask


def test_the_length_and_roundness_of_discs_are_right_whatever_their_size() -> None:
    for radius in (6.0, 15.0, 40.0):
        size = int(2 * radius + 5)
        (one,) = objects(ArrayPlane(discs(size, size, [(size / 2, size / 2, radius)])), FRAME)
        length = outline_length(*edges_and_corners(*trace_rings(*one.runs)))
        assert length == pytest.approx(2 * math.pi * radius, rel=0.05)
        assert circularity(one.area_px, length) > 0.92
    assert circularity(40, outline_length(82, 4)) < 0.15  # a line of 40 pixels


@given(st.lists(st.tuples(st.integers(0, 50_000), st.integers(0, 50_000)), min_size=3, max_size=9), st.data())
def test_coordinates_are_written_as_python_would_round_them(points: list[tuple[int, int]], data: st.DataObject) -> None:
    scale = data.draw(st.sampled_from([1.0, 0.5, 2.0, 1.9834, 0.013, 4.0006]))
    x, y = data.draw(st.integers(-1000, 60_000)), data.draw(st.integers(0, 60_000))
    ring = np.array(points, np.int32), np.array([len(points)]), np.array([1]), np.array([scale])
    text = coordinates_texts(*ring, x, y)[0].tobytes().decode()
    expected = [[round(round(a * scale, 3) - x, 3), round(round(b * scale, 3) - y, 3)] for a, b in points]
    assert json.loads(text) == [[*expected, expected[0]]]
    assert ".0]" not in text
    assert " " not in text
