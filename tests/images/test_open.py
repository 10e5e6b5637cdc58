"""Every format is one kind of image; what is decided is said, and what is broken is one line."""

from __future__ import annotations

import io
import math
import struct
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import openslide
import pytest
import tifffile
from PIL import Image as Pillow

from seunet.errors import InputError, RegionError, SeunetError
from seunet.images.image import Bounds, Image, Mpp
from seunet.images.open import open_image
from seunet.images.openslide_image import SlideImage, _bounds
from seunet.images.tiff_image import TiffImage
from seunet.images.tiff_tiles import SegmentCache
from support.datasets import he_pixels
from support.mutants import png_bomb, raw_png, tiff_bomb
from support.real_data import real_data
from support.slides import make_slide
from support.tiffs import aperio_bytes, halves, slide_mutants, slide_seeds, spoil_tile, tiff_bytes, write

RGB = he_pixels(160, 0)
LEVELS = halves(RGB, 2)
DATA = real_data()
needs_data = pytest.mark.skipif(DATA is None, reason="no real data: set SEUNET_DATA or put it in ../shared/data")
WSI = (DATA or Path()) / "wsi"


OPEN: list[Image] = []


@pytest.fixture(autouse=True)
def _close_what_was_opened() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def open_file(path: Path, mpp: float | None = None) -> Image:
    OPEN.append(open_image(path, mpp))
    return OPEN[-1]


def opened(tmp_path: Path, data: bytes, name: str = "a.tif", mpp: float | None = None) -> Image:
    return open_file(write(tmp_path / name, data), mpp)


