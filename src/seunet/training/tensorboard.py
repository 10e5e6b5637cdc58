"""TensorBoard: curves, predictions and σ over time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seunet.data.joined_windows import JoinedWindows
from seunet.data.windows import WindowDataset
from seunet.errors import StorageError
from seunet.maths.fusion import fuse
from seunet.maths.rim import without_rim
from seunet.models.unet_skeleton import ScaleUNet
from seunet.storage.jsonl import rows
from seunet.training.loading import Sources
from seunet.training.run_folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from seunet.training.observers import StepReport, ValidationReport

PICTURES = 4
"""Held-out windows that are shown, evenly spread over them."""

EVERY_STEPS = 10


@contextmanager
def board(folder: Path, wanted: bool) -> Iterator[Board | None]:
    """A writer into RUN/tensorboard; None if unwanted or if TensorBoard is not installed (the `train` extra)."""
    if not wanted:
        yield None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        yield None
        return
    run = RunFolder(folder)

    def writer(step: int) -> SummaryWriter:
        _wait_for_a_later_name(run.board)
        return SummaryWriter(str(run.board), purge_step=step)

    shown = Board(writer, run)
    # TensorBoard writes in a thread and raises again here what it could not: the thread need not say so as well.
    before = threading.excepthook
    threading.excepthook = lambda failed: None if isinstance(failed.exc_value, OSError) else before(failed)
    try:
        yield shown
    finally:
        try:
            shown.close()
        finally:
            threading.excepthook = before


def _wait_for_a_later_name(folder: Path) -> None:
    """TensorBoard reads its files in the order of their names, which begin with the second they were made in."""
    while any(folder.glob(f"events.out.tfevents.{int(time.time()):010d}.*")):
        time.sleep(0.05)


class Board:
    """An observer that draws.  The writer is made at the first report: by then the folder is known to be ours."""

    def __init__(self, make_writer: Callable[[int], Any], run: RunFolder) -> None:
        self._make_writer, self._run = make_writer, run
        self._writer: Any = None

    @contextmanager
    def _writing(self, step: int) -> Iterator[Any]:
        """The writer, whose complaints are those of a disk."""
        try:
            if self._writer is None:
                self._writer = self._make_writer(step)
            yield self._writer
        except OSError as error:
            raise StorageError(
                f"{self._run.board}: cannot be written ({error.strerror or error}); free space or set "
                "`machine.tensorboard` to false"
            ) from error

    def on_step(self, report: StepReport) -> None:
        with self._writing(report.step) as writer:
            if report.step % EVERY_STEPS:
                return
            writer.add_scalar("loss", report.loss, report.step)
            for head, (loss, weight) in enumerate(zip(report.head_losses, report.head_weights, strict=True), start=1):
                writer.add_scalar(f"head {head}/loss", loss, report.step)
                writer.add_scalar(f"head {head}/weight", weight, report.step)
            writer.add_scalar("learning rate", report.learning_rate, report.step)
            writer.add_scalar("windows per second", report.windows_per_second, report.step)

    def on_validation(self, report: ValidationReport, model: ScaleUNet, sources: Sources) -> None:
        picture = None if sources.validation is None else prediction_picture(model, sources.validation)
        with self._writing(report.step) as writer:
            for name, value in report.ious.items():
                if name != "heads":
                    writer.add_scalar(f"validation IoU/{name}", value, report.step)
            for head, value in enumerate(report.ious["heads"], start=1):
                writer.add_scalar(f"validation IoU/head {head}", value, report.step)
            if picture is not None:
                writer.add_image("held-out windows", picture, report.step, dataformats="HWC")
            if report.sigmas is not None:
                writer.add_figure("σ of every layer", sigma_history_figure(self._run.log), report.step)
            writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            with self._writing(0) as writer:
                writer.close()


def prediction_picture(model: ScaleUNet, windows: WindowDataset | JoinedWindows) -> NDArray[np.uint8]:
    """Held-out windows in rows: image, truth, prediction by P_Ens; classes as shades from black to white."""
    model.eval()
    rows_of_pixels = []
    with torch.inference_mode():
        for index in np.linspace(0, len(windows) - 1, min(PICTURES, len(windows))).astype(int):
            image, mask, *_ = windows[int(index)]
            heads = without_rim(model(image[None].to(model.device)).softmax(2), model.rim)
            predicted = fuse(heads, "p_ens")[0].argmax(0).cpu()
            rgb = (image.permute(1, 2, 0) * 255).round().byte()
            parts = [rgb, _shades(mask, model.classes), _shades(predicted, model.classes)]
            rows_of_pixels.append(torch.cat(parts, dim=1))
    return torch.cat(rows_of_pixels).numpy()


def _shades(codes: Tensor, classes: int) -> Tensor:
    shade = codes.clamp(max=classes - 1) * (255 // max(classes - 1, 1))
    return shade.byte()[..., None].expand(*codes.shape, 3)


def sigma_history_figure(log: Path) -> Figure:
    """σ of every scale over the steps, one panel per layer, read from the log."""
    from matplotlib.figure import Figure

    history = [(row["step"], row["sigmas"]) for row in rows(log) if row.get("sigmas")]
    steps, sigmas = [step for step, _ in history], np.array([values for _, values in history])
    layers = sigmas.shape[1]
    columns = min(6, layers)
    figure = Figure(figsize=(2 * columns, 1.7 * -(-layers // columns)), layout="constrained")
    panels = figure.subplots(-(-layers // columns), columns, sharex=True, sharey=True, squeeze=False).ravel()
    for layer, panel in enumerate(panels):
        if layer >= layers:
            panel.set_axis_off()
            continue
        panel.plot(steps, sigmas[:, layer], linewidth=1)
        panel.set_title(f"layer {layer + 1}", fontsize=7)
        panel.tick_params(labelsize=6)
    figure.supxlabel("step", fontsize=8)
    figure.supylabel("σ in pixels", fontsize=8)
    return figure
