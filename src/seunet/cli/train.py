"""`seunet train`: parse, call, print."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from seunet.memory import keep_freed_memory

if TYPE_CHECKING:
    from seunet.models.unet_skeleton import ScaleUNet
    from seunet.training.loading import Sources
    from seunet.training.observers import Observer, StepReport, TrainingOutcome, ValidationReport

EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
LINE_SECONDS = 30.0
"""How often a line is printed where there is no terminal to draw a bar on."""

CONFIG = typer.Argument(
    ..., readable=False, metavar="CONFIG", help="A YAML file, or a name that `seunet configs list` shows."
)
RUN = typer.Option(None, "-o", "--out", readable=False, metavar="RUN", help="The folder of the run.")
SET = typer.Option([], "--set", metavar="NAME=VALUE", help="Change a value of the config, e.g. recipe.batch=8.")
RESUME = typer.Option(False, "--resume", help="Resume the run in RUN from its last checkpoint.")
OVERWRITE = typer.Option(False, "--overwrite", help="Replace the run in RUN.")
PRINT_CONFIG = typer.Option(False, "--print-config", help="Print the whole config and exit.")
DATA = typer.Option(None, "--data", readable=False, metavar="DEST", help="A prepared set; short for --set data.root=….")
DEVICE = typer.Option(None, "--device", metavar="auto|cpu|cuda", help="Short for --set machine.device=….")
WORKERS = typer.Option(None, "--workers", "--num-workers", min=0, max=256, help="Short for --set machine.workers=….")
PROGRESS = typer.Option(True, "--progress/--no-progress", help="Show progress.")


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
    chosen = read_config(config, overrides)
    if print_config:
        print(to_yaml(chosen), end="")
        return
    if out is None:
        raise typer.BadParameter("needs the folder of the run", param_hint="-o")

    from seunet.training.distributed import joined
    from seunet.training.loop import train as run_training

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


@contextmanager
def training_observers(out: Path, shown: bool, drawn: bool) -> Iterator[tuple[Observer, ...]]:
    """The observers of a run: a progress bar if `shown`, TensorBoard if `drawn`."""
    from seunet.training.tensorboard import board

    with _progress(shown) as bar, board(out, drawn) as writer:
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
        print(f"stopped after step {outcome.step} of {outcome.total_steps}{best}; resume with --resume: {out}")


@contextmanager
def _progress(show: bool) -> Iterator[Observer | None]:
    """A bar with loss, IoU, rate and time left on a terminal, plain lines elsewhere, nothing on request."""
    if not show:
        yield None
    elif not sys.stderr.isatty():
        yield _Lines()
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=Console(stderr=True)) as bar:
            yield _Bar(bar)


class _Bar:
    def __init__(self, bar: Any) -> None:
        self._bar, self._task, self._validated = bar, bar.add_task("starting", total=None), ""

    def on_step(self, report: StepReport) -> None:
        text = f"loss {report.loss:.4f}{self._validated}  {report.windows_per_second:.1f} windows/s"
        self._bar.update(self._task, completed=report.step, total=report.total_steps, description=text)

    def on_validation(self, report: ValidationReport, model: ScaleUNet, sources: Sources) -> None:
        self._validated = f"  IoU {report.iou:.4f} (best {report.best_iou:.4f})"


class _Lines:
    """A line every half minute and at every validation."""

    def __init__(self) -> None:
        self._start = self._printed = time.monotonic()
        self._first_step: int | None = None

    def on_step(self, report: StepReport) -> None:
        now = time.monotonic()
        self._first_step = report.step - 1 if self._first_step is None else self._first_step
        if now - self._printed >= LINE_SECONDS or report.step == report.total_steps:
            left = (now - self._start) / (report.step - self._first_step) * (report.total_steps - report.step)
            self._printed = now
            print(
                f"[{report.step}/{report.total_steps}] loss {report.loss:.4f}  "
                f"{report.windows_per_second:.1f} windows/s  {left / 60:.0f} min left",
                file=sys.stderr,
            )

    def on_validation(self, report: ValidationReport, model: ScaleUNet, sources: Sources) -> None:
        print(f"epoch {report.epoch + 1}: IoU {report.iou:.4f} (best {report.best_iou:.4f})", file=sys.stderr)