def encoded(pixels: np.ndarray, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    Pillow.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


def everything(image: Image, level: int = 0) -> np.ndarray:
    return image.read(level, 0, 0, *image.levels[level][:2])


LOSSLESS: dict[str, Callable[[], bytes]] = {
    "png": lambda: encoded(RGB, "PNG"),
    "palette": lambda: encoded(np.asarray(Pillow.fromarray(RGB).quantize(16).convert("RGB")), "PNG"),
    "strips": lambda: tiff_bytes([RGB], tile=None, rowsperstrip=7, compression="deflate"),
    "one raw strip": lambda: tiff_bytes([RGB], tile=None, rowsperstrip=160),
    "raw strips": lambda: tiff_bytes([RGB], tile=None, rowsperstrip=11),
    "tiles": lambda: tiff_bytes(LEVELS, compression="lzw", predictor=True),
    "raw tiles": lambda: tiff_bytes(LEVELS),
    "big": lambda: tiff_bytes(LEVELS, bigtiff=True, compression="zstd"),
    "ome": lambda: tiff_bytes(LEVELS, subifds=True, ome=True, metadata={"axes": "YXS"}),
    "planar": lambda: tiff_bytes([np.moveaxis(RGB, -1, 0)], planarconfig="separate", compression="deflate"),
    "big-endian": lambda: _big_endian(),
}


def _big_endian() -> bytes:
    file = io.BytesIO()
    tifffile.imwrite(file, RGB.astype(np.uint16) * 256, byteorder=">", photometric="rgb", rowsperstrip=9)
    return file.getvalue()


@pytest.mark.parametrize("kind", [kind for kind in LOSSLESS if kind != "palette"])
def test_what_was_written_is_read_whole_in_parts_and_beyond_the_edge(tmp_path: Path, kind: str) -> None:
    image = opened(tmp_path, LOSSLESS[kind](), "misleading.svs")
    assert (everything(image) == RGB).all()
    padded = np.pad(RGB, ((40, 40), (40, 40), (0, 0)), constant_values=255)
    random = np.random.default_rng(0)
    for _ in range(12):
        x, y = (int(value) for value in random.integers(-40, 150, 2))
        width, height = (int(value) for value in random.integers(1, 50, 2))
        wanted = padded[y + 40 : y + 40 + height, x + 40 : x + 40 + width]
        got = image.read(0, x, y, width, height)
        assert (got[: wanted.shape[0], : wanted.shape[1]] == wanted).all()
    assert (image.read(0, 500, 500, 3, 2) == 255).all()
    assert (image.read(0, -9, -9, 5, 5) == 255).all()


@pytest.mark.parametrize("kind", ["tiles", "raw tiles", "big", "ome"])
def test_all_levels_of_a_pyramid_are_seen_as_pages_or_sub_images(tmp_path: Path, kind: str) -> None:
    image = opened(tmp_path, LOSSLESS[kind]())
    assert [(level.width_px, level.downsample) for level in image.levels] == [(160, 1.0), (80, 2.0), (40, 4.0)]
    for number, pixels in enumerate(LEVELS):
        assert (everything(image, number) == pixels).all()
    assert image.format == ("ome-tiff" if kind == "ome" else "generic-tiff")


def test_jpeg_tiles_are_what_openslide_sees(tmp_path: Path) -> None:
    path = make_slide(tmp_path / "made.tif", 1500, seed=3, mpp=0.263, block_px=512)
    image, other = open_file(path), openslide.OpenSlide(path)
    assert [level[:2] for level in image.levels] == list(other.level_dimensions) == [(1500, 1500), (750, 750)]
    assert image.mpp is not None
    assert math.isclose(image.mpp.x, 0.263, rel_tol=1e-6)
    assert image.mpp.source == "tiff-tag"
    for level, x, y in ((0, 300, 410), (1, 101, 7)):
        theirs = np.asarray(other.read_region((x << level, y << level), level, (400, 300)))[..., :3]
        assert (image.read(level, x, y, 400, 300) == theirs).all()


def test_an_aperio_slide_of_jpeg_tiles_is_read_directly_and_any_other_by_openslide(tmp_path: Path) -> None:
    jpeg = opened(tmp_path, aperio_bytes(LEVELS), "a.svs")
    assert (type(jpeg), jpeg.format) == (TiffImage, "aperio")
    slow = openslide.OpenSlide(tmp_path / "a.svs")
    assert (everything(jpeg) == np.asarray(slow.read_region((0, 0), 0, (160, 160)))[..., :3]).all()
    other = opened(tmp_path, aperio_bytes(LEVELS, "aperio_jp2000_rgb"), "b.svs")
    assert (type(other), other.format) == (SlideImage, "aperio")
    assert np.abs(everything(other).astype(int) - RGB).max() <= 4
    for image in (jpeg, other):
        assert image.mpp == Mpp(0.499, 0.499, "metadata")
        assert image.properties["objective power"] == "20"
        assert image.warnings == ()


def test_a_level_of_odd_size_gives_the_same_pixels_in_any_parts(tmp_path: Path) -> None:
    big = np.tile(RGB, (7, 7, 1))[:1003, :1003]
    image = opened(tmp_path, aperio_bytes([big, np.ascontiguousarray(big[:1000:4, :1000:4])], "aperio_jp2000_rgb"))
    assert isinstance(image, SlideImage)
    assert not image.levels[1].downsample.is_integer()
    whole = everything(image, 1)
    for x, y in ((0, 0), (50, 3), (99, 200), (201, 50)):
        assert (image.read(1, x, y, 49, 50) == whole[y : y + 50, x : x + 49]).all()


@pytest.mark.parametrize(
    ("pixels", "options", "expected", "line"),
    [
        (RGB[..., 0], {"photometric": "minisblack"}, RGB[..., [0]].repeat(3, -1), "grey image"),
        (RGB[..., 0], {"photometric": "miniswhite"}, 255 - RGB[..., [0]].repeat(3, -1), "grey image"),
        (RGB.astype(np.uint16) * 256 + 255, {}, RGB, "16 bits per channel: the upper 8 are used"),
        (np.dstack([RGB, RGB[..., 0]]), {"extrasamples": ["unspecified"]}, RGB, "a fourth channel of unknown meaning"),
    ],
)
def test_grey_sixteen_bits_and_unknown_channels_are_read_and_said(
    tmp_path: Path, pixels: np.ndarray, options: dict[str, Any], expected: np.ndarray, line: str
) -> None:
    image = opened(tmp_path, tiff_bytes([pixels], **options))
    assert (everything(image) == expected).all()
    assert len(image.warnings) == 1
    assert image.warnings[0].startswith(line)


def laid_on_white(pixels: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    share = alpha[..., None] / 255
    return np.rint(pixels * share + 255 * (1 - share))


def test_transparency_is_laid_on_white(tmp_path: Path) -> None:
    alpha = np.tile(np.arange(160, dtype=np.uint8), (160, 1))
    both = np.dstack([RGB, alpha])
    expected = laid_on_white(RGB, alpha)
    for name, data in (
        ("a.png", encoded(both, "PNG")),
        ("a.tif", tiff_bytes([both], extrasamples=["unassalpha"], compression="deflate")),
    ):
        image = opened(tmp_path, data, name)
        assert np.abs(everything(image) - expected).max() <= 0.5
        assert image.warnings == ("transparency laid on white",)
    weighted = np.rint(RGB * (alpha[..., None] / 255)).astype(np.uint8)
    image = opened(tmp_path, tiff_bytes([np.dstack([weighted, alpha])], extrasamples=["assocalpha"]))
    assert np.abs(everything(image) - expected).max() <= 1


def test_png_of_every_kind_is_read_and_said(tmp_path: Path) -> None:
    grey = RGB[..., 0]
    palette = Pillow.fromarray(RGB).quantize(16)
    cases: list[tuple[bytes, np.ndarray, str]] = [
        (encoded(grey, "PNG"), grey[..., None].repeat(3, -1), "grey image"),
        (encoded(grey.astype(np.uint16) * 256 + 9, "PNG"), grey[..., None].repeat(3, -1), "16 bits per channel"),
        (_saved(palette), np.asarray(palette.convert("RGB")), "palette expanded to RGB"),
    ]
    for data, expected, line in cases:
        image = opened(tmp_path, data, "a.png")
        assert (everything(image) == expected).all()
        assert any(warning.startswith(line) for warning in image.warnings)
    deep = bytes([0, 10, 200, 20, 200, 30, 200]) + bytes([0, 40, 1, 50, 1, 60, 1])
    image = opened(tmp_path, raw_png(1, 2, 16, deep), "deep.png")
    assert everything(image).tolist() == [[[10, 20, 30]], [[40, 50, 60]]]
    assert image.warnings[0].startswith("16 bits per channel")
    clear = _saved(palette, transparency=int(np.asarray(palette)[0, 0]))
    assert everything(opened(tmp_path, clear, "clear.png"))[0, 0].tolist() == [255, 255, 255]


def _saved(picture: Pillow.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def test_an_orientation_is_said_and_not_applied(tmp_path: Path) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = 6
    picture = Pillow.fromarray(RGB[:100])
    image = opened(tmp_path, _saved(picture, "JPEG", exif=exif), "a.jpg")
    assert image.levels[0][:2] == (160, 100)
    assert "EXIF orientation 6 is not applied; the pixels are taken as stored" in image.warnings
    turned = tiff_bytes([RGB], extratags=[(274, 3, 1, 6, True)])
    assert "orientation 6 is not applied; the pixels are taken as stored" in opened(tmp_path, turned).warnings


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: _saved(Pillow.fromarray(RGB).convert("CMYK"), "JPEG"), "colour mode CMYK; convert it to 8-bit RGB"),
        (lambda: _saved(Pillow.fromarray(RGB).convert("1")), "colour mode 1-bit; convert it to 8-bit RGB first"),
        (
            lambda: tiff_bytes([np.dstack([RGB, RGB[..., 0]])], photometric="separated"),
            "colour mode CMYK; convert it to 8-bit RGB first",
        ),
        (lambda: tiff_bytes([RGB.astype(np.float32)]), "32-bit floating-point samples; convert it to 8-bit RGB first"),
        (lambda: tiff_bytes([RGB.astype(np.int16)]), "16-bit signed samples; convert it to 8-bit RGB first"),
        (lambda: tiff_bytes([RGB.astype(np.uint32)]), "32-bit samples; convert it to 8-bit RGB first"),
        (
            lambda: tiff_bytes([RGB[..., 0], RGB[..., 1], RGB[..., 2]], photometric="minisblack"),
            r"3 grey pages of one size \(channels or focal planes\); save one RGB image as TIFF",
        ),
        (lambda: b"", "is empty; copy or export it again"),
        (
            lambda: b"GIF89a...",
            "not an image or slide of a known format; give PNG, JPEG, BMP, WebP, TIFF or a scanner's file",
        ),
        (lambda: b"PK\x03\x04", "is a zip archive; extract it first"),
        (lambda: b"II*\x00", "not a readable TIFF"),
        (lambda: b"\x89PNG\r\n\x1a\nrubbish", "not a readable PNG, JPEG, BMP or WEBP"),
        (lambda: encoded(RGB, "BMP")[:500], "broken or cut short"),
        (lambda: encoded(RGB, "WEBP")[:500], "(broken or cut short|not a readable)"),
        (lambda: b"BM" + bytes(60), "not a readable PNG, JPEG, BMP or WEBP"),
        (lambda: encoded(RGB, "PNG")[:5000], "broken or cut short"),
        (lambda: encoded(RGB, "JPEG")[:2000], "broken or cut short"),
        (lambda: png_bomb(20_000, 20_000), "20000×20000 is more than 268,435,456 pixels"),
        (lambda: png_bomb(2**31 - 1, 2**31 - 1), "pixels"),
        (lambda: tiff_bomb(2**31 - 1, 2**31 - 1), "pixels"),
        (lambda: _one_long_strip(), "stored in strips of 20000×20000 px, which cannot be read in parts; save it as a"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path: Path, make: Callable[[], bytes], line: str) -> None:
    with pytest.raises(InputError, match=f"^a.tif: .*{line}") as caught:
        opened(tmp_path, make())
    assert "\n" not in str(caught.value)


def _one_long_strip() -> bytes:
    """A header that claims 20,000² pixels in one compressed strip."""
    data = bytearray(tiff_bytes([RGB], tile=None, rowsperstrip=160, compression="deflate"))
    with tifffile.TiffFile(io.BytesIO(bytes(data))) as tiff:
        for name in ("ImageWidth", "ImageLength", "RowsPerStrip"):
            tag = tiff.pages.first.tags[name]
            size = tag.valuebytecount
            data[tag.valueoffset : tag.valueoffset + size] = (20_000).to_bytes(size, "little")
    return bytes(data)


def test_a_width_that_is_a_fraction_is_no_width(tmp_path: Path) -> None:
    """Found by mutants: an ImageWidth of type FLOAT became the width of the level."""
    data = bytearray(tiff_bytes([RGB], tile=None, rowsperstrip=160))
    with tifffile.TiffFile(io.BytesIO(bytes(data))) as tiff:
        entry = tiff.pages.first.tags["ImageWidth"].offset
    data[entry + 2 : entry + 12] = struct.pack("<HIf", 11, 1, 160.0)
    with pytest.raises(InputError, match=r"^a.tif: holds no image; copy or export it again"):
        opened(tmp_path, bytes(data))


def test_a_folder_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder; give the image file"):
        open_file(tmp_path)
    with pytest.raises(InputError, match=r"gone.png: cannot be read \(No such file or directory\); check the path"):
        open_file(tmp_path / "gone.png")


def test_pages_that_are_no_levels_are_left_out(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as writer:
        for pixels, flag in ((LEVELS[1], 0), (RGB, 0), (LEVELS[2], 0), (RGB[:40, :20], 1), (LEVELS[1], 1)):
            writer.write(pixels, photometric="rgb", tile=(64, 64), subfiletype=flag, metadata=None)
    image = opened(tmp_path, file.getvalue())
    assert [level[:2] for level in image.levels] == [(160, 160), (80, 80)]
    assert image.warnings == ("page 2 is the largest and is read as the image",)


# µm per pixel


def with_resolution(x: float, y: float, unit: str) -> bytes:
    values = [Fraction(value).limit_denominator(10**6) for value in (x, y)]
    pairs = tuple((value.numerator, value.denominator) for value in values)
    return tiff_bytes([RGB], resolution=pairs, resolutionunit=unit)


def with_ome(x: object, y: object, unit: str | None = None) -> bytes:
    data: dict[str, Any] = {"axes": "YXS", "PhysicalSizeX": x, "PhysicalSizeY": y}
    if unit:
        data |= {"PhysicalSizeXUnit": unit, "PhysicalSizeYUnit": unit}
    return tiff_bytes([RGB], ome=True, metadata=data)


def with_imagej(unit: str, pixels_per_unit: float) -> bytes:
    file = io.BytesIO()
    resolution = (pixels_per_unit, pixels_per_unit)
    tifffile.imwrite(file, RGB, imagej=True, resolution=resolution, metadata={"unit": unit}, photometric="rgb")
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "mpp", "source"),
    [
        (with_ome(0.25, 0.25), 0.25, "metadata"),
        (with_ome(0.263, 0.263, "µm"), 0.263, "metadata"),
        (with_ome(500, 500, "nm"), 0.5, "metadata"),
        (with_ome(0.001, 0.001, "mm"), 1.0, "metadata"),
        (with_imagej("micron", 4), 0.25, "metadata"),
        (with_imagej("\\u00B5m", 2), 0.5, "metadata"),
        (with_resolution(40_000, 40_000, "CENTIMETER"), 0.25, "tiff-tag"),
        (with_resolution(50_800, 50_800, "INCH"), 0.5, "tiff-tag"),
        (aperio_bytes(LEVELS, mpp="0.2277"), 0.2277, "metadata"),
        (encoded(RGB, "PNG", dpi=(101_600, 101_600)), 0.25, "metadata"),
    ],
)
def test_mpp_is_found_where_it_is_written(tmp_path: Path, data: bytes, mpp: float, source: str) -> None:
    image = opened(tmp_path, data)
    assert image.mpp is not None
    assert math.isclose(image.mpp.x, mpp, rel_tol=1e-4)
    assert image.mpp.x == pytest.approx(image.mpp.y)
    assert image.mpp.source == source
    assert image.warnings == ()


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (
            with_resolution(72, 72, "INCH"),
            "XResolution of 72 px per inch: 352.8 µm per pixel is outside 0.05–20 (72 dpi",
        ),
        (with_resolution(96, 96, "INCH"), "XResolution of 96 px per inch: 264.6 µm per pixel"),
        (with_resolution(300, 300, "INCH"), "XResolution of 300 px per inch: 84.67 µm per pixel"),
        (with_resolution(1, 1, "INCH"), "XResolution of 1 px per inch: 2.54e+04 µm per pixel"),
        (with_resolution(28.35, 28.35, "CENTIMETER"), "XResolution of 28.35 px per cm: 352.7 µm per pixel is outside"),
        (with_resolution(1e6, 1e6, "CENTIMETER"), "XResolution of 1e+06 px per cm: 0.01 µm per pixel is outside"),
        (
            with_resolution(40_000, 20_000, "CENTIMETER"),
            "XResolution of 4e+04 px per cm: pixels of 0.25×0.5 µm are too",
        ),
        (with_ome(1, 1, "pixel"), "OME PhysicalSize: nan µm per pixel is outside"),
        (with_ome(0, 0), "OME PhysicalSize: 0 µm per pixel is outside"),
        (with_ome(-0.25, -0.25), "OME PhysicalSize: -0.25 µm per pixel is outside"),
        (aperio_bytes(LEVELS, mpp="40"), "Aperio MPP: 40 µm per pixel is outside"),
        (encoded(RGB, "JPEG", dpi=(300, 300)), "resolution of 300 dpi: 84.67 µm per pixel is outside 0.05–20 (300 dpi"),
    ],
)
def test_nonsense_is_not_believed_and_said(tmp_path: Path, data: bytes, line: str) -> None:
    image = opened(tmp_path, data)
    assert image.mpp is None
    assert image.warnings[0].startswith(line)
    assert "not believed" in image.warnings[0]


