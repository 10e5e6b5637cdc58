"""Finished planes → the files of one result folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seunet.results.counts import summary_row, write_counts
from seunet.results.find_objects import Object, Tally, objects
from seunet.results.frame import Frame
from seunet.results.geojson import write_geojson
from seunet.results.label_plane import Labels
from seunet.results.label_tiff import InstanceImage, write_label_tiff
from seunet.results.measures import MeasuredPlane, ObjectMeans
from seunet.results.ome_zarr import write_probabilities
from seunet.results.pictures.heads_map import Sigmas, heads_frame, write_heads
from seunet.results.pictures.overlay import (
    NumberedObjects,
    check_thumbnail,
    outlines_shown,
    overlay_picture,
    write_overlay,
)
from seunet.results.planes import HEADS, LABELS, RIM, PlaneFiles, measured_planes, probability_planes

Watch = Callable[[Iterable[Object]], Iterator[Object]]


def write_result_folder(
    folder: Path,
    files: PlaneFiles,
    frame: Frame,
    thumbnail: NDArray[np.uint8],
    *,
    name: str,
    image_name: str,
    pixels_by_head: Sequence[int],
    sigmas_px: Sigmas | None,
    skipped_px: int,
    **options: Any,
) -> tuple[Tally, dict[str, str]]:
    """Write the files of a labelled image, also those of heads and probabilities where these were kept.

    What was found, and its row in summary.csv.  `options` are those of `write_results`.
    """
    with files.opened() as planes:
        tally = write_results(
            folder,
            planes[LABELS],
            frame,
            thumbnail,
            skipped_px=skipped_px,
            rim=planes.get(RIM),
            measured=measured_planes(planes),
            **options,
        )
        row = summary_row(name, tally, frame, skipped_px)
        if HEADS in planes:
            write_label_tiff(folder / "heads.tif", planes[HEADS], heads_frame(frame, len(pixels_by_head)))
            write_heads(folder / "heads.png", thumbnail, planes[HEADS], pixels_by_head, sigmas_px, frame.mpp)
        if chances := probability_planes(planes):
            write_probabilities(folder / "probabilities.ome.zarr", chances, frame, image_name)
    return tally, row


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
    watched: Watch | None = None,
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
