"""What `seunet.segment` gives back: pixels, objects as a table, a picture, files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.images.image import Image, RgbArray
from seunet.images.overview import thumbnail
from seunet.results.find_objects import Object, Tally, gathered, objects
from seunet.results.frame import Frame
from seunet.results.geojson import features
from seunet.results.label_plane import ArrayPlane
from seunet.results.measures import ObjectMeans
from seunet.results.pictures.overlay import NumberedObjects, outlines_shown, overlay_picture
from seunet.results.planes import LABELS, RIM, measured_planes
from seunet.results.write import write_results
from seunet.segmentation.options import Choices, least_area
from seunet.segmentation.scale_choice import KnownScale, ReadingPlan
from seunet.storage.output_folder import names_in, something_else

OVERLAY_PX: Final = 2048
SHOWN_ROWS: Final = 20
"""Of a table in a notebook."""


class FoundObject(NamedTuple):
    """One object, in pixels of the image."""

    class_name: str
    outline: list[NDArray[np.float64]]
    """Rings [corners, (x, y)]: the outer one, then holes."""
    measurements: dict[str, float]
    id: str
    """Made from class and outline: the same in every run and in objects.geojson."""


class ObjectTable(Sequence[FoundObject]):
    """The objects of an image: rows by number, columns by name.

    `geopandas.GeoDataFrame.from_features(table)` and `pandas.DataFrame(table.to_dict())` take it as it is.
    """

    def __init__(self, features: list[dict[str, Any]]) -> None:
        self._features = features

    def __len__(self) -> int:
        return len(self._features)

    @overload
    def __getitem__(self, key: int) -> FoundObject: ...

    @overload
    def __getitem__(self, key: slice) -> ObjectTable: ...

    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...

    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str):
            return self.to_dict()[self._checked(key)]
        if isinstance(key, slice):
            return ObjectTable(self._features[key])
        one = self._features[key]
        rings = [np.asarray(ring[:-1], dtype=np.float64) for ring in one["geometry"]["coordinates"]]
        name = one["properties"]["classification"]["name"]
        return FoundObject(name, rings, dict(one["properties"]["measurements"]), one["id"])

    def __iter__(self) -> Iterator[FoundObject]:
        return (self[number] for number in range(len(self)))

    @property
    def columns(self) -> list[str]:
        """`class`, the measurements, `outline`."""
        named = (name for one in self._features for name in one["properties"]["measurements"])
        return ["class", *dict.fromkeys(named), "outline"]

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """The columns; a measurement that an object does not have is NaN."""
        rows = list(self)
        outlines = np.empty(len(rows), dtype=object)
        outlines[:] = [row.outline for row in rows]
        named = self.columns[1:-1]
        return {
            "class": np.array([row.class_name for row in rows], dtype=np.str_),
            **{name: np.array([row.measurements.get(name, np.nan) for row in rows], dtype=float) for name in named},
            "outline": outlines,
        }

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        return {"type": "FeatureCollection", "features": self._features}

    def _checked(self, name: str) -> str:
        if name not in self.columns:
            raise InputError(f"the table has no column {name!r} (it has: {', '.join(self.columns)})")
        return name

    def __repr__(self) -> str:
        return f"<{len(self)} objects: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        names = self.columns[:-1]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = []
        for row in self[:SHOWN_ROWS]:
            cells = [escape(row.class_name), *(f"{row.measurements.get(name, np.nan):g}" for name in names[1:])]
            body.append("".join(f"<td>{cell}</td>" for cell in cells))
        rows = "".join(f"<tr>{line}</tr>" for line in [head, *body])
        return f"<table>{rows}</table><p>{len(self)} objects</p>"


@dataclass(frozen=True)
class Segmentation:
    """What a model says of an image, in the image's own pixels."""

    labels: NDArray[np.uint8]
    """[height, width]: the most probable class."""
    probabilities: NDArray[np.float32]
    """[classes, height, width]"""
    confidence: NDArray[np.float32]
    """[height, width]: p_max − p_second of the most confident head."""
    heads: NDArray[np.uint8]
    """[height, width]: which head that is, from the finest (0)."""
    plan: ReadingPlan
    """At which pixels the network was run, and why."""
    scale: KnownScale
    """What is known of the scale, and from where."""
    frame: Frame = field(repr=False)
    """Names and colours of the classes, µm per pixel where stated, and where the network's pixels lie in the image."""
    image: Callable[[], AbstractContextManager[Image]] = field(repr=False, compare=False)
    """Opens the image again, for pictures."""
    planes: Mapping[str, ArrayPlane] = field(repr=False, compare=False)
    """The labels at the network's pixels, where objects are found, and what is measured of them."""
    split: bool = True
    min_area: str = Choices().min_area
    """As of `seunet segment`: touching nuclei are separated, smaller objects are left out."""
    rim: NDArray[np.bool_] | None = None
    """[height, width]: where touching objects meet, for models that have learnt it: they are separated there."""

    @property
    def min_area_px(self) -> int:
        """The smallest object that is kept, in the network's pixels (`plan.downsample` of the image's)."""
        return least_area(self.min_area, self.scale.mpp, self.plan.downsample).working_px

    @property
    def estimated_mpp(self) -> float | None:
        """µm per pixel as estimated from the pixels; None where it was not or cannot be."""
        return None if self.scale.estimate is None else self.scale.estimate.mpp

    @property
    def relative_scale(self) -> float | None:
        """How many times as large as in training the structures are; None if that is not known."""
        return self.plan.relative_scale

    @cached_property
    def objects(self) -> ObjectTable:
        """Every object with its class, outline and measurements."""
        return ObjectTable(self.to_geojson()["features"])

    def to_geojson(self) -> dict[str, Any]:
        """A FeatureCollection as QuPath opens it; `json.dump` writes it."""
        means = ObjectMeans(measured_planes(self.planes))
        groups = (features(group, self.frame, means=means)[0] for group in gathered(self._found(Tally())))
        return {"type": "FeatureCollection", "features": [json.loads(text) for group in groups for text in group]}

    def overlay(self, longest_px: int = OVERLAY_PX) -> RgbArray:
        """The image with what was found and a legend, uint8 [height, width, 3]; its image at most so large."""
        plane, tally, small = self.planes[LABELS], Tally(), self._thumbnail(longest_px)
        found = self._found(tally)
        numbered = NumberedObjects(plane, *small.shape[:2]) if outlines_shown(plane, small) else None
        for _ in found if numbered is None else numbered.passing(found):
            pass
        return overlay_picture(small, plane, self.frame, tally, numbered)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write objects.geojson, objects.csv, counts.csv, labels.tif and overlay.png, as `seunet segment` does."""
        place = Path(folder)
        names = names_in(place, "the result")
        if names and not overwrite:
            raise something_else(place, names[0], "choose another folder or pass overwrite=True")
        small = self._thumbnail(OVERLAY_PX)
        means = measured_planes(self.planes)
        write_results(place, self.planes[LABELS], self.frame, small, measured=means, **self._options())

    def _found(self, tally: Tally) -> Iterator[Object]:
        return objects(self.planes[LABELS], self.frame, tally=tally, **self._options())

    def _options(self) -> dict[str, Any]:
        rim = None if self.rim is None else self.planes[RIM]
        return {"split": self.split, "min_area_px": self.min_area_px, "rim": rim}

    def _thumbnail(self, longest_px: int) -> RgbArray:
        with self.image() as image:
            return thumbnail(image, longest_px)

    def _repr_png_(self) -> bytes:
        """For notebooks."""
        from seunet.images.pillow_codec import encode_png_quickly

        return encode_png_quickly(self.overlay())