def test_a_resolution_without_a_unit_means_nothing(tmp_path: Path) -> None:
    image = opened(tmp_path, with_resolution(40_000, 40_000, "NONE"))
    assert (image.mpp, image.warnings) == (None, ())


def test_the_power_of_the_objective_is_not_turned_into_an_mpp(tmp_path: Path) -> None:
    data = aperio_bytes(LEVELS).replace(b"|MPP = 0.4990", b"|xxx = 0.4990")
    for kind in (data, data.replace(b"JPEG/RGB", b"J2K/KDU ")):
        image = opened(tmp_path, kind)
        assert image.mpp is None
        assert image.properties["objective power"] == "20"
        assert image.warnings == (
            "no µm per pixel; the objective's power 20 is not turned into one: pass --mpp if known",
        )


def test_oblong_pixels_are_said(tmp_path: Path) -> None:
    slightly = opened(tmp_path, with_ome(0.25, 0.2515))
    assert slightly.warnings == ()
    image = opened(tmp_path, with_ome(0.25, 0.27))
    assert image.mpp == Mpp(0.25, 0.27, "metadata")
    assert image.warnings == ("OME PhysicalSize: pixels of 0.25×0.27 µm are not square; taken as they are",)


def test_two_statements_that_differ_are_said_and_the_metadata_holds(tmp_path: Path) -> None:
    data = tiff_bytes(
        [RGB],
        ome=True,
        metadata={"axes": "YXS", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5},
        resolution=(40_000, 40_000),
        resolutionunit="CENTIMETER",
    )
    image = opened(tmp_path, data)
    assert image.mpp == Mpp(0.5, 0.5, "metadata")
    assert image.warnings == (
        "XResolution of 4e+04 px per cm: 0.25 µm per pixel, but OME PhysicalSize 0.5 is used; check which is true",
    )


