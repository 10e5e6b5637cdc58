"""The probabilities of a result (OME-Zarr) as a grey picture: how likely a pixel is anything but background."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from seunet.errors import InputError
from seunet.images.image import Facts, Image, RgbArray, levels_of, region_error, whole

BACKGROUND = "background"
MAX_CHUNK_BYTES = 64 << 20


class ProbabilityImage(Image):
    """One level per array; where no class is the background, the largest probability is shown."""

    def __init__(self, facts: Facts, arrays: list[Any], background: int | None) -> None:
        super().__init__(facts)
        self._arrays, self._background = arrays, background

    def _fill(self, out: RgbArray, level: int, x: int, y: int) -> None:
        height_px, width_px = out.shape[:2]
        part = slice(y, y + height_px), slice(x, x + width_px)
        try:
            with self._lock:
                if self._background is None:
                    grey = np.asarray(self._arrays[level][:, *part]).max(axis=0)
                else:
                    grey = 255 - np.asarray(self._arrays[level][self._background, *part])
        except Exception as error:  # codecs of Zarr raise what they like
            raise region_error(self.name, level, x, y, out, error) from error
        out[:] = grey[..., None]

    def _let_go(self) -> None:
        self._arrays.clear()


def open_probabilities(path: Path) -> ProbabilityImage:
    """Open what `seunet segment --probabilities` wrote."""
    import zarr

    try:
        root = zarr.open_group(path, mode="r")
        ome: Any = root.attrs["ome"]
        arrays = [root[str(each["path"])] for each in ome["multiscales"][0]["datasets"]]
        labels = [str(each["label"]) for each in ome["omero"]["channels"]]
        fits = [
            isinstance(each, zarr.Array)
            and each.ndim == 3
            and each.dtype == np.uint8
            and each.shape[0] == len(labels)
            and 0 < np.prod(each.chunks) <= MAX_CHUNK_BYTES
            for each in arrays
        ]
        if not arrays or not all(fits):
            raise ValueError("not arrays of one byte per class and pixel")
    except Exception as error:
        said = " ".join(str(error).split())[:120] or type(error).__name__
        raise InputError(f"{path.name}: not the probabilities of a result ({said}); make them again") from error
    levels = levels_of([(int(each.shape[2]), int(each.shape[1])) for each in arrays])  # type: ignore[union-attr]
    background = labels.index(BACKGROUND) if BACKGROUND in labels else None
    return ProbabilityImage(Facts(path.name, "ome-zarr", levels, None, whole(levels), (), {}), list(arrays), background)
