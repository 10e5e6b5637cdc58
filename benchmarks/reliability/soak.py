"""A long run in one process: memory stays level, and no file handle, thread or process is left.

    python -m benchmarks.reliability.soak                  # 500 images and 20 large slides: make soak
    python -m benchmarks.reliability.soak --divisor 10     # a tenth of both, of a quarter of the side

After each input: resident memory, open files, threads and child processes of this process.  They are compared with
what there was after a tenth of the images, when all that is kept for the next ones is there.
"""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.declare import Benchmark
from benchmarks.reliability.zeros import measure_rows, parser_with_divisor
from benchmarks.watching import tree_kib
from seunet.images import pillow_codec
from seunet.memory import keep_freed_memory
from seunet.segmentation import Choices, Item, segment_file
from support.slides import make_slide, tissue_field

BENCHMARK = Benchmark("reliability.soak", ("results/benchmarks/soak.json",), 60)

IMAGES, IMAGE_PX = 500, 512
SLIDES, SLIDE_PX = 20, 8192
LEVEL_MIB = 50
"""What memory may grow by."""


class Seen(NamedTuple):
    """What this process holds."""

    mib: int
    files: int
    threads: int
    children: int


def look() -> Seen:
    gc.collect()
    tasks = list(Path("/proc/self/task").iterdir())
    children = [child for task in tasks for child in (task / "children").read_text().split()]
    own_kib = tree_kib(os.getpid()) - sum(tree_kib(int(child)) for child in children)
    # The folder that is being listed is open as well.
    return Seen(own_kib >> 10, len(os.listdir("/proc/self/fd")) - 1, len(tasks), len(children))


def made_images(folder: Path, count: int, side_px: int) -> Iterator[Item]:
    """Each with tissue of its own; sizes differ, as those of a lab's crops do."""
    random = np.random.default_rng(0)
    field = tissue_field(2 * side_px, 1)
    for number in range(count):
        x, y = random.integers(0, side_px // 2, 2)
        height, width = side_px + random.integers(-side_px // 4, side_px // 4 + 1, 2)
        path = folder / f"image-{number:03}.png"
        path.write_bytes(pillow_codec.encode_png(np.ascontiguousarray(field[y : y + height, x : x + width])))
        yield Item(path, 0.25, path.stem)


def made_slides(folder: Path, count: int, side_px: int) -> Iterator[Item]:
    for number in range(count):
        path = folder / f"slide-{number:03}.tif"
        make_slide(path, side_px)
        yield Item(path, 0.25, path.stem)


def rows(scratch: Path, divisor: int) -> dict[str, Any]:
    """Images first, then slides, all in this process; results and inputs are removed as they come."""
    keep_freed_memory()
    smaller = 1 if divisor == 1 else 4
    counts = max(10, IMAGES // divisor), max(2, SLIDES // divisor)
    sides = IMAGE_PX // smaller, SLIDE_PX // smaller
    inputs = chain(made_images(scratch, counts[0], sides[0]), made_slides(scratch, counts[1], sides[1]))
    seen: list[Seen] = []
    for item in inputs:
        result = segment_file(item, scratch / "out", Choices(model="nuclei"))
        assert result.state == "done", result.lines
        item.path.unlink()
        seen.append(look())
    early, images, last = seen[counts[0] // 10 - 1], seen[counts[0] - 1], seen[-1]
    first_slide = seen[counts[0]]
    return {
        "inputs": {"images": counts[0], "image_px": sides[0], "slides": counts[1], "slide_px": sides[1]},
        "memory_mib": {
            f"after image {counts[0] // 10}": early.mib,
            f"after image {counts[0]}": images.mib,
            "after slide 1": first_slide.mib,
            f"after slide {counts[1]}": last.mib,
            "above_the_level": max(0, images.mib - early.mib - LEVEL_MIB),
            "above_the_level_of_slides": max(0, last.mib - first_slide.mib - LEVEL_MIB),
        },
        "left": {
            "files": max(0, last.files - early.files),
            "threads": max(0, last.threads - early.threads),
            "processes": max(0, last.children - early.children),
        },
    }


def parser() -> argparse.ArgumentParser:
    return parser_with_divisor(BENCHMARK, __doc__)


if __name__ == "__main__":
    left = {"files", "threads", "processes"}
    measure_rows(BENCHMARK, parser(), rows, left | {"above_the_level", "above_the_level_of_slides"})
