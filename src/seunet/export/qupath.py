"""A model for QuPath without Python: a folder as its InstanSeg extension takes it.

The extension reads `rdf.yaml` (name, pixel size, channels) and calls `instanseg.pt` with one tile as float32
[1, 3, H, W], every channel brought to 0 … 1 by its 0.1 and 99.9 percentiles over the annotation and clipped to
−0.5 … 1.5.  The first thing it gets back is an image of labels [1, 1, H, W]: 0, or the number of an object.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import torch
import yaml
from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from seunet.errors import InputError
from seunet.export.choice import CITATION, Chosen
from seunet.export.portable import PortableNetwork
from seunet.export.write import checked, script_of
from seunet.storage.files import sha256

TYPICAL_LOW: Final = (41 / 255, 19 / 255, 58 / 255)
TYPICAL_HIGH: Final = (253 / 255, 242 / 255, 245 / 255)
"""The 0.1 and 99.9 percentiles of red, green and blue, mean over the training images of MoNuSeg: the extension
normalises by those of the annotation and does not tell them; H&E on a white background is alike in this."""

NECK_PX: Final = 3
"""Nuclei that hang together by less than twice this are parted."""
MIN_AREA_PX: Final = 10


class LabelledTiles(nn.Module):
    """A normalised tile → numbered objects, float32 [1, 1, H, W]."""

    def __init__(self, network: PortableNetwork) -> None:
        super().__init__()
        self.network = network
        low, high = torch.tensor(TYPICAL_LOW)[:, None, None], torch.tensor(TYPICAL_HIGH)[:, None, None]
        self.register_buffer("low", low)
        self.register_buffer("span", high - low)
        self.neck_px, self.min_area_px = NECK_PX, MIN_AREA_PX

    def forward(self, images: Tensor, target_segmentation: Tensor | None = None) -> Tensor:
        """The second argument is what the extension passes where outputs are chosen; there is one output here."""
        if images.dim() == 3:
            images = images[None]
        pixels = (images * self.span + self.low).clamp(0.0, 1.0)  # type: ignore[operator]
        probabilities = self.network(pixels)
        found: list[Tensor] = []
        for number in range(probabilities.shape[0]):
            inside = probabilities[number].argmax(0) > 0
            found.append(labelled(inside, self.neck_px, self.min_area_px))
        return torch.stack(found)[:, None].float()


def labelled(inside: Tensor, neck_px: int, min_area_px: int) -> Tensor:
    """Objects of a mask [H, W], numbered from 1: cores that remain when `neck_px` are taken off, grown back."""
    mask = inside.float()
    core = mask
    for _ in range(neck_px):
        core = 1.0 - grown(1.0 - core)
    labels = connected(core)
    for _ in range(2 * neck_px):
        labels = torch.where((labels == 0) & inside, grown(labels), labels)
    # What is too thin to have a core is an object by itself.
    rest = connected(((labels == 0) & inside).to(mask))
    labels = torch.where(rest > 0, rest + labels.max(), labels)
    return renumbered(labels.long(), min_area_px)


def grown(values: Tensor) -> Tensor:
    """The largest of a pixel and its four neighbours, [H, W]; beyond the image there is nothing."""
    image = values[None, None]
    across = max_pool2d(image, [1, 3], [1, 1], [0, 1])
    down = max_pool2d(image, [3, 1], [1, 1], [1, 0])
    return torch.maximum(across, down)[0, 0]


def connected(mask: Tensor) -> Tensor:
    """4-connected parts of a mask [H, W] of 0 and 1, each with a number of its own, as float64.

    Every pixel takes the largest number around it, and then the number of the pixel that this number stands for:
    numbers run along a part in few rounds, whatever its length.
    """
    numbers = torch.arange(1, mask.numel() + 1, device=mask.device, dtype=torch.float64).view(mask.shape)
    labels = numbers * mask
    before = labels - 1
    while bool((before != labels).any()):
        before = labels
        flat = (grown(labels) * mask).flatten()
        places = (flat.long() - 1).clamp(min=0)
        labels = torch.maximum(flat, flat[places] * mask.flatten()).view(mask.shape)
    return labels


def renumbered(labels: Tensor, min_area_px: int) -> Tensor:
    """1, 2, … for the labels of at least so many pixels, 0 for the others."""
    flat = labels.flatten()
    areas = torch.bincount(flat)
    kept = areas >= min_area_px
    kept[0] = False
    return torch.where(kept, kept.cumsum(0), torch.zeros_like(areas))[flat].view(labels.shape)


def write_qupath(chosen: Chosen, folder: Path) -> dict[str, Any]:
    """instanseg.pt, rdf.yaml and a page about it."""
    network = chosen.network()
    if chosen.mpp is None:
        raise InputError(f"{chosen.name}: has no µm per pixel in its card, which QuPath needs; train with a stated mpp")
    if chosen.model.in_channels != 3:
        raise InputError(f"{chosen.name}: takes {chosen.model.in_channels} channels; QuPath gives three")
    scripted = script_of(LabelledTiles(network))
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
