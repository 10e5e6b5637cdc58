"""Damaged images and slides through the guarded reader, as a user's files go."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from seunet.errors import InputError, RegionError, SeunetError
from seunet.images import Image, ReadingProcess, RgbArray, open_guarded, open_image
from seunet.memory import keep_freed_memory
from support.mutants import png_bomb, tiff_bomb
from support.real_data import real_data
from support.slides import make_slide
from support.tiffs import slide_mutants, slide_seeds

LIMIT_SECONDS = 20.0
LIMIT_BYTES = 1 << 30
BOMB_SECONDS = 1.0
REGION_PX = 2048


def mutant_figures(scratch: Path, divisor: int) -> dict[str, Any]:
    """Files with damaged bytes and directory entries: opened and read at every level, or refused in one line."""
    total: Counter[str] = Counter(read=0, refused=0, refused_regions=0, tracebacks=0, crashes=0, killed_for_time=0)
    total.update(hangs=0, not_one_line=0, not_exit_2=0)
    slowest = 0.0
    with ReadingProcess() as process:
        for _, data in slide_mutants(10_000 // divisor, seed=2026):
            path = scratch / "mutant"
            path.write_bytes(data)
            began = time.monotonic()
            error = _fault(path, process)
            seconds = time.monotonic() - began
            slowest = max(slowest, seconds)
            total["files"] += 1
            total["hangs"] += seconds > LIMIT_SECONDS + 5
            total.update(_kind(error))
        peak = process.peak_bytes
    measured = {"slowest_seconds": round(slowest, 2), "peak_MiB": peak >> 20, "over_memory": int(peak > LIMIT_BYTES)}
    return dict(total) | measured


def _fault(path: Path, process: ReadingProcess) -> SeunetError | None:
    try:
        with closing(open_guarded(path, limit_seconds=LIMIT_SECONDS, process=process)) as image:
            for level in range(len(image.levels)):
                image.read(level, 0, 0, 256, 256)
    except SeunetError as error:
        return error
    return None


def _kind(error: SeunetError | None) -> Counter[str]:
    if error is None:
        return Counter(read=1)
    line = str(error)
    return Counter(
        refused=not isinstance(error, RegionError),
        refused_regions=isinstance(error, RegionError),
        tracebacks="ended unexpectedly" in line,
        crashes="decoder crashed" in line,
        killed_for_time="not decoded within" in line,
        not_one_line="\n" in line,
        not_exit_2=error.exit_code != 2,
    )


def cut_figures(scratch: Path, divisor: int) -> dict[str, Any]:
    """Files that end too early: every region is refused or has the pixels of the whole file."""
    total: Counter[str] = Counter(files=0, refused=0, regions_read=0, regions_refused=0, false_pixels=0)
    sources = dict(slide_seeds())
    data = real_data()
    if data is not None:
        sources["real slide"] = (data / "wsi" / "CMU-1-Small-Region.svs").read_bytes()
    with ReadingProcess() as process:
        for content in sources.values():
            (scratch / "whole").write_bytes(content)
            with closing(open_image(scratch / "whole")) as image:
                whole = image.read(0, 0, 0, *image.levels[0][:2])
            for cut in np.linspace(0, len(content) - 1, 60 // divisor).astype(int):
                (scratch / "cut").write_bytes(content[:cut])
                total["files"] += 1
                total.update(_cut_outcome(scratch / "cut", whole, process))
    return {"kinds": len(sources), **total}


def _cut_outcome(path: Path, whole: RgbArray, process: ReadingProcess) -> Counter[str]:
    try:
        image = open_guarded(path, limit_seconds=LIMIT_SECONDS, process=process)
    except InputError:
        return Counter(refused=1)
    out: Counter[str] = Counter()
    with closing(image):
        if image.levels[0][:2] != (whole.shape[1], whole.shape[0]):
            return Counter(refused=1)  # another page is all that is left: the user is told its size
        for x, y, width_px, height_px in _quarters(whole):
            try:
                pixels = image.read(0, x, y, width_px, height_px)
            except RegionError:
                out["regions_refused"] += 1
                continue
            out["regions_read"] += 1
            out["false_pixels"] += bool((pixels != whole[y : y + height_px, x : x + width_px]).any())
    return out


def _quarters(whole: RgbArray) -> Iterator[tuple[int, int, int, int]]:
    height, width = whole.shape[:2]
    step = -(-max(height, width) // 4)
    for y in range(0, height, step):
        for x in range(0, width, step):
            yield x, y, min(step, width - x), min(step, height - y)


def bomb_figures(scratch: Path, divisor: int) -> dict[str, Any]:
    """Small files that claim many pixels, refused by a process that is already running."""
    slowest, accepted = 0.0, 0
    sizes = [(20_000, 20_000), (2**31 - 1, 2**31 - 1), (2**31 - 1, 3), (16_000, 2**31 - 1)]
    with ReadingProcess() as process:
        (scratch / "sound").write_bytes(slide_seeds()["pyramid jpeg"])
        open_guarded(scratch / "sound", process=process).close()
        bombs = [bomb(*size) for size in sizes for bomb in (png_bomb, tiff_bomb)]
        for data in bombs:
            (scratch / "bomb").write_bytes(data)
            began = time.monotonic()
            accepted += _fault(scratch / "bomb", process) is None
            slowest = max(slowest, time.monotonic() - began)
        peak = process.peak_bytes
    return {
        "files": len(bombs),
        "not_refused": accepted,
        "slowest_seconds": round(slowest, 3),
        "over_1_second": int(slowest > BOMB_SECONDS),
        "peak_MiB": peak >> 20,
    }


def guard_figures(scratch: Path, divisor: int) -> dict[str, Any]:
    """What the other process costs: regions of 2048² of JPEG tiles, read by turns with and without it.

    Judged by processor time of both processes together: on a machine that does other work, the wall clock also shows
    how long a process that has work must wait for its turn.
    """
    path = make_slide(scratch / "slide.tif", 6 * REGION_PX, seed=1)
    rounds = max(2, 10 // divisor)
    keep_freed_memory()  # as `seunet` does
    wall, spent = {"direct": 0.0, "guarded": 0.0}, {"direct": 0.0, "guarded": 0.0}
    with ReadingProcess() as process, closing(open_image(path)) as near:
        far = open_guarded(path, process=process)
        images: dict[str, Image] = {"direct": near, "guarded": far}
        for _ in range(rounds):
            for name, image in images.items():
                before, began = _processor_seconds(process), time.perf_counter()
                _read_all(image)
                wall[name] += time.perf_counter() - began
                spent[name] += _processor_seconds(process) - before
        far.close()
    each = {
        f"{name}_{kind}_ms": round(1000 * seconds[name] / rounds / 12, 1)
        for kind, seconds in (("processor", spent), ("wall", wall))
        for name in seconds
    }
    cost = spent["guarded"] / spent["direct"] - 1
    return {
        "region_px": REGION_PX,
        **each,
        "cost_percent": round(100 * cost, 1),
        "over_20_percent": int(cost > 0.2),
    }


def _processor_seconds(process: ReadingProcess) -> float:
    """Of this process and the reading one."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _read_all(image: Image) -> None:
    """The 12 regions in the middle third, tissue and islands; no tile is still in memory when it is its turn again."""
    for y in range(0, 6 * REGION_PX, REGION_PX):
        for x in range(2 * REGION_PX, 4 * REGION_PX, REGION_PX):
            image.read(0, x, y, REGION_PX, REGION_PX)
