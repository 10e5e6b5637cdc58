"""Probabilities as OME-Zarr: one 8-bit channel per class, at several resolutions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.results.frame import Frame
from seunet.results.label_plane import Labels
from seunet.results.pyramid import bands, halved_by_mean, level_sizes
from seunet.storage.atomic import atomic_folder

CHUNK_PX: Final = 512
MIN_LEVELS: Final = 2
AXES: Final = ("c", "y", "x")


def write_probabilities(path: Path, planes: Sequence[Labels], frame: Frame, name: str) -> None:
    """Write NGFF 0.5 (Zarr 3) at `path`, replacing what is there when all is written.

    `planes` has one plane of `as_byte` values for each class.  A level is half the one before, by the mean of 2 × 2.
    """
    import zarr

    if len(planes) != len(frame.class_names):
        raise InputError(f"{len(planes)} planes of probabilities for {len(frame.class_names)} classes")
    height, width = planes[0].height_px, planes[0].width_px
    sizes = level_sizes(height, width, CHUNK_PX, at_least=MIN_LEVELS)
    with atomic_folder(path) as part:
        root = zarr.create_group(part, zarr_format=3, attributes={"ome": _metadata(frame, name, len(sizes))})
        arrays = [_array(root, number, len(planes), size) for number, size in enumerate(sizes)]
        for channel, plane in enumerate(planes):
            for top, band in bands(plane, CHUNK_PX):
                arrays[0][channel, top : top + band.shape[0]] = band
            for finer, coarser in pairwise(arrays):
                for top, band in bands(_Channel(finer, channel), 2 * CHUNK_PX):
                    half = halved_by_mean(band)
                    coarser[channel, top // 2 : top // 2 + half.shape[0]] = half


class _Channel:
    """One channel of an array on disk, as a plane."""

    def __init__(self, array: Any, channel: int) -> None:
        self._array, self._channel = array, channel
        _, self.height_px, self.width_px = array.shape

    def read(self, y: int, x: int, height_px: int, width_px: int) -> NDArray[np.uint8]:
        block: NDArray[np.uint8] = self._array[self._channel, y : y + height_px, x : x + width_px]
        return block


def _array(root: Any, number: int, classes: int, size: tuple[int, int]) -> Any:
    return root.create_array(
        str(number),
        shape=(classes, *size),
        chunks=(1, CHUNK_PX, CHUNK_PX),
        dtype="uint8",
        fill_value=0,
        dimension_names=AXES,
    )


def _metadata(frame: Frame, name: str, count: int) -> dict[str, Any]:
    """The `ome` attributes of NGFF 0.5, https://ngff.openmicroscopy.org/0.5/: where levels lie, what channels are."""
    unit = {} if frame.mpp is None else {"unit": "micrometer"}
    axes = [{"name": "c", "type": "channel"}, *({"name": axis, "type": "space", **unit} for axis in "yx")]
    pixel = 1.0 if frame.mpp is None else frame.mpp
    datasets = []
    for number in range(count):
        size = pixel * 2**number
        # A place is that of a pixel's centre: the first pixel of a coarser level lies farther in.
        shift = (size - pixel) / 2
        datasets.append(
            {
                "path": str(number),
                "coordinateTransformations": [
                    {"type": "scale", "scale": [1.0, size, size]},
                    {"type": "translation", "translation": [0.0, shift, shift]},
                ],
            }
        )
    window = {"min": 0, "max": 255, "start": 0, "end": 255}
    channels = [
        {"label": label, "color": "{:02X}{:02X}{:02X}".format(*color), "active": True, "window": window}
        for label, color in zip(frame.class_names, frame.class_colors, strict=True)
    ]
    multiscale = {"name": name, "axes": axes, "datasets": datasets, "type": "mean"}
    return {"version": "0.5", "multiscales": [multiscale], "omero": {"channels": channels}}