def test_the_user_comes_first_and_hears_of_a_contradiction(tmp_path: Path) -> None:
    agreed = opened(tmp_path, with_ome(0.25, 0.25), mpp=0.26)
    assert (agreed.mpp, agreed.warnings) == (Mpp(0.26, 0.26, "user"), ())
    other = opened(tmp_path, with_ome(0.25, 0.25), mpp=0.5)
    assert other.mpp == Mpp(0.5, 0.5, "user")
    assert other.warnings == ("OME PhysicalSize: 0.25 µm per pixel, but the user's 0.5 is used; check which is true",)
    nonsense = opened(tmp_path, with_resolution(72, 72, "INCH"), mpp=0.5)
    assert (nonsense.mpp, nonsense.warnings) == (Mpp(0.5, 0.5, "user"), ())


@pytest.mark.parametrize("mpp", [0.0, -0.25, math.nan, math.inf, 0.01, 21.0])
def test_an_impossible_mpp_of_the_user_is_refused(tmp_path: Path, mpp: float) -> None:
    for name, data in (("a.png", encoded(RGB, "PNG")), ("a.tif", LOSSLESS["tiles"]()), ("a.svs", aperio_bytes(LEVELS))):
        with pytest.raises(InputError, match=r"--mpp: .* µm per pixel is outside 0.05–20; give the µm of one pixel"):
            opened(tmp_path, data, name, mpp)


