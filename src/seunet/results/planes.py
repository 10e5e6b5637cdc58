"""The planes of an image that is being labelled, a byte per pixel each: made tile by tile, then read for the files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seunet.maths.prediction import Prediction
from seunet.results import measures
from seunet.results.frame import NOT_ANALYSED
from seunet.results.label_plane import Labels, Plane

LABELS = "labels.u8"
HEADS = "heads.u8"
RIM = "rim.u8"
PROBABILITIES = "probabilities-{}.u8"
DENSITY, CONFIDENCE = "haematoxylin.u8", "confidence.u8"
DENSITY_UNITS: Final = 100.0
"""Of haematoxylin, that are 1: densities up to 2.55 are told apart by hundredths."""
MEASURED: Final = {measures.HAEMATOXYLIN: (DENSITY, DENSITY_UNITS), measures.CONFIDENCE: (CONFIDENCE, 255.0)}

Block = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Density = NDArray[np.float32]


def plane_names(classes: int, *, heads: bool, rim: bool, measured: bool, probabilities: bool) -> tuple[str, ...]:
    """The planes of an image: labels, and what is kept beside them."""
    beside = (HEADS,) * heads + (RIM,) * rim + (DENSITY, CONFIDENCE) * measured
    chances = tuple(PROBABILITIES.format(number) for number in range(classes)) * probabilities
    return (LABELS, *beside, *chances)


@dataclass(frozen=True)
class PlaneFiles:
    """Planes of one size (height, width) in a folder, by name."""

    folder: Path
    size: tuple[int, int]
    names: tuple[str, ...]

    @contextmanager
    def opened(self, *, afresh: bool = False, filled: Mapping[str, int] | None = None) -> Iterator[dict[str, Plane]]:
        """All of them, to read from and write to; `afresh`, they hold 0, or what they are `filled` with."""
        if afresh:
            for path in self.folder.glob("*.u8"):
                path.unlink()
        with ExitStack() as stack:
            planes = {name: stack.enter_context(Plane(self.folder / name, *self.size)) for name in self.names}
            for name, value in (filled or {}).items() if afresh else ():
                if name in planes and value:
                    _fill(planes[name], value)
            yield planes


def measured_planes(planes: Mapping[str, Labels]) -> dict[str, measures.MeasuredPlane]:
    """What is averaged over each object."""
    return {
        name: measures.MeasuredPlane(planes[file], units) for name, (file, units) in MEASURED.items() if file in planes
    }


def probability_planes(planes: Mapping[str, Plane]) -> list[Plane]:
    """One per class, where they were kept."""
    return [plane for name, plane in planes.items() if name.startswith(PROBABILITIES[:5])]


def _fill(plane: Plane, value: int) -> None:
    for top in range(0, plane.height_px, 256):
        rows = min(256, plane.height_px - top)
        plane.write(top, 0, np.full((rows, plane.width_px), value, dtype=np.uint8))


def tile_blocks(
    said: Prediction, names: Collection[str], analysed: Mask, unread: Mask, background: int, density: Density | None
) -> dict[str, Block]:
    """What goes into each plane of a tile: glass has its own label, and what could not be read has 255.

    `density`: of haematoxylin, where it is measured.
    """
    blocks = {LABELS: np.where(analysed, said.labels, np.uint8(background))}
    if HEADS in names:
        blocks[HEADS] = np.where(analysed, said.heads + np.uint8(1), np.uint8(0))
    if said.rim is not None:
        blocks[RIM] = (analysed & said.rim).astype(np.uint8)
    for number, plane in enumerate(() if said.probabilities is None else said.probabilities):
        if (name := PROBABILITIES.format(number)) in names:
            blocks[name] = np.where(analysed, as_byte(plane), np.uint8(255 if number == background else 0))
    if density is not None:
        blocks[CONFIDENCE] = as_byte(said.confidence)
        blocks[DENSITY] = np.minimum(np.rint(density * DENSITY_UNITS), 255).astype(np.uint8)
    for name, block in blocks.items():
        block[unread] = NOT_ANALYSED if name == LABELS else 0
    return blocks


def as_byte(probabilities: NDArray[np.floating[Any]]) -> Block:
    """round(255 p), a half to the even number: what a plane of probabilities holds."""
    values: Block = np.rint(np.clip(probabilities, 0, 1) * 255).astype(np.uint8)
    return values
