"""The loop: steps, validation, checkpoints; stoppable after any step and resumable to the same bytes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from seunet.errors import ResourceError, SeunetError
from seunet.training.config import TrainingConfig
from seunet.training.distributed import Processes
from seunet.training.loading import ShareSampler, batches
from seunet.training.new_model import model_and_sources
from seunet.training.observers import Meter, Observer, StepReport, TrainingOutcome, ValidationReport
from seunet.training.optimizer import make_optimizer, one_cycle, set_pace
from seunet.training.run_files import Keeper, Progress, kept_before, restore
from seunet.training.run_folder import RunFolder
from seunet.training.trainer import Batch, Trainer, out_of_memory
from seunet.training.validation import ious_of, only_class, validation_counts, what_to_look_at

GLANCE_WINDOWS: Final = 8
"""Of the training windows, where no image is held out: enough to see whether classes are told apart."""


class DivergedError(SeunetError):
    """The loss or its gradient is no number any more; the last good checkpoint is kept."""

    exit_code = 5


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
    say: Callable[[str], object] = lambda _line: None,
) -> TrainingOutcome:
    """Train what `config` says into `folder`, from the start or from its last checkpoint.

    `say` is told, in lines for people, what was decided and what looks wrong.
    """
    place, run = RunFolder(folder), None
    try:
        run = Run(config, place, processes, resume, overwrite, observers, clock, say)
        return run.until_done(stop_wanted)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise ResourceError(
            f"{folder}: out of memory between the steps; lower `validation.batch` or the widths, or prepare the set "
            "with smaller windows"
        ) from None
    finally:
        if run is not None and run.keeper is not None:
            run.keeper.close()
        place.release()


def epochs_of(config: TrainingConfig, steps_per_epoch: int) -> tuple[int, int]:
    """How many there are, and after how many of them the held-out images are looked at."""
    recipe, rules = config.recipe, config.validation
    epochs = recipe.epochs if recipe.steps is None else max(round(recipe.steps / steps_per_epoch), 1)
    return epochs, rules.every_epochs if rules.times is None else max(epochs // rules.times, 1)


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
        say: Callable[[str], object],
    ) -> None:
        self.config, self.folder, self.processes = config, folder, processes
        self._say = say if processes.lead else lambda _line: None
        self._tells_apart = True
        self.observers = observers if processes.lead else ()
        if config.machine.threads is not None:
            torch.set_num_threads(config.machine.threads)
        model, self.sources, lines = model_and_sources(config, processes, folder.last if resume else None)
        optimizer = make_optimizer(model.to(processes.device), config.recipe.weight_decay)
        self.trainer = Trainer(model, optimizer, processes, config.recipe)
        self.steps_per_epoch = self.sources.training.epoch_windows // config.recipe.batch
        epochs, self.validate_every = epochs_of(config, self.steps_per_epoch)
        self.total_steps = self.steps_per_epoch * epochs
        folder.claim(processes, resume, overwrite)
        self.progress = restore(kept_before(folder, config, self.sources), self.trainer) if resume else Progress()
        self.meter = Meter(clock, processes.device)
        self._clock, self._last_checkpoint = clock, clock()
        self.keeper = (
            Keeper(folder, config, self.sources, self.trainer, self.progress, self.meter) if processes.lead else None
        )
        for line in lines:
            self._say(line)
        self.sources.training.preload()

    def until_done(self, stop_wanted: Callable[[], bool]) -> TrainingOutcome:
        """Go on to the end, or to the first step after which any process is asked to stop."""
        progress, stopped = self.progress, False
        if self.keeper is not None:
            self.keeper.begin()
        while progress.step < self.total_steps and not stopped:
            epoch, done = divmod(progress.step, self.steps_per_epoch)
            for batch in self._batches(epoch, done):
                self._step(epoch, batch)
                if progress.step % self.steps_per_epoch == 0:
                    self._end_epoch(epoch)
                stopped = self.processes.any(stop_wanted())
                if stopped:
                    break
                if self._clock() - self._last_checkpoint >= self.config.machine.checkpoint_seconds:
                    self._checkpoint()
        if self.keeper is not None:
            if stopped:
                self.keeper.checkpoint()
            self.keeper.end("stopped" if stopped else "finished")
        return TrainingOutcome(progress.step == self.total_steps, progress.step, self.total_steps, progress.best_iou)

    def _batches(self, epoch: int, done: int) -> DataLoader:
        windows, seed = self.sources.training, self.config.seed
        bands = len(windows.scale_bands)
        keys = windows.epoch_keys(seed, epoch)
        sampler = ShareSampler(keys, self.config.recipe.batch, done, self.processes, bands)
        return batches(windows, sampler, self.config.machine.workers, self.processes.device.type == "cuda")

    def _step(self, epoch: int, batch: Batch) -> None:
        model = self.trainer.begin_step()
        pace = one_cycle(self.progress.step, self.total_steps, self.config.recipe.learning_rate)
        set_pace(self.trainer.optimizer, pace)
        batch = Batch(*(part.to(self.processes.device, non_blocking=True) for part in batch))
        weights = model.head_weights().detach()
        loss, head_losses = self._gradient(batch)
        if not math.isfinite(loss) or not self.trainer.finite_gradient():
            self._stop_diverged(batch, head_losses)
        self.trainer.update()
        self.progress.step += 1
        self.meter.count(self.config.recipe.batch)
        if self.keeper is None:
            return
        report = StepReport(
            self.progress.step,
            self.total_steps,
            epoch,
            float(loss),
            head_losses.tolist(),
            weights.tolist(),
            pace.learning_rate,
            self.meter.windows_per_second(),
        )
        self.keeper.note_step(report)
        for observer in self.observers:
            observer.on_step(report)

    def _gradient(self, batch: Batch) -> tuple[Tensor, Tensor]:
        try:
            return self.trainer.gradient(batch)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            self.trainer.optimizer.zero_grad(set_to_none=True)
        # Windows of heads of their own come in whole sets, and what is tried does not.
        raise self.trainer.too_large(batch, attempts=not self.sources.training.scale_bands)

    def _stop_diverged(self, batch: Batch, head_losses: Tensor) -> NoReturn:
        """Nothing was moved by this step, and the last checkpoint is older still."""
        windows, step = self.processes.gathered(batch.numbers).tolist(), self.progress.step + 1
        names = sorted({self.sources.training.image_name(number) for number in windows})
        if self.keeper is not None:
            self.keeper.note_diverged(step, windows, names, head_losses.tolist())
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise DivergedError(
            f"{self.folder.root}: the loss or gradient of step {step} is not finite (windows of {shown}; all in "
            f"{self.folder.stopped.name}); the last good checkpoint is kept: lower `recipe.learning_rate` or set "
            "`recipe.clip_norm`, and look at those images"
        )

    def _end_epoch(self, epoch: int) -> None:
        """Validate where it is due, keep the weights if they are the best, and take a checkpoint."""
        progress, rules, held_out = self.progress, self.config.validation, self.sources.validation
        last = progress.step == self.total_steps
        if held_out is None:
            if last:
                learnt = validation_counts(
                    self.trainer.judged, self.sources.training, self.processes, 1, GLANCE_WINDOWS
                )
                self._say_if_one_class(learnt, last)
            if last and self.keeper is not None:
                self.keeper.keep_best()
                self._checkpoint()
            return
        if not last and (epoch + 1) % self.validate_every:
            return
        # Norms that are not synced differ by process; what is judged is what is kept.
        judged = self.trainer.judged
        self.processes.follow_lead(judged.buffers())
        counts = validation_counts(judged, held_out, self.processes, rules.batch)
        ious = ious_of(counts)
        self._say_if_one_class(counts, last)
        progress.recent_ious = [*progress.recent_ious, float(ious[rules.fusion])][-rules.mean_of_last :]
        iou = sum(progress.recent_ious) / len(progress.recent_ious)
        # A set of held-out windows without the class has no IoU: anything is better than that.
        better = progress.best_iou is None or math.isnan(progress.best_iou) or iou > progress.best_iou
        if better:
            progress.best_iou, progress.best_step = iou, progress.step
        if self.keeper is None:
            return
        sigmas = self.keeper.note_validation(epoch, ious)
        if better:
            self.keeper.keep_best()
        self._checkpoint()
        report = ValidationReport(progress.step, epoch, iou, float(progress.best_iou or 0), ious, sigmas)
        for observer in self.observers:
            observer.on_validation(report, judged, self.sources)

    def _say_if_one_class(self, counts: Tensor, last: bool) -> None:
        """Once on the way, and at the end with what to look at."""
        code = only_class(counts, self.config.validation.fusion)
        if code is not None and (last or self._tells_apart):
            self._tells_apart = False
            note = f"note: after step {self.progress.step} every pixel is predicted {self.sources.class_name(code)}"
            advice = what_to_look_at(self.config, self.sources.class_shares(), self.total_steps)
            self._say(f"{note}: {advice}" if last else note)

    def _checkpoint(self) -> None:
        if self.keeper is not None:
            self.keeper.checkpoint()
        self._last_checkpoint = self._clock()
