"""`seunet segment` on whole slides: memory by size, kill −9 and again, and real files.

    python -m benchmarks.measure.segmentation.slides [made] [--tissue IMAGE] [--slide FILE]... [--keep FOLDER]

`made`: slides of 10,000² and 40,000² px, a few per cent of them tissue that is laid out of a real image (scikit-image's
immunohistochemistry picture, or IMAGE).  The larger one is also killed at several moments and run again, and must come
out with the bytes of the unbroken run.  `--slide`: a real file, end to end; FOLDER keeps its results to be looked at.
Without arguments: `made`.  What is not measured is kept from the last run if that was of the same commit and weights.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.declare import SKIMAGE, SLIDE, Benchmark
from benchmarks.record import MEASURED, commit, write_results
from benchmarks.watching import Ran, run_seunet
from seunet.models import load, weights_sha256
from seunet.segmentation import HeadwiseNetwork
from support.slides import GLASS, TILE_PX, halved, jpeg_tile, lay_out_slide

BENCHMARK = Benchmark(
    "measure.segmentation.slides",
    ("results/benchmarks/slides.json",),
    10,
    arguments="made --slide CMU-1-Small-Region.svs --slide image.tiff",
    needs=(SLIDE, "a picture", SKIMAGE),
)

Pixels = NDArray[np.uint8]
MPP = 0.252
FIELD_PX = 1024
SIDES_PX = (10_000, 40_000)
FILLED = ((1, 1), (7, 10))
"""Tiles of the default size that are full of tissue, but for a margin, so that their neighbours are not looked at."""
MARGIN_PX = 128
ISLANDS = ((1_000, 30_000, 700, 700), (20_000, 37_500, 600, 900), (39_300, 700, 700, 800))
"""Top, left, height and width of further tissue in px."""
MOST_MIB, MOST_GROWTH_MIB = 2048, 200


def main() -> None:
    """Measure what is asked for and write results/benchmarks/slides.json."""
    asked = parser().parse_args()
    figures = {"weights": weights(asked.model), **kept(asked.model)}
    if asked.made or not asked.slide:
        with tempfile.TemporaryDirectory(dir=asked.scratch) as folder:
            figures["made"] = made_figures(Path(folder), tissue_field(asked.tissue), asked.model, asked.threads)
    real = {row["file"]: row for row in figures.get("real", [])}
    for path in asked.slide:
        real[path.name] = real_figures(path, asked.keep, asked.model, asked.threads)
    figures["real"] = list(real.values())
    print(write_results(BENCHMARK, figures))
    if broken := faults(figures.get("made")):
        sys.exit(f"not as it must be: {'; '.join(broken)}")


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("made", nargs="?", choices=["made"])
    made.add_argument("--tissue", type=Path)
    made.add_argument("--slide", type=Path, action="append", default=[])
    made.add_argument("--keep", type=Path)
    made.add_argument("--scratch", type=Path)
    made.add_argument("--model", default="nuclei")
    made.add_argument("--threads", type=int, default=2)
    return made


def weights(model: str) -> str:
    """Which weights were measured."""
    return weights_sha256(load(model))


def kept(model: str) -> dict[str, Any]:
    """What still holds of the last run."""
    path = MEASURED / "slides.json"
    last = json.loads(path.read_text()) if path.is_file() else {}
    if last.get("commit") != commit() or last.get("weights") != weights(model):
        return {}
    return {name: last[name] for name in ("made", "real") if name in last}


def tissue_field(path: Path | None) -> Pixels:
    """Real tissue without a seam: the middle of the picture and its mirror images."""
    if path is None:
        import skimage

        path = Path(skimage.__file__).parent / "data" / "ihc.png"
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    half = FIELD_PX // 2
    top, left = ((length - half) // 2 for length in pixels.shape[:2])
    part = pixels[top : top + half, left : left + half]
    upper = np.concatenate([part, part[:, ::-1]], axis=1)
    return np.ascontiguousarray(np.concatenate([upper, upper[::-1]]))


def tissue_places(model: str) -> list[tuple[int, int, int, int]]:
    """Where the tissue lies: top, left, height, width."""
    height, width = HeadwiseNetwork(load(model)).default_tile
    inner = height - 2 * MARGIN_PX, width - 2 * MARGIN_PX
    filled = [(row * height + MARGIN_PX, column * width + MARGIN_PX, *inner) for row, column in FILLED]
    return [*filled, *ISLANDS]


class SparseSlide:
    """Glass, and tissue at some places: the tiles of a slide of any size."""

    def __init__(self, field: Pixels, places: list[tuple[int, int, int, int]]) -> None:
        self._fields, self._places = [field], places
        self._glass = jpeg_tile(np.full((TILE_PX, TILE_PX, 3), GLASS, dtype=np.uint8))

    def tile(self, level: int, row: int, column: int) -> bytes:
        """An encoded tile."""
        while len(self._fields) <= level:
            self._fields.append(halved(self._fields[-1]))
        field, pixels = self._fields[level], None
        for place in self._places:
            top, left, height, width = (length >> level for length in place)
            rows = np.arange(max(top, row * TILE_PX), min(top + height, (row + 1) * TILE_PX))
            columns = np.arange(max(left, column * TILE_PX), min(left + width, (column + 1) * TILE_PX))
            if len(rows) and len(columns):
                if pixels is None:
                    pixels = np.full((TILE_PX, TILE_PX, 3), GLASS, dtype=np.uint8)
                inside = np.ix_(rows - row * TILE_PX, columns - column * TILE_PX)
                pixels[inside] = field[np.ix_(rows % len(field), columns % len(field))]
        return self._glass if pixels is None else jpeg_tile(pixels)


def made_figures(folder: Path, field: Pixels, model: str, threads: int) -> dict[str, Any]:
    """Both sizes unbroken, then the larger one killed and resumed."""
    rows, digests = [], {}
    sparse = SparseSlide(field, tissue_places(model))
    for side_px in SIDES_PX:
        slide = lay_out_slide(folder / f"made-{side_px}.tif", side_px, sparse.tile, MPP)
        options = (slide, "-m", model, "--no-progress")
        ran = run_seunet("segment", *options, "-o", folder / "whole", threads=threads)
        result = folder / "whole" / slide.stem
        rows.append({"side_px": side_px, **told(ran, result)})
        digests[side_px] = digests_of(result)
        print(rows[-1], flush=True)
    broken = folder / "broken"
    kills, attempts = killed_and_resumed(options, broken, broken / slide.stem, threads)
    same = digests_of(broken / slide.stem) == digests[SIDES_PX[-1]]
    return {
        "threads": threads,
        "sizes": rows,
        "growth_mib": rows[-1]["peak_mib"] - rows[0]["peak_mib"],
        "kills": kills,
        "peak_mib_of_killed_and_resumed": max(ran.peak_mib for ran in attempts),
        "byte_identical": same,
        "files_compared": sorted(digests[SIDES_PX[-1]]),
    }


def told(ran: Ran, result: Path) -> dict[str, Any]:
    """What a run took and found."""
    if ran.code not in (0, 5):
        raise SystemExit(f"exit code {ran.code}: {ran.err}")
    run = json.loads((result / "run.json").read_text())
    analysed = sum(run["results"]["pixels"].values()) - run["results"]["skipped_px"]
    return {
        "seconds": ran.seconds,
        "peak_mib": ran.peak_mib,
        "exit_code": ran.code,
        "notes": [line for line in ran.err.splitlines() if line],
        "magnification": run["magnification"]["reason"],
        "megapixels": round(sum(run["results"]["pixels"].values()) / 1e6, 1),
        "megapixels_analysed": round(analysed / 1e6, 1),
        "tiles": run["clock"]["tiles"],
        "objects": run["results"]["objects"],
        "heads_won": run["results"]["heads_won"],
        "seconds_by_part": run["clock"]["seconds_by_part"],
    }


def digests_of(result: Path) -> dict[str, str]:
    """SHA-256 of every file; of run.json without its clock."""
    found = {}
    for path in sorted(result.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.name == "run.json":
                document = json.loads(data)
                del document["clock"]
                data = json.dumps(document, sort_keys=True).encode()
            found[str(path.relative_to(result))] = hashlib.sha256(data).hexdigest()
    return found


def killed_and_resumed(options: tuple[object, ...], out: Path, result: Path, threads: int) -> tuple[Any, list[Ran]]:
    """Kill the run at each of the moments, start it again, and let the last one end."""
    kills, attempts = [], []
    for name, moment in moments(result).items():
        ran = run_seunet("segment", *options, "-o", out, kill_when=moment, threads=threads)
        attempts.append(ran)
        kills.append({"moment": name, "killed": ran.code == -9, "tiles_done": tiles_done(result)})
        print(kills[-1], flush=True)
    attempts.append(run_seunet("segment", *options, "-o", out, threads=threads))
    if attempts[-1].code:
        raise SystemExit(f"exit code {attempts[-1].code}: {attempts[-1].err}")
    return kills, attempts


def moments(result: Path) -> dict[str, Callable[[], bool]]:
    """When to kill: in the first tile, between tiles, within one, and while each large file is written."""
    began: list[float] = []

    def seconds_after(condition: Callable[[], bool], seconds: float) -> Callable[[], bool]:
        def moment() -> bool:
            if condition() and not began:
                began.append(time.monotonic())
            due = bool(began) and time.monotonic() - began[0] > seconds
            if due:
                began.clear()
            return due

        return moment

    def being_written(name: str) -> Callable[[], bool]:
        return lambda: any(True for _ in result.glob(f".{name}*.part"))

    return {
        "in the first tile": seconds_after(lambda: (result / ".work" / "ledger.jsonl").is_file(), 5),
        "when two tiles are done": lambda: tiles_done(result) >= 2,
        "ten seconds after the third tile": seconds_after(lambda: tiles_done(result) >= 3, 10),
        "writing objects.geojson": being_written("objects.geojson"),
        "writing the levels of labels.tif": being_written("levels"),
    }


def tiles_done(result: Path) -> int:
    """Lines of the ledger below the first; 0 if there is none."""
    try:
        return max(0, (result / ".work" / "ledger.jsonl").read_bytes().count(b"\n") - 1)
    except OSError:
        return 0


def real_figures(path: Path, keep: Path | None, model: str, threads: int) -> dict[str, Any]:
    """A real file, end to end."""
    with tempfile.TemporaryDirectory() as scratch:
        out = keep or Path(scratch)
        ran = run_seunet("segment", path, "-o", out, "-m", model, "--no-progress", "--overwrite", threads=threads)
        (result,) = (child for child in out.iterdir() if child.is_dir() and path.stem.startswith(child.name))
        row = {"file": path.name, "threads": threads, **told(ran, result)}
    print(row, flush=True)
    return row


def faults(made: dict[str, Any] | None) -> list[str]:
    """What is not as issue 7 wants it."""
    if made is None:
        return []
    found = []
    if made["growth_mib"] > MOST_GROWTH_MIB:
        found.append(f"memory grows by {made['growth_mib']} MiB")
    most = max(made["peak_mib_of_killed_and_resumed"], *(row["peak_mib"] for row in made["sizes"]))
    if most > MOST_MIB:
        found.append(f"{most} MiB at most")
    if not made["byte_identical"]:
        found.append("a run that was killed and resumed has other bytes")
    if not all(kill["killed"] for kill in made["kills"]):
        found.append("a kill came too late")
    return found


if __name__ == "__main__":
    main()