def test_ome_xml_that_is_broken_or_hostile_costs_the_mpp_and_not_the_image(tmp_path: Path) -> None:
    for text in ("<OME><Image></OME>", '<!DOCTYPE a [<!ENTITY b "c">]><OME>&b;</OME>', "<OME>" + "<a>" * 99 + "</OME>"):
        image = opened(tmp_path, tiff_bytes([RGB], description=text))
        assert image.mpp is None
        assert image.warnings[0].startswith("its OME-XML cannot be read (")
        assert (everything(image) == RGB).all()


def test_bounds_that_do_not_lie_within_the_slide_are_not_believed(tmp_path: Path) -> None:
    levels = opened(tmp_path, LOSSLESS["tiles"]()).levels

    def found(*values: str) -> tuple[Bounds, list[str]]:
        names = [f"openslide.bounds-{side}" for side in ("x", "y", "width", "height")]
        return _bounds(dict(zip(names, values, strict=False)), levels)

    everywhere = Bounds(0, 0, 160, 160)
    assert found() == (everywhere, [])
    assert found("10", "20", "100", "140") == (Bounds(10, 20, 100, 140), [])
    for text in ("10 20 151 20", "-1 0 5 5", "1 1", "a 1 2 3", "1 1 0 9"):
        bounds, lines = found(*text.split())
        assert bounds == everywhere
        assert lines[0].endswith("do not lie within the slide; not believed")


