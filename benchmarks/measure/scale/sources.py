"""How a scale estimator does on a laboratory it never saw: fitted on several sets, each left out in turn.

    python -m benchmarks.measure.scale.sources SET … [--measure SET=MPP] [--samples 24] [--cache FOLDER]

Templates and limits are fitted on the training images of all sets but one (what `seunet fit-scale` does with them) and
read that one; a set of `--measure` is never fitted on, and all its images are taken to have that mpp.  The shipped
estimator reads the same samples.  Writes results/benchmarks/scale_sources.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.record import write_results
from seunet.data import ImageEntry, read_manifest
from seunet.evaluation.fitting import (
    LeftOut,
    Observed,
    error_scores,
    fitted_templates,
    limits_of,
    observed,
    read_sample,
)
from seunet.images import pillow_codec as raster
from seunet.scale import (
    Limits,
    Sureness,
    Templates,
    colour_fault,
    distance,
    shipped_estimator,
    width,
)

BENCHMARK = Benchmark(
    "measure.scale.sources",
    ("results/benchmarks/scale_sources.json",),
    30,
    arguments="prepared/monuseg-2 prepared/tnbc prepared/consep --measure prepared/cpm17=0.25 --cache out/sources",
    needs=(MONUSEG,),
)

MPP = 0.25
NATIVE_SCALE = 1.0


class Answer(NamedTuple):
    """A sample as it was read, whether its colours are refused, and whether it is the image as it is."""

    sample: LeftOut
    colours_refused: bool
    native: bool


def images_of(
    root: Path,
    mpp: float | None,
    samples: int,
    cache: Path | None,
    sureness: Sureness | None = None,
    most: int | None = None,
) -> list[Observed]:
    """The training images of a set; with an `mpp`, all of its images.  Seen by a network too, where one is given."""
    manifest, found = read_manifest(root), []
    entries = [entry for entry in manifest.images if mpp is not None or (entry.mpp and entry.split != "test")]
    for entry in spread(entries, most):
        own = (entry.mpp if mpp is None else mpp) or MPP
        name = f"{root.name}/{entry.name}" if mpp is not None else f"{manifest.dataset}:{root.name}/{entry.name}"
        kept = None if cache is None else cache / f"{root.name}__{entry.name}.npz"
        if kept is not None and kept.is_file():
            with np.load(kept, allow_pickle=False) as arrays:
                found.append(Observed(name, **{field: arrays[field] for field in Observed._fields[1:]}))
            continue
        pixels = raster.decode_rgb(raster.read_image(root / entry.image.path), entry.name).pixels
        found.append(observed(name, pixels, MPP / own, samples, sureness))
        print(name, flush=True)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.savez(kept, **{field: value for field, value in found[-1]._asdict().items() if field != "name"})
    return found


def spread(entries: list[ImageEntry], most: int | None) -> list[ImageEntry]:
    """At most so many, spread evenly over the set and its patients."""
    count = min(most or len(entries), len(entries))
    return [entries[number * len(entries) // count] for number in range(count)]


def answers(templates: Templates, images: list[Observed], heads: Templates | None = None) -> list[Answer]:
    """Of every sample at scales that are asked for, by the texture, or with what the heads say of it."""
    result = []
    for image in images:
        for number in np.unique(image.sample):
            rows = np.flatnonzero((image.sample == number) & (image.tissue > 0))
            if not len(rows) or not 0.249 < image.scales[rows[0]] < 4.01:
                continue
            readings = [read_sample(templates, image, row, heads) for row in rows.tolist()]
            middle = float(np.median([reading.log2_scale for reading in readings]))
            truth, plain = float(np.log2(image.scales[rows[0]])), bool(image.plain[rows[0]])
            far = [None if heads is None else reading.distance for reading in readings]
            faults = [colour_fault(image.covariances[row], q) for row, q in zip(rows, far, strict=True)]
            refused = np.mean([fault is not None for fault in faults]) > 0.5
            sample = LeftOut(middle, truth, width(readings), distance(readings), plain)
            result.append(Answer(sample, bool(refused), plain and np.isclose(image.scales[rows[0]], NATIVE_SCALE)))
    return result


def summary(found: list[Answer], limits: Limits) -> dict[str, Any]:
    """Of the images at the fitted resolution, of all their rescaled versions, and of changed parts."""
    kinds = {
        "as they are": [one for one in found if one.native],
        "rescaled": [one for one in found if one.sample.plain],
        "changed parts": [one for one in found if not one.sample.plain],
    }
    return {name: _summary(rows, limits) for name, rows in kinds.items()}


def _summary(found: list[Answer], limits: Limits) -> dict[str, Any]:
    kept = [one.sample for one in found if not one.colours_refused and one.sample.distance <= limits.distance]
    half = [limits.half_interval(sample.distance, sample.width) for sample in kept]
    covered = [abs(sample.error) <= width for sample, width in zip(kept, half, strict=True)]
    return {
        **error_scores([sample.error for sample in kept]),
        "asked": len(found),
        "refused": round(1 - len(kept) / len(found), 4),
        "covered": round(float(np.mean(covered)), 4),
        "median_half_interval": round(float(2 ** np.median(half)), 3),
    }


def main() -> None:
    asked = parser().parse_args()
    cv2.setNumThreads(1)
    sets = {root.name: images_of(root, None, asked.samples, asked.cache) for root in asked.sets}
    left_out = {
        name: answers(fitted_templates([one for other, own in sets.items() if other != name for one in own]), images)
        for name, images in sets.items()
    }
    figures: dict[str, Any] = {"images": {name: len(images) for name, images in sets.items()}, "left_out": {}}
    for name, found in left_out.items():
        others = [one.sample for other, rows in left_out.items() if other != name for one in rows]
        figures["left_out"][name] = summary(found, limits_of(others))
    limits = limits_of([one.sample for rows in left_out.values() for one in rows])
    figures["limits"] = limits._asdict()
    measured = {}
    for text in asked.measure:
        root, _, mpp = text.partition("=")
        measured[Path(root).name] = images_of(Path(root), float(mpp), asked.samples, asked.cache)
    if measured:
        templates = fitted_templates([one for own in sets.values() for one in own])
        figures["measured"] = {name: summary(answers(templates, own), limits) for name, own in measured.items()}
    shipped = shipped_estimator()
    figures["shipped"] = {
        name: summary(answers(shipped.templates, own), shipped.limits) for name, own in {**sets, **measured}.items()
    }
    print(write_results(BENCHMARK, figures))


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("sets", nargs="+", type=Path)
    made.add_argument("--measure", action="append", default=[])
    made.add_argument("--samples", type=int, default=24)
    made.add_argument("--cache", type=Path)
    return made


if __name__ == "__main__":
    main()
