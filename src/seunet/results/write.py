"""A finished label plane → the files of one result folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seunet.results.counts import write_counts
from seunet.results.find_objects import Object, Tally, objects
from seunet.results.frame import Frame
from seunet.results.geojson import write_geojson
from seunet.results.label_plane import Labels
from seunet.results.label_tiff import InstanceImage, write_label_tiff
from seunet.results.measures import MeasuredPlane, ObjectMeans
from seunet.results.overlay import NumberedObjects, check_thumbnail, outlines_shown, overlay_picture, write_overlay


def write_results(
    folder: Path,
    plane: Labels,
    frame: Frame,
    thumbnail: NDArray[np.uint8],
    *,
    split: bool = True,
    min_area_px: int = 1,
    skipped_px: int = 0,
    smooth: bool = False,
    zipped: bool = False,
    rim: Labels | None = None,
    measured: Mapping[str, MeasuredPlane] | None = None,
    instances: bool = False,
    watched: Callable[[Iterable[Object]], Iterator[Object]] | None = None,
) -> Tally:
    """Write objects.geojson (.gz with `zipped`), objects.csv, counts.csv, labels.tif and overlay.png; what was found.

    `measured` are planes beside that of the labels, whose means over each object are measurements of it;
    `watched` sees every object on its way into the files.

    With `instances` also instances.tif, the number of the object at each pixel.

    The files depend on the plane, the frame, the thumbnail and the options alone, to the byte.
    """
    tally = Tally()
    found = objects(plane, frame, split=split, min_area_px=min_area_px, tally=tally, rim=rim)
    check_thumbnail(thumbnail)
    numbered = NumberedObjects(plane, *thumbnail.shape[:2]) if outlines_shown(plane, thumbnail) else None
    passing = found if numbered is None else numbered.passing(found)
    passing = passing if watched is None else watched(passing)
    outlines, table = folder / ("objects.geojson.gz" if zipped else "objects.geojson"), folder / "objects.csv"
    with ExitStack() as stack:
        if instances:
            image = stack.enter_context(InstanceImage(folder / "instances.tif", plane, frame))
            passing = image.passing(passing)
        write_geojson(outlines, passing, frame, smooth=smooth, means=ObjectMeans(measured or {}), table=table)
        if instances:
            image.write()
    write_counts(folder / "counts.csv", tally, frame, skipped_px)
    write_label_tiff(folder / "labels.tif", plane, frame)
    picture = overlay_picture(thumbnail, plane, frame, tally, numbered, skipped_px)
    write_overlay(folder / "overlay.png", picture)
    return tally
