"""GeoJSON checked against what QuPath reads, and painted back to labels."""

from __future__ import annotations

import gzip
import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from seunet.maths import ring_pixels
from seunet.results import Frame

OBJECT_TYPES = {"annotation", "detection"}


def read_geojson(path: Path) -> dict[str, Any]:
    """The document, gzipped or not."""
    data = path.read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return document


def check_qupath(document: dict[str, Any]) -> None:
    """Assert that a document is what QuPath documents and its reader takes.

    https://qupath.readthedocs.io/en/stable/docs/advanced/exporting_annotations.html (coordinates in pixels of the full
    resolution, origin top left; FeatureCollection), and qupath/lib/io/QuPathTypeAdapters.java (`id` a UUID,
    `objectType`, `classification`, `measurements` as a flat object of numbers) and ROITypeAdapters.java (geometry;
    from 0.6 on reduced to hundredths of a pixel, which fails for invalid polygons).
    """
    assert set(document) == {"type", "features"}
    assert document["type"] == "FeatureCollection"
    ids = [feature["id"] for feature in document["features"]]
    assert len(set(ids)) == len(ids)
    for feature in document["features"]:
        assert set(feature) == {"type", "id", "geometry", "properties"}
        assert feature["type"] == "Feature"
        assert str(uuid.UUID(feature["id"])) == feature["id"]
        _check_geometry(feature["geometry"])
        _check_properties(feature["properties"])


def _check_geometry(geometry: dict[str, Any]) -> None:
    assert set(geometry) == {"type", "coordinates"}
    assert geometry["type"] == "Polygon"
    for number, ring in enumerate(geometry["coordinates"]):
        assert len(ring) >= 4
        assert ring[0] == ring[-1]
        assert all(len(point) == 2 and round(value, 3) == value for point in ring for value in point)
        # RFC 7946, 3.1.6: exterior rings are counterclockwise, holes clockwise.
        assert shapely.LinearRing(ring).is_ccw == (number == 0)
    polygon = polygon_of(geometry)
    assert polygon.is_valid, shapely.is_valid_reason(polygon)
    assert polygon.area > 0
    reduced = shapely.set_precision(polygon, 0.01)
    assert reduced.geom_type == "Polygon"
    assert len(reduced.interiors) == len(polygon.interiors)


def _check_properties(properties: dict[str, Any]) -> None:
    assert set(properties) == {"objectType", "classification", "measurements"}
    assert properties["objectType"] in OBJECT_TYPES
    classification = properties["classification"]
    assert set(classification) == {"name", "color"}
    assert isinstance(classification["name"], str)
    assert classification["name"]
    assert len(classification["color"]) == 3
    assert all(type(channel) is int and 0 <= channel <= 255 for channel in classification["color"])
    for name, value in properties["measurements"].items():
        assert isinstance(name, str)
        assert type(value) in (int, float)
        assert np.isfinite(value)


def polygon_of(geometry: dict[str, Any]) -> shapely.Polygon:
    """A polygon with its holes."""
    outer, *holes = geometry["coordinates"]
    return shapely.Polygon(outer, holes)


def painted(document: dict[str, Any], frame: Frame, height_px: int, width_px: int) -> NDArray[np.uint8]:
    """The label raster that a document describes: a pixel is that of the polygon around its centre."""
    labels = np.zeros((height_px, width_px), dtype=np.uint8)
    offset = np.array([frame.offset_x, frame.offset_y])
    for feature in document["features"]:
        code = frame.class_names.index(feature["properties"]["classification"]["name"])
        inside = np.zeros((height_px, width_px), dtype=np.bool_)
        for ring in feature["geometry"]["coordinates"]:
            points = (np.asarray(ring[:-1]) + offset) / frame.scale_to_level0
            row, column, covered = ring_pixels(points - 0.5, height_px, width_px)  # there, centres are whole numbers
            inside[row : row + covered.shape[0], column : column + covered.shape[1]] ^= covered
        labels[inside] = code
    return labels
