"""What the OME-XML in a TIFF says of its first image.  It is streamed through expat like every XML we read."""

from __future__ import annotations

from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from seunet.errors import InputError
from seunet.images.resolution import UNITS, Stated, number
from seunet.limits import MAX_XML_BYTES, MAX_XML_DEPTH


def is_ome(description: str) -> bool:
    """Whether a TIFF's description is OME-XML."""
    return "<OME" in description[:4096] and description.rstrip("\x00 \r\n\t").endswith("OME>")


def parse_ome(description: str, name: str) -> tuple[list[Stated], str | None]:
    """PhysicalSizeX/Y and NominalMagnification, where they are given; an InputError if it is not XML."""
    data = description.rstrip("\x00").encode(errors="replace")
    if len(data) > MAX_XML_BYTES:
        raise InputError(f"{name}: its OME-XML is larger than {MAX_XML_BYTES:,} bytes")
    reader = _Reader()
    parser = DefusedXMLParser(target=reader, forbid_dtd=True)
    try:
        parser.feed(data)
        parser.close()
    except (DefusedXmlException, ParseError, LookupError, ValueError) as error:
        raise InputError(f"{name}: its OME-XML cannot be read ({error})") from error
    return _size(reader.pixels), reader.objective.get("NominalMagnification")


def _size(pixels: dict[str, str]) -> list[Stated]:
    if "PhysicalSizeX" not in pixels:
        return []
    x = _microns(pixels, "PhysicalSizeX")
    y = _microns(pixels, "PhysicalSizeY") if "PhysicalSizeY" in pixels else x
    return [Stated(x, y, "metadata", "OME PhysicalSize")]


def _microns(pixels: dict[str, str], key: str) -> float:
    """In µm, the standard's default; NaN for a unit that is no length (OME allows "pixel")."""
    return number(pixels[key]) * UNITS.get(pixels.get(f"{key}Unit", "µm"), float("nan"))


class _Reader:
    """The target that expat's events go to."""

    def __init__(self) -> None:
        self.pixels: dict[str, str] = {}
        self.objective: dict[str, str] = {}
        self._depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_XML_DEPTH:
            raise ValueError(f"more than {MAX_XML_DEPTH} nested elements")
        kind = tag.rpartition("}")[2]
        if kind == "Pixels" and not self.pixels:
            self.pixels = attributes
        elif kind == "Objective" and not self.objective:
            self.objective = attributes

    def end(self, tag: str) -> None:
        self._depth -= 1

    def data(self, text: str) -> None:
        """Text between elements carries nothing that is needed."""
