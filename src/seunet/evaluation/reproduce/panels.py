"""Systems side by side on one window at several scales: image, truth, and what each of them predicts (Appendix D).

What a system predicts is kept as small PNG files of class codes when it is measured: the picture can be drawn again
without its weights.  Image and truth come from the data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from seunet.data.manifest import MANIFEST
from seunet.data.windows import WindowDataset
from seunet.evaluation.figures.panels import PANEL_SCALES, Panel, panel, panels_figure, window_at
from seunet.evaluation.page import Block, Heading, Picture
from seunet.evaluation.predictors import ways_of_predicting
from seunet.evaluation.reproduce.protocol import Protocol, tile_numbers
from seunet.evaluation.run import open_windows
from seunet.images.pillow_codec import decode_codes, encode_png, read_image
from seunet.maths.confusion import confusion_matrix, headline_iou
from seunet.models.unet_skeleton import ScaleUNet
from seunet.storage.atomic import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FUSION = "p_ens"


def write_predictions(model: ScaleUNet, protocol: Protocol, folder: Path) -> None:
    """What `model` predicts, blind, for the window that is shown: FOLDER/panels/0.25.png …; what is there is kept."""
    if _are_there(folder):
        return
    windows, (blind,) = _windows(protocol), ways_of_predicting(("blind",))
    for scale in PANEL_SCALES:
        ((_, codes, _),) = panel(model.eval(), windows, _shown(windows), scale, [blind], FUSION).predictions
        write_bytes(_file(folder, scale), encode_png(codes.to(torch.uint8).numpy()))


def panel_blocks(protocol: Protocol, folders: Mapping[str, Path], figures: Path) -> list[Block]:
    """The picture of the systems in `folders`; where the data set is not there, as it was drawn before."""
    shown = {name: folders[name] for name in protocol.panels if name in folders and _are_there(folders[name])}
    path = figures / "panels.png"
    drawable = (protocol.data / MANIFEST).is_file()
    if not shown or not (drawable or path.is_file()):
        return []
    caption = "One window at several scales: image, truth, and each system, blind, with its IoU (Appendix D)."
    draw = partial(_figure, protocol, shown) if drawable else None
    return [Heading("Side by side"), Picture(path, caption, draw)]


def _figure(protocol: Protocol, folders: Mapping[str, Path]) -> Figure:
    windows = _windows(protocol)
    number, classes = _shown(windows), sorted(windows.manifest.classes, key=lambda entry: entry.code)
    panels = []
    for scale in PANEL_SCALES:
        pixels, mask = window_at(windows, number, scale)
        found = [(name, _codes(folder, scale)) for name, folder in folders.items()]
        rated = [(name, codes, headline_iou(confusion_matrix(codes, mask, len(classes)))) for name, codes in found]
        panels.append(Panel(scale, pixels, mask, tuple(rated)))
    colors, names = [each.color for each in classes], [each.name for each in classes]
    return panels_figure(panels, colors, windows.image_name(number), names)


def _codes(folder: Path, scale: float) -> Tensor:
    path = _file(folder, scale)
    return torch.from_numpy(decode_codes(read_image(path), str(path)).pixels).long()


def _are_there(folder: Path) -> bool:
    return all(_file(folder, scale).is_file() for scale in PANEL_SCALES)


def _file(folder: Path, scale: float) -> Path:
    return folder / "panels" / f"{scale:g}.png"


def _windows(protocol: Protocol) -> WindowDataset:
    return open_windows(protocol.data, protocol.split, None, tile_numbers(protocol.tiles))


def _shown(windows: WindowDataset) -> int:
    return len(windows) // 2
