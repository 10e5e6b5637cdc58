"""Regions of interest from GeoJSON: where an analysis looks, and to which region each object belongs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.limits import MAX_TABLE_BYTES, MAX_VERTICES
from seunet.results.counts import short
from seunet.results.find_objects import Object
from seunet.results.frame import Frame
from seunet.storage.atomic import write_text
from seunet.storage.files import read_limited, sha256

REGIONS_NAME: Final = "regions.csv"
SHAPES: Final = {"Polygon", "MultiPolygon"}
FAR_PX: Final = 1e7

Ring = NDArray[np.float64]


class Region(NamedTuple):
    """A name and rings [points, (x, y)] in level-0 pixels; inside is what an odd number of rings is around."""

    name: str
    rings: tuple[Ring, ...]
    area_px: float
    """Of level 0; holes are taken off."""


@dataclass(frozen=True)
class Regions:
    """All regions of a file, and what tells it from another."""

    regions: tuple[Region, ...]
    sha256: str

    def mask(self, rows: tuple[int, int], columns: tuple[int, int], downsample: float) -> NDArray[np.bool_]:
        """Whether each pixel of a raster, `downsample` level-0 pixels wide, has its centre in a region."""
        y, x = ((np.arange(*span, dtype=np.float64) + 0.5) * downsample for span in (rows, columns))
        inside = np.zeros((len(y), len(x)), dtype=np.bool_)
        for region in self.regions:
            inside |= _inside(region, x, y)
        return inside

    def at(self, x: float, y: float) -> list[int]:
        """The regions around a level-0 point."""
        point = np.array([x]), np.array([y])
        return [number for number, region in enumerate(self.regions) if _inside(region, *point)[0, 0]]


def read_regions(path: Path, offset: tuple[int, int] = (0, 0)) -> Regions:
    """The polygons of a GeoJSON file of ours or of QuPath; `offset` is where its coordinates begin on level 0."""
    data = read_limited(path, MAX_TABLE_BYTES)
    try:
        document = orjson.loads(data)
    except ValueError:
        raise InputError(f"{path.name}: is not GeoJSON; save the regions again") from None
    features = document.get("features", [document]) if isinstance(document, dict) else document
    if not isinstance(features, list):
        raise InputError(f"{path.name}: holds no features; save the regions as GeoJSON")
    found: list[Region] = []
    points = 0
    for number, feature in enumerate(features, start=1):
        region = _region(feature, number, path.name, np.array(offset, dtype=np.float64))
        points += sum(len(ring) for ring in region.rings)
        if points > MAX_VERTICES:
            raise InputError(f"{path.name}: more than {MAX_VERTICES:,} points; simplify the regions")
        found.append(region)
    if not found:
        raise InputError(f"{path.name}: holds no region; draw one and save it again")
    return Regions(tuple(found), sha256(data))


def check_within(regions: Regions, size: tuple[int, int], name: str) -> None:
    """Refuse regions of which none lies on an image of `size` (height, width): they are of another one."""
    height, width = size
    for region in regions.regions:
        low, high = (limit(np.concatenate(region.rings), axis=0) for limit in (np.min, np.max))
        if high[0] > 0 and high[1] > 0 and low[0] < width and low[1] < height:
            return
    raise InputError(f"--roi: no region lies on {name}, {width}×{height} px; give the regions of this image")


def regions_file(roi: str, name: str) -> Path:
    """The file of one image: `roi` itself or, of a folder, NAME.geojson in it."""
    path = Path(roi)
    if not path.is_dir():
        if not path.is_file():
            raise InputError(f"--roi {roi}: no such file or folder; check the path")
        return path
    if not (path / f"{name}.geojson").is_file():
        raise InputError(f"--roi {roi}: no {name}.geojson in this folder; draw its regions or leave the image out")
    return path / f"{name}.geojson"


class RegionCounts:
    """Objects and their areas by region and class, counted as they pass."""

    def __init__(self, regions: Regions, frame: Frame) -> None:
        self._regions, self._frame = regions, frame
        shape = len(regions.regions), len(frame.class_names)
        self._objects, self._pixels = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    def passing(self, found: Iterable[Object]) -> Iterator[Object]:
        """The same objects.  One belongs where its middle pixel lies, which is in it and so in a region."""
        scale = self._frame.scale_to_level0
        for one in found:
            row, start, end = one.runs[:, one.runs.shape[1] // 2].tolist()
            for number in self._regions.at(((start + end) // 2 + 0.5) * scale, (row + 0.5) * scale):
                self._objects[number, one.code] += 1
                self._pixels[number, one.code] += one.area_px
            yield one

    def write(self, path: Path) -> None:
        """regions.csv: a row per region and class that is counted."""
        frame = self._frame
        lines = ["region,class,region_area_px,region_area_um2,objects,objects_area_px,objects_area_um2,objects_per_mm2"]
        for number, region in enumerate(self._regions.regions):
            working = region.area_px / frame.scale_to_level0**2
            for code in frame.object_codes:
                objects, pixels = int(self._objects[number, code]), int(self._pixels[number, code])
                um2 = frame.area_um2(working)
                cells = [_cell(region.name), _cell(frame.class_names[code]), short(region.area_px, 1), _um2(um2)]
                cells += [str(objects), short(frame.area_level0(pixels), 1), _um2(frame.area_um2(pixels))]
                cells.append("" if not um2 else short(objects / um2 * 1e6, 1))
                lines.append(",".join(cells))
        write_text(path, "\n".join(lines) + "\n")


def _um2(area: float | None) -> str:
    return "" if area is None else short(area, 1)


def _cell(text: str) -> str:
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if any(sign in text for sign in ',"\n\r') else text


def _region(feature: Any, number: int, where: str, offset: Ring) -> Region:
    try:
        geometry, properties = feature["geometry"], feature.get("properties") or {}
        kind, coordinates = geometry["type"], geometry["coordinates"]
        if kind not in SHAPES:
            raise InputError(f"{where} region {number}: is a {str(kind)[:40]}; only polygons enclose an area")
        polygons = [coordinates] if kind == "Polygon" else coordinates
        parts = [[np.array([point[:2] for point in ring], np.float64) for ring in polygon] for polygon in polygons]
        rings = tuple(ring for part in parts for ring in part)
        name = str(properties.get("name") or f"region {number}")[:200]
        if not rings or any(ring.shape[0] < 3 or ring.shape[1] != 2 for ring in rings):
            raise ValueError
        if not all(np.isfinite(ring).all() and np.abs(ring).max() < FAR_PX for ring in rings):
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where} region {number}: is not a polygon with numbers; draw it again") from None
    area = sum(_area(part[0]) - sum(_area(hole) for hole in part[1:]) for part in parts)
    return Region(name, tuple(ring + offset for ring in rings), area)


def _inside(region: Region, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """[y, x]: the even-odd rule, exact at each centre, row by row."""
    crossings = np.zeros((len(y), len(x) + 1), dtype=np.int32)
    for ring in region.rings:
        ax, ay = ring.T
        bx, by = np.roll(ax, -1), np.roll(ay, -1)
        low, high = np.minimum(ay, by), np.maximum(ay, by)
        first, last = np.searchsorted(y, low), np.searchsorted(y, high)
        for edge in np.flatnonzero(last > first).tolist():
            rows = np.arange(first[edge], last[edge])
            at = ax[edge] + (y[rows] - ay[edge]) / (by[edge] - ay[edge]) * (bx[edge] - ax[edge])
            np.add.at(crossings, (rows, np.searchsorted(x, at)), 1)
    return (np.cumsum(crossings, axis=1)[:, :-1] % 2).astype(np.bool_)


def _area(ring: Ring) -> float:
    x, y = ring.T
    return abs(float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum())) / 2
