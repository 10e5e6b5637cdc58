"""An image in a process of its own: the same pixels, and no file takes us down with it."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from seunet.errors import InputError, RegionError, SeunetError
from seunet.images.facts import describe, facts_of
from seunet.images.image import ArrayImage, Level, Mpp
from seunet.images.open import open_image
from seunet.images.overview import UNREADABLE, best_level, shares, thumbnail
from seunet.images.sandboxed import GuardedImage, ReadingProcess, open_guarded
from support.datasets import he_pixels
from support.mutants import png_bomb, tiff_bomb
from support.tiffs import aperio_bytes, halves, slide_mutants, slide_seeds, spoil_tile, write

RGB = he_pixels(160, 0)


@pytest.fixture(scope="module")
def process() -> Iterator[ReadingProcess]:
    """One process for many images: starting one takes half a second."""
    with ReadingProcess() as one:
        yield one


@pytest.fixture
def slide(tmp_path: Path) -> Path:
    return write(tmp_path / "a.svs", slide_seeds()["aperio jpeg"])


def pid_of(image: GuardedImage) -> int:
    pid = image._process.pid
    assert pid is not None
    return pid


def test_a_guarded_image_is_the_image(process: ReadingProcess, tmp_path: Path) -> None:
    for kind, data in slide_seeds().items():
        path = write(tmp_path / f"{kind}.tif", data)
        with closing(open_image(path)) as plain, closing(open_guarded(path, process=process)) as guarded:
            assert describe(guarded) == describe(plain)
            assert facts_of(describe(plain)) == facts_of(describe(guarded))
            for region in ((0, 0, 0, 160, 160), (0, -7, 90, 31, 99), (len(plain.levels) - 1, 3, 3, 500, 20)):
                assert (guarded.read(*region) == plain.read(*region)).all()


def test_two_images_may_share_a_process(process: ReadingProcess, tmp_path: Path, slide: Path) -> None:
    other = tmp_path / "b.png"
    Pillow.fromarray(RGB).save(other)
    with (
        closing(open_guarded(slide, process=process)) as first,
        closing(open_guarded(other, process=process)) as second,
    ):
        before = first.read(0, 0, 0, 100, 100)
        assert (second.read(0, 0, 0, 160, 160) == RGB).all()
        assert (first.read(0, 0, 0, 100, 100) == before).all()
        assert first.mpp == Mpp(0.499, 0.499, "metadata")


def test_the_users_mpp_reaches_the_other_process(process: ReadingProcess, slide: Path) -> None:
    with closing(open_guarded(slide, user_mpp=0.25, process=process)) as image:
        assert image.mpp == Mpp(0.25, 0.25, "user")
    with pytest.raises(InputError, match="--mpp: nan µm per pixel is outside"):
        open_guarded(slide, user_mpp=math.nan, process=process)


def test_what_cannot_be_opened_is_one_line(process: ReadingProcess, tmp_path: Path) -> None:
    text = write(tmp_path / "a.svs", b"not a slide")
    with pytest.raises(InputError, match=r"^a.svs: not an image or slide of a known format"):
        open_guarded(text, process=process)
    with pytest.raises(InputError, match="No such file"):
        open_guarded(tmp_path / "gone.svs", process=process)
    for data in (png_bomb(20_000, 20_000), png_bomb(2**31 - 1, 3), tiff_bomb(2**31 - 1, 2**31 - 1)):
        began = time.monotonic()
        with pytest.raises(InputError, match="pixels"):
            open_guarded(write(tmp_path / "bomb", data), process=process)
        assert time.monotonic() - began < 1


def test_a_corrupt_tile_costs_its_region(process: ReadingProcess, tmp_path: Path) -> None:
    levels = halves(RGB, 1)
    path = write(tmp_path / "a.svs", spoil_tile(aperio_bytes(levels, "aperio_jp2000_rgb"), 0, 4))
    with closing(open_guarded(path, process=process)) as image:
        pid = process.pid
        with pytest.raises(RegionError, match=r"^a.svs: level 0, 20×20 px at \(70, 70\) cannot be read"):
            image.read(0, 70, 70, 20, 20)
        assert image.read(0, 0, 0, 60, 60).std() > 0
    assert process.pid == pid


def test_a_reader_that_hangs_or_crashes_costs_a_region_and_is_replaced(slide: Path) -> None:
    with closing(open_guarded(slide, limit_seconds=5)) as image:
        whole = image.read(0, 0, 0, 160, 160)
        image._limit_seconds = 0.3
        os.kill(pid_of(image), signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(RegionError, match=r"level 0, 9×9 px at \(1, 2\) cannot be read \(not decoded within 0.3 s"):
            image.read(0, 1, 2, 9, 9)
        assert time.monotonic() - began < 2
        image._limit_seconds = 20
        assert (image.read(0, 0, 0, 160, 160) == whole).all()
        os.kill(pid_of(image), signal.SIGSEGV)
        with pytest.raises(RegionError, match=r"cannot be read \(its decoder crashed \(signal 11\)"):
            image.read(0, 1, 2, 9, 9)
        assert (image.read(0, 0, 0, 160, 160) == whole).all()
        os.kill(pid_of(image), signal.SIGKILL)
        with pytest.raises(RegionError, match=r"cannot be read \(its worker ran out of memory"):
            image.read(0, 1, 2, 9, 9)
        slide.unlink()
        with pytest.raises(RegionError, match="No such file or directory"):
            image.read(0, 1, 2, 9, 9)
        assert image._process.deaths == 3


def test_opening_that_takes_too_long_or_too_much_is_an_input_error(tmp_path: Path, slide: Path) -> None:
    with pytest.raises(InputError, match=r"^a.svs: not decoded within 0.001 s; export it again or leave it out"):
        open_guarded(slide, limit_seconds=0.001)
    with pytest.raises(InputError, match=r"^large.png: takes more memory to open than a reader may use; save it as a"):
        open_guarded(write(tmp_path / "large.png", png_bomb(12_000, 12_000)), limit_bytes=500 << 20)


def test_a_reader_ends_with_its_parent(slide: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from seunet.images.sandboxed import open_guarded\n"
        "image = open_guarded(Path(sys.argv[1])); print(image._process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(slide)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 10
    while _running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _running(pid)


def _running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_mutants_are_read_or_refused_and_the_process_lives(process: ReadingProcess, tmp_path: Path) -> None:
    deaths, said = process.deaths, []
    for _, data in slide_mutants(150, seed=11):
        error = fault(write(tmp_path / "mutant", data), process)
        if error is not None:
            said.append(error)
    assert process.deaths == deaths
    assert 40 < len(said) < 130
    assert all(isinstance(error, InputError) and "\n" not in str(error) for error in said)
    assert process.peak_bytes < 1 << 30


def fault(path: Path, process: ReadingProcess) -> SeunetError | None:
    try:
        with closing(open_guarded(path, limit_seconds=20, process=process)) as image:
            for level in range(len(image.levels)):
                image.read(level, 0, 0, 200, 200)
    except SeunetError as error:
        return error
    return None


# thumbnails


def test_a_thumbnail_is_the_mean_of_what_each_pixel_covers() -> None:
    pixels = he_pixels(96, 3)[:, :72]
    small = thumbnail(ArrayImage(pixels), 24)
    expected = pixels.reshape(24, 4, 18, 4, 3).mean((1, 3))
    assert small.shape == (24, 18, 3)
    assert np.abs(small - expected).max() <= 0.51
    assert (thumbnail(ArrayImage(pixels), 96) == pixels).all()
    assert (thumbnail(ArrayImage(pixels), 5000) == pixels).all()


def test_a_thumbnail_over_many_blocks_keeps_the_mean_and_has_no_seams() -> None:
    ramp = np.linspace(0, 255, 3001)
    pixels = np.repeat(np.rint(ramp).astype(np.uint8)[None, :, None], 1300, axis=0).repeat(3, axis=2)
    small = thumbnail(ArrayImage(pixels), 700)
    assert small.shape == (303, 700, 3)
    edges = (np.arange(700) + 0.5) / 700 * 255
    assert np.abs(small.astype(float) - edges[None, :, None]).max() <= 1.1
    assert abs(small.mean() - pixels.mean()) < 0.5


def test_the_shares_of_every_cell_sum_to_one() -> None:
    total = np.zeros(37)
    for start in range(0, 1000, 64):
        cells, part = shares(start, min(64, 1000 - start), 1000, 37)
        total[cells] += part.sum(axis=1)
        np.testing.assert_allclose(part.sum(axis=0), 37 / 1000, rtol=1e-4)
    np.testing.assert_allclose(total, 1, rtol=1e-5)


def test_the_coarsest_level_that_is_large_enough_is_read() -> None:
    levels = tuple(Level(1000 >> n, 800 >> n, 2.0**n) for n in range(4))
    assert [best_level(levels, px) for px in (2000, 1000, 501, 500, 126, 125, 10)] == [0, 0, 0, 1, 2, 3, 3]


def test_what_cannot_be_read_is_grey_in_a_thumbnail(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", spoil_tile(slide_seeds()["pyramid deflate"], 0, 0))
    with closing(open_image(path)) as image:
        assert (thumbnail(image, 160) == UNREADABLE).all()  # one block
        assert thumbnail(image, 80).std() > 0
