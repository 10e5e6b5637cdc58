"""A model on a data set at many magnifications, by several ways of predicting (paper section 4, tables 1 and 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from seunet.data.windows import WindowDataset
from seunet.evaluation.confusions import confusions, images_of
from seunet.evaluation.estimated_scale import estimate_at, estimate_facts, estimator_for, training_mpp
from seunet.evaluation.predictors import PYRAMID_FACTORS, Predict, Way, pixels_seen, ways_of_predicting
from seunet.evaluation.provenance import data_notes, identity_of, sigma_facts
from seunet.evaluation.report_folder import ReportFolder
from seunet.evaluation.scores import scores
from seunet.evaluation.test_scales import TEST_SCALES, check_scales, check_way_scales
from seunet.maths.fusion import CALIBRATED, FUSIONS
from seunet.maths.rescaling import scaled_size
from seunet.models.heads_to_use import fusion_of, model_mpp
from seunet.models.sureness import second_opinion
from seunet.models.unet_skeleton import ScaleUNet
from seunet.progress import Progress, silent
from seunet.scale.estimator import ScaleEstimator

FORMAT: Final = "seunet-evaluation/1"


@dataclass(frozen=True)
class EvaluationSettings:
    """What is evaluated, and how."""

    split: str = "test"
    images: tuple[str, ...] | None = None
    tiles_px: tuple[int, ...] | None = None
    """Size and stride of windows other than those of the set."""
    scales: tuple[float, ...] = TEST_SCALES
    ways: tuple[str, ...] = ("blind",)
    way_scales: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Some of `scales`, for ways that are too dear for all of them."""
    fusions: tuple[str, ...] = FUSIONS
    antialias: bool = False
    estimator: ScaleEstimator | None = None
    """Of the way `estimated`; where it is None, that of the model's files."""


DEFAULTS: Final = EvaluationSettings()


def open_windows(
    root: Path, split: str, images: Sequence[str] | None, tiles_px: tuple[int, ...] | None = None
) -> WindowDataset:
    """The windows of a split, never written to disk and held an image at a time."""
    return WindowDataset(root, split, images=images, cache_bytes=2**62, tiles_px=tiles_px)


def evaluate(
    model: ScaleUNet,
    data: Path,
    out: Path,
    settings: EvaluationSettings = DEFAULTS,
    *,
    overwrite: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """The report of `model` on `data`, also written to OUT/evaluation.json.

    Each (way, scale) is kept in OUT when it is finished; an interrupted run resumes after the last of them and
    ends with the same report but for its field `clock`.
    """
    run = _Run(model, data, settings)
    folder = ReportFolder(out, "evaluation")

    def work(document: dict[str, Any]) -> None:
        run.work_through(document, folder, progress)
        document["scores"] = scores(document)

    begun = {"notes": data_notes(run.identity["data"], model_mpp(model)), "sigma": sigma_facts(model)}
    return folder.made(run.identity, begun, "scores", work, overwrite)


class _Run:
    """Everything that is known before the first window is read."""

    def __init__(self, model: ScaleUNet, data: Path, settings: EvaluationSettings) -> None:
        for name in settings.fusions:
            fusion_of(model, name, scale_known=False)  # refuses what the model cannot
        self.model, self.settings = model.eval(), settings
        self.windows = open_windows(data, settings.split, settings.images, settings.tiles_px)
        check_scales(settings.scales, self.windows.size_px)
        check_way_scales(settings.way_scales, settings.scales)
        self.ways = ways_of_predicting(settings.ways, settings.antialias)
        for way in self.ways:
            way.at_scale(self.model, settings.scales[0])  # refuses what the model cannot
        estimating = any(way.estimates for way in self.ways)
        self.estimator = estimator_for(model, settings.estimator) if estimating else None
        self.training_mpp = training_mpp(model, self.windows) if estimating else None
        way_scales = {way: list(scales) for way, scales in settings.way_scales.items()}
        arguments = {
            "scales": list(settings.scales),
            "ways": [way.name for way in self.ways],
            **({"way_scales": way_scales} if way_scales else {}),
            "fusions": list(settings.fusions),
            "antialias": settings.antialias,
            **({} if model.device.type == "cpu" else {"device": model.device.type}),
            "pyramid_factors": list(PYRAMID_FACTORS),
        }
        if self.estimator is not None:
            arguments |= {"estimator": self.estimator.sha256(), "training_mpp": self.training_mpp}
        self.identity = identity_of(FORMAT, model, self.windows, settings.split, arguments)

    def work_through(self, document: dict[str, Any], folder: ReportFolder, progress: Progress) -> None:
        """Every (way, scale) that is not yet among the results."""
        scales_of = {way.name: self.settings.way_scales.get(way.name, self.settings.scales) for way in self.ways}
        # What a window costs, for the time left.
        parts = [
            (way, scale, pixels_seen(way.name, scale, self.windows.size_px))
            for way in self.ways
            for scale in scales_of[way.name]
        ]
        finished = {(row["way"], row["scale"]) for row in document["results"]}
        total, done = sum(each for *_, each in parts) * len(self.windows), 0
        for way, scale, each in parts:
            if (way.name, scale) in finished:
                done += each * len(self.windows)
                continue

            def advance(windows: int, each: int = each, text: str = f"{way.name}, s = {scale:.3g}") -> None:
                nonlocal done
                done += each * windows
                progress(done, total, text)

            advance(0)
            with folder.part(document, f"{way.name} {scale:.4g}"):
                self._finish(way, scale, document, advance)

    def _finish(self, way: Way, scale: float, document: dict[str, Any], on_windows: Callable[[int], None]) -> None:
        """Each image's windows, at the true scale or at what is estimated from the whole image."""
        settings, names = self.settings, way.head_names(self.model)
        fusions = [name for name in settings.fusions if len(names) > 1 and (way.own_heads or name != CALIBRATED)]
        predict, known = self._predictor(way, scale), way.scale_known
        found: dict[str, torch.Tensor] = {}
        estimates: dict[str, Any] = {}
        for image, numbers in images_of(self.windows):
            if way.estimates:
                assert self.estimator is not None
                assert self.training_mpp is not None
                own = self.estimator is self.model.scale_estimator
                sureness = second_opinion(self.model) if own else None
                whole = self.windows.whole(numbers[0])
                estimate = estimate_at(whole, scale, self.estimator, settings.antialias, sureness)
                estimates[image] = estimate_facts(self.training_mpp, estimate)
                predict, known = self._predictor(way, estimates[image]["scale"]), estimate.known
            chosen = [fusion_of(self.model, name, known) for name in fusions]
            found[image] = confusions(
                predict, self.windows, scale, chosen, settings.antialias, on_windows, of_image=image
            )
        rows = dict(zip((*names, *fusions), torch.stack(list(found.values())).sum(0).tolist(), strict=True))
        result = {
            "way": way.name,
            "scale": scale,
            "size_px": scaled_size(self.windows.size_px, scale),
            "confusions": rows,
            # Per image the matrices in the order of `confusions`: two models can be compared image by image.
            "by_image": {image: matrices.tolist() for image, matrices in found.items()},
        }
        document["results"].append(result | ({"estimates": estimates} if way.estimates else {}))

    def _predictor(self, way: Way, scale: float | None) -> Predict:
        with torch.inference_mode():
            return way.at_scale(self.model, scale)
