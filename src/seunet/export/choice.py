"""What of a model is exported: at which σ, which heads, fused how."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any, Final

from seunet.errors import InputError
from seunet.export.portable import PortableNetwork, portable_network
from seunet.limits import MPP_RANGE
from seunet.models.files import load, weights_sha256
from seunet.models.heads_to_use import AUTO, filter_range, fusion_of
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet

CITATION: Final = {
    "text": "Yang, Dasmahapatra, Mahmoodi: Scale-Equivariant UNet for Histopathology Image Segmentation",
    "url": "https://arxiv.org/abs/2304.04595",
}

MATCHED: Final = "matched"
ALL: Final = "all"


@dataclass(frozen=True)
class Chosen:
    """A model as it leaves."""

    name: str
    model: ScaleUNet
    """With σ × s."""
    heads: tuple[int, ...]
    """From 0."""
    fusion: str

    def network(self, multiple: int = 1) -> PortableNetwork:
        return portable_network(self.model, self.heads, self.fusion, multiple)

    @property
    def mpp(self) -> float | None:
        """µm per pixel that its images should have."""
        card = self.model.card
        factor = self.model.factor if isinstance(self.model, SEUNet) else 1.0
        return None if card is None or card.mpp is None else card.mpp / factor

    @property
    def class_names(self) -> tuple[str, ...]:
        card = self.model.card
        named = card.class_names if card is not None else ()
        return named or tuple(f"class {code}" for code in range(self.model.classes))

    @property
    def licence(self) -> dict[str, str]:
        """The entry of a description by bioimage.io; none where the card's licence has no such name."""
        spdx = None if self.model.card is None else self.model.card.spdx
        return {} if spdx is None else {"license": spdx}

    def facts(self) -> dict[str, Any]:
        """What whoever finds the files should know."""
        card = self.model.card
        return {
            "model": self.name,
            "architecture": self.model.name,
            "weights_sha256": weights_sha256(self.model),
            **({} if self.model.source is None else {"source": self.model.source}),
            "sigma_factor": self.model.factor if isinstance(self.model, SEUNet) else 1.0,
            "heads": [head + 1 for head in self.heads],
            "fusion": self.fusion if len(self.heads) > 1 else None,
            "mpp": self.mpp,
            "class_names": list(self.class_names),
            "input": "RGB in 0 … 1, float32 [batch, 3, height, width], any height and width",
            "output": "probabilities, float32 [batch, classes, height, width]",
            "trained_on": "" if card is None else card.trained_on,
            "licence": "" if card is None else card.licence,
        }


def choose(name_or_folder: str | os.PathLike[str], *, scale: float = 1.0, head: str = "auto") -> Chosen:
    """`scale`: by how much structures are larger than in training; `head`: auto, matched, all or a number from 1."""
    model = load(name_or_folder)
    if scale != 1:
        if not isinstance(model, SEUNet):
            raise InputError(f"{model.name} has no σ to be multiplied; leave out --scale and resample its images")
        _check_scale(model, scale)
        model = model.at_scale(scale)
    name = os.path.basename(os.fspath(name_or_folder).rstrip("/")) or "model"
    return Chosen(name, model, _heads(model, head), str(fusion_of(model, AUTO, False)))


def _check_scale(model: SEUNet, scale: float) -> None:
    """A word where filters so much larger or smaller do worse than images resampled; no µm per pixel that cannot be."""
    if not scale > 0:
        raise InputError(f"--scale {scale:g}: must be a positive number")
    card = model.card
    if card is None or card.mpp is None:
        return
    low, high = MPP_RANGE
    if not low <= card.mpp / scale <= high:
        raise InputError(
            f"--scale {scale:g}: is for {card.mpp / scale:.3g} µm per pixel; must be from {low:g} to {high:g}"
        )
    first, last = filter_range(model)
    if not first <= scale <= last:
        warnings.warn(
            f"--scale {scale:g}: only filters × {first:.2g} to × {last:.2g} are known to be as good as resampling; "
            f"leave --scale out and resample the images to {card.mpp:g} µm per pixel",
            stacklevel=2,
        )


def _heads(model: ScaleUNet, head: str) -> tuple[int, ...]:
    matched = None if model.card is None else model.card.matched_head
    if head == MATCHED and matched is None:
        raise InputError(f"--head {MATCHED}: the model's card names no matched head; give all, or 1 to {model.heads}")
    if model.heads == 1 or head == ALL or (head == "auto" and matched is None):
        return tuple(range(model.heads))
    number = str(matched) if head in (MATCHED, "auto") else head
    if not number.isdecimal() or not 1 <= int(number) <= model.heads:
        raise InputError(f"--head {head}: must be auto, {MATCHED}, {ALL} or a number from 1 to {model.heads}")
    return (int(number) - 1,)
