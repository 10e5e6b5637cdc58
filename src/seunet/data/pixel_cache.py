"""Decoded pixels at hand: in memory while they fit, else as raw files that all workers map and share.

A window of a large PNG cannot be had without decoding all of it.  Where a set is larger than the memory
allowed for it, each image is decoded once into `.pixels/` beside the manifest, named by the hash of its pixels
and written whole or not at all; after that a window costs the pages it lies on.  The folder can be deleted at
any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seunet.data.manifest import FileEntry, ImageEntry
from seunet.data.rim import with_rim
from seunet.errors import InputError, StorageError
from seunet.images import pillow_codec as raster
from seunet.storage.atomic import write_bytes

FOLDER = ".pixels"
Pixels = tuple[NDArray[Any], NDArray[Any]]


class PixelStore:
    """RGB and codes of an image by its index in the manifest; with `rim_um`, the rim is the class after the last.

    The rim (`data.rim`) is made from the instances when an image is loaded, and held in memory.
    """

    def __init__(
        self,
        root: Path,
        images: Sequence[ImageEntry],
        used: Sequence[int],
        limit_bytes: int,
        rim_um: float | None = None,
        rim_code: int = 0,
    ) -> None:
        self._root, self._images, self._rim_um, self._rim_code = root, images, rim_um, rim_code
        needed = sum(4 * images[index].width_px * images[index].height_px for index in used)
        self._on_disk = needed > limit_bytes
        self._held: dict[int, Pixels] = {}

    def __getitem__(self, index: int) -> Pixels:
        if index not in self._held:
            entry = self._images[index]
            self._held[index] = (self._load(entry, entry.image, 3), self._codes(entry))
        return self._held[index]

    def release(self) -> None:
        """Let go of all pixels held; they are decoded or mapped again when asked for."""
        self._held.clear()

    def _codes(self, entry: ImageEntry) -> NDArray[Any]:
        codes = self._load(entry, entry.mask, 1)
        if self._rim_um is None or entry.instances is None or entry.mpp is None:
            return codes
        instances = self._decode(entry, entry.instances, 1).astype(np.uint16)
        rimmed: NDArray[Any] = with_rim(codes, instances, self._rim_um, entry.mpp, self._rim_code)
        return rimmed

    def _load(self, entry: ImageEntry, file: FileEntry, channels: int) -> NDArray[Any]:
        if not self._on_disk:
            return self._decode(entry, file, channels)
        shape = (entry.height_px, entry.width_px, 3) if channels == 3 else (entry.height_px, entry.width_px)
        raw = self._root / FOLDER / f"{file.pixel_sha256}.raw"
        if not raw.is_file() or raw.stat().st_size != int(np.prod(shape)):
            pixels = self._decode(entry, file, channels)
            with suppress(StorageError):  # a set on a read-only disk is decoded into memory instead
                write_bytes(raw, pixels.tobytes())
            if not raw.is_file():
                return pixels
        return np.memmap(raw, dtype=np.uint8, mode="r", shape=shape)

    def _decode(self, entry: ImageEntry, file: FileEntry, channels: int) -> NDArray[Any]:
        decode = raster.decode_rgb if channels == 3 else raster.decode_codes
        pixels = decode(raster.read_image(self._root / file.path), file.path).pixels
        if pixels.shape[:2] != (entry.height_px, entry.width_px):
            raise InputError(
                f"{self._root / file.path}: is {pixels.shape[1]}×{pixels.shape[0]}, the manifest says "
                f"{entry.width_px}×{entry.height_px}; run `seunet data verify`"
            )
        return pixels
