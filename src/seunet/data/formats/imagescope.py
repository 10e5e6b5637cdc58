"""ImageScope XML → rings of vertices.

The file is streamed through expat: no tree is built, a document type declaration ends the reading, and bytes,
depth, regions and vertices have ceilings.  What cannot be painted as drawn is an error that names the region,
never skipped; traces of fewer than three vertices (a slip of the pen) are the one exception, and are counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple
from xml.etree.ElementTree import ParseError

import numpy as np
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.limits import MAX_REGIONS, MAX_VERTICES, MAX_XML_BYTES, MAX_XML_DEPTH

REGION_TYPES = {"1": "a rectangle", "2": "an ellipse", "3": "an arrow", "4": "a ruler", "5": "a point"}
INSIDE_REGIONS = {"Region", "Vertices", "Vertex", "Vertice", "Attributes", "Attribute", "Comment"}
INSIDE_REGIONS |= {"RegionAttributeHeaders", "AttributeHeader"}


class Region(NamedTuple):
    """One outline: its number in the file, its id as written, and its vertices [count, (x, y)]."""

    number: int
    label: str
    ring: NDArray[np.float64]


class Annotation(NamedTuple):
    """The content of one file: regions in file order, layers, and µm per pixel if the file says."""

    regions: list[Region]
    layers: int
    mpp: float | None


def parse_annotation(data: bytes, name: str) -> Annotation:
    """Every region of an ImageScope XML file, or the one line that says what is wrong where."""
    if len(data) > MAX_XML_BYTES:
        raise InputError(f"{name}: larger than {MAX_XML_BYTES:,} bytes; it is not an annotation of one image")
    if data[:4] == b"PK\x03\x04":
        raise InputError(f"{name}: is a zip archive; extract it first")
    reader = _Reader(name)
    parser = DefusedXMLParser(target=reader, forbid_dtd=True)
    try:
        # In one piece: expat scans a token again from its start for every piece that does not end it.
        parser.feed(data)
        parser.close()
    except DefusedXmlException as error:
        raise InputError(f"{name}: declares a document type, which annotations never need; remove the DTD") from error
    except (ParseError, LookupError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: not well-formed XML ({error}); export it from ImageScope again") from error
    return Annotation(reader.regions, reader.layers, reader.mpp)


class _Reader:
    """The target that expat's events go to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.regions: list[Region] = []
        self.layers = 0
        self.mpp: float | None = None
        self._path: list[str] = []
        self._label = ""
        self._vertices: list[tuple[float, float]] = []
        self._vertex_total = 0
        self._inside_regions = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        path = self._path
        if not path and tag != "Annotations":
            raise InputError(f"{self.name}: starts with <{tag[:40]}>, not <Annotations>; it is not an ImageScope file")
        path.append(tag)
        if len(path) > MAX_XML_DEPTH:
            raise InputError(f"{self.name}: more than {MAX_XML_DEPTH} nested elements; it is not an ImageScope file")
        if self._inside_regions and tag not in INSIDE_REGIONS:
            raise InputError(f"{self.name} {self._where()}: unknown element <{tag[:40]}>; correct the file")
        if tag == "Vertex":
            self._add_vertex(attributes)
        elif tag == "Region":
            self._open_region(attributes)
        elif tag == "Regions":
            self._inside_regions = True
        elif tag == "Annotation":
            self.layers += 1
        elif tag == "Annotations" and (text := attributes.get("MicronsPerPixel", "").strip()):
            self.mpp = self._number(text, "MicronsPerPixel")

    def end(self, tag: str) -> None:
        self._path.pop()
        if tag == "Region":
            ring = np.array(self._vertices, dtype=np.float64).reshape(-1, 2)
            self.regions.append(Region(len(self.regions) + 1, self._label, ring))
        elif tag == "Regions":
            self._inside_regions = False

    def data(self, text: str) -> None:
        """Text between elements carries nothing."""

    def _where(self) -> str:
        return f"region {self._label}" if "Region" in self._path else f"after region {len(self.regions)}"

    def _open_region(self, attributes: dict[str, str]) -> None:
        self._label = attributes.get("Id", str(len(self.regions) + 1))[:40]
        if self._path[-2] != "Regions":
            raise InputError(f"{self.name} region {self._label}: lies outside <Regions>; correct the file")
        if len(self.regions) >= MAX_REGIONS:
            raise InputError(f"{self.name}: more than {MAX_REGIONS:,} regions; split the image")
        kind = attributes.get("Type", "0")
        if kind != "0":
            shape = REGION_TYPES.get(kind, f"of type {kind[:20]}")
            raise InputError(f"{self.name} region {self._label}: is {shape}, not an outline; redraw or delete it")
        if attributes.get("NegativeROA", "0") not in ("0", ""):
            raise InputError(f"{self.name} region {self._label}: is a negative region (a hole); redraw or delete it")
        self._vertices = []

    def _add_vertex(self, attributes: dict[str, str]) -> None:
        if self._path[-2:-1] != ["Vertices"] or self._path[-3:-2] != ["Region"]:
            raise InputError(f"{self.name} {self._where()}: a vertex lies outside <Vertices>; correct the file")
        self._vertex_total += 1
        if self._vertex_total > MAX_VERTICES:
            raise InputError(f"{self.name}: more than {MAX_VERTICES:,} vertices; it is not an annotation of one image")
        try:
            x, y = float(attributes["X"]), float(attributes["Y"])
            plain = math.isfinite(x) and math.isfinite(y) and "_" not in attributes["X"] + attributes["Y"]
        except (KeyError, ValueError):
            plain = False
        if not plain:  # the slow way, which says what is wrong where
            x, y = self._coordinate(attributes, "X"), self._coordinate(attributes, "Y")
        self._vertices.append((x, y))

    def _coordinate(self, attributes: dict[str, str], axis: str) -> float:
        where = f"region {self._label} vertex {len(self._vertices) + 1}"
        if axis not in attributes:
            raise InputError(f"{self.name} {where}: has no {axis}; correct the file")
        return self._number(attributes[axis], f"{where} {axis}")

    def _number(self, text: str, where: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        # Digit groups written as 1_0 are Python's, not ImageScope's.
        if not math.isfinite(value) or "_" in text:
            raise InputError(f"{self.name} {where}: {text[:40]!r} is not a finite number; correct the file")
        return value
