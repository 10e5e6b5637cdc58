"""Windows for training: random access, augmentation drawn by (seed, epoch, index), any number of workers.

    windows = WindowDataset("prepared/monuseg", "train", augmentation=FLIPS)
    loader = DataLoader(windows, sampler=EpochSampler(len(windows), seed=0), batch_size=20, num_workers=2)

`windows[epoch, index]` is a pure function of its arguments; the sampler hands out such pairs, so that workers
that live on from epoch to epoch need not be told the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from seunet.data.augment import (
    NONE,
    Augmentation,
    Draw,
    Variation,
    draw,
    draw_variation,
    epoch_order,
    octaves_outside,
    stain_table,
)
from seunet.data.manifest import SPLITS, ImageEntry, Manifest, read_manifest, retiled
from seunet.data.optics import with_optics
from seunet.data.pixel_cache import PixelStore
from seunet.data.stain_mixing import restained
from seunet.errors import InputError, check_known

CACHE_BYTES = 2_000_000_000
MAX_ENLARGEMENT = 8
"""By what factor an image may be brought to the training's µm per pixel."""
PAD_VALUE = 255
"""Beyond the image the glass is white, and the mask says ignore."""


class Window(NamedTuple):
    """`image` float32 [3, height, width] in 0…1, `mask` int64 [height, width], and the window's number."""

    image: Tensor
    mask: Tensor
    number: int
    misfit: float = 0.0
    """By how many octaves its magnification is outside the band it was asked of."""


class EpochSampler(Sampler[tuple[int, int]]):
    """(epoch, index) pairs in the order of `epoch`; `start` skips what an interrupted epoch has seen."""

    def __init__(self, length: int, seed: int, epoch: int = 0, start: int = 0) -> None:
        self.length, self.seed, self.epoch, self.start = length, seed, epoch, start

    def __iter__(self) -> Iterator[tuple[int, int]]:
        order = epoch_order(self.length, self.seed, self.epoch)
        return ((self.epoch, index) for index in order[self.start :])

    def __len__(self) -> int:
        return self.length - self.start


class WindowDataset(Dataset[Window]):
    """The windows of a split of a prepared set."""

    def __init__(
        self,
        root: str | Path,
        split: str | Sequence[str] = "train",
        *,
        augmentation: Augmentation = NONE,
        seed: int = 0,
        images: Sequence[str] | None = None,
        cache_bytes: int = CACHE_BYTES,
        tiles_px: tuple[int, ...] | None = None,
        scale_bands: Sequence[tuple[float, float]] = (),
        foreign_share: float = 0.0,
        mpp: float | None = None,
        rim_um: float | None = None,
    ) -> None:
        """`images` keeps only the windows of these images, for a split of one's own.

        `tiles_px` (size, stride, and perhaps every how many) cuts the images into other windows than the set's own.

        `scale_bands`: magnifications that `windows[epoch, index, band]` is drawn from, instead of the whole range,
        which is left to `foreign_share` of the draws.

        `mpp` brings every image from its own µm per pixel to this one, before magnifications are drawn; `rim_um` makes
        the rim between touching objects, so wide on either side, the class after the set's last (`data.rim`).

        A split larger than `cache_bytes` when decoded is mapped from disk instead (pixel_cache.py).
        """
        self.root = Path(root)
        manifest = read_manifest(self.root)
        self.manifest: Manifest = manifest if tiles_px is None else retiled(manifest, *tiles_px)
        self.augmentation = augmentation
        self.seed = seed
        self.scale_bands, self.foreign_share = tuple(scale_bands), foreign_share
        self.rows = _select(self.manifest, [split] if isinstance(split, str) else list(split), images, self.root)
        window_px = self.manifest.windows.size_px
        self.size_px = window_px if augmentation.crop_px is None else augmentation.crop_px
        if self.size_px > window_px:
            raise InputError(
                f"{self.root}: `crop_px` (={self.size_px}) is larger than the windows, {window_px} px; lower it"
            )
        self._used = sorted({row[0] for row in self.rows})
        used = [self.manifest.images[number] for number in self._used]
        check_resolutions(used, self.root, mpp, rim_um)
        self.mpp, self.rim_code = mpp, len(self.manifest.classes)
        self._pixels = PixelStore(self.root, self.manifest.images, self._used, cache_bytes, rim_um, self.rim_code)

    def preload(self) -> None:
        """Decode every image now, so that workers started later share what this process holds."""
        for image_index in self._used:
            self._pixels[image_index]

    def release(self) -> None:
        """Let go of the decoded images: for going through a set of any size once, image by image."""
        self._pixels.release()

    def image_name(self, index: int) -> str:
        """The image that a window is of."""
        return self.manifest.images[self.rows[index][0]].name

    def whole(self, index: int) -> NDArray[np.uint8]:
        """The image that a window is of, all of it: [height, width, 3]."""
        return self._pixels[self.rows[index][0]][0]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def epoch_windows(self) -> int:
        """How many windows an epoch has: each once."""
        return len(self.rows)

    def epoch_keys(self, seed: int, epoch: int) -> list[tuple[int, int]]:
        """(epoch, index) of all windows, in the order in which the epoch visits them."""
        return [(epoch, index) for index in epoch_order(len(self), seed, epoch)]

    def __getitem__(self, key: int | tuple[int, ...]) -> Window:
        epoch, index, *band = key if isinstance(key, tuple) else (0, int(key))
        image_index, x, y = self.rows[index]
        octaves = self.scale_bands[band[0]] if band else None
        chance = draw(self.augmentation, self.seed, epoch, index, octaves, self.foreign_share)
        variation = draw_variation(self.augmentation, self.seed, epoch, index)
        rgb, codes = self._pixels[image_index]
        size, spare_px = self.size_px, self.manifest.windows.size_px - self.size_px
        x, y = x + round(chance.crop_x * spare_px), y + round(chance.crop_y * spare_px)
        view_px = max(round(size / (chance.scale * self._to_training_scale(image_index))), 1)
        centre_x, centre_y = x + size // 2 + chance.shift_x, y + size // 2 + chance.shift_y
        left = _origin(centre_x, view_px, rgb.shape[1]) if (chance.shift_x or view_px != size) else x
        top = _origin(centre_y, view_px, rgb.shape[0]) if (chance.shift_y or view_px != size) else y
        image = _crop(rgb, left, top, view_px, PAD_VALUE)
        mask = _crop(codes, left, top, view_px, self.manifest.ignore_code)
        image, mask = _varied(image, mask, size, self.augmentation, chance, variation)
        planes = np.ascontiguousarray(image.transpose(2, 0, 1))
        pixels = torch.from_numpy(planes).to(torch.float32).div_(255)
        misfit = 0.0 if octaves is None else octaves_outside(chance.scale, octaves)
        return Window(pixels, torch.from_numpy(mask.astype(np.int64)), index, misfit)

    def _to_training_scale(self, image_index: int) -> float:
        """How many times an image is enlarged to have the training's µm per pixel."""
        own = self.manifest.images[image_index].mpp
        return 1.0 if self.mpp is None or own is None else own / self.mpp


