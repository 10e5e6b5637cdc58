"""Which images a model may be judged by: those it did not learn from, told by the hashes of their pixels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seunet.data.manifest import ImageEntry, read_manifest
from seunet.errors import InputError, check_known
from seunet.models.unet_skeleton import ScaleUNet

LEARNING = ("train", "validation")
"""The splits that choices are made on; `test` is for the numbers that are published."""


def images_to_fit(root: Path, model: ScaleUNet, names: Sequence[str] | None = None) -> list[ImageEntry]:
    """The images of a set that `model` is calibrated on: those named, or all it did not learn from but the test images.

    Images it learnt from are refused where they are named: a model is surer of them than of a user's.
    """
    entries = read_manifest(root).images
    known = {entry.name: entry for entry in entries}
    for name in names or ():
        check_known("image", name, known)
    learnt = set(() if model.card is None else model.card.learnt_from)
    if names is not None:
        chosen = [known[name] for name in names]
        check_not_learnt(root, chosen, learnt)
        return chosen
    if not learnt:
        raise InputError(
            f"the card of this {model.name} does not say which images it learnt from; name held-out ones with --images"
        )
    chosen = [entry for entry in entries if entry.split in LEARNING and entry.image.pixel_sha256 not in learnt]
    if not chosen:
        raise InputError(
            f"{root}: the model learnt from every image but the test images; train with some held out "
            "(`data.hold_out_every`), or prepare others"
        )
    return chosen


def check_not_learnt(root: Path, entries: Sequence[ImageEntry], learnt: set[str]) -> None:
    """Refuse images whose pixels the model learnt from."""
    seen = [entry.name for entry in entries if entry.image.pixel_sha256 in learnt]
    if seen:
        more = f" and {len(seen) - 1} more" if len(seen) > 1 else ""
        raise InputError(
            f"{root}: the model learnt from {seen[0]}{more}, and is surer of it than of a user's image; "
            "name held-out images"
        )
