"""GeoJSON of random masks: valid, of the same area, and the same labels when painted back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from seunet.results import ArrayPlane, objects, write_geojson
from support.geojson import check_qupath, painted, polygon_of, read_geojson
from support.planes import nuclei_frame, random_codes

MASKS, HEIGHT_PX, WIDTH_PX = 1000, 45, 52
SCALES = (1.0, 0.5, 1.9834, 3.97)


def outline_figures(scratch: Path, divisor: int) -> dict[str, Any]:
    """Half of the masks with smooth outlines, at four ratios of the slide's pixels to the labels'."""
    features = invalid = other_area = 0
    lowest_iou = 1.0
    for number in range(MASKS // divisor):
        codes = random_codes(np.random.default_rng(number), HEIGHT_PX, WIDTH_PX)
        frame = nuclei_frame(SCALES[number % len(SCALES)], offset=(17, 5))
        path = scratch / "objects.geojson"
        write_geojson(path, objects(ArrayPlane(codes), frame), frame, smooth=bool(number % 2))
        document = read_geojson(path)
        features += len(document["features"])
        try:
            check_qupath(document)
        except AssertionError:
            invalid += 1
        for feature in document["features"]:
            area = feature["properties"]["measurements"]["Area px^2"]
            # Hundredths of a pixel are what the file holds: of the smallest objects they are more than 0.5 %.
            other_area += abs(polygon_of(feature["geometry"]).area - area) > 0.005 * area + 0.02
        back = painted(document, frame, HEIGHT_PX, WIDTH_PX)
        lowest_iou = min(lowest_iou, float(((back == codes) & (codes > 0)).sum() / ((back > 0) | (codes > 0)).sum()))
    return {
        "masks": MASKS // divisor,
        "objects": features,
        "invalid": invalid,
        "other_area": other_area,
        "lowest_iou": round(lowest_iou, 5),
        "below_0.999": int(lowest_iou < 0.999),
    }
