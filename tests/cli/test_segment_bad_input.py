"""Bad input: one line each, the right exit code, and the other inputs are still done."""

from __future__ import annotations

import csv
import errno
import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from support.cli import seunet
from support.tiffs import aperio_bytes, tiff_bytes
from tests.cli.test_segment import result_bytes
from tests.support.tissue_model import discs

DISCS = discs(64, 80, np.random.default_rng(2))
NOT_BELIEVED = "is outside 0.05–20; not believed: pass --mpp if it is known"


def encoded(pixels: NDArray[np.generic], kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def halved(data: bytes) -> bytes:
    return data[: len(data) // 2]


def scanned(mpp: str) -> Callable[[], bytes]:
    return lambda: aperio_bytes([np.tile(DISCS, (2, 2, 1))], mpp=mpp)


REFUSED = {
    "none.png": (
        lambda: b"hello",
        "not an image or slide of a known format; give PNG, JPEG, BMP, WebP, TIFF or a scanner's file",
    ),
    "empty.tif": (lambda: b"", "is empty; copy or export it again"),
    "cut.png": (lambda: halved(encoded(DISCS)), "broken or cut short (image file is truncated)"),
    "short.jpg": (lambda: halved(encoded(DISCS, "JPEG")), "broken or cut short (image file is truncated"),
    "float.tif": (lambda: tiff_bytes([DISCS.astype(np.float32)]), "32-bit floating-point samples; convert it to 8-bit"),
}
NOTED = {
    "zero.svs": (scanned("0"), f"Aperio MPP: 0 µm per pixel {NOT_BELIEVED}"),
    "negative.svs": (scanned("-0.25"), f"Aperio MPP: -0.25 µm per pixel {NOT_BELIEVED}"),
    "nan.svs": (scanned("nan"), f"Aperio MPP: nan µm per pixel {NOT_BELIEVED}"),
    "absurd.svs": (scanned("1e9"), f"Aperio MPP: 1e+09 µm per pixel {NOT_BELIEVED}"),
    "oblong.tif": (
        lambda: tiff_bytes([DISCS], resolution=(40_000, 20_000), resolutionunit="CENTIMETER"),
        "pixels of 0.25×0.5 µm are too oblong; not believed: pass --mpp",
    ),
    "sixteen.tif": (lambda: tiff_bytes([DISCS.astype(np.uint16) << 8]), "16 bits per channel: the upper 8 are used"),
    "grey.png": (lambda: encoded(DISCS[..., 0]), "grey image: the same value in red, green and blue"),
    "rgba.png": (
        lambda: encoded(np.dstack([DISCS, np.full(DISCS.shape[:2], 250, np.uint8)])),
        "transparency laid on white",
    ),
}
SILENT = {
    "good.png": lambda: encoded(DISCS),
    "pixel.png": lambda: encoded(DISCS[:1, :1]),  # smaller than any filter
    "thin.png": lambda: encoded(DISCS[:3]),
}


def test_every_bad_input_is_a_line_and_the_others_are_done(disc_model: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for name, (make, _) in {**REFUSED, **NOTED}.items():
        (folder / name).write_bytes(make())
    for name, make_good in SILENT.items():
        (folder / name).write_bytes(make_good())
    (folder / "good.tif").write_bytes(tiff_bytes([DISCS]))  # its results would go where those of good.png go
    ran = seunet("segment", folder, "-o", out, "-m", disc_model, "--no-progress")
    assert ran.code == 5
    lines = ran.err.splitlines()
    for name, (_, line) in REFUSED.items():
        assert [text for text in lines if text.startswith(f"seunet: {name}: {line}")], (name, ran.err)
    for name, (_, line) in NOTED.items():
        assert [text for text in lines if text.startswith(f"note: {name}") and line in text], (name, ran.err)
    collision = f"seunet: {folder / 'good.tif'}: its results would go to good/ like those of {folder / 'good.png'}"
    assert [text for text in lines if text.startswith(collision)]
    power = sum("is not turned into one" in text for text in lines)
    doubted = sum("of what was analysed" in text for text in lines)  # all of one is dark
    assert doubted == 1
    assert len(lines) == len(REFUSED) + len(NOTED) + 1 + power + doubted
    assert "Traceback" not in ran.err
    done = sorted({Path(name).stem for name in (*NOTED, *SILENT)})
    assert [Path(text.split(": ")[0]).name for text in ran.out.splitlines()[:-1]] == done
    assert ran.out.splitlines()[-1] == f"{len(done)} done, {len(REFUSED) + 1} failed"
    assert sorted(path.name for path in out.iterdir()) == sorted([*done, "summary.csv"])
    same = [(out / name / "labels.tif").read_bytes() == (out / "good" / "labels.tif").read_bytes() for name in done]
    assert [name for name, is_same in zip(done, same, strict=True) if is_same] == ["good", "oblong", "sixteen"]


@pytest.mark.parametrize("name", REFUSED)
def test_an_input_that_is_alone_and_cannot_be_read_is_exit_code_2(name: str, disc_model: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(REFUSED[name][0]())
    ran = seunet("segment", tmp_path / name, "-o", tmp_path / "out", "-m", disc_model, "--no-progress")
    assert (ran.code, len(ran.err.splitlines()), ran.out) == (2, 1, "")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["summary.csv"]
    (row,) = csv.DictReader((tmp_path / "out" / "summary.csv").read_text().splitlines())
    assert (row["name"], row["status"]) == (Path(name).stem, "failed")
    assert ran.err == f"seunet: {row['error']}\n"


def test_a_slide_cut_short_is_done_as_far_as_it_goes_and_its_areas_add_up(disc_model: Path, tmp_path: Path) -> None:
    whole = aperio_bytes([np.tile(DISCS, (10, 8, 1))])
    (tmp_path / "cut.svs").write_bytes(whole[: len(whole) * 2 // 3])
    ran = seunet("segment", tmp_path / "cut.svs", "-o", tmp_path / "out", "-m", disc_model, "--no-progress")
    assert ran.code == 5
    assert "the file is not whole: copy it again" in ran.err.splitlines()[0]
    assert all(line.startswith("note: cut.svs: ") for line in ran.err.splitlines())
    rows = (tmp_path / "out" / "cut" / "counts.csv").read_text().splitlines()
    areas = {row.split(",")[1]: float(row.split(",")[3]) for row in rows[1:]}
    assert min(areas.values()) >= 0
    assert areas["analysed"] > 0
    assert areas["not analysed"] > 0
    assert areas["skipped as background"] == 0
    assert areas["analysed"] == pytest.approx(areas["background"] + areas["nucleus"])


@pytest.mark.parametrize("call", ["pwrite", "replace"])
def test_a_full_disk_ends_the_run_in_one_line_and_the_same_command_goes_on(
    call: str, disc_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(encoded(DISCS))
    command = ("segment", tmp_path / "a.png", tmp_path / "b.png", "-m", disc_model, "--no-progress", "-o")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)  # while tiles are written, or when a file is put in its place
        ran = seunet(*command, tmp_path / "out")
    assert (ran.code, len(ran.err.splitlines()), ran.out) == (3, 1, "")
    assert "No space left on device" in ran.err
    assert not (tmp_path / "out" / "b").exists()
    assert seunet(*command, tmp_path / "out").code == 0
    assert seunet(*command, tmp_path / "whole").code == 0
    assert result_bytes(tmp_path / "out" / "a") == result_bytes(tmp_path / "whole" / "a")