# damage


def test_a_corrupt_tile_costs_its_region_and_nothing_else(tmp_path: Path) -> None:
    for name, data in (
        ("deflate", tiff_bytes(LEVELS, compression="deflate")),
        ("aperio", aperio_bytes(LEVELS)),
        ("openslide", aperio_bytes(LEVELS, "aperio_jp2000_rgb")),
    ):
        sound = opened(tmp_path, data, "sound.tif")
        broken = opened(tmp_path, spoil_tile(data, 0, 4), f"{name}.tif")  # the tile in the middle of 3 × 3
        assert type(broken) is type(sound)
        for _ in range(2):
            with pytest.raises(
                RegionError, match=rf"{name}.tif: level 0, 40×30 px at \(60, 70\) cannot be read"
            ) as caught:
                broken.read(0, 60, 70, 40, 30)
            assert "\n" not in str(caught.value)
            assert (broken.read(0, 0, 0, 64, 160) == sound.read(0, 0, 0, 64, 160)).all()
            assert (everything(broken, 1) == everything(sound, 1)).all()


def test_a_tile_that_the_file_says_is_empty_is_white_and_said(tmp_path: Path) -> None:
    image = opened(tmp_path, spoil_tile(tiff_bytes(LEVELS, compression="deflate"), 0, 4, "empty"))
    pixels = everything(image)
    assert (pixels[64:128, 64:128] == 255).all()
    assert (pixels[:64] == RGB[:64]).all()
    assert image.warnings == ("1 of 9 tiles are empty in the file and read as white",)
    slide = opened(tmp_path, spoil_tile(aperio_bytes(LEVELS), 0, 4, "empty"))
    assert isinstance(slide, SlideImage)
    assert (everything(slide)[64:128, 64:128] == 255).all()


