r"""Learn how far each head of a model is to be believed, on training images that were held out of its training.

    python -m benchmarks.measure.model.calibrate_heads PREPARED --images NAME,… [--model nuclei] [--write]

The heads' probabilities at sampled pixels of the images at nine scales, blind and with the scale stated, are fused by
`maths.fusion.calibrated`.  The temperature of a head minimises its own cross-entropy; prior and sharpness are those of
a few candidates with the surest gain in IoU over P_Ens.  What that is worth is measured by leaving one image out after
the other, beside the paper's three: an image is fused as the others say.
Writes results/benchmarks/calibrate_heads.json, and with `--write` the calibration into the card of the model.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.measure.scale.fit import HALF_SCALE
from benchmarks.record import write_results
from seunet.cli import names
from seunet.data import WindowDataset
from seunet.evaluation import blind, images_of, stated
from seunet.maths import (
    CALIBRATED,
    FUSIONS,
    Calibration,
    Fusion,
    confusion_matrix,
    first_largest,
    fuse,
    headline_iou,
    rescale,
    rescale_mask,
)
from seunet.models import HeadCalibration, ScaleUNet, load, model_folder, weights_sha256

HELD_OUT = (
    "TCGA-18-5592-01Z-00-DX1",
    "TCGA-50-5931-01Z-00-DX1",
    "TCGA-AY-A8YK-01A-01-TS1",
    "TCGA-DK-A2I6-01A-01-TS1",
    "TCGA-G9-6348-01Z-00-DX1",
    "TCGA-HE-7129-01Z-00-DX1",
)
"""Training images that the shipped weights did not see."""
BENCHMARK = Benchmark(
    "measure.model.calibrate_heads",
    ("results/benchmarks/calibrate_heads.json",),
    10,
    arguments=f"prepared/monuseg --images {','.join(HELD_OUT)}",
    needs=(MONUSEG,),
)

SCALES = tuple(0.25 * 2 ** (step / 2) for step in range(9))
TILES_PX = (500, 500, 4)
LARGEST_PX = 800
"""Of a rescaled window; of the middle of a window that becomes larger."""
PIXELS = 4000
"""Sampled of each window at each scale."""
STEPS = 30
WIDTHS = (0.3, 1.0, 2.0)
"""Of a prior, in heads: one head alone, with its neighbours, with most."""
SHARPNESS = (0.0, 1.0, 4.0, 16.0)
WAYS: dict[str, Callable[[ScaleUNet, float], Callable[[Tensor], Tensor]]] = {"blind": blind, "stated": stated}


class Sampled(NamedTuple):
    """Pixels of one window at one scale: probabilities [γ, classes, n], classes [n]."""

    image: str
    scale: float
    way: str
    probabilities: Tensor
    classes: Tensor


class Candidate(NamedTuple):
    """Heads are worth −½((k − centre)/width)² before they have said anything, and β for what they say."""

    centre: float
    width: float
    sharpness: float

    def calibration(self, temperatures: tuple[float, ...]) -> Calibration:
        prior = [-0.5 * ((head - self.centre) / self.width) ** 2 for head in range(len(temperatures))]
        return Calibration(temperatures, tuple(round(value - max(prior), 4) for value in prior), self.sharpness)


def sampled(model: ScaleUNet, windows: WindowDataset) -> list[Sampled]:
    """Every image at every scale in both ways; where its scale is not known, it is not known."""
    result = []
    for name, numbers in images_of(windows):
        for scale in SCALES:
            image, mask = _rescaled(windows, numbers[0], scale)
            chosen = torch.randperm(mask.numel(), generator=torch.Generator().manual_seed(0))[:PIXELS]
            for way, predict in WAYS.items():
                if way == "stated" and name.startswith(HALF_SCALE):
                    continue
                with torch.inference_mode():
                    found = predict(model, scale)(image)[0].flatten(2)[..., chosen]
                result.append(Sampled(name, scale, way, found.clone(), mask.flatten()[chosen]))
        print(name, flush=True)
        windows.release()
    return result


def _rescaled(windows: WindowDataset, number: int, scale: float) -> tuple[Tensor, Tensor]:
    window = windows[number]
    side = min(windows.size_px, round(LARGEST_PX / scale))
    start = (windows.size_px - side) // 2
    middle = slice(start, start + side)
    image, mask = window.image[None, :, middle, middle], window.mask[None, middle, middle]
    return rescale(image, scale), rescale_mask(mask, scale)


def temperatures_of(samples: list[Sampled]) -> tuple[float, ...]:
    """T of each head by itself: what minimises its cross-entropy."""
    probabilities = torch.cat([sample.probabilities for sample in samples], dim=2).double().clamp_min(1e-9).log()
    classes = torch.cat([sample.classes for sample in samples])
    counted = classes < probabilities.shape[1]
    logits, target = probabilities[..., counted], classes[counted].expand(len(probabilities), 1, -1)
    raw = torch.zeros(len(probabilities), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([raw], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = -(logits / raw.exp()[:, None, None]).log_softmax(1).gather(1, target).mean()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return tuple(round(value, 4) for value in raw.detach().exp().tolist())


def candidates(heads: int) -> list[Candidate]:
    """No head before others, and each head with its neighbours."""
    equal = [Candidate(0.0, 1e6, sharpness) for sharpness in SHARPNESS]
    return equal + [
        Candidate(float(centre), width, sharpness)
        for centre in range(heads)
        for width in WIDTHS
        for sharpness in SHARPNESS
    ]


Counts = dict[tuple[str, float], Tensor]
"""A confusion matrix for each image and scale."""


def counts(samples: list[Sampled], how: Fusion | int) -> Counts:
    """Of a fusion, or of a head by its number."""
    result = {}
    for sample in samples:
        given = sample.probabilities[None, :, :, :, None]
        fused = given[:, how] if isinstance(how, int) else fuse(given, how)
        classes = sample.probabilities.shape[1]
        found = confusion_matrix(first_largest(fused, dim=1)[0, :, 0], sample.classes, classes)
        result[sample.image, sample.scale] = found
    return result


def mean_iou(found: Counts) -> float:
    """The mean over the scales of the IoU over all images."""
    by_scale = [
        headline_iou(torch.stack([matrix for (_, own), matrix in found.items() if own == scale]).sum(0))
        for scale in SCALES
    ]
    return sum(by_scale) / len(by_scale)


def sure_gain(found: Counts, usual: Counts, images: Sequence[str]) -> float:
    """The mean gain in IoU over the images less its standard error: what few images do not show is no gain."""
    gains = []
    for image in images:
        own, before = ({key: matrix for key, matrix in each.items() if key[0] == image} for each in (found, usual))
        gains.append(mean_iou(own) - mean_iou(before))
    return fmean(gains) - stdev(gains) / math.sqrt(len(gains))


def chosen(samples: list[Sampled], temperatures: tuple[float, ...]) -> tuple[Candidate, Counts]:
    """The candidate that is best on all images, and what each image gives where it is chosen on the others."""
    every = {each: counts(samples, each.calibration(temperatures)) for each in candidates(len(temperatures))}
    usual = counts(samples, "p_ens")
    images = sorted({sample.image for sample in samples})
    left_out: Counts = {}
    for image in images:
        others = [other for other in images if other != image]
        best = max(every, key=partial(_gain_of, every, usual, others))
        left_out |= {key: matrix for key, matrix in every[best].items() if key[0] == image}
    return max(every, key=partial(_gain_of, every, usual, images)), left_out


def _gain_of(every: dict[Candidate, Counts], usual: Counts, images: Sequence[str], each: Candidate) -> float:
    return sure_gain(every[each], usual, images)


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("prepared", type=Path)
    made.add_argument("--images", required=True)
    made.add_argument("--model", default="nuclei")
    made.add_argument("--write", action="store_true")
    return made


def main() -> None:
    arguments = parser().parse_args()
    torch.set_num_threads(1)
    model = load(arguments.model)
    windows = WindowDataset(arguments.prepared, "train", images=names(arguments.images), tiles_px=TILES_PX)
    samples = sampled(model, windows)
    temperatures = temperatures_of(samples)
    best, scores = {}, {}
    for way in WAYS:
        own = [sample for sample in samples if sample.way == way]
        best[way], left_out = chosen(own, temperatures)
        rows: dict[str, Fusion | int] = {f"head {number + 1}": number for number in range(model.heads)}
        rows |= {name: name for name in FUSIONS}
        found = {name: mean_iou(counts(own, how)) for name, how in rows.items()} | {CALIBRATED: mean_iou(left_out)}
        scores[way] = {name: round(value, 4) for name, value in found.items()}
    blind_one, stated_one = (best[way].calibration(temperatures) for way in ("blind", "stated"))
    entry = HeadCalibration(
        temperatures=temperatures,
        prior=blind_one.prior,
        sharpness=blind_one.sharpness,
        prior_at_scale=stated_one.prior,
        sharpness_at_scale=stated_one.sharpness,
    )
    figures: dict[str, Any] = {
        "weights_sha256": weights_sha256(model),
        "images": sorted({sample.image for sample in samples}),
        "scales": list(SCALES),
        "pixels": sum(len(sample.classes) for sample in samples),
        "chosen": {way: each._asdict() for way, each in best.items()},
        "calibration": entry.model_dump(mode="json"),
        "iou_left_out": scores,
    }
    print(write_results(BENCHMARK, figures))
    if arguments.write:
        assert model.card is not None, "the model has no card"
        model.card = model.card.model_copy(update={"calibration": entry})
        model.save_pretrained(model_folder(arguments.model))


if __name__ == "__main__":
    main()
