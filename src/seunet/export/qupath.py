"""A model for QuPath without Python: a folder as its InstanSeg extension takes it.

The extension reads `rdf.yaml` (name, pixel size, channels) and calls `instanseg.pt` with one tile as float32
[1, 3, H, W], every channel brought to 0 … 1 by its 0.1 and 99.9 percentiles over the annotation and clipped to
−0.5 … 1.5.  The first thing it gets back is an image of labels [1, 1, H, W]: 0, or the number of an object.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor, nn

from seunet.errors import InputError
from seunet.export.choice import CITATION, Chosen
from seunet.export.portable import PortableNetwork
from seunet.export.qupath_objects import parted, renumbered
from seunet.export.qupath_pixels import OriginalPixels
from seunet.export.write import checked, script_of
from seunet.models.object_rule import MIN_AREA_UM2, MIN_CORE_PX, NECK, SLACK_PX
from seunet.storage.files import sha256


class LabelledTiles(nn.Module):
    """A normalised tile → numbered objects, float32 [1, 1, H, W], as `seunet segment` finds them."""

    def __init__(self, chosen: Chosen, network: PortableNetwork, mpp: float) -> None:
        super().__init__()
        self.pixels, self.network = OriginalPixels(), network
        card = chosen.model.card
        counted = card is not None and card.instances
        self.has_rim, self.rim_odds = chosen.model.rim is not None, 1.0 if card is None else card.rim_odds
        # Without a neck nothing is parted: regions are not.
        self.neck, self.slack_px, self.min_core_px = NECK if counted else 0.0, SLACK_PX, MIN_CORE_PX
        self.min_area_px = math.ceil(MIN_AREA_UM2 / mpp**2 * (1 - 1e-9))

    def forward(self, images: Tensor, target_segmentation: Tensor | None = None) -> Tensor:
        """The second argument is what the extension passes where outputs are chosen; there is one output here."""
        if images.dim() == 3:
            images = images[None]
        found: list[Tensor] = []
        for probabilities in self.network(self.pixels(images)):
            found.append(self.objects(probabilities))
        return torch.stack(found)[:, None].float()

    def objects(self, probabilities: Tensor) -> Tensor:
        """Of the probabilities [classes, H, W], the rim being the last class where there is one."""
        rim: Tensor | None = None
        if self.has_rim:
            rim = probabilities[-1] > self.rim_odds * probabilities[-2]
            together = (probabilities[-2] + probabilities[-1])[None]
            probabilities = torch.cat([probabilities[:-2], together])
        classes = probabilities.argmax(0)
        labels = torch.zeros_like(classes)
        for code in range(1, probabilities.shape[0]):
            parts = parted(classes == code, rim, self.neck, self.slack_px, self.min_core_px)
            labels = torch.where(parts > 0, parts + labels.max(), labels)
        return renumbered(labels, self.min_area_px)


def write_qupath(chosen: Chosen, folder: Path) -> dict[str, Any]:
    """instanseg.pt, rdf.yaml and a page about it."""
    network = chosen.network()
    if chosen.mpp is None:
        raise InputError(f"{chosen.name}: has no µm per pixel in its card, which QuPath needs; train with a stated mpp")
    if chosen.model.in_channels != 3:
        raise InputError(f"{chosen.name}: takes {chosen.model.in_channels} channels; QuPath gives three")
    scripted = script_of(LabelledTiles(chosen, network, chosen.mpp))
    path = folder / "instanseg.pt"
    torch.jit.save(scripted, path)
    (folder / "rdf.yaml").write_text(yaml.safe_dump(_description(chosen, path), sort_keys=False, allow_unicode=True))
    (folder / f"{chosen.name}_README.md").write_text(_page(chosen))
    return {
        "file": path.name,
        "output": "labels, float32 [1, 1, height, width]: 0, or the number of an object",
        **checked(chosen, lambda images: network(torch.from_numpy(images)).numpy()),
    }


def _description(chosen: Chosen, path: Path) -> dict[str, Any]:
    """rdf.yaml in the version that QuPath's own reader takes."""
    axes = [{"role": role, "step": chosen.mpp, "unit": "microns"} for role in ("x", "y")]
    return {
        "format_version": "0.4.10",
        "type": "model",
        "name": chosen.name,
        "description": f"{', '.join(chosen.class_names[1:])} in H&E, by seunet",
        "authors": [{"name": "seunet"}],
        "cite": [CITATION],
        **chosen.licence,
        "documentation": f"{chosen.name}_README.md",
        "tags": ["segmentation", "nuclei", "H&E"],
        "inputs": [
            {
                "name": "raw",
                "axes": "bcyx",
                "data_type": "float32",
                "shape": {"min": [1, 3, 128, 128], "step": [0, 0, 1, 1]},
            }
        ],
        "outputs": [
            {
                "name": "instance",
                "axes": "bcyx",
                "data_type": "float32",
                # The reader takes twice the offset of the channels for their number.
                "shape": {"reference_tensor": "raw", "scale": [1, 0, 1, 1], "offset": [0, 0.5, 0, 0]},
            }
        ],
        "weights": {"torchscript": {"source": path.name, "sha256": sha256(path.read_bytes())}},
        "config": {"qupath": {"axes": axes}},
    }


def _page(chosen: Chosen) -> str:
    card = chosen.model.card
    trained = "" if card is None else f"\nTrained on {card.trained_on}.\n\nLicence: {card.licence}\n"
    return f"# {chosen.name}\n\nFinds {', '.join(chosen.class_names[1:])} at {chosen.mpp:g} µm per pixel.\n{trained}"
