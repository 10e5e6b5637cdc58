"""What the lead process writes down: log, checkpoints, the best weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from seunet.data.holding_out import every_nth_image
from seunet.errors import InputError
from seunet.models.seunet import SEUNet
from seunet.scale.files import has_estimator, load_estimator, save_estimator
from seunet.settings import to_yaml
from seunet.storage.atomic import write_text
from seunet.storage.jsonl import Journal, rounded
from seunet.training import checkpoint as files
from seunet.training.checkpoint import model_facts, model_of
from seunet.training.config import TrainingConfig, learning_fields, read_config
from seunet.training.loading import Sources
from seunet.training.observers import Meter, StepReport
from seunet.training.run_folder import RunFolder
from seunet.training.trainer import Trainer


@dataclass
class Progress:
    """Where a run stands, beside the tensors."""

    step: int = 0
    best_iou: float | None = None
    best_step: int = 0
    log_bytes: int = 0
    recent_ious: list[float] = field(default_factory=list)
    """Of the last validations, as many as decide together."""


def kept_before(folder: RunFolder, config: TrainingConfig, sources: Sources) -> files.Checkpoint:
    """The last checkpoint of a run, if it is of this config and this data."""
    kept = files.read_checkpoint(folder.last)
    _check_same_fields(folder, kept.facts["config"], config)
    if kept.facts["data"] != sources.data_hash:
        places = ", ".join(str(one.root) for one in config.data.all_sets())
        raise InputError(
            f"{folder.root}: the set in {places} is not the one the run was started with; "
            "prepare that one again or start another run"
        )
    held_out = kept.facts.get(
        "held_out", every_nth_image(sources.manifest, config.data.hold_out, config.data.hold_out_every)
    )
    if set(held_out) != set(sources.held_out.names):
        raise InputError(
            f"{folder.root}: the run held out {', '.join(held_out)}; by this release's rule "
            f"({sources.held_out.rule}) {', '.join(sources.held_out.names)} are held out; start another run"
        )
    return kept


def check_same_config(folder: RunFolder, config: TrainingConfig) -> None:
    """Refuse a run whose written config would have learnt something else."""
    _check_same_fields(folder, learning_fields(read_config(folder.config)), config)


def _check_same_fields(folder: RunFolder, before: Mapping[str, str], config: TrainingConfig) -> None:
    now = learning_fields(config)
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            raise InputError(
                f"{folder.root}: `{name}` is {now.get(name, 'left out')}, the run was started with "
                f"{before.get(name, 'it left out')}; resume with the same config or start another run"
            )


def restore(kept: files.Checkpoint, trainer: Trainer) -> Progress:
    """Bring weights, optimiser, random numbers and loss scale back to where they were."""
    files.restore_model(kept, trainer.model)
    files.restore_optimizer(kept, trainer.optimizer, trainer.model)
    if trainer.averaged is not None:
        files.restore_model(kept, trainer.averaged, files.AVERAGED)
    torch.set_rng_state(kept.tensors["rng/torch"])
    if kept.facts["scaler"]:
        trainer.scaler.load_state_dict(kept.facts["scaler"])
    return Progress(**kept.facts["progress"])


class Keeper:
    """The open files of a run."""

    def __init__(
        self,
        folder: RunFolder,
        config: TrainingConfig,
        sources: Sources,
        trainer: Trainer,
        progress: Progress,
        meter: Meter,
    ) -> None:
        self._folder, self._trainer, self._progress, self._meter = folder, trainer, progress, meter
        self._identity = {
            "config": learning_fields(config),
            "data": sources.data_hash,
            "held_out": sources.held_out.names,
            "model": model_facts(trainer.model),
        }
        write_text(folder.config, to_yaml(config))
        folder.sweep()
        if trainer.model.scale_estimator is not None:
            save_estimator(trainer.model.scale_estimator, folder.root)
        self._log = Journal(folder.log, progress.log_bytes)
        self._clock_log = Journal(folder.clock)

    def begin(self) -> None:
        """Note when and on what; a run has a checkpoint from its first moment."""
        machine = self._meter.machine(self._trainer.processes.size)
        self._clock_log.append({"event": "started", "step": self._progress.step, **machine})
        if not self._folder.last.is_file():
            self.checkpoint()

    def note_step(self, report: StepReport) -> None:
        measured = ("loss", "head_losses", "head_weights", "learning_rate")
        values = {name: rounded(getattr(report, name)) for name in measured}
        self._log.append({"step": report.step, "epoch": report.epoch, **values})

    def note_validation(self, epoch: int, ious: dict[str, Any]) -> list[list[float]] | None:
        """Log the scores with every σ as it is now, which is returned."""
        model = self._trainer.judged
        sigmas = rounded(model.sigmas().tolist()) if isinstance(model, SEUNet) else None
        self._log.append({"step": self._progress.step, "epoch": epoch, "validation": ious, "sigmas": sigmas})
        return sigmas

    def checkpoint(self) -> None:
        """All that a run needs to go on from here."""
        trainer = self._trainer
        self._progress.log_bytes = self._log.sync()
        tensors = files.model_tensors(trainer.model) | files.optimizer_tensors(trainer.optimizer, trainer.model)
        if trainer.averaged is not None:
            tensors |= files.model_tensors(trainer.averaged, files.AVERAGED)
        tensors["rng/torch"] = torch.get_rng_state()
        facts = {**self._identity, "progress": asdict(self._progress), "scaler": trainer.scaler.state_dict()}
        files.write_checkpoint(self._folder.last, files.Checkpoint(tensors, facts))
        self._note_time("checkpoint")

    def keep_best(self) -> None:
        """The weights as they are now are the best so far."""
        facts = {**self._identity, "step": self._progress.step, "iou": self._progress.best_iou}
        files.write_checkpoint(self._folder.best, files.Checkpoint(files.model_tensors(self._trainer.judged), facts))

    def end(self, event: str) -> None:
        """The end, of the run or for now: the best weights become a model folder."""
        self._note_time(event)
        if self._folder.best.is_file():
            model = model_of(files.read_checkpoint(self._folder.best))
            model.scale_estimator = load_estimator(self._folder.root) if has_estimator(self._folder.root) else None
            model.save_pretrained(self._folder.model, overwrite=True)

    def close(self) -> None:
        """Let go of the files, however the run went."""
        self._log.close()
        self._clock_log.close()

    def note_diverged(self, step: int, windows: list[int], images: list[str], head_losses: list[float]) -> None:
        where = {"step": step, "windows": windows, "images": images, "head_losses": [str(x) for x in head_losses]}
        write_text(self._folder.stopped, json.dumps(where, ensure_ascii=False) + "\n")

    def _note_time(self, event: str) -> None:
        self._clock_log.append({"event": event, "step": self._progress.step, **self._meter.readings()})