def _varied(
    image: NDArray[Any], mask: NDArray[Any], size: int, rules: Augmentation, chance: Draw, variation: Variation
) -> tuple[NDArray[Any], NDArray[Any]]:
    """A view of an image as a window: its size, its stain, its optics, its orientation."""
    view_px = image.shape[0]
    if view_px != size:
        averages = variation.averages and view_px > size
        image = cv2.resize(image, (size, size), interpolation=cv2.INTER_AREA if averages else cv2.INTER_LINEAR)
        # The older rule takes the upper left of the pixels that become one, not the middle: kept for older runs.
        nearest = cv2.INTER_NEAREST_EXACT if rules.averaging else cv2.INTER_NEAREST
        mask = cv2.resize(mask, (size, size), interpolation=nearest)
    if rules.stain_jitter:
        image = cv2.LUT(np.ascontiguousarray(image), stain_table(chance)[None])
    if variation.mixing is not None:
        image = restained(image, variation.mixing)
    image = with_optics(image, variation.optics, chance.scale)
    if variation.turned:
        image, mask = image.transpose(1, 0, 2), mask.T
    steps = (-1 if chance.flip_y else 1, -1 if chance.flip_x else 1)
    return image[:: steps[0], :: steps[1]], mask[:: steps[0], :: steps[1]]


def check_resolutions(images: Sequence[ImageEntry], root: Path, mpp: float | None, rim_um: float | None) -> None:
    """Refuse an image whose µm per pixel or instances are asked for and not there, or cannot be."""
    for image in images:
        if rim_um is not None and image.instances is None:
            raise InputError(f"{root}: {image.name} has no instance map to make `data.rim_um` from; leave that out")
        if mpp is None and rim_um is None:
            continue
        if image.mpp is None:
            raise InputError(
                f"{root}: {image.name} has no mpp, which `data.mpp` and `data.rim_um` need of every image; "
                "prepare the set with --table or --mpp, or hold the set out of this training"
            )
        if mpp is not None and not 1 / MAX_ENLARGEMENT <= image.mpp / mpp <= MAX_ENLARGEMENT:
            raise InputError(
                f"{root}: {image.name} has mpp {image.mpp:g}, over {MAX_ENLARGEMENT} times off `data.mpp` (={mpp:g}); "
                "correct the table it was prepared with"
            )


def _select(
    manifest: Manifest, splits: list[str], images: Sequence[str] | None, root: Path
) -> list[tuple[int, int, int]]:
    for split in splits:
        check_known("split", split, SPLITS)
    names = {image.name for image in manifest.images}
    for name in images or ():
        check_known("image", name, names)
    wanted = names if images is None else set(images)
    rows = [
        row
        for row in manifest.windows.rows
        if manifest.images[row[0]].split in splits and manifest.images[row[0]].name in wanted
    ]
    if not rows:
        has = ", ".join(manifest.window_counts()) or "no windows"
        raise InputError(f"{root}: no windows in split {'+'.join(splits)} (the set has: {has})")
    return rows


def _origin(centre: int, view_px: int, length_px: int) -> int:
    """The start of a view around `centre` that stays on the image wherever it fits."""
    return int(np.clip(centre - view_px // 2, 0, max(length_px - view_px, 0)))


def _crop(pixels: NDArray[Any], left: int, top: int, size_px: int, pad: int) -> NDArray[Any]:
    part = pixels[top : top + size_px, left : left + size_px]
    if part.shape[:2] == (size_px, size_px):
        return part
    out = np.full((size_px, size_px, *pixels.shape[2:]), pad, dtype=pixels.dtype)
    out[: part.shape[0], : part.shape[1]] = part
    return out
