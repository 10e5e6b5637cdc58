"""The loop: steps, validation, checkpoints, logs; stoppable after any step and resumable to the same bytes."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from seunet.atomic import write_text
from seunet.errors import InputError, ResourceError, SeunetError
from seunet.layers.scalewise import ScaleNorm2d
from seunet.models.gaussian import SEUNet
from seunet.models.registry import create_model
from seunet.models.skeleton import ScaleUNet
from seunet.training import checkpoint as files
from seunet.training.config import TrainingConfig, learning_fields, to_yaml
from seunet.training.journal import Journal, rounded
from seunet.training.machine import Meter
from seunet.training.processes import Processes
from seunet.training.recipe import make_optimizer, one_cycle, set_pace
from seunet.training.run_folder import RunFolder
from seunet.training.sources import ShareSampler, Sources, batches, check_shares, image_names
from seunet.training.step import Batch, Trainer, largest_that_fits, out_of_memory
from seunet.training.validation import validate


class DivergedError(SeunetError):
    """The loss is no number any more; the last good checkpoint is kept."""

    exit_code = 5


class StepReport(NamedTuple):
    """What a step came to."""

    step: int
    total_steps: int
    epoch: int
    loss: float
    head_losses: list[float]
    head_weights: list[float]
    learning_rate: float
    windows_per_second: float


class ValidationReport(NamedTuple):
    """What the held-out images said after `step` steps."""

    step: int
    epoch: int
    iou: float
    best_iou: float
    ious: dict[str, Any]
    sigmas: list[list[float]] | None


class Observer(Protocol):
    """Someone who watches a run: a progress bar, TensorBoard."""

    def on_step(self, report: StepReport) -> None: ...

    def on_validation(self, report: ValidationReport, model: ScaleUNet, sources: Sources) -> None: ...


class Outcome(NamedTuple):
    """How a run ended: `finished`, or stopped after `step` steps and ready to be resumed."""

    finished: bool
    step: int
    total_steps: int
    best_iou: float | None


@dataclass
class _State:
    """Where a run stands, beside the tensors."""

    step: int = 0
    best_iou: float | None = None
    best_step: int = 0
    log_bytes: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


def train(
    config: TrainingConfig,
    folder: Path,
    processes: Processes,
    *,
    resume: bool = False,
    overwrite: bool = False,
    observers: tuple[Observer, ...] = (),
    stop_wanted: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Train what `config` says into `folder`, from the start or from its last checkpoint."""
    run = Run(config, RunFolder(folder), processes, resume, overwrite, observers, clock)
    return run.until_done(stop_wanted)


