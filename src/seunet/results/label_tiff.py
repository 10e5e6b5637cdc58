"""Label images as tiled TIFFs: the class of every pixel, in a pyramid, and on request the number of its object."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from seunet.results.find_objects import Object
from seunet.results.frame import NOT_ANALYSED, Frame
from seunet.results.label_plane import Labels, OnSlide
from seunet.results.pyramid import BAND_PIXELS, bands, halved_by_majority, level_sizes, levels
from seunet.storage.atomic import atomic_path, writing

TILE_PX: Final = 512
INSTANCE_TILE_PX: Final = 256
CM_UM: Final = 10_000.0
SMALL_BYTES: Final = 3_500_000_000
"""Of pixels, all levels: beyond it offsets may not fit 32 bits and the file is a BigTIFF."""
HELD_BOXES: Final = 1 << 20
"""Runs of objects that are held in memory before they are put on the disk."""


def write_label_tiff(path: Path, plane: Labels, frame: Frame) -> None:
    """Write the codes as grey values, deflated, without a loss; every level half as large, down to one tile.

    They are written on the slide's own pixels, where the frame knows the slide's size.  Levels are pages of their own,
    the smaller ones marked as reduced: both tifffile and OpenSlide find them so.  Grey rather than a palette: with one,
    OpenSlide would show colours where codes are asked for.  The resolution tag says how large a pixel is.  Nothing in
    the file depends on when or where it was written.
    """
    import tifffile

    shown = on_slide(plane, frame)
    sizes = level_sizes(shown.height_px, shown.width_px, TILE_PX)
    big = sum(height * width for height, width in sizes) > SMALL_BYTES
    with (
        atomic_path(path) as part,
        tempfile.TemporaryDirectory(dir=path.parent, prefix=".levels.", suffix=".part") as scratch,
        levels(shown, sizes, halved_by_majority, Path(scratch)) as planes,
        tifffile.TiffWriter(part, bigtiff=big, byteorder="<") as file,
    ):
        for number, level in enumerate(planes):
            file.write(
                (tile for _, band in bands(level, TILE_PX) for tile in _tiles(band, TILE_PX)),
                shape=(level.height_px, level.width_px),
                dtype=np.uint8,
                tile=(TILE_PX, TILE_PX),
                subfiletype=1 if number else 0,
                description=_description(frame) if number == 0 else None,
                **_plainly(frame, 2**number),
            )


def on_slide(plane: Labels, frame: Frame) -> Labels:
    """The plane on the pixels of the slide; as it is where it has them already, or where the slide is not known."""
    size, scale = frame.slide_size, frame.scale_to_level0
    if size is None or (scale == 1 and size == (plane.height_px, plane.width_px)):
        return plane
    return OnSlide(plane, size, scale)


class InstanceImage:
    """An image of which object lies where, made of the objects that pass by.

    Objects come in no order of rows, and an image of their numbers does not fit into memory: their runs wait on the
    disk, in one file per band of rows, until all are there.
    """

    def __init__(self, path: Path, plane: Labels, frame: Frame) -> None:
        self._path, self._frame = path, frame
        shown = on_slide(plane, frame)
        self._size = shown.height_px, shown.width_px
        places = (shown.rows, shown.columns) if isinstance(shown, OnSlide) else map(np.arange, self._size)
        # For each working row (column) the first row (column) of the image that shows it or a later one.
        self._rows, self._columns = (
            np.searchsorted(place, np.arange(length + 1))
            for place, length in zip(places, (plane.height_px, plane.width_px), strict=True)
        )
        self._band_px = max(1, BAND_PIXELS // (4 * self._size[1] * INSTANCE_TILE_PX)) * INSTANCE_TILE_PX
        self._waiting: dict[int, list[NDArray[np.int64]]] = {}
        self._count = 0

    def __enter__(self) -> Self:
        with writing(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._folder = tempfile.TemporaryDirectory(dir=self._path.parent, prefix=".instances.", suffix=".part")
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def passing(self, found: Iterable[Object]) -> Iterator[Object]:
        """The same objects, noted as 1, 2, …"""
        for number, one in enumerate(found, start=1):
            self._note(one, number)
            yield one

    def write(self) -> None:
        """Write what has passed: 0 where there is no object, deflated, on the slide's own pixels."""
        import tifffile

        height, width = self._size
        description = json.dumps({"instances": "number in objects.geojson, from 1", **_placing(self._frame)})
        with (
            atomic_path(self._path) as part,
            tifffile.TiffWriter(part, bigtiff=4 * height * width > SMALL_BYTES, byteorder="<") as file,
        ):
            file.write(
                (tile for band in self._bands() for tile in _tiles(band, INSTANCE_TILE_PX)),
                shape=self._size,
                dtype=np.uint32,
                tile=(INSTANCE_TILE_PX, INSTANCE_TILE_PX),
                description=description,
                **_plainly(self._frame, 1),
            )

    def _note(self, one: Object, number: int) -> None:
        row, start, end = one.runs
        top, bottom, left, right = self._rows[row], self._rows[row + 1], self._columns[start], self._columns[end]
        boxes = np.stack([top, bottom, left, right, np.full(len(row), number)], axis=1)
        boxes = boxes[(top < bottom) & (left < right)]
        if not len(boxes):
            return  # smaller than a pixel of the slide
        for band in range(boxes[0, 0] // self._band_px, (boxes[-1, 1] - 1) // self._band_px + 1):
            begin = band * self._band_px
            self._waiting.setdefault(band, []).append(
                boxes[(boxes[:, 1] > begin) & (boxes[:, 0] < begin + self._band_px)]
            )
        self._count += len(boxes)
        if self._count > HELD_BOXES:
            self._put_away()

    def _put_away(self) -> None:
        for band, boxes in self._waiting.items():
            with self._file(band).open("ab") as file:
                file.write(np.concatenate(boxes).tobytes())
        self._waiting, self._count = {}, 0

    def _bands(self) -> Iterator[NDArray[np.uint32]]:
        self._put_away()
        for top in range(0, self._size[0], self._band_px):
            band = np.zeros((min(self._band_px, self._size[0] - top), self._size[1]), dtype=np.uint32)
            path = self._file(top // self._band_px)
            if path.is_file():
                boxes = np.fromfile(path, dtype=np.int64).reshape(-1, 5)
                for first, stop, left, right, number in boxes.tolist():
                    band[max(0, first - top) : stop - top, left:right] = number
            yield band

    def _file(self, band: int) -> Path:
        return Path(self._folder.name) / f"{band}.runs"


def _tiles(band: NDArray[Any], side_px: int) -> Iterator[NDArray[Any]]:
    """The tiles of a band in reading order; those at the edge are filled up with 0."""
    for top in range(0, band.shape[0], side_px):
        for left in range(0, band.shape[1], side_px):
            tile = band[top : top + side_px, left : left + side_px]
            height, width = tile.shape
            yield np.pad(tile, ((0, side_px - height), (0, side_px - width)))


def _plainly(frame: Frame, downsample: int) -> dict[str, Any]:
    """What all label images have in common, and how many pixels lie in a centimetre, where that is known."""
    common = {
        "compression": "zlib",
        "photometric": "minisblack",
        "software": "seunet",
        "metadata": None,
        "maxworkers": 1,
    }
    if frame.mpp is None:
        return {**common, "resolutionunit": "NONE"}
    pixels = CM_UM / (frame.mpp / frame.scale_to_level0 * frame.label_scale * downsample)
    return {**common, "resolution": (pixels, pixels), "resolutionunit": "CENTIMETER"}


def _placing(frame: Frame) -> dict[str, Any]:
    """Where the pixels lie: slide pixel = `slide_px_per_px` × pixel, GeoJSON = slide pixel − `geojson_origin_px`."""
    return {"slide_px_per_px": frame.label_scale, "geojson_origin_px": [frame.offset_x, frame.offset_y]}


def _description(frame: Frame) -> str:
    """What the codes mean and where the pixels lie, as JSON in ASCII, which is what the tag may hold."""
    names = {str(code): name for code, name in enumerate(frame.class_names)}
    labels = {"labels": names | {str(NOT_ANALYSED): "not analysed"}}
    return json.dumps({**labels, **_placing(frame)}, separators=(",", ":"))
