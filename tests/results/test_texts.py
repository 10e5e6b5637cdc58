"""Numbers as bytes, against Python's own."""

from __future__ import annotations

import numpy as np
import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from seunet.results.counts import short
from seunet.results.find_objects import gathered, objects
from seunet.results.measures import rows_of_numbers
from seunet.results.outlines import trace_objects, trace_rings
from seunet.results.texts import coordinates_texts, numbers_between, pieces
from support.planes import ArrayPlane, nuclei_frame, random_codes

HALVES = st.integers(-(10**6), 10**6).map(lambda number: number / 16)


@given(st.lists(st.tuples(st.floats(-1e12, 1e12), HALVES, st.floats(0, 1)), min_size=1, max_size=6))
@example([(-0.0, -0.0, 0.0), (-0.001, -0.0625, 0.0)])
def test_numbers_are_written_as_python_writes_them(rows: list[tuple[float, float, float]]) -> None:
    columns = list(zip(np.array(rows).T, (2, 1, 3), strict=True))
    expected = [f'{{"µ":{short(a, 2)},{short(b, 1)},{short(c, 3)}}}'.encode() for a, b, c in rows]
    assert rows_of_numbers(['{"µ":', ",", ",", "}"], columns) == expected


def test_what_lies_half_way_between_two_digits_is_left_to_python() -> None:
    words, stops = np.frombuffer(b"<>", np.uint8), np.array([1, 2])
    values = np.array([[0.125], [0.1251], [0.375], [-3.0], [1e11], [np.nan]])
    text, ends, doubtful = numbers_between(words, stops, values, np.array([2]))
    assert doubtful.tolist() == [True, False, True, False, True, True]
    assert [pieces(text, ends)[row] for row in (1, 3)] == [b"<0.13>", b"<-3>"]
    assert rows_of_numbers(["<", ">"], [(values[[0, 2], 0], 2)]) == [b"<0.12>", b"<0.38>"]


def test_outlines_of_many_objects_are_those_of_each_of_them() -> None:
    random = np.random.default_rng(7)
    (group,) = gathered(objects(ArrayPlane(random_codes(random, 60, 80)), nuclei_frame()))
    points, ring_stops, rings, _, smoothed = trace_objects(*group.runs, group.stops, 0)
    texts = pieces(*coordinates_texts(points, ring_stops, rings, np.full(len(group), 1.9834), 11, 7))
    assert len(texts) == len(group) > 30
    assert not smoothed.any()
    for one, text in zip(group, texts, strict=True):
        corners, stops = trace_rings(*one.runs)
        exact = (np.rint(corners * 1.9834 * 1000) - 1000 * np.array([11, 7])) / 1000
        closed = [np.concatenate([ring, ring[:1]]) for ring in np.split(exact, stops[:-1])]
        written = orjson.dumps(closed, option=orjson.OPT_SERIALIZE_NUMPY)
        assert text == written.replace(b".0,", b",").replace(b".0]", b"]")