def read_or_refused(path: Path, whole: np.ndarray) -> tuple[int, int]:
    """(regions read, refused) of a damaged copy: what is read must be what was written."""
    try:
        image = open_file(path)
    except InputError:
        return 0, 1
    read = refused = 0
    height, width = whole.shape[:2]
    if image.levels[0][:2] != (width, height):
        image.close()
        return 0, 1
    step = max(height, width) // 4
    for y in range(0, height, step):
        for x in range(0, width, step):
            try:
                pixels = image.read(0, x, y, min(step, width - x), min(step, height - y))
            except RegionError:
                refused += 1
                continue
            assert (pixels == whole[y : y + step, x : x + step]).all()
            read += 1
    image.close()
    return read, refused


@pytest.mark.parametrize(
    "kind", ["pyramid jpeg", "ome subifds", "strips", "one strip", "aperio jpeg", "aperio jpeg 2000"]
)
def test_a_file_cut_anywhere_gives_true_pixels_or_an_error(tmp_path: Path, kind: str) -> None:
    data = slide_seeds()[kind]
    whole = everything(opened(tmp_path, data, "whole.tif"))
    total = np.zeros(2, dtype=int)
    for cut in np.linspace(0, len(data) - 1, 25).astype(int):
        total += read_or_refused(write(tmp_path / "cut.tif", data[:cut]), whole)
    assert total[1] >= 25
    if kind != "ome subifds":  # its directory of the first page comes before the pixels of the levels
        assert total[0] > 0 or kind.startswith("aperio")


