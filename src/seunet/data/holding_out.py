"""Which images choose the weights and are never learnt from: by patient, so that nothing learnt judges itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from seunet.data.manifest import ImageEntry, Manifest
from seunet.errors import InputError, check_known


class HeldOut(NamedTuple):
    """Images to learn from, images held out, and by which rule."""

    learnt_from: list[ImageEntry]
    images: list[ImageEntry]
    rule: str

    @property
    def names(self) -> list[str]:
        return [image.name for image in self.images]

    def __str__(self) -> str:
        learnt = f"learns from {_counted(self.learnt_from)}"
        return (
            f"{learnt}; held out: {_counted(self.images)} ({self.rule})" if self.images else f"{learnt}; none held out"
        )


def hold_out(manifest: Manifest, root: Path, names: Sequence[str] | None, every: int | None) -> HeldOut:
    """The images `names`; else the set's split `validation`; else all images of every n-th training patient.

    Patients are in the order of their first image by name, so that where each has one image this is every n-th image.
    A patient, or the same pixels, on both sides is refused.
    """
    training = sorted((image for image in manifest.images if image.split == "train"), key=lambda image: image.name)
    own_split = [image for image in manifest.images if image.split == "validation"]
    if names is not None:
        chosen, rule = _named(training, names), "`data.hold_out`"
    elif own_split:
        chosen, rule = own_split, "the set's own split `validation`"
    elif every is not None:
        drawn = list(dict.fromkeys(image.patient for image in training))[::every]
        chosen, rule = [image for image in training if image.patient in drawn], f"one of every {every} patients"
    else:
        raise InputError(
            f"{root}: has no split `validation`; set `data.hold_out_every` or `data.hold_out` ([] for "
            "none), or prepare the set with --validation"
        )
    held = {image.name for image in chosen}
    learnt_from = [image for image in training if image.name not in held]
    if not learnt_from:
        patients = {image.patient for image in chosen}
        why = f", as all are of patient {chosen[0].patient}" if len(patients) == 1 else ""
        raise InputError(
            f"{root}: no training images are left beside the {len(chosen)} held out{why}; hold out fewer by "
            "`data.hold_out` ([] for none: the last weights are then kept)"
        )
    _refuse_leaks(learnt_from, chosen)
    return HeldOut(learnt_from, chosen, rule)


def together(held: Sequence[HeldOut]) -> HeldOut:
    """What several sets learn from and hold out; the same pixels on both sides are refused, whichever sets they are of.

    Patients of different sets are different ones, even if their names are the same.
    """
    learnt_from = [image for one in held for image in one.learnt_from]
    images = [image for one in held for image in one.images]
    _refuse_twins(learnt_from, images)
    return HeldOut(learnt_from, images, "; ".join(dict.fromkeys(one.rule for one in held)))


def every_nth_image(manifest: Manifest, names: Sequence[str] | None, every: int | None) -> list[str]:
    """What runs held out that do not say so: every n-th image before the set's split, whosever it was."""
    if names is not None:
        return list(names)
    if every is not None:
        return sorted(image.name for image in manifest.images if image.split == "train")[::every]
    return [image.name for image in manifest.images if image.split == "validation"]


def _named(training: list[ImageEntry], names: Sequence[str]) -> list[ImageEntry]:
    known = {image.name: image for image in training}
    for name in names:
        check_known("image in `data.hold_out`", name, known)
    return [known[name] for name in dict.fromkeys(names)]


def _refuse_leaks(learnt_from: Sequence[ImageEntry], held_out: Sequence[ImageEntry]) -> None:
    patients: dict[str, str] = {}
    for image in learnt_from:
        patients.setdefault(image.patient, image.name)
    for image in held_out:
        other = patients.get(image.patient)
        if other is not None:
            raise InputError(
                f"leak: {image.name} is held out and {other}, of the same patient {image.patient}, is learnt from; "
                "hold out all images of a patient or none (`data.hold_out`)"
            )
    _refuse_twins(learnt_from, held_out)


def _refuse_twins(learnt_from: Sequence[ImageEntry], held_out: Sequence[ImageEntry]) -> None:
    pixels = {image.image.pixel_sha256: image.name for image in reversed(learnt_from)}
    for image in held_out:
        twin = pixels.get(image.image.pixel_sha256)
        if twin is not None:
            raise InputError(
                f"leak: {image.name} is held out and {twin}, learnt from, has the same pixels; leave one of them out "
                "of the set, or give both one patient"
            )


def _counted(images: Sequence[ImageEntry]) -> str:
    count, patients = len(images), len({image.patient for image in images})
    return f"{count} image{'s' * (count != 1)} of {patients} patient{'s' * (patients != 1)}"
