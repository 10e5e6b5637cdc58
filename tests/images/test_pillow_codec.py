"""Decoding: what is accepted, what is refused and how."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from seunet.errors import InputError
from seunet.images.pillow_codec import _opened, decode_codes, decode_rgb, encode_png, encode_png_quickly, pixel_sha256
from seunet.storage import read_limited, sha256
from support.datasets import he_pixels
from support.mutants import image_mutants, image_seeds, png_bomb, raw_png, tiff_bomb

RGB = he_pixels(32, 0)


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, format=kind, **options)
    return out.getvalue()


def refuse(data: bytes, sentence: str, *, mask: bool = False) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        (decode_codes if mask else decode_rgb)(data, "a.tif")


@pytest.mark.parametrize(
    "kind",
    ["png", "tiff raw", "tiff deflate", "tiff lzw", "tiff packbits", "tiff tiled", "tiff tiled deflate"],
)
def test_every_lossless_kind_gives_the_same_pixels(kind: str) -> None:
    assert (decode_rgb(image_seeds()[kind], "a").pixels == RGB).all()


def test_tiled_tiffs_are_tiled_in_this_test() -> None:
    with Image.open(io.BytesIO(image_seeds()["tiff tiled deflate"])) as image:
        assert image.tag_v2[322] == 16  # type: ignore[attr-defined]


def test_opaque_alpha_and_palette_are_accepted_and_recorded() -> None:
    rgba = decode_rgb(saved(Image.fromarray(RGB).convert("RGBA"), "PNG"), "a.png")
    assert (rgba.pixels == RGB).all()
    assert rgba.decisions == ["opaque alpha channel dropped"]
    palette = Image.fromarray(RGB).quantize(16)
    expanded = decode_rgb(saved(palette, "PNG"), "a.png")
    assert (expanded.pixels == np.asarray(palette.convert("RGB"))).all()
    assert expanded.decisions == ["palette expanded to RGB"]


def test_what_would_change_silently_is_refused_by_name() -> None:
    see_through = np.dstack([RGB, np.full((32, 32), 100, dtype=np.uint8)])
    image = Image.fromarray(RGB)
    grey16 = Image.fromarray(np.arange(1024, dtype=np.uint16).reshape(32, 32))
    refuse(saved(Image.fromarray(see_through), "PNG"), "a.tif: has transparent pixels; flatten it on white")
    refuse(saved(image.convert("CMYK"), "TIFF"), "a.tif: colour mode CMYK; an H&E image is 8-bit RGB")
    refuse(
        saved(image.convert("L"), "TIFF"),
        "a.tif: colour mode grey; an H&E image is 8-bit RGB: convert it first",
    )
    refuse(saved(image.convert("LA"), "PNG"), "a.tif: colour mode grey with alpha; an H&E image is 8-bit RGB")
    refuse(saved(image.convert("1"), "TIFF"), "a.tif: colour mode 1-bit; an H&E image is 8-bit RGB")
    refuse(saved(grey16, "TIFF"), "a.tif: 16 bits per channel; convert it to 8-bit RGB first")
    refuse(saved(image.convert("F"), "TIFF"), "a.tif: 32 bits per channel; convert it to 8-bit RGB first")
    refuse(
        raw_png(4, 4, 16, (b"\x00" + bytes(24)) * 4),
        "a.tif: 16 bits per channel; convert it to 8-bit RGB first",
    )


def test_masks_are_read_as_codes_from_every_whole_number_kind() -> None:
    codes = np.arange(1024, dtype=np.uint16).reshape(32, 32)
    assert (decode_codes(saved(Image.fromarray(codes), "PNG"), "a").pixels == codes).all()
    assert (decode_codes(saved(Image.fromarray(codes), "TIFF"), "a").pixels == codes).all()
    small = (codes % 7).astype(np.uint8)
    assert (decode_codes(encode_png(small, [[n, 0, 0] for n in range(256)]), "a").pixels == small).all()
    grey = decode_codes(saved(Image.fromarray(np.dstack([small] * 3)), "PNG"), "a")
    assert (grey.pixels == small).all()
    assert grey.decisions == ["three equal channels read as one"]
    bits = decode_codes(saved(Image.fromarray(codes % 2 == 1), "PNG"), "a")
    assert (bits.pixels == codes % 2).all()
    assert bits.decisions == ["1-bit mask read as codes 0 and 1"]


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (5, 1), (37, 53)])
def test_a_png_that_is_packed_quickly_has_the_pixels_and_is_read_by_others(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    pixels[size[0] // 2 :] = 200
    data = encode_png_quickly(pixels[::-1])
    assert (decode_rgb(data, "a").pixels == pixels[::-1]).all()
    assert (cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB) == pixels[::-1]).all()


def test_masks_that_are_no_codes_are_refused() -> None:
    refuse(saved(Image.fromarray(RGB), "PNG"), "a.tif: colour mode RGB; a mask has one channel", mask=True)
    refuse(saved(Image.fromarray(RGB), "JPEG"), "a.tif: a JPEG cannot hold a mask (its codes blur)", mask=True)
    negative = Image.fromarray(np.full((4, 4), -3, dtype=np.int32))
    refuse(saved(negative, "TIFF"), "a.tif: code -3 is negative; codes are 0 or more", mask=True)


def test_foreign_cut_and_many_paged_files_are_refused() -> None:
    refuse(b"PK\x03\x04rest", "a.tif: is a zip archive; extract it first")
    refuse(b"hello", "a.tif: not a readable PNG, TIFF or JPEG (")
    refuse(b"", "a.tif: not a readable PNG, TIFF or JPEG (")
    refuse(image_seeds()["png"][:-400], "a.tif: broken or cut short (")
    two = saved(Image.fromarray(RGB), "TIFF", save_all=True, append_images=[Image.fromarray(RGB)])
    refuse(two, "a.tif: holds 2 pages; save the one that is meant as a file of its own")


@pytest.mark.parametrize("bomb", [png_bomb, tiff_bomb])
@pytest.mark.parametrize("size", [(20_000, 20_000), (2**31 - 1, 2**31 - 1), (2**31 - 1, 3)])
def test_a_bomb_is_refused_within_a_second(bomb: Callable[[int, int], bytes], size: tuple[int, int]) -> None:
    started = time.monotonic()
    with pytest.raises(InputError, match=r"pixels; cut it into smaller images|not a readable PNG, TIFF or JPEG"):
        decode_rgb(bomb(*size), "a")
    assert time.monotonic() - started < 1


def test_size_is_known_from_the_header_alone() -> None:
    assert _opened(png_bomb(1000, 700), "a").size == (1000, 700)


def test_the_limit_on_pixels_is_the_one_that_is_said() -> None:
    assert _opened(png_bomb(16_384, 16_384), "a").size == (16_384, 16_384)
    refuse(
        png_bomb(16_385, 16_384),
        "a.tif: 16385×16384 is more than 268,435,456 pixels; cut it into smaller images",
    )
    refuse(png_bomb(40_000, 40_000), "a.tif: more than 268,435,456 pixels; cut it into smaller images")


def test_a_file_beyond_its_limit_or_out_of_reach_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(100))
    with pytest.raises(InputError, match=r"a: larger than 99 bytes; it is not the file meant, or must be split"):
        read_limited(tmp_path / "a", 99)
    with pytest.raises(InputError, match=r"b: cannot be read \(No such file or directory\); check the path"):
        read_limited(tmp_path / "b", 99)


def test_the_pixel_hash_is_that_of_the_picture_not_of_the_file() -> None:
    files = [image_seeds()[kind] for kind in ("png", "tiff lzw")]
    assert len({sha256(data) for data in files}) == 2
    assert len({pixel_sha256(decode_rgb(data, "a").pixels) for data in files}) == 1
    assert pixel_sha256(RGB) != pixel_sha256(RGB.reshape(16, 64, 3))


def test_six_hundred_mutants_are_read_or_refused_in_one_line() -> None:
    mutants = [data for _, data in image_mutants(600, seed=0)]
    lines = [line for data in mutants for line in (refusal(decode_rgb, data), refusal(decode_codes, data)) if line]
    assert len(lines) > 300
    assert all("\n" not in line and line.startswith("a.tif: ") for line in lines)


def refusal(decode: Callable[[bytes, str], object], data: bytes) -> str:
    try:
        decode(data, "a.tif")
    except InputError as error:
        return str(error)
    return ""


def test_reading_a_file_of_unknown_size_takes_all_of_it_and_no_more_memory_than_it_has(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1000)
    assert read_limited(tmp_path / "a", 1000) == b"x" * 1000
    # More than any machine has: it is not reserved.
    assert read_limited(tmp_path / "a", 1 << 60) == b"x" * 1000
    with pytest.raises(InputError, match=r"a: larger than 999 bytes; it is not the file meant, or must be split"):
        read_limited(tmp_path / "a", 999)
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as other:
        written = other.submit((tmp_path / "pipe").write_bytes, b"y" * 5000)
        assert read_limited(tmp_path / "pipe", 10_000) == b"y" * 5000
        assert written.result() == 5000