def test_a_file_cut_short_says_so_on_opening(tmp_path: Path) -> None:
    data = slide_seeds()["pyramid jpeg"]
    image = opened(tmp_path, data[: len(data) // 2])
    assert any("tiles are cut off; the file is not whole: copy it again" in line for line in image.warnings)


def test_mutants_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """In this process: these are known not to hang (the guarded reader is for those that are not)."""
    errors = [_fault(write(tmp_path / "mutant.tif", data)) for _, data in slide_mutants(170, seed=7)]
    refused = [error for error in errors if error is not None]
    assert 40 < len(refused) < 150
    assert all(isinstance(error, InputError) and "\n" not in str(error) for error in refused)


def _fault(path: Path) -> SeunetError | None:
    """What is said of a file that cannot be read in full; None if it can."""
    try:
        image = open_file(path)
        for level in range(len(image.levels)):
            image.read(level, 0, 0, 100, 100)
    except SeunetError as error:
        return error
    return None


# use


def test_two_threads_read_one_image(tmp_path: Path) -> None:
    image = opened(tmp_path, slide_seeds()["pyramid deflate"])
    wrong: list[int] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(60):
            x, y = (int(value) for value in random.integers(0, 100, 2))
            wrong.extend([seed] * int((image.read(0, x, y, 60, 60) != RGB[y : y + 60, x : x + 60]).any()))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_decoded_tiles_are_kept_within_a_limit() -> None:
    cache, decoded = SegmentCache(3 * 300), []

    def fetch(number: int) -> None:
        cache.fetch((0, number), lambda: decoded.append(number) or np.zeros((10, 10, 3), np.uint8))

    for number in (0, 1, 2, 0, 3, 0, 1):
        fetch(number)
    assert decoded == [0, 1, 2, 3, 1]  # 1 was the least recently used when 3 came


def test_a_closed_image_and_a_level_that_is_not_there_are_errors(tmp_path: Path) -> None:
    for name, data in (("a.tif", LOSSLESS["tiles"]()), ("a.png", encoded(RGB, "PNG")), ("a.svs", aperio_bytes([RGB]))):
        image = opened(tmp_path, data, name)
        with pytest.raises(IndexError, match=f"level {len(image.levels)} of an image with {len(image.levels)}"):
            image.read(len(image.levels), 0, 0, 1, 1)
        image.close()
        image.close()
        with pytest.raises(ValueError, match=f"{name}: is closed"):
            image.read(0, 0, 0, 1, 1)


# real files


@needs_data
def test_the_real_slide_is_read_as_openslide_reads_it() -> None:
    path = WSI / "CMU-1-Small-Region.svs"
    image, other = open_file(path), openslide.OpenSlide(path)
    assert [level[:2] for level in image.levels] == list(other.level_dimensions) == [(2220, 2967)]
    assert image.mpp == Mpp(0.499, 0.499, "metadata")
    assert (image.format, image.properties["objective power"], image.warnings) == ("aperio", "20", ())
    assert image.bounds == Bounds(0, 0, 2220, 2967)
    theirs = np.asarray(other.read_region((700, 1000), 0, (900, 800)))[..., :3]
    assert (image.read(0, 700, 1000, 900, 800) == theirs).all()
    assert isinstance(opened_by_openslide := _by_openslide(path), SlideImage)
    assert (opened_by_openslide.read(0, 2000, 2900, 300, 100) == image.read(0, 2000, 2900, 300, 100)).all()


def _by_openslide(path: Path) -> Image:
    from seunet.images.openslide_image import open_slide

    return open_slide(path, None)


@needs_data
def test_the_nonsense_mpp_of_the_real_tiff_is_not_believed_and_said() -> None:
    image = open_file(WSI / "small_HE_levels.tiff")
    assert image.mpp is None
    assert image.warnings == (
        "XResolution of 28.34 px per cm: 352.9 µm per pixel is outside 0.05–20 (72 dpi, a default of screens and "
        "printers); not believed: pass --mpp if it is known",
    )
    assert [level[:2] for level in image.levels] == [(300, 250), (150, 125), (75, 62), (37, 31)]


@needs_data
def test_the_real_slide_cut_anywhere_gives_true_pixels_or_an_error(tmp_path: Path) -> None:
    data = (WSI / "CMU-1-Small-Region.svs").read_bytes()
    whole = everything(open_file(WSI / "CMU-1-Small-Region.svs"))
    for share in (0.1, 0.5, 0.9, 0.97, 0.999):
        _, refused = read_or_refused(write(tmp_path / "cut.svs", data[: int(len(data) * share)]), whole)
        assert refused or share >= 0.9  # the end is label and macro image
