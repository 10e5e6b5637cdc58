r"""Learn how far each head of a model is to be believed, on training images that were held out of its training.

    python -m benchmarks.calibrate_heads PREPARED --images NAME,… [--model nuclei] [--write]

The heads' probabilities at sampled pixels of the images at nine scales, told nothing and told the scale, are fused by
`maths.fusion.calibrated`; a temperature a head, a prior over heads for each of the two, and one sharpness minimise
the cross-entropy.  What it is worth is measured by leaving one image out after the other, beside the paper's three.
Writes benchmarks/results/calibrate_heads.json, and with `--write` the calibration into the card of the model.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.fit_scale import HALF_SCALE
from benchmarks.record import write_results
from seunet.cli.evaluate import names
from seunet.data.loader import WindowDataset
from seunet.evaluation.counting import images_of
from seunet.evaluation.ways import blind, known
from seunet.maths.confusion import confusion_matrix, headline_iou
from seunet.maths.fusion import FUSIONS, Calibration, Fusion, calibrated, first_largest, fuse
from seunet.maths.rescaling import rescale, rescale_mask
from seunet.models.card import HeadCalibration
from seunet.models.files import load, model_folder
from seunet.models.skeleton import ScaleUNet

SCALES = tuple(0.25 * 2 ** (step / 2) for step in range(9))
TILES_PX = (500, 500, 4)
LARGEST_PX = 800
"""Of a rescaled window; of the middle of a window that becomes larger."""
PIXELS = 4000
"""Sampled of each window at each scale."""
RIDGE = 1e-3
"""On priors and log temperatures: what six images do not say stays as it was."""
STEPS = 60
WAYS: dict[str, Callable[[ScaleUNet, float], Callable[[Tensor], Tensor]]] = {"blind": blind, "known": known}


class Sampled(NamedTuple):
    """Pixels of one window at one scale: probabilities [γ, classes, n], classes [n]."""

    image: str
    scale: float
    way: str
    probabilities: Tensor
    classes: Tensor


class Fit(NamedTuple):
    """What is learnt; the two priors are for a scale that is not and that is known."""

    temperatures: Tensor
    sharpness: Tensor
    priors: dict[str, Tensor]

    def calibration(self, way: str) -> Calibration:
        prior = self.priors[way] - self.priors[way].max()
        return Calibration(tuple(self.temperatures.tolist()), tuple(prior.tolist()), float(self.sharpness))


def sampled(model: ScaleUNet, windows: WindowDataset) -> list[Sampled]:
    """Every image at every scale in both ways; where its scale is not known, it is not known."""
    result = []
    for name, numbers in images_of(windows):
        for scale in SCALES:
            image, mask = _rescaled(windows, numbers[0], scale)
            chosen = torch.randperm(mask.numel(), generator=torch.Generator().manual_seed(0))[:PIXELS]
            for way, predict in WAYS.items():
                if way == "known" and name.startswith(HALF_SCALE):
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


def fitted(samples: list[Sampled]) -> Fit:
    """By L-BFGS on the mean cross-entropy of all samples."""
    heads = samples[0].probabilities.shape[0]
    batches = {way: _together([s for s in samples if s.way == way]) for way in WAYS}
    raw = {name: torch.zeros(heads, dtype=torch.float64, requires_grad=True) for name in ("temperature", *WAYS)}
    sharp = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([*raw.values(), sharp], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        total = RIDGE * torch.stack([value.square().sum() for value in raw.values()]).sum()
        for way, (probabilities, classes) in batches.items():
            fused = _fused(probabilities, raw["temperature"].exp(), raw[way], sharp.exp())
            total = total - fused.gather(0, classes[None])[0].clamp_min(1e-9).log().mean()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return Fit(raw["temperature"].detach().exp(), sharp.detach().exp(), {way: raw[way].detach() for way in WAYS})


def _together(samples: list[Sampled]) -> tuple[Tensor, Tensor]:
    """[γ, classes, all], [all], without the pixels that are ignored."""
    probabilities = torch.cat([sample.probabilities for sample in samples], dim=2).double()
    classes = torch.cat([sample.classes for sample in samples])
    counted = classes < probabilities.shape[1]
    return probabilities[..., counted], classes[counted]


def _fused(probabilities: Tensor, temperatures: Tensor, prior: Tensor, sharpness: Tensor) -> Tensor:
    """`maths.fusion.calibrated` with tensors that have gradients: [γ, classes, n] → [classes, n]."""
    cooled = (probabilities.clamp_min(1e-9).log() / temperatures[:, None, None]).softmax(1)
    top = cooled.topk(2, dim=1).values
    weights = (prior[:, None] + sharpness * (top[:, 0] - top[:, 1])).softmax(0)
    return (weights[:, None] * cooled).sum(0)


def mean_iou(samples: list[Sampled], fusion_for: Callable[[Sampled], Fusion | int]) -> float:
    """The mean over the scales of the IoU over all images; a number instead of a fusion is a head."""
    by_scale = []
    for scale in SCALES:
        total: Tensor | int = 0
        for sample in samples:
            if sample.scale == scale:
                classes = sample.probabilities.shape[1]
                how = fusion_for(sample)
                given = sample.probabilities[None, :, :, :, None]
                fused = given[:, how] if isinstance(how, int) else fuse(given, how)
                total = total + confusion_matrix(first_largest(fused, dim=1)[0, :, 0], sample.classes, classes)
        by_scale.append(headline_iou(total))  # type: ignore[arg-type]
    return round(sum(by_scale) / len(by_scale), 4)


def compared(samples: list[Sampled]) -> dict[str, dict[str, float]]:
    """IoU of each way: every head, every fusion, and the calibrated one learnt from the other images."""
    images = sorted({sample.image for sample in samples})
    without = {image: fitted([sample for sample in samples if sample.image != image]) for image in images}
    heads = samples[0].probabilities.shape[0]
    result: dict[str, dict[str, float]] = {}
    for way in WAYS:
        own = [sample for sample in samples if sample.way == way]
        rows: dict[str, float] = {f"head {n + 1}": mean_iou(own, lambda _, n=n: n) for n in range(heads)}  # type: ignore[misc]
        rows |= {name: mean_iou(own, lambda _, name=name: name) for name in FUSIONS}  # type: ignore[misc]
        rows["calibrated"] = mean_iou(own, lambda sample, way=way: without[sample.image].calibration(way))  # type: ignore[misc]
        result[way] = rows
    return result


def card_entry(fit: Fit) -> HeadCalibration:
    """As it is kept with the model."""
    blind_one, known_one = fit.calibration("blind"), fit.calibration("known")
    return HeadCalibration(
        temperatures=_rounded(blind_one.temperatures),
        sharpness=round(blind_one.sharpness, 4),
        prior=_rounded(blind_one.prior),
        prior_at_scale=_rounded(known_one.prior),
    )


def _rounded(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(round(value, 4) for value in values)


def check_same(samples: list[Sampled], fit: Fit) -> float:
    """How far the function that is fitted is from the one that is used, at most: a number for the record."""
    first = samples[0]
    used = calibrated(first.probabilities[None, :, :, :, None].double(), fit.calibration(first.way))[0, :, :, 0]
    mine = _fused(first.probabilities.double(), fit.temperatures, fit.priors[first.way], fit.sharpness)
    return float((used - mine).abs().max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("--images", required=True)
    parser.add_argument("--model", default="nuclei")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = load(arguments.model)
    windows = WindowDataset(arguments.prepared, "train", images=names(arguments.images), tiles_px=TILES_PX)
    samples = sampled(model, windows)
    fit = fitted(samples)
    entry = card_entry(fit)
    figures: dict[str, Any] = {
        "model": load(arguments.model).name,
        "images": sorted({sample.image for sample in samples}),
        "scales": list(SCALES),
        "pixels": sum(len(sample.classes) for sample in samples),
        "calibration": entry.model_dump(mode="json"),
        "fitted_is_used_to": check_same(samples, fit),
        "iou_left_out": compared(samples),
    }
    print(write_results("calibrate_heads", figures))
    if arguments.write:
        assert model.card is not None, "the model has no card"
        model.card = model.card.model_copy(update={"calibration": entry})
        model.save_pretrained(model_folder(arguments.model))


if __name__ == "__main__":
    main()
