"""Finished planes → the files of one result folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from seunet.images.image import RgbArray
from seunet.results.counts import write_counts
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
from seunet.results.planes import HEADS, LABELS, PlaneFiles, probability_planes

Watch = Callable[[Iterable[Object]], Iterator[Object]]


class FoundObjects(NamedTuple):
    """What the objects left behind on their way into the files."""

    tally: Tally
    thumbnail: RgbArray
    numbered: NumberedObjects | None
    """Where they lie in the thumbnail, where that is large enough."""


def write_objects(
    folder: Path,
    plane: Labels,
    frame: Frame,
    thumbnail: RgbArray,
    *,
    split: bool = True,
    min_area_px: int = 1,
    smooth: bool = False,
    zipped: bool = False,
    rim: Labels | None = None,
    measured: Mapping[str, MeasuredPlane] | None = None,
    instances: bool = False,
    watched: Watch | None = None,
    band_rows: int | None = None,
) -> FoundObjects:
    """Write objects.geojson (.gz with `zipped`) and objects.csv; with `instances` also instances.tif.

    `measured` are planes beside that of the labels, whose means over each object are measurements of it; `watched` sees
    every object on its way into the files; `band_rows` are read at a time, which changes no file.
    """
    tally = Tally()
    found = objects(plane, frame, split=split, min_area_px=min_area_px, tally=tally, rim=rim, band_rows=band_rows)
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
    return FoundObjects(tally, thumbnail, numbered)


def write_images(folder: Path, plane: Labels, frame: Frame, found: FoundObjects, skipped_px: int = 0) -> None:
    """Write counts.csv, labels.tif and overlay.png, the two images at the same time."""
    with ThreadPoolExecutor(1, "seunet-labels") as beside:
        labels = beside.submit(write_label_tiff, folder / "labels.tif", plane, frame)
        write_counts(folder / "counts.csv", found.tally, frame, skipped_px)
        picture = overlay_picture(found.thumbnail, plane, frame, found.tally, found.numbered, skipped_px)
        write_overlay(folder / "overlay.png", picture)
        labels.result()


def write_results(
    folder: Path, plane: Labels, frame: Frame, thumbnail: RgbArray, *, skipped_px: int = 0, **options: Any
) -> Tally:
    """All files of a plane of labels; what was found.  `options` are those of `write_objects`.

    The files depend on the plane, the frame, the thumbnail and the options alone, to the byte.
    """
    found = write_objects(folder, plane, frame, thumbnail, **options)
    write_images(folder, plane, frame, found, skipped_px)
    return found.tally


def write_other_files(
    folder: Path,
    files: PlaneFiles,
    frame: Frame,
    found: FoundObjects,
    *,
    image_name: str,
    pixels_by_head: Sequence[int],
    sigmas_px: Sigmas | None,
    skipped_px: int,
) -> None:
    """What a result has beside its objects, also files of heads and probabilities where these were kept."""
    with files.opened() as planes:
        chances = probability_planes(planes)
        write_images(folder, planes[LABELS], frame, found, skipped_px)
        if HEADS in planes:
            write_label_tiff(folder / "heads.tif", planes[HEADS], heads_frame(frame, len(pixels_by_head)))
            write_heads(folder / "heads.png", found.thumbnail, planes[HEADS], pixels_by_head, sigmas_px, frame.mpp)
        if chances:
            write_probabilities(folder / "probabilities.ome.zarr", chances, frame, image_name)
