"""`seunet train`: parse, call, print."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from seunet.cli.fitting import check_finish, finish
from seunet.cli.progress import PROGRESS, progress_of
from seunet.cli.stopping import EXIT_INTERRUPTED, EXIT_TERMINATED
from seunet.memory import keep_freed_memory
from seunet.progress import Progress

if TYPE_CHECKING:
    from seunet.models.unet_skeleton import ScaleUNet
    from seunet.training.loading import Sources
    from seunet.training.observers import Observer, StepReport, TrainingOutcome, ValidationReport

CONFIG = typer.Argument(
    ...,
    readable=False,
    metavar="CONFIG",
    help="A YAML file, or a name that `seunet configs list` shows; with --resume also the folder of the run.",
)
RUN = typer.Option(None, "-o", "--out", readable=False, metavar="RUN", help="The folder of the run.")
SET = typer.Option([], "--set", metavar="NAME=VALUE", help="Change a value of the config, e.g. recipe.batch=8.")
RESUME = typer.Option(False, "--resume", help="Resume the run in RUN from its last checkpoint: train RUN --resume.")
OVERWRITE = typer.Option(False, "--overwrite", help="Replace the run in RUN.")
PRINT_CONFIG = typer.Option(False, "--print-config", help="Print the whole config and exit.")
DATA = typer.Option(None, "--data", readable=False, metavar="DEST", help="A prepared set; short for --set data.root=….")
DEVICE = typer.Option(None, "--device", metavar="auto|cpu|cuda", help="Short for --set machine.device=….")
WORKERS = typer.Option(None, "--workers", "--num-workers", min=0, max=256, help="Short for --set machine.workers=….")


def train(
    config: Path = CONFIG,
    out: Path | None = RUN,
    data: Path | None = DATA,
    set_values: list[str] = SET,
    resume: bool = RESUME,
    overwrite: bool = OVERWRITE,
    print_config: bool = PRINT_CONFIG,
    device: str | None = DEVICE,
    workers: int | None = WORKERS,
    progress: bool = PROGRESS,
) -> None:
    """Train a model. Ctrl-C and SIGTERM write a checkpoint first; with --resume the weights end the same.

    Example: seunet train nuclei-fine-tune --data prepared/lab -o runs/lab
    Example: seunet train configs/monuseg-cpu.yaml -o runs/nuclei --set recipe.epochs=10
    """
    from seunet.settings import to_yaml
    from seunet.training.config import read_config

    short = {"data.root": data, "machine.device": device, "machine.workers": workers}
    overrides = [*set_values, *(f"{name}={value}" for name, value in short.items() if value is not None)]
    if resume and config.is_dir():
        out, config = out or config, _config_of_run(config)
    chosen = read_config(config, overrides)
    if print_config:
        print(to_yaml(chosen), end="")
        return
    if out is None:
        raise typer.BadParameter("needs the folder of the run", param_hint="-o")

    from seunet.training.distributed import joined
    from seunet.training.loop import train as run_training

    check_finish(chosen)
    keep_freed_memory()
    stop = StopOnSignal()
    with joined(chosen.machine.device) as processes, stop.listening():
        shown, drawn = progress and processes.lead, chosen.machine.tensorboard and processes.lead
        with training_observers(out, shown, drawn) as observers:
            outcome = run_training(
                chosen,
                out,
                processes,
                resume=resume,
                overwrite=overwrite,
                observers=observers,
                stop_wanted=lambda: stop.received is not None,
                say=print,
            )
    if processes.lead:
        _print_outcome(outcome, out)
    if not outcome.finished:
        raise typer.Exit(stop.exit_code)
    if processes.lead:
        finish(chosen, out / "model", progress)


def _config_of_run(run: Path) -> Path:
    from seunet.training.run_folder import RunFolder

    folder = RunFolder(run)
    folder.check(resume=True, overwrite=False)
    return folder.config


@contextmanager
def training_observers(out: Path, shown: bool, drawn: bool) -> Iterator[tuple[Observer, ...]]:
    """The observers of a run: a progress bar if `shown`, TensorBoard if `drawn`."""
    from seunet.training.tensorboard import board

    with progress_of(shown, every_text=False) as show, board(out, drawn) as writer:
        bar = _Shown(show) if shown else None
        yield tuple(observer for observer in (bar, writer) if observer is not None)


class StopOnSignal:
    """The first Ctrl-C or SIGTERM lets the step end and a checkpoint be taken; the second ends at once."""

    def __init__(self) -> None:
        self.received: int | None = None

    @property
    def exit_code(self) -> int:
        return EXIT_INTERRUPTED if self.received == signal.SIGINT else EXIT_TERMINATED

    @contextmanager
    def listening(self) -> Iterator[None]:
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def note(number: int, _frame: FrameType | None) -> None:
            self.received = number
            signal.signal(number, before[signal.Signals(number)])
            print("seunet: stopping after this step, with a checkpoint; press again to stop at once", file=sys.stderr)

        try:
            for number in before:
                signal.signal(number, note)
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _print_outcome(outcome: TrainingOutcome, out: Path) -> None:
    best = f", best validation IoU {outcome.best_iou:.4f}" if outcome.best_iou is not None else ""
    if outcome.finished:
        print(f"finished {outcome.total_steps} steps{best}: {out / 'model'}")
    else:
        print(f"stopped after step {outcome.step} of {outcome.total_steps}{best}; resume: seunet train {out} --resume")


class _Shown:
    """Loss, IoU and rate of every step, handed to the progress of the command."""

    def __init__(self, show: Progress) -> None:
        self._show, self._validated = show, ""

    def on_step(self, report: StepReport) -> None:
        text = f"loss {report.loss:.4f}{self._validated}  {report.windows_per_second:.1f} windows/s"
        self._show(report.step, report.total_steps, text)

    def on_validation(self, report: ValidationReport, model: ScaleUNet, sources: Sources) -> None:
        self._validated = f"  IoU {report.iou:.4f} (best {report.best_iou:.4f})"
        if not sys.stderr.isatty():
            print(f"epoch {report.epoch + 1}:{self._validated}", file=sys.stderr)