class Run:
    """A run that is going on: everything it needs, set up once."""

    def __init__(
        self,
        config: TrainingConfig,
        folder: RunFolder,
        processes: Processes,
        resume: bool,
        overwrite: bool,
        observers: tuple[Observer, ...],
        clock: Callable[[], float],
    ) -> None:
        self.config, self.folder, self.processes = config, folder, processes
        self.observers = observers if processes.lead else ()
        if config.machine.threads is not None:
            torch.set_num_threads(config.machine.threads)
        self.sources = Sources(config.data, config.seed)
        check_shares(self.sources.training, config.recipe.batch, processes, config.data.root)
        self.model = _make_model(config, self.sources)
        self.steps_per_epoch = len(self.sources.training) // config.recipe.batch
        self.total_steps = self.steps_per_epoch * config.recipe.epochs
        self.identity: dict[str, Any] = {"config": learning_fields(config), "data": self.sources.data_hash}
        if processes.lead:
            folder.claim(resume, overwrite)
        processes.wait()
        self.state = _State()
        kept = self._kept() if resume else None
        self.model.to(processes.device)
        self.optimizer = make_optimizer(self.model, config.recipe.weight_decay)
        recipe = config.recipe
        self.trainer = Trainer(
            self.model,
            self.optimizer,
            processes,
            accumulate=recipe.accumulate,
            clip_norm=recipe.clip_norm,
            precision=recipe.precision,
        )
        if kept is not None:
            self._restore(kept)
        self.meter = Meter(clock, processes.device)
        self._clock, self._last_checkpoint = clock, clock()
        if processes.lead:
            self._open_files(resume)
        self.sources.training.preload()

    # Starting and resuming.

    def _open_files(self, resume: bool) -> None:
        self.folder.sweep()
        write_text(self.folder.config, to_yaml(self.config))
        self.folder.stopped.unlink(missing_ok=True)
        self.log = Journal(self.folder.log, self.state.log_bytes)
        self.clock_log = Journal(self.folder.clock)
        event = "resumed" if resume else "started"
        self.clock_log.append({"event": event, "step": self.state.step, **self.meter.machine(self.processes.size)})
        if not resume:
            self._write_last()

    def _kept(self) -> files.Checkpoint:
        """The last checkpoint, if it is of this config and this data."""
        kept = files.read_checkpoint(self.folder.last)
        before, now = kept.facts["config"], self.identity["config"]
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                raise InputError(
                    f"{self.folder.root}: `{name}` is {now.get(name, 'left out')}, the run was started with "
                    f"{before.get(name, 'it left out')}; resume with the same config or start another run"
                )
        if kept.facts["data"] != self.identity["data"]:
            raise InputError(
                f"{self.folder.root}: the set in {self.config.data.root} is not the one the run was started with; "
                "prepare that one again or start another run"
            )
        return kept

    def _restore(self, kept: files.Checkpoint) -> None:
        files.restore_model(kept, self.model)
        files.restore_optimizer(kept, self.optimizer, self.model)
        torch.set_rng_state(kept.tensors["rng/torch"])
        if kept.facts["scaler"]:
            self.trainer.scaler.load_state_dict(kept.facts["scaler"])
        self.state = _State(
            kept.facts["step"], kept.facts["best_iou"], kept.facts["best_step"], kept.facts["log_bytes"]
        )

    # The loop.

    def until_done(self, stop_wanted: Callable[[], bool]) -> Outcome:
        """Go on to the end, or to the first step after which any process is asked to stop."""
        state, per_epoch = self.state, self.steps_per_epoch
        stopped = False
        while state.step < self.total_steps and not stopped:
            epoch, done = divmod(state.step, per_epoch)
            for batch in self._batches(epoch, done):
                self._step(epoch, batch)
                if state.step % per_epoch == 0:
                    self._end_epoch(epoch)
                stopped = self.processes.any(stop_wanted())
                if stopped:
                    break
                self._checkpoint_if_due()
        self._finish(stopped)
        return Outcome(state.step == self.total_steps, state.step, self.total_steps, state.best_iou)

    def _batches(self, epoch: int, done: int):  # type: ignore[no-untyped-def]
        windows, seed = self.sources.training, self.config.seed
        sampler = ShareSampler(len(windows), self.config.recipe.batch, seed, epoch, done, self.processes)
        return batches(windows, sampler, self.config.machine.workers, self.processes.device.type == "cuda")

    def _step(self, epoch: int, batch: Batch) -> None:
        pace = one_cycle(self.state.step, self.total_steps, self.config.recipe.learning_rate)
        set_pace(self.optimizer, pace)
        self.model.train()
        batch = Batch(*(part.to(self.processes.device, non_blocking=True) for part in batch))
        weights = self.model.head_weights().detach()
        head_losses = self._gradient(batch)
        loss = float(torch.dot(weights, head_losses))
        if not math.isfinite(loss):
            self._stop_diverged(batch, head_losses)
        self.trainer.update()
        self.state.step += 1
        self.meter.count(self.config.recipe.batch)
        self._report_step(
            StepReport(
                self.state.step,
                self.total_steps,
                epoch,
                loss,
                head_losses.tolist(),
                weights.tolist(),
                pace.learning_rate,
                self.meter.windows_per_second(),
            )
        )

    def _gradient(self, batch: Batch) -> Tensor:
        try:
            return self.trainer.gradient(batch)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            self.optimizer.zero_grad(set_to_none=True)
        at_once = -(-len(batch.images) // self.trainer.accumulate)
        self.trainer.accumulate = 1
        fits = 0
        if self.processes.size == 1:  # alone, it can be tried; others would wait for this process for ever
            fits = largest_that_fits(
                at_once, lambda count: self.trainer.gradient(Batch(*(part[:count] for part in batch)))
            )
        side = batch.images.shape[-1]
        remedy = (
            f"{fits} at a time fit: --set recipe.accumulate={-(-len(batch.images) // fits)}"
            if fits
            else "raise `recipe.accumulate`, or use smaller crops (`data.augmentation.crop_px`) or widths"
        )
        raise ResourceError(f"out of memory with {at_once} windows of {side}×{side} at once; {remedy}")

    def _report_step(self, report: StepReport) -> None:
        if not self.processes.lead:
            return
        self.log.append(
            {
                "step": report.step,
                "epoch": report.epoch,
                "loss": rounded(report.loss),
                "head_losses": rounded(report.head_losses),
                "head_weights": rounded(report.head_weights),
                "learning_rate": rounded(report.learning_rate),
            }
        )
        for observer in self.observers:
            observer.on_step(report)

    def _end_epoch(self, epoch: int) -> None:
        """Validate where it is due, keep the weights if they are the best, and take a checkpoint."""
        last = self.state.step == self.total_steps
        if not last and (epoch + 1) % self.config.validation.every_epochs:
            return
        ious = validate(self.model, self.sources.validation, self.processes, self.config.validation.batch)
        iou = float(ious[self.config.validation.fusion])  # type: ignore[arg-type]
        better = self.state.best_iou is None or iou > self.state.best_iou
        if better:
            self.state.best_iou, self.state.best_step = iou, self.state.step
        if not self.processes.lead:
            return
        sigmas = rounded(self.model.sigmas().tolist()) if isinstance(self.model, SEUNet) else None
        row = {"step": self.state.step, "epoch": epoch, "validation": ious, "sigmas": sigmas}
        self.log.append(row)
        if better:
            facts = {**self.identity, "step": self.state.step, "iou": iou, "model": _identity_of(self.model)}
            files.write_checkpoint(self.folder.best, files.Checkpoint(files.model_tensors(self.model), facts))
        self._write_last()
        report = ValidationReport(self.state.step, epoch, iou, float(self.state.best_iou or 0), ious, sigmas)
        for observer in self.observers:
            observer.on_validation(report, self.model, self.sources)

    # Keeping.

    def _checkpoint_if_due(self) -> None:
        if self.processes.lead and self._clock() - self._last_checkpoint >= self.config.machine.checkpoint_seconds:
            self._write_last()

    def _write_last(self) -> None:
        self.state.log_bytes = self.log.sync()
        tensors = files.model_tensors(self.model) | files.optimizer_tensors(self.optimizer, self.model)
        tensors["rng/torch"] = torch.get_rng_state()
        facts = {
            **self.identity,
            "model": _identity_of(self.model),
            "step": self.state.step,
            "best_iou": self.state.best_iou,
            "best_step": self.state.best_step,
            "log_bytes": self.state.log_bytes,
            "scaler": self.trainer.scaler.state_dict(),
        }
        files.write_checkpoint(self.folder.last, files.Checkpoint(tensors, facts))
        self.clock_log.append({"event": "checkpoint", "step": self.state.step, **self.meter.readings()})
        self._last_checkpoint = self._clock()

    def _finish(self, stopped: bool) -> None:
        if not self.processes.lead:
            return
        if stopped:
            self._write_last()
        self.clock_log.append(
            {"event": "stopped" if stopped else "finished", "step": self.state.step, **self.meter.readings()}
        )
        self.log.close()
        self.clock_log.close()
        if self.folder.best.is_file():
            export_model(self.folder.best, self.folder.model)

    def _stop_diverged(self, batch: Batch, head_losses: Tensor) -> None:
        """The parameters have not been touched by this step, and the last checkpoint is older still."""
        names = image_names(self.sources.training, batch.numbers.tolist())
        step = self.state.step + 1
        losses = [str(loss) for loss in head_losses.tolist()]
        if self.processes.lead:
            where = {"step": step, "windows": batch.numbers.tolist(), "images": names, "head_losses": losses}
            write_text(self.folder.stopped, json.dumps(where))
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise DivergedError(
            f"{self.folder.root}: the loss of step {step} is not finite (windows of {shown}; all in "
            f"{self.folder.stopped.name}); the last good checkpoint is kept: lower `recipe.learning_rate` or set "
            "`recipe.clip_norm`, and look at those images"
        )


def _make_model(config: TrainingConfig, sources: Sources) -> ScaleUNet:
    """Fresh weights drawn from the seed, with as many classes as the data has unless the config says otherwise."""
    options, known = config.model.options, sources.manifest.classes
    classes = options.pop("classes", None)
    needed = max(entry.code for entry in known) + 1
    if classes is not None and isinstance(classes, int) and classes < needed:
        beyond = next(entry for entry in known if entry.code >= classes)
        raise InputError(
            f"{config.data.root}: class {beyond.code} ({beyond.name}) is not among the {classes} of `model.classes`; "
            f"set it to {needed} or leave it out"
        )
    torch.manual_seed(config.seed)
    chosen = needed if classes is None else classes
    model = create_model(config.model.name, preset=config.model.preset, classes=chosen, **options)
    if config.recipe.sync_norm:
        for module in model.modules():
            if isinstance(module, ScaleNorm2d):
                module.synced = True
    return model


def _identity_of(model: ScaleUNet) -> dict[str, Any]:
    return {"name": model.name, "options": model.config.model_dump(mode="json")}


def export_model(source: Path, folder: Path) -> None:
    """The weights of a checkpoint as a model folder that `seunet.load` reads."""
    kept = files.read_checkpoint(source)
    model = create_model(kept.facts["model"]["name"], **kept.facts["model"]["options"])
    files.restore_model(kept, model)
    model.save_pretrained(folder)
