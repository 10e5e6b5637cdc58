"""AJI, PQ and F1 of a model on the whole images of a set, at one or many magnifications."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from seunet import __version__
from seunet.data.manifest import ImageEntry
from seunet.data.windows import WindowDataset
from seunet.evaluation.objects.as_segment import USUAL, Found, found_objects
from seunet.evaluation.objects.scores import image_scores, summary
from seunet.evaluation.provenance import data_facts, model_facts
from seunet.evaluation.report_folder import ReportFolder
from seunet.evaluation.test_scales import check_scales
from seunet.images import pillow_codec as raster
from seunet.maths.rescaling import rescale_mask, rescale_pixels
from seunet.models.heads_to_use import model_mpp
from seunet.models.unet_skeleton import ScaleUNet
from seunet.progress import Progress, silent
from seunet.segmentation.options import ScaleChoice

FORMAT: Final = "seunet-objects/1"
WAYS: Final = ("estimated", "stated")
"""Told nothing, and with the mpp of the image stated: both as `seunet segment` then does."""


@dataclass(frozen=True)
class ObjectSettings:
    """At which scales, in which ways, and how images are shrunk."""

    scales: tuple[float, ...] = (1.0,)
    ways: tuple[str, ...] = ("estimated",)
    antialias: bool = False


USUAL_SETTINGS: Final = ObjectSettings()


def has_objects(model: ScaleUNet, windows: WindowDataset) -> bool:
    """Whether the model finds things to count, and every image of these windows has its true ones."""
    counts = model.classes == 2 if model.card is None else model.card.instances
    return counts and all(entry.instances is not None for entry in images_used(windows))


def images_used(windows: WindowDataset) -> list[ImageEntry]:
    """The images that the windows are of."""
    return [windows.manifest.images[index] for index in sorted({row[0] for row in windows.rows})]


def evaluate_objects(
    model: ScaleUNet,
    windows: WindowDataset,
    split: str,
    out: Path,
    settings: ObjectSettings = USUAL_SETTINGS,
    *,
    overwrite: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """The report OUT/objects.json; each (way, scale) is kept when it is finished, and an interrupted run resumes."""
    entries = images_used(windows)
    check_scales(settings.scales, min(min(entry.width_px, entry.height_px) for entry in entries))
    data = {name: value for name, value in data_facts(windows, split).items() if not name.startswith("window")}
    arguments = {
        "scales": list(settings.scales),
        "ways": [way for way in WAYS if way in settings.ways],
        "antialias": settings.antialias,
        "choices": USUAL.deciding(),
        **({} if model.scale_estimator is None else {"estimator": model.scale_estimator.sha256()}),
    }
    identity = {
        "format": FORMAT,
        "seunet": __version__,
        "model": model_facts(model),
        "card": None if model.card is None else model.card.model_dump(mode="json"),
        "data": data,
        "arguments": arguments,
    }
    folder = ReportFolder(out, "objects")

    def work(document: dict[str, Any]) -> None:
        _work_through(model, windows, entries, settings, document, folder, progress)
        document["scores"] = summary(document)

    return folder.made(identity, {"notes": _notes(model, entries, settings)}, "scores", work, overwrite)


def _notes(model: ScaleUNet, entries: list[ImageEntry], settings: ObjectSettings) -> list[str]:
    unknown = sum(entry.mpp is None for entry in entries)
    notes = []
    if "stated" in settings.ways and unknown:
        notes.append(f"{unknown} of {len(entries)} images have no mpp: what is stated is that of the model")
    if model.scale_estimator is None:
        notes.append("the model has no scale estimator: told nothing, it is blind (`seunet fit-scale` makes one)")
    return notes


def _work_through(
    model: ScaleUNet,
    windows: WindowDataset,
    entries: list[ImageEntry],
    settings: ObjectSettings,
    document: dict[str, Any],
    folder: ReportFolder,
    progress: Progress,
) -> None:
    finished = {(row["way"], row["scale"]) for row in document["results"]}
    parts = [(way, scale) for way in document["arguments"]["ways"] for scale in settings.scales]
    total, done = len(parts) * len(entries), 0
    for way, scale in parts:
        if (way, scale) in finished:
            done += len(entries)
            continue
        by_image = {}
        with folder.part(document, f"{way} {scale:.4g}"):
            for entry, rgb, truth, ignored in _at_scale(windows, entries, scale, settings.antialias):
                progress(done, total, f"objects, {way}, s = {scale:.3g}")
                mpp = entry.mpp or model_mpp(model)
                stated = None if way == "estimated" or mpp is None else mpp / scale
                choice: ScaleChoice = "auto" if way == "estimated" else "stated"
                found = found_objects(rgb, model, stated, choice, model.device.type)
                by_image[entry.name] = image_scores(truth, found.numbers, ignored) | _scale_of(found)
                done += 1
            document["results"].append({"way": way, "scale": scale, "by_image": by_image})


def _scale_of(found: Found) -> dict[str, Any]:
    return {"relative_scale": None if found.relative_scale is None else round(found.relative_scale, 5)}


def _at_scale(
    windows: WindowDataset, entries: list[ImageEntry], scale: float, antialias: bool
) -> Iterator[tuple[ImageEntry, NDArray[np.uint8], NDArray[Any], NDArray[np.bool_]]]:
    """Each image with its true objects and what is to be ignored, all at `scale`."""
    for entry in entries:
        assert entry.instances is not None
        rgb, codes, truth = (
            decode(raster.read_image(windows.root / file.path), file.path).pixels
            for decode, file in (
                (raster.decode_rgb, entry.image),
                (raster.decode_codes, entry.mask),
                (raster.decode_codes, entry.instances),
            )
        )
        ignored = codes == windows.manifest.ignore_code
        if scale != 1:
            planes = torch.from_numpy(np.stack([truth.astype(np.int64), ignored.astype(np.int64)]))
            truth, ignored = rescale_mask(planes, scale).numpy()
        yield entry, rescale_pixels(rgb, scale, antialias), truth, ignored.astype(np.bool_)
