"""A slide of 40,000 × 40,000 pixels with 500,000 objects in `seunet view`, and how its figures grow from smaller ones.

    python -m benchmarks.measure.viewer.slide

In headless Chromium without a graphics card: the first view, tiles, frames per second while outlines are panned; and
the memory of the server with all its processes.  Times of the clock, and of the processors: those are the same on a
machine that has other work.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Page, sync_playwright

from benchmarks.declare import Benchmark
from benchmarks.measure.viewer.clocks import PageClock, Watched
from benchmarks.record import write_results
from seunet.results import Frame
from seunet.results import write_results as write_files
from support.planes import discs
from support.slides import make_slide

BENCHMARK = Benchmark("measure.viewer.slide", ("results/benchmarks/viewer.json",), 10)

SIDES_PX = (10_000, 20_000, 40_000)
BLOCK_PX, STEP_PX = 1000, 55
TILES = 200
QUANTILES = {"median": 0.5, "p95": 0.95}
PAN_SECONDS = 4
FRAME = Frame(1.0, 0, 0, 0.25, ("background", "nucleus"), ((0, 0, 0), (255, 214, 64)))
GO = """async ([zoom]) => {
  const pane = window.seunet.pane, viewport = pane.osd.viewport, width = pane.facts.width;
  viewport.zoomTo(zoom * width / pane.place.clientWidth, null, true);
  viewport.panTo(new OpenSeadragon.Point(0.4, 0.4), true);
  do await new Promise(done => setTimeout(done, 500)); while (!pane.settled());
}"""
PAN = """async ([seconds, zoom]) => {
  const viewport = window.seunet.pane.osd.viewport;
  const step = 8 / zoom / window.seunet.pane.facts.width, times = [];
  return await new Promise(done => {
    const frame = now => {
      times.push(now);
      if (now - times[0] > 1000 * seconds) return done(times);
      viewport.panBy(new OpenSeadragon.Point(step, step / 3), true);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
}"""
VIEW_PX = "document.getElementById('stage').clientWidth * document.getElementById('stage').clientHeight"


class Repeated:
    """One block of discs over and over: a plane of any size that takes the memory of a block."""

    def __init__(self, side_px: int) -> None:
        self.height_px = self.width_px = side_px
        random = np.random.default_rng(0)
        places = np.stack(np.meshgrid(*[np.arange(18) * STEP_PX + 30] * 2), axis=-1).reshape(-1, 2)
        shifts, radii = random.integers(-12, 13, places.shape), random.uniform(5, 14, len(places))
        circles = [(float(r), float(c), float(radius)) for (r, c), radius in zip(places + shifts, radii, strict=True)]
        self._block = discs(BLOCK_PX, BLOCK_PX, circles)

    def read(self, y: int, x: int, height_px: int, width_px: int) -> NDArray[np.uint8]:
        columns = np.arange(x, x + width_px) % BLOCK_PX
        return self._block[np.arange(y, y + height_px) % BLOCK_PX][:, columns]


def make_result(folder: Path, side_px: int) -> int:
    """A slide and the files of its result, unless they are there already; how many objects there are."""
    if (folder / "out" / "run.json").exists():
        return int(json.loads((folder / "out" / "run.json").read_text())["results"]["objects"]["nucleus"])
    folder.mkdir(parents=True, exist_ok=True)
    slide = make_slide(folder / "slide.tif", side_px)
    out = folder / "out"
    tally = write_files(out, Repeated(side_px), FRAME, np.full((64, 64, 3), 220, dtype=np.uint8), split=False)
    level = {"width_px": side_px, "height_px": side_px, "downsample": 1.0}
    run = {
        "image": {"file": slide.name, "bytes": slide.stat().st_size, "levels": [level], "mpp": {"x": 0.25, "y": 0.25}},
        "scale": {"source": "tiff-tag"},
        "results": {"objects": {"background": 0, "nucleus": int(tally.objects[1])}},
        "source": str(slide.absolute()),
    }
    (out / "run.json").write_text(json.dumps(run))
    return int(tally.objects[1])


@contextmanager
def server(out: Path) -> Iterator[tuple[str, Watched]]:
    """`seunet view` until the block ends."""
    command = [sys.executable, "-m", "seunet", "view", str(out), "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        watched = Watched(process.pid)
        try:
            yield address, watched
        finally:
            watched.stop()
            process.terminate()


def tile_seconds(address: str, side_px: int, layer: str) -> list[float]:
    """The time of tiles at random places and zooms, each asked for the first time."""
    place, random = urlsplit(address), np.random.default_rng(1)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    seconds: list[float] = []
    seen: set[tuple[int, int, int]] = set()
    while len(seconds) < TILES:
        halvings = int(random.integers(0, 4))
        tiles = -(-side_px // (512 << halvings))
        x, y = (int(number) for number in random.integers(0, tiles, 2))
        if (halvings, x, y) in seen:
            continue
        seen.add((halvings, x, y))
        began = time.perf_counter()
        connection.request("GET", f"{place.path}tiles/0/{layer}/{halvings}/{x}/{y}")
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 200
        seconds.append(time.perf_counter() - began)
    return seconds


def frames_per_second(page: Page, clock: PageClock, zoom: float, per_px: float) -> dict[str, float]:
    """While the slide is panned by 8 screen pixels per frame, with outlines."""
    page.evaluate(GO, [zoom])
    began = clock.seconds()
    times = page.evaluate(PAN, [PAN_SECONDS, zoom])
    page_seconds = clock.seconds() - began
    gaps = sorted(float(gap) for gap in np.diff(times))
    return {
        "zoom": zoom,
        "mean": round(1000 * len(gaps) / sum(gaps), 1),
        "slowest_twentieth": round(1000 / gaps[int(0.95 * len(gaps))], 1),
        "page_cpu_ms": round(1000 * page_seconds / len(gaps), 1),
        "objects_in_view": round(per_px * page.evaluate(VIEW_PX) / zoom**2),
    }


def figures_of(folder: Path, side_px: int) -> dict[str, Any]:
    objects = make_result(folder, side_px)
    size = (folder / "out" / "objects.geojson").stat().st_size
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=given_browser(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        clock = PageClock(page)
        started = time.perf_counter()
        with server(folder / "out") as (address, watched):
            began = time.perf_counter()
            page.goto(address)
            page.wait_for_function("() => window.seunet?.panel && window.seunet.pane.settled()", timeout=60_000)
            seen = time.perf_counter()
            first_cpu = {"server": round(watched.cpu_seconds(), 2), "page": round(clock.seconds(), 2)}
            page.wait_for_function("() => window.seunet.pane.columns.length > 0", timeout=600_000)
            indexed, all_cpu = time.perf_counter(), watched.cpu_seconds()
            tiles = {layer: tile_seconds(address, side_px, layer) for layer in ("slide", "labels")}
            density = objects / side_px**2
            frames = [frames_per_second(page, clock, zoom, density) for zoom in (0.3, 0.5, 1.0, 2.0)]
        browser.close()
    return {
        "side_px": side_px,
        "objects": objects,
        "geojson_mib": round(size / 2**20),
        "first_view_seconds": round(seen - began, 2),
        "from_command_seconds": round(seen - started, 2),
        "first_view_cpu_seconds": first_cpu,
        "index_seconds": round(indexed - began, 1),
        "index_cpu_seconds": round(all_cpu - first_cpu["server"], 1),
        "tile_ms": {
            layer: {name: round(1000 * float(np.quantile(each, share)), 1) for name, share in QUANTILES.items()}
            for layer, each in tiles.items()
        },
        "frames": frames,
        "server_mib": round(watched.peak_server / 2**20),
        "all_processes_mib": round(watched.peak_all / 2**20),
    }


def given_browser() -> str:
    import shutil

    return shutil.which("chromium") or sys.exit("no Chromium on this machine; `make browser` installs it")


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--slides", metavar="FOLDER", help="make them there, keep them and use those that are there")
    made.add_argument("--sides", default=",".join(map(str, SIDES_PX)), metavar="PX,…", help="sides of the slides")
    return made


def main() -> None:
    """Measure and write results/benchmarks/viewer.json."""
    chosen = parser().parse_args()
    sides = [int(side) for side in re.findall(r"\d+", chosen.sides)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(chosen.slides or temporary)
        slides = [figures_of(folder / str(side), side) for side in sides]
    print(write_results(BENCHMARK, {"load_average": round(os.getloadavg()[0], 1), "slides": slides}))


if __name__ == "__main__":
    main()
