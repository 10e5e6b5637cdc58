"""Δ_s of a trained model on a data set (paper eq. 10, table 2), for every pair of scales (Appendix C)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from seunet.data.windows import WindowDataset
from seunet.errors import InputError
from seunet.evaluation.confusions import images_of
from seunet.evaluation.equivariance import pair_errors, without_mean
from seunet.evaluation.page import markdown_table
from seunet.evaluation.predictors import head_logits
from seunet.evaluation.provenance import identity_of, source_line
from seunet.evaluation.report_folder import ReportFolder
from seunet.evaluation.run import open_windows
from seunet.evaluation.test_scales import TEST_SCALES, check_scales, scale_label
from seunet.maths.rescaling import rescale, scaled_size
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet
from seunet.progress import Progress, silent
from seunet.storage.jsonl import rounded

FORMAT: Final = "seunet-equivariance/1"
VARIANTS: Final = ("as_in_the_paper", "without_mean", "unsquared")
"""Eq. 10 of the logits as they are; of each map without its mean, which any network rescales perfectly; and the square
root of eq. 10 per window, ‖difference‖ / ‖expected‖, the form that published code computes."""

PAIRINGS: Final = ("matched", "same", "best")
"""Head k with the head whose σ is nearest to s·σ_k; head k with itself; the one best pair."""

DIGITS: Final = 6


@dataclass(frozen=True)
class EquivarianceSettings:
    """What is measured."""

    split: str = "test"
    images: tuple[str, ...] | None = None
    tiles_px: tuple[int, ...] | None = None
    """Size and stride of windows other than those of the set."""
    scales: tuple[float, ...] = tuple(scale for scale in TEST_SCALES if scale != 1)
    antialias: bool = False


DEFAULTS: Final = EquivarianceSettings()


def head_sigmas(model: ScaleUNet) -> list[float]:
    """σ of each head in the last layer; 1 for a model with a single prediction."""
    return model.sigmas()[-1].tolist() if isinstance(model, SEUNet) else [1.0] * model.heads


def matched_heads(sigmas: Sequence[float], scale: float) -> list[int]:
    """For each head k the k′ whose σ ratio σ_k′/σ_k is closest to s, the finest of equals.

    >>> matched_heads([0.5, 1.0, 2.0, 4.0], 2.0)
    [1, 2, 3, 3]
    """
    return [min(range(len(sigmas)), key=lambda other: abs(math.log(sigmas[other] / sigma / scale))) for sigma in sigmas]


def measure_equivariance(
    model: ScaleUNet,
    data: Path,
    out: Path,
    settings: EquivarianceSettings = DEFAULTS,
    *,
    overwrite: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """The report, also written to OUT/equivariance.json; each finished image is kept, as `evaluate` keeps scales."""
    if 1.0 in settings.scales:
        raise InputError("scale 1 leaves an image as it is, and Δ is 0; leave it out")
    windows = open_windows(data, settings.split, settings.images, settings.tiles_px)
    arguments = {"scales": list(settings.scales), "antialias": settings.antialias}
    identity = identity_of(FORMAT, model, windows, settings.split, arguments)
    check_scales(settings.scales, windows.size_px)
    folder = ReportFolder(out, "equivariance")

    def work(document: dict[str, Any]) -> None:
        _work_through(model.eval(), windows, settings, document, folder, progress)
        document["errors"] = _errors(document)
        document["mean"] = {
            variant: {pairing: _mean([row[variant][pairing] for row in document["errors"]]) for pairing in PAIRINGS}
            for variant in VARIANTS
        }

    begun = {"sigmas": [round(sigma, DIGITS) for sigma in head_sigmas(model)]}
    return folder.made(identity, begun, "errors", work, overwrite)


def _work_through(
    model: ScaleUNet,
    windows: WindowDataset,
    settings: EquivarianceSettings,
    document: dict[str, Any],
    folder: ReportFolder,
    progress: Progress,
) -> None:
    """Sums over the windows of each image that is not yet among the results."""
    finished = {row["image"] for row in document["results"]}
    sides = [windows.size_px, *(scaled_size(windows.size_px, scale) for scale in settings.scales)]
    each, total, done = sum(side**2 for side in sides), len(windows) * sum(side**2 for side in sides), 0
    logits = head_logits(model)
    for name, numbers in images_of(windows):
        if name in finished:
            done += each * len(numbers)
            continue
        with folder.part(document, name):
            sums = torch.zeros(len(VARIANTS), len(settings.scales), model.heads, model.heads, dtype=torch.float64)
            for number in numbers:
                progress(done, total, name)
                with torch.inference_mode():
                    for place, errors in enumerate(_window_errors(logits, windows[number].image[None], settings)):
                        sums[:, place] += errors
                done += each
            row = {variant: rounded(sums[place].tolist(), 9) for place, variant in enumerate(VARIANTS)}
            document["results"].append({"image": name, "windows": len(numbers), "sums": row})
        windows.release()


def _window_errors(
    logits: Callable[[Tensor], Tensor], image: Tensor, settings: EquivarianceSettings
) -> Iterator[Tensor]:
    """[variants, γ, γ] of one window at each scale."""
    original = logits(image)
    centred = without_mean(original)
    for scale in settings.scales:
        rescaled = logits(rescale(image, scale, settings.antialias))
        squared = pair_errors(original, rescaled, scale)
        yield torch.stack([squared, pair_errors(centred, without_mean(rescaled), scale), squared.sqrt()]).double()


def _errors(document: dict[str, Any]) -> list[dict[str, Any]]:
    """For each scale the mean matrices over all windows, and Δ_s by each pairing."""
    count = sum(row["windows"] for row in document["results"])
    rows: list[dict[str, Any]] = []
    for place, scale in enumerate(document["arguments"]["scales"]):
        row: dict[str, Any] = {"scale": scale}
        for variant in VARIANTS:
            sums = torch.tensor([found["sums"][variant][place] for found in document["results"]], dtype=torch.float64)
            matrix = sums.sum(0) / count
            heads = torch.arange(len(matrix))
            matched = torch.tensor(matched_heads(document["sigmas"], scale))
            row[variant] = {
                "matrix": rounded(matrix.tolist(), 9),
                "matched": round(float(matrix[heads, matched].mean()), DIGITS),
                "same": round(float(matrix.diagonal().mean()), DIGITS),
                "best": round(float(matrix.min()), DIGITS),
            }
        rows.append(row)
    return rows


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), DIGITS)


def markdown(document: dict[str, Any], shown: Sequence[float] = (0.5, 2.0)) -> str:
    """Δ_s by each pairing, columns of scales, and the mean; then the γ×γ matrices at the scales `shown`."""
    data, model, scales = document["data"], document["model"], document["arguments"]["scales"]
    names = {"matched": "σ-matched heads", "same": "same head", "best": "best pair"}
    pairings = PAIRINGS if model["heads"] > 1 else ("same",)
    rows = []
    for variant, label in zip(VARIANTS, ("", ", without the mean of each map", ", not squared"), strict=True):
        for pairing in pairings:
            values = [*(row[variant][pairing] for row in document["errors"]), document["mean"][variant][pairing]]
            rows.append([f"{names[pairing]}{label}", *(f"{value:.3f}" for value in values)])
    lines = [
        f"# Equivariance error of {model['name']} on {data['dataset']}, {data['split']}",
        "",
        f"Δ_s = ‖S_s Φ(f) − Φ′(S_s f)‖² / ‖S_s Φ(f)‖² of the logits, mean over {data['windows']} windows.",
        "",
        markdown_table(["test scale", *map(scale_label, scales), "mean"], rows),
    ]
    if model["heads"] > 1:
        for row in document["errors"]:
            if row["scale"] in shown:
                lines += ["", *_matrix_lines(row, document["sigmas"])]
    return "\n".join([*lines, "", source_line(document)]) + "\n"


def _matrix_lines(row: dict[str, Any], sigmas: Sequence[float]) -> list[str]:
    """Head k on the original image down, head k′ on the rescaled one across; the matched pairs in bold."""
    matched = matched_heads(sigmas, row["scale"])
    rows = []
    for k, values in enumerate(row[VARIANTS[0]]["matrix"]):
        cells = [f"**{value:.3f}**" if other == matched[k] else f"{value:.3f}" for other, value in enumerate(values)]
        rows.append([f"{sigmas[k]:.2f}", *cells])
    return [
        f"s = {scale_label(row['scale'])}: σ of the last layer on the original image down, on the rescaled one across; "
        "matched in bold.",
        "",
        markdown_table(["σ", *(f"{sigma:.2f}" for sigma in sigmas)], rows),
    ]
