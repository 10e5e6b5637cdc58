"""The label plane as a pyramidal, tiled TIFF of class codes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seunet.results.find_objects import Labels
from seunet.results.frame import NOT_ANALYSED, Frame
from seunet.results.pyramid import bands, halved_by_majority, level_sizes, levels
from seunet.storage.atomic import atomic_path

TILE_PX: Final = 512
CM_UM: Final = 10_000.0
SMALL_BYTES: Final = 3_500_000_000
"""Of codes, all levels: beyond it offsets may not fit 32 bits and the file is a BigTIFF."""


def write_label_tiff(path: Path, plane: Labels, frame: Frame) -> None:
    """Write the codes as grey values, deflated, without a loss; every level half as large, down to one tile.

    Levels are pages of their own, the smaller ones marked as reduced: both tifffile and OpenSlide find them so.
    Grey rather than a palette: with one, OpenSlide would show colours where codes are asked for.  The resolution tag
    says how large a pixel is.  Nothing in the file depends on when or where it was written.
    """
    import tifffile

    sizes = level_sizes(plane.height_px, plane.width_px, TILE_PX)
    big = sum(height * width for height, width in sizes) > SMALL_BYTES
    with (
        atomic_path(path) as part,
        tempfile.TemporaryDirectory(dir=path.parent, prefix=".levels.", suffix=".part") as scratch,
        levels(plane, sizes, halved_by_majority, Path(scratch)) as planes,
        tifffile.TiffWriter(part, bigtiff=big, byteorder="<") as file,
    ):
        for number, level in enumerate(planes):
            file.write(
                _tiles(level),
                shape=(level.height_px, level.width_px),
                dtype=np.uint8,
                tile=(TILE_PX, TILE_PX),
                compression="zlib",
                photometric="minisblack",
                subfiletype=1 if number else 0,
                description=_description(frame) if number == 0 else None,
                software="seunet",
                metadata=None,
                maxworkers=1,
                **_resolution(frame, 2**number),
            )


def _tiles(level: Labels) -> Iterator[NDArray[np.uint8]]:
    """All tiles in reading order; those at the edge are filled up with 0."""
    for _, band in bands(level, TILE_PX):
        for top in range(0, band.shape[0], TILE_PX):
            for left in range(0, band.shape[1], TILE_PX):
                tile = band[top : top + TILE_PX, left : left + TILE_PX]
                height, width = tile.shape
                yield np.pad(tile, ((0, TILE_PX - height), (0, TILE_PX - width)))


def _resolution(frame: Frame, downsample: int) -> dict[str, Any]:
    """Pixels in a centimetre; none where the size of a pixel is not known."""
    if frame.mpp is None:
        return {"resolutionunit": "NONE"}
    pixels = CM_UM / (frame.mpp * downsample)
    return {"resolution": (pixels, pixels), "resolutionunit": "CENTIMETER"}


def _description(frame: Frame) -> str:
    """What the codes mean, as JSON in ASCII, which is what the tag may hold."""
    names = {str(code): name for code, name in enumerate(frame.class_names)}
    return json.dumps({"labels": names | {str(NOT_ANALYSED): "not analysed"}}, separators=(",", ":"))
