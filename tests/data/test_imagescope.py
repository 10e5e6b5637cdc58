"""ImageScope XML: what is read, and the sentence for everything that is not."""

from __future__ import annotations

import re
import time

import pytest

import seunet.data.formats.imagescope as imagescope
from seunet.data.formats.imagescope import parse_annotation
from seunet.errors import InputError
from support.datasets import disc, imagescope_xml
from support.mutants import hostile_xml, xml_mutants

ONE = imagescope_xml([[(1, 2), (3, 4), (5, 6)]])


def refuse(text: str | bytes, sentence: str) -> None:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(InputError, match=re.escape(sentence)):
        parse_annotation(data, "a.xml")


def test_regions_are_read_in_file_order_with_their_ids_and_mpp() -> None:
    annotation = parse_annotation(imagescope_xml([disc(9, 9, 3), [(1, 2), (3, 4.5)]], mpp="0.2527").encode(), "a.xml")
    assert [region.label for region in annotation.regions] == ["1", "2"]
    assert annotation.regions[1].ring.tolist() == [[1, 2], [3, 4.5]]
    assert annotation.mpp == 0.2527
    assert annotation.layers == 1


def test_mpp_is_none_where_the_file_does_not_say() -> None:
    assert parse_annotation(imagescope_xml([], mpp=None).encode(), "a.xml").mpp is None
    assert parse_annotation(imagescope_xml([], mpp="").encode(), "a.xml").mpp is None


@pytest.mark.parametrize("value", ["nan", "inf", "-1e999", "12,5", "", "0x10", "1_0", "٣x"])
def test_a_vertex_that_is_not_a_finite_number_is_named(value: str) -> None:
    refuse(
        ONE.replace('X="3"', f'X="{value}"'),
        f"a.xml region 1 vertex 2 X: {value!r} is not a finite number; correct the file",
    )


def test_what_cannot_be_painted_as_drawn_is_refused_by_region() -> None:
    refuse(ONE.replace('Y="4"', ""), "a.xml region 1 vertex 2: has no Y; correct the file")
    refuse(
        ONE.replace('Type="0"', 'Type="2"'),
        "a.xml region 1: is an ellipse, not an outline; redraw or delete it",
    )
    refuse(ONE.replace('Type="0"', 'Type="77"'), "a.xml region 1: is of type 77, not an outline")
    refuse(
        ONE.replace('NegativeROA="0"', 'NegativeROA="1"'),
        "a.xml region 1: is a negative region (a hole); redraw or delete it",
    )


def test_a_misspelt_element_cannot_lose_a_nucleus() -> None:
    refuse(
        ONE.replace("<Region ", "<Regoin ").replace("</Region>", "</Regoin>"),
        "a.xml after region 0: unknown element <Regoin>; correct the file",
    )
    refuse(ONE.replace("Regions>", "Regoins>"), "a.xml region 1: lies outside <Regions>; correct the file")
    refuse(
        ONE.replace("<Vertices>", "").replace("</Vertices>", ""),
        "a.xml region 1: a vertex lies outside <Vertices>; correct the file",
    )
    refuse(ONE.replace("<Vertex ", "<Vortex "), "a.xml region 1: unknown element <Vortex>; correct the file")


def test_a_foreign_file_is_refused() -> None:
    refuse("<svg/>", "a.xml: starts with <svg>, not <Annotations>; it is not an ImageScope file")
    refuse(b"PK\x03\x04....", "a.xml: is a zip archive; extract it first")
    refuse("plain text", "a.xml: not well-formed XML (syntax error: line 1, column 0); export it from ImageScope")
    refuse(
        imagescope_xml([], mpp="soon"),
        "a.xml MicronsPerPixel: 'soon' is not a finite number; correct the file",
    )


def test_ceilings_on_bytes_regions_and_vertices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imagescope, "MAX_REGIONS", 2)
    refuse(imagescope_xml([disc(9, 9, 3)] * 3), "a.xml: more than 2 regions; split the image")
    monkeypatch.setattr(imagescope, "MAX_VERTICES", 2)
    refuse(ONE, "a.xml: more than 2 vertices; it is not an annotation of one image")
    monkeypatch.setattr(imagescope, "MAX_XML_BYTES", 10)
    refuse(ONE, "a.xml: larger than 10 bytes; it is not an annotation of one image")


DTD = "a.xml: declares a document type, which annotations never need; remove the DTD"
SENTENCES = {
    "laughs": DTD,
    "external entity": DTD,
    "external DTD": DTD,
    "HTML": DTD,
    "200,000 nested tags": "a.xml: more than 32 nested elements; it is not an ImageScope file",
    "200,000 nested regions": "a.xml region 1: lies outside <Regions>; correct the file",
    "two million vertices": "a.xml: more than 250,000 vertices; it is not an annotation of one image",
    "unknown encoding": "a.xml: not well-formed XML (unknown encoding",
    "nothing": "a.xml: not well-formed XML (no element found",
    "zeros": "a.xml: not well-formed XML (not well-formed (invalid token)",
    "a value of 20 MB": "is not a finite number; correct the file",
}


@pytest.mark.parametrize("name", hostile_xml())
def test_an_attack_or_excess_is_refused_within_two_seconds(name: str) -> None:
    data = hostile_xml()[name]
    started = time.process_time()
    if name in SENTENCES:
        refuse(data, SENTENCES[name])
    else:
        assert parse_annotation(data, "a.xml").regions == []
    assert time.process_time() - started < 2


def test_three_hundred_mutants_are_read_or_refused_in_one_line() -> None:
    lines = [line for data in xml_mutants(300, seed=0) if (line := refusal(data)) is not None]
    assert len(lines) > 100
    assert all("\n" not in line and line.startswith("a.xml") for line in lines)


def refusal(data: bytes) -> str | None:
    try:
        parse_annotation(data, "a.xml")
    except InputError as error:
        return str(error)
    return None


def test_utf_16_is_read_with_and_without_its_mark() -> None:
    for encoding in ("utf-16", "utf-16-le"):
        assert len(parse_annotation(ONE.encode(encoding), "a.xml").regions) == 1
