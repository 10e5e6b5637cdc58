"""How a model does on whole images as they are, and as other microscopes, stains and labels would show them.

    python -m benchmarks.measure.model.changed_images new=runs/new/model --sets monuseg=prepared/monuseg:5

A set is NAME=ROOT:SPLIT, or NAME=ROOT:N for the training images that one of every N patients has (those held out by
`hold_out_every: N`).  Told nothing and with the mpp stated, by the steps of `seunet segment`; a script that has learnt
nothing (measure.model.script) beside it.  Each set is kept when it is done, and a repeated command goes on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

import seunet
from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.measure.model.script import script_objects
from benchmarks.record import MEASURED, commit, results, write_results
from seunet.cli import progress_of
from seunet.data import SPLITS, blurred, hold_out, noisy, read_manifest, through_jpeg
from seunet.evaluation.objects import found_objects, image_scores, set_scores
from seunet.models import ScaleUNet, weights_sha256

BENCHMARK = Benchmark(
    "measure.model.changed_images",
    ("results/benchmarks/changed_images.json",),
    40,
    arguments="nuclei=nuclei nuclei-2=nuclei-2 --sets monuseg=prepared/monuseg:5 cpm17=prepared/cpm17:test "
    "tnbc=prepared/tnbc:5",
    needs=(MONUSEG, "prepared/cpm17, prepared/tnbc, prepared/consep"),
)

Rgb = NDArray[np.uint8]
USUAL_MPP = 0.25
"""Of images that state none: those of CPM17, most of which are 40 ×."""
NAME = "changed_images"
AS_IT_IS, SCRIPT = "as it is", "script"
WRONG = {"mpp × 1.5": 1.5, "mpp ÷ 1.5": 1 / 1.5}
"""How many times the true one the stated µm per pixel is."""


def _denser(image: Rgb, times: float) -> Rgb:
    """The optical density of every pixel so many times as high."""
    return np.rint(255 * (image / 255) ** times).astype(np.uint8)


CHANGES: dict[str, Callable[[Rgb], Rgb]] = {
    AS_IT_IS: lambda image: image,
    "blur 1.2 px": partial(blurred, sigma_px=1.2),
    "blur 1.6 px": partial(blurred, sigma_px=1.6),
    "JPEG 40": partial(through_jpeg, quality=40),
    "noise 12": partial(noisy, deviation=12, seed=0),
    "density × 0.6": partial(_denser, times=0.6),
    "density × 1.3": partial(_denser, times=1.3),
}


def images_of(root: Path, which: str) -> Iterator[tuple[Rgb, NDArray[Any], float]]:
    """Pixels, true objects and µm per pixel of the images of a split, or of those that are held out."""
    manifest = read_manifest(root)
    if which in SPLITS:
        entries = [entry for entry in manifest.images if entry.split == which]
    else:
        entries = list(hold_out(manifest, root, None, int(which)).images)
    for entry in entries:
        if entry.instances is None:
            raise SystemExit(f"{root}: {entry.name} has no objects one by one")
        pixels, numbers = (np.asarray(Image.open(root / file.path)) for file in (entry.image, entry.instances))
        yield pixels, numbers.astype(np.int64), entry.mpp or USUAL_MPP


def cases(model: ScaleUNet, pixels: Rgb, mpp: float) -> Iterator[tuple[str, str, NDArray[np.int32]]]:
    """What is found: (way, change, object numbers)."""
    for change, changed in CHANGES.items():
        shown = changed(pixels)
        yield "told nothing", change, found_objects(shown, model).numbers
        yield "mpp stated", change, found_objects(shown, model, mpp).numbers
    for change, times in WRONG.items():
        yield "mpp stated", change, found_objects(pixels, model, times * mpp).numbers
    yield SCRIPT, AS_IT_IS, script_objects(pixels)


def measured(model: ScaleUNet, root: Path, which: str, title: str) -> dict[str, Any]:
    """The scores of a set, by way and change."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    images = list(images_of(root, which))
    with progress_of(True, timed=True, name=title) as progress:
        for number, (pixels, truth, mpp) in enumerate(images):
            progress(number, len(images), "images")
            for way, change, numbers in cases(model, pixels, mpp):
                scores = image_scores(truth, numbers, np.zeros(truth.shape, dtype=np.bool_))
                rows.setdefault((way, change), []).append(scores)
    scored = [{"way": way, "change": change, **set_scores(each)} for (way, change), each in rows.items()]
    return {"which": which, "images": len(images), "scores": scored}


def kept_before() -> dict[str, Any]:
    """What an earlier run of this commit has measured."""
    found = results(NAME) if (MEASURED / f"{NAME}.json").exists() else {}
    return found["models"] if found.get("commit") == commit() else {}


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("models", nargs="+", metavar="NAME=MODEL")
    made.add_argument("--sets", nargs="+", required=True, metavar="NAME=ROOT:WHICH")
    return made


def main() -> None:
    """Measure set by set, and keep each."""
    given = parser().parse_args()
    torch.set_num_threads(1)
    kept = kept_before()
    for named in given.models:
        label, _, place = named.partition("=")
        model = seunet.load(place)
        weights = weights_sha256(model)
        own = kept.get(label, {})
        kept[label] = own if own.get("weights") == weights else {"weights": weights, "sets": {}}
        for spec in given.sets:
            name, _, rest = spec.partition("=")
            root, _, which = rest.rpartition(":")
            if name not in kept[label]["sets"]:
                kept[label]["sets"][name] = measured(model, Path(root), which, f"{label}, {name}")
                write_results(BENCHMARK, {"models": kept})


if __name__ == "__main__":
    main()
