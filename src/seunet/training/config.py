"""What a training run is: one frozen, typed object, read from YAML and dotted overrides.

    config = read_config("configs/monuseg-cpu.yaml", ["recipe.epochs=2", "model.name=unet"])

Every key is known or refused; the sections are the keys of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from seunet.data.augment import Augmentation
from seunet.settings import Section, checked_settings, read_settings


class ModelSection(Section, extra="allow"):
    """`name`, `preset`, and beside them any option of that model; `classes` is taken from the data where left out."""

    name: str = "seunet"
    preset: str = "paper"

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class SetSection(Section):
    """A prepared set, and which of its training images are held out to choose by."""

    root: Path
    hold_out_every: int | None = Field(default=5, ge=2)
    """All images of every n-th training patient, where the set has no split `validation`; null asks for that split."""
    hold_out: tuple[str, ...] | None = None
    """The held-out images by name, instead; none for an empty list: then the last weights are kept as the best."""
    weight: float = Field(default=1.0, gt=0, le=1e6)
    """With other sets: how many windows of an epoch are of this one, relative to the others."""


class DataSection(Section):
    """One prepared set (`root`), or several (`sets`), and what is done with their windows."""

    root: Path | None = None
    hold_out_every: int | None = Field(default=5, ge=2)
    """As in a set of `sets`."""
    hold_out: tuple[str, ...] | None = None
    sets: tuple[SetSection, ...] | None = Field(default=None, min_length=1)
    epoch_windows: int | None = Field(default=None, ge=1)
    """With `sets`: how many windows an epoch has; as many as the sets together where left out."""
    mpp: float | None = Field(default=None, gt=0)
    """The training scale: every image is brought to it from its own µm per pixel.  None leaves images as they are."""
    rim_um: float | None = Field(default=None, gt=0, le=10)
    """Learn the rim between touching objects as a class of its own, so wide on either side (`data.rim`)."""
    augmentation: Augmentation = Augmentation()

    @model_validator(mode="after")
    def _one_or_several(self) -> DataSection:
        if (self.root is None) == (self.sets is None):
            raise ValueError("needs `root`, a prepared set, or `sets`, a list of them with weights")
        if self.sets is None and self.epoch_windows is not None:
            raise ValueError("`epoch_windows` is for `sets`; with one set an epoch is every window once")
        return self

    def all_sets(self) -> tuple[SetSection, ...]:
        """The sets, be it one or several."""
        if self.root is None:
            return self.sets or ()
        return (SetSection(root=self.root, hold_out_every=self.hold_out_every, hold_out=self.hold_out),)


class RecipeSection(Section):
    """Adam with 1cycle, stepped every batch."""

    epochs: int = Field(default=70, ge=1, le=100_000)
    steps: int | None = Field(default=None, ge=1, le=100_000_000)
    """In place of `epochs`: as many whole epochs as come nearest to so many steps, for sets of any size."""
    batch: int = Field(default=20, ge=1, le=65_536)
    """Windows per step, over all processes."""
    accumulate: int = Field(default=1, ge=1, le=65_536)
    """In how many parts a process works through its share of the batch: less memory.  Norms see a part at a time."""
    learning_rate: float = Field(default=0.015, gt=0, le=10)
    """The maximum of the cycle."""
    weight_decay: float = Field(default=1e-4, ge=0, le=1)
    """Not applied to σ and η."""
    class_weights: tuple[float, ...] | None = None
    """What a pixel of each class counts for in the loss.  It decides at p > ½; the IoU is largest with p > IoU/2."""
    first_head_scale: float | None = Field(default=None, gt=0)
    """Show each window to one head alone, at a magnification that its filters fit (`training.head_bands`): the one that
    fits the first.  None shows every window to all heads."""
    foreign_share: float = Field(default=0.0, ge=0, le=1)
    """With `first_head_scale`: the fraction of a head's windows drawn from the whole range of magnifications."""
    unsure_octaves: float | None = Field(default=None, gt=0)
    """With `foreign_share`: at so many octaves outside its own magnifications the target of a head is that all classes
    are equally likely; nearer, it lies between that and the truth.  None makes the truth the target everywhere."""
    overlap_share: float = Field(default=0.0, ge=0, le=1)
    """o of l_k = (1 − o) · cross-entropy + o · (1 − IoU of the probabilities in each window)."""
    fused_share: float = Field(default=0.0, ge=0, le=1)
    """f of L = (1 − f) Σ_k η̃_k l_k + f · l(P_Ens): a head may be unsure of what the others know."""
    average: float | None = Field(default=None, gt=0, lt=1)
    """β of a running mean of the weights, w̄ ← β·w̄ + (1 − β)·w, which is then what is judged and kept."""
    clip_norm: float | None = Field(default=None, gt=0)
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    frozen_norms: bool = False
    """Leave the running statistics of `start` as they are and train with them, as at use."""
    sync_norm: bool = True
    """Batch statistics over all processes, so that their number does not change the result."""


