"""Fit the scale estimator on the training images of a prepared set.

    python -m benchmarks.measure.scale.fit PREPARED -o src/seunet/pretrained/nuclei [--cache FOLDER]
    python -m benchmarks.measure.scale.fit PREPARED -o FOLDER --without NAME,…

Only the training split is read.  Limits and intervals come from images that were left out, organ by organ: an image
of a user is of other tissue, from another laboratory.
Writes scale.safetensors and scale.json, and results/benchmarks/fit_scale.json with what leaving out gave.
With `--without` it makes an estimator that never saw some images, to be measured on those, and no results.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.measure.scale.samples import images_of, scaled, varied
from benchmarks.measure.scale.scores import scores
from benchmarks.record import write_results
from seunet.data import read_manifest
from seunet.scale import (
    INTERVAL_AT,
    Limits,
    Reading,
    Region,
    ScaleEstimator,
    Templates,
    distance,
    fit_templates,
    observe,
    read_scale,
    save_estimator,
    signature,
    spread_boxes,
    width,
)

BENCHMARK = Benchmark(
    "measure.scale.fit",
    (
        "results/benchmarks/fit_scale.json",
        "src/seunet/pretrained/nuclei/scale.safetensors",
        "src/seunet/pretrained/nuclei/scale.json",
    ),
    20,
    arguments="prepared/monuseg -o src/seunet/pretrained/nuclei --cache out/scale",
    needs=(MONUSEG,),
)

FloatArray = NDArray[np.float64]

MPP = 0.25
PLAIN_SCALES = tuple(0.25 * 2 ** (step / 2) for step in range(9))
VARIED = 100
HALF_SCALE = ("TCGA-HE-7128", "TCGA-HE-7129", "TCGA-HE-7130")
"""Labelled 40×, nuclei of 12 px where the others' are 22: their true scale is not known, so nothing is learnt from
them."""

ORGANS = {
    "breast": ("A7-A13E", "A7-A13F", "AR-A1AK", "AR-A1AS", "E2-A1B5", "E2-A14V"),
    "kidney": ("B0-5698", "B0-5710", "B0-5711", "HE-7128", "HE-7129", "HE-7130"),
    "liver": ("18-5592", "21-5784", "21-5786", "38-6178", "49-4488", "50-5931"),
    "prostate": ("CH-5767", "G9-6336", "G9-6348", "G9-6356", "G9-6362", "G9-6363"),
    "bladder": ("DK-A2I6", "G2-A2EK"),
    "colon": ("AY-A8YK", "NH-A8F7"),
    "stomach": ("KB-A93J", "RD-A8N9"),
}
"""Of the training images, by patient (MoNuSeg's own list)."""

COVERAGE = 0.9
REFUSED = 0.025
"""Of left-out samples; the limit of the distance is set there."""

INTERVAL_REACH = 0.35
"""Octaves of the distance around each of `INTERVAL_AT` that its factor is learnt from."""

PLAIN_WEIGHT = 1.0


class Observed(NamedTuple):
    """All regions of all samples of one image."""

    name: str
    moments: FloatArray
    tissue: FloatArray
    covariances: FloatArray
    scales: FloatArray
    sample: FloatArray
    """Which sample a region is of."""
    plain: FloatArray
    """1 where the sample is the whole image, only rescaled."""

    @property
    def weights(self) -> FloatArray:
        """A sample counts the same however many regions it has."""
        _, which, counts = np.unique(self.sample, return_inverse=True, return_counts=True)
        weights: FloatArray = np.where(self.plain == 1, PLAIN_WEIGHT, 1.0) / counts[which]
        return weights


class LeftOut(NamedTuple):
    """A sample as the estimator sees it that never saw its image."""

    log2_scale: float
    truth: float
    width: float
    distance: float
    plain: bool

    @property
    def error(self) -> float:
        return self.log2_scale - self.truth


def observed(name: str, pixels: NDArray[np.uint8]) -> Observed:
    """The image whole at nine scales, and parts of it changed in many ways."""
    rows: list[tuple[Region, float, int, bool]] = []
    for number, scale in enumerate(PLAIN_SCALES):
        rows += [(region, scale, number, True) for region in regions_of(scaled(pixels, scale))]
    for number, sample in enumerate(varied(name, pixels, VARIED)):
        rows += [(region, sample.scale, 1000 + number, False) for region in regions_of(sample.pixels)]
    regions = [row[0] for row in rows]
    return Observed(
        name,
        np.array([region.moments for region in regions]),
        np.array([region.tissue for region in regions]),
        np.array([region.covariance for region in regions]),
        *(np.array([row[place] for row in rows], dtype=np.float64) for place in (1, 2, 3)),
    )


def regions_of(pixels: NDArray[np.uint8]) -> list[Region]:
    """What the estimator looks at."""
    boxes = spread_boxes(*pixels.shape[:2])
    return [observe(pixels[box.y : box.y + box.height_px, box.x : box.x + box.width_px]) for box in boxes]


def all_observed(prepared: Path, cache: Path | None) -> list[Observed]:
    """Every training image; with a folder for them, what was observed before is not observed again."""
    result = []
    for name, pixels in images_of(prepared, "train"):
        kept = None if cache is None else cache / f"{name}.npz"
        if kept is not None and kept.is_file():
            with np.load(kept, allow_pickle=False) as arrays:
                result.append(Observed(name, **{field: arrays[field] for field in Observed._fields[1:]}))
            continue
        one = observed(name, pixels)
        print(f"{name}: {len(one.scales)} regions", flush=True)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.savez(kept, **{field: value for field, value in one._asdict().items() if field != "name"})
        result.append(one)
    return result


def fitted(images: list[Observed]) -> Templates:
    """Templates of these images."""
    seen = [image.tissue > 0 for image in images]
    moments = np.concatenate([image.moments[rows] for image, rows in zip(images, seen, strict=True)])
    scales = np.concatenate([image.scales[rows] for image, rows in zip(images, seen, strict=True)])
    weights = np.concatenate([image.weights[rows] for image, rows in zip(images, seen, strict=True)])
    return fit_templates(np.stack([signature(each) for each in moments]), np.log2(scales), weights)


def read_samples(templates: Templates, image: Observed) -> list[LeftOut]:
    """Every sample of the image at scales that are asked for, by templates that never saw it."""
    result = []
    for number in np.unique(image.sample):
        rows = np.flatnonzero((image.sample == number) & (image.tissue > 0))
        if not len(rows) or not 0.249 < image.scales[rows[0]] < 4.01:
            continue
        readings: list[Reading] = [read_scale(templates, signature(image.moments[row])) for row in rows]
        middle = float(np.median([reading.log2_scale for reading in readings]))
        truth, plain = float(np.log2(image.scales[rows[0]])), bool(image.plain[rows[0]])
        result.append(LeftOut(middle, truth, width(readings), distance(readings), plain))
    return result


def left_out(images: list[Observed], group: Callable[[str], str]) -> list[LeftOut]:
    """Each group's samples, read by templates of the other groups."""
    result = []
    for held in sorted({group(image.name) for image in images}):
        templates = fitted([image for image in images if group(image.name) != held])
        for image in images:
            if group(image.name) == held:
                result += read_samples(templates, image)
    return result


def limits_of(samples: list[LeftOut], coverage: float = COVERAGE) -> Limits:
    """What all but `REFUSED` of the samples are nearer than, and what multiple of their width covers the errors."""
    far = float(np.quantile([sample.distance for sample in samples], 1 - REFUSED))
    place = np.log2([sample.distance for sample in samples])
    factors = covering_factors(samples, place, tuple(np.log2(INTERVAL_AT)), INTERVAL_REACH, coverage)
    return Limits(round(far, 1), factors)


def covering_factors(
    samples: list[LeftOut], place: FloatArray, knots: tuple[float, ...], reach: float, coverage: float = COVERAGE
) -> tuple[float, ...]:
    """What multiple of its width covers that share of the errors of samples whose `place` is near each knot."""
    score = np.array([abs(sample.error) / sample.width for sample in samples])
    order = np.argsort(score)
    factors = []
    for knot in knots:
        near = np.exp(-0.5 * ((place[order] - knot) / reach) ** 2)
        covered = np.cumsum(near) / near.sum()
        factors.append(round(float(score[order][np.searchsorted(covered, coverage)]), 3))
    return tuple(factors)


def summary(samples: list[LeftOut]) -> dict[str, Any]:
    """Scores of whole images only rescaled, and of changed parts."""
    return {
        "whole images": scores([sample.error for sample in samples if sample.plain]),
        "changed parts": scores([sample.error for sample in samples if not sample.plain]),
    }


def patient(name: str) -> str:
    return name[:12]


def organ(name: str) -> str:
    found = [each for each, patients in ORGANS.items() if name[5:12] in patients]
    return found[0] if found else patient(name)


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("prepared", type=Path)
    made.add_argument("-o", "--output", type=Path, required=True)
    made.add_argument("--cache", type=Path)
    made.add_argument("--without", default="", metavar="NAME,…")
    return made


def main() -> None:
    arguments = parser().parse_args()
    images = all_observed(arguments.prepared, arguments.cache)
    without = tuple(arguments.without.split(",")) if arguments.without else ()
    used = [image for image in images if not image.name.startswith((*HALF_SCALE, *without))]
    by_patient, by_organ = left_out(used, patient), left_out(used, organ)
    fitted_on = {
        "data": read_manifest(arguments.prepared).content_hash(),
        "images": [image.name for image in used],
        "left_out_of_the_fit": [*HALF_SCALE, *without],
        "command": BENCHMARK.program,
    }
    estimator = ScaleEstimator(fitted(used), limits_of(by_organ), MPP, fitted_on)
    save_estimator(estimator, arguments.output)
    if without:
        return
    halves = {
        image.name: {
            f"{2**sample.truth:.2f}": round(2**sample.error, 2)
            for sample in read_samples(estimator.templates, image)
            if sample.plain
        }
        for image in images
        if image.name.startswith(HALF_SCALE)
    }
    figures = {
        "limits": estimator.limits._asdict(),
        "leaving_out_patients": summary(by_patient),
        "leaving_out_organs": summary(by_organ),
        "half_scale_images": halves,
    }
    print(write_results(BENCHMARK, figures))


if __name__ == "__main__":
    main()
