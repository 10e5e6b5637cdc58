"""`seunet fit-scale` and `seunet calibrate`: fit, and write what was found into the files of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from seunet.data.manifest import ImageEntry, Manifest, read_manifest
from seunet.errors import InputError
from seunet.evaluation.fitting.head_choices import HeadChoices, chosen_heads
from seunet.evaluation.fitting.head_samples import sampled_heads
from seunet.evaluation.fitting.held_out import LEARNING, images_to_fit
from seunet.evaluation.fitting.scale_fit import LeftOut, check_groups, error_scores, fit_estimator
from seunet.evaluation.fitting.scale_samples import LOOKED_AT_PARTS, observed
from seunet.images import pillow_codec as raster
from seunet.models.card import ModelCard
from seunet.models.files import load
from seunet.models.places import model_folder
from seunet.models.sureness import sureness_of
from seunet.pretrained import BUILT_IN
from seunet.progress import Progress, silent
from seunet.scale.estimator import ScaleEstimator

LEAST_SETS: Final = 3
"""From so many sets on, a whole set is left out at a time instead of a patient."""
SAMPLES: Final = 60


class ScaleFit(NamedTuple):
    """An estimator, and how it does on images that were left out of it."""

    estimator: ScaleEstimator
    left_out: list[LeftOut]

    def scores(self) -> dict[str, Any]:
        """Of images that were only rescaled, and of changed parts; coverage and half-width of the 90 % interval."""
        limits = self.estimator.limits if self.estimator.heads is None else self.estimator.heads.limits
        kept = [sample for sample in self.left_out if sample.distance <= limits.distance]
        half = [limits.half_interval(sample.distance, sample.width) for sample in kept]
        covered = sum(abs(sample.error) <= width for sample, width in zip(kept, half, strict=True))
        return {
            "whole_images": error_scores([sample.error for sample in kept if sample.plain]),
            "changed_parts": error_scores([sample.error for sample in kept if not sample.plain]),
            "refused": round(1 - len(kept) / len(self.left_out), 4),
            "interval_covers": round(covered / len(kept), 4),
            "interval_half_width": round(2 ** median(half), 3),
        }


class SetImage(NamedTuple):
    """An image of one of several sets."""

    set_name: str
    root: Path
    entry: ImageEntry

    @property
    def name(self) -> str:
        return f"{self.set_name}/{self.entry.name}"


def fit_scale(
    prepared: Sequence[Path],
    model: str | Path,
    samples: int = SAMPLES,
    progress: Progress = silent,
    keep_texture: bool = False,
) -> ScaleFit:
    """Fit a scale estimator on the training images of prepared sets and write it beside the model.

    Texture is about pixels and not about the network, so images that the network learnt from may be used; test images
    are not read.  Images need an mpp.  A network of several heads looks at some samples as well.  `keep_texture`: fit
    only what its heads say, beside the templates of the texture that the model has.
    """
    folder = _own_folder(model)
    network = load(folder)
    texture = network.scale_estimator if keep_texture else None
    if keep_texture and (texture is None or network.heads < 2):
        raise InputError(f"{model}: has no scale estimator or one head only; leave --keep-texture out")
    items = images_with_mpp(prepared)
    mpp = median(item.entry.mpp or 0.0 for item in items) if texture is None else texture.mpp
    sureness = sureness_of(network) if network.heads > 1 else None
    samples = LOOKED_AT_PARTS if keep_texture else samples
    images = []
    for number, item in enumerate(items):
        progress(number, len(items), item.entry.name)
        path = item.root / item.entry.image.path
        pixels = raster.decode_rgb(raster.read_image(path), item.entry.image.path).pixels
        images.append(observed(item.name, pixels, mpp / (item.entry.mpp or mpp), samples, sureness))
    sets = {item.name: item.set_name for item in items}
    patients = {item.name: f"{item.set_name}/{item.entry.patient}" for item in items}
    groups = sets if len(set(sets.values())) >= LEAST_SETS else patients
    manifests = {str(root): read_manifest(root) for root in prepared}
    fitted_on = {
        "sets": {manifest.dataset: manifest.content_hash() for manifest in manifests.values()},
        "images": len(images),
        "left_out_at_a_time": "a set" if groups is sets else "a patient",
        "command": "seunet fit-scale",
    }
    if texture is not None:
        fitted_on["texture"] = dict(texture.fitted_on)
    estimator, left_out = fit_estimator(images, groups.__getitem__, mpp, fitted_on, texture)
    found = ScaleFit(estimator, left_out)
    estimator.fitted_on["left_out"] = found.scores()  # type: ignore[index]
    network.scale_estimator = estimator
    if network.card is None or network.card.mpp is None:
        network.card = (network.card or ModelCard()).model_copy(update={"mpp": mpp})
    network.save_pretrained(folder)
    return found


def images_with_mpp(prepared: Sequence[Path]) -> list[SetImage]:
    """The images of the splits that choices are made on, each with its mpp, of enough patients."""
    result: list[SetImage] = []
    for root in prepared:
        manifest: Manifest = read_manifest(root)
        entries = [entry for entry in manifest.images if entry.split in LEARNING]
        if not entries:
            raise InputError(f"{root}: has no images in {' or '.join(LEARNING)}; a scale is not fitted on test images")
        unknown = [entry.name for entry in entries if entry.mpp is None]
        if unknown:
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            raise InputError(f"{root}: {unknown[0]}{more} have no mpp; prepare the set again with --mpp or a table")
        result += [SetImage(f"{manifest.dataset}:{root.name}", root, entry) for entry in entries]
    check_groups({f"{item.set_name}/{item.entry.patient}" for item in result})
    return result


def calibrate(
    prepared: Sequence[Path],
    model: str | Path,
    names: Sequence[str] | None = None,
    tiles_px: tuple[int, ...] | None = None,
    progress: Progress = silent,
) -> HeadChoices:
    """Choose heads, fusion, filter range and calibration on held-out images, and write them into the model's card."""
    folder = _own_folder(model)
    network = load(folder)
    if names is not None and len(prepared) > 1:
        raise InputError("--images are those of one set; give that set alone")
    if network.heads < 2:
        raise InputError(f"this {network.name} has one head: there is nothing to calibrate")
    entries = {root: images_to_fit(root, network, names) for root in prepared}
    samples = [one for root, own in entries.items() for one in sampled_heads(network, root, own, tiles_px, progress)]
    found = chosen_heads(samples)
    each = (f"{len(own)} held-out images of {read_manifest(root).dataset}" for root, own in entries.items())
    network.card = (network.card or ModelCard()).model_copy(
        update=found.card_fields() | {"calibrated_on": "; ".join(each)}
    )
    network.save_pretrained(folder)
    return found


def _own_folder(model: str | Path) -> Path:
    """The folder of a model that may be written to: not one of the package."""
    folder = model_folder(model)
    if BUILT_IN in folder.resolve().parents:
        copy = f"seunet.load('{model}').save_pretrained('my-{model}')"
        raise InputError(f"{model}: is a model of the package; make a copy (in Python: {copy}) and give that")
    return folder