class ValidationSection(Section):
    """When the held-out images are looked at, and what decides which weights are best."""

    every_epochs: int = Field(default=1, ge=1)
    times: int | None = Field(default=None, ge=1)
    """In place of `every_epochs`: about so many validations, spread evenly over the run."""
    fusion: Literal["mean", "p_dist", "p_ens"] = "p_ens"
    mean_of_last: int = Field(default=1, ge=1)
    """The mean over so many validations, this one and those before it, decides: a single one jumps."""
    batch: int = Field(default=1, ge=1, le=65_536)


class MachineSection(Section):
    """Where it runs: nothing here changes what is learnt, so a run can be resumed with other values."""

    device: str = "auto"
    threads: int | None = Field(default=None, ge=1, le=1024)
    workers: int = Field(default=0, ge=0, le=256)
    checkpoint_seconds: float = Field(default=300, ge=0)
    tensorboard: bool = True


class FinishSection(Section):
    """What the finished model is given by `seunet train`; it changes nothing of what is learnt."""

    fit_scale: bool = False
    """A scale estimator of the training images, as `seunet fit-scale` makes it."""
    calibrate: bool = False
    """Heads, fusion and calibration chosen by the held-out images, as `seunet calibrate` does it."""


class TrainingConfig(Section):
    """A run."""

    model: ModelSection = ModelSection()
    start: str | None = None
    """A model whose weights the run begins with, by name, folder or checkpoint, instead of fresh ones."""
    data: DataSection
    recipe: RecipeSection = RecipeSection()
    validation: ValidationSection = ValidationSection()
    finish: FinishSection = FinishSection()
    seed: int = Field(default=0, ge=0, lt=2**32)
    machine: MachineSection = MachineSection()


def read_config(path: Path, overrides: Sequence[str] = ()) -> TrainingConfig:
    """The config of a YAML file with `a.b=value` overrides applied, or one line that names what is wrong."""
    return read_settings(TrainingConfig, path, overrides)


def checked_config(tree: Mapping[str, Any], where: str) -> TrainingConfig:
    """The config of a plain tree, e.g. one made in a program."""
    return checked_settings(TrainingConfig, tree, where)


_YOUNGER: Final = {
    "start": None,
    "recipe.steps": None,
    "data.sets": None,
    "data.epoch_windows": None,
    "data.mpp": None,
    "data.rim_um": None,
    "data.augmentation.turns": False,
    "data.augmentation.averaging": 0.0,
    "data.augmentation.stain_mix": 0.0,
    "data.augmentation.optics.blur": 0.0,
    "data.augmentation.optics.sharpen": 0.0,
    "data.augmentation.optics.resample": 0.0,
    "data.augmentation.optics.noise": 0.0,
    "data.augmentation.optics.jpeg": 0.0,
    "recipe.class_weights": None,
    "recipe.first_head_scale": None,
    "recipe.foreign_share": 0.0,
    "recipe.unsure_octaves": None,
    "recipe.overlap_share": 0.0,
    "recipe.fused_share": 0.0,
    "recipe.average": None,
    "recipe.frozen_norms": False,
    "validation.mean_of_last": 1,
    "validation.times": None,
}
"""Fields that the first runs did not have, with the value that means what was done then: those are the same runs."""


def learning_fields(config: TrainingConfig) -> dict[str, str]:
    """Everything that decides what is learnt, as dotted names and JSON: not where it runs or where the data lies."""
    places: Any = {"root": True, "sets": {"__all__": {"root"}}}
    tree = config.model_dump(mode="json", exclude={"machine": True, "finish": True, "data": places})
    leaves = {name: json.dumps(value, ensure_ascii=False) for name, value in _leaves(tree, "")}
    as_before = {name: json.dumps(value) for name, value in _YOUNGER.items()}
    return {name: value for name, value in leaves.items() if as_before.get(name) != value}


def _leaves(tree: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
