"""What a training run is: one frozen, typed object, read from YAML and dotted overrides.

    config = read_config("configs/monuseg-cpu.yaml", ["recipe.epochs=2", "model.name=unet"])

Every key is known or refused; the sections are the keys of the file.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from seunet.data.augment import Augmentation
from seunet.errors import InputError, unknown_name
from seunet.limits import MAX_CONFIG_BYTES
from seunet.maths.fusion import FUSIONS


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelSection(BaseModel):
    """`name`, `preset`, and beside them any option of that model; `classes` is taken from the data where left out."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str = "seunet"
    preset: str = "paper"

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class AugmentationSection(_Section):
    """What is varied between epochs (`data.augmentation`)."""

    flips: bool = True
    shift_px: int = Field(default=0, ge=0)
    crop_px: int | None = Field(default=None, ge=1)
    scale_range: tuple[float, float] | None = None

    def augmentation(self) -> Augmentation:
        return Augmentation(**self.model_dump())


class DataSection(_Section):
    """A prepared set, and which of its training images are held out to choose by."""

    root: Path
    hold_out_every: int | None = Field(default=5, ge=2)
    """Every n-th training image in order of name is held out; null uses the set's own split `validation`."""
    hold_out: tuple[str, ...] | None = None
    """The held-out images by name, instead."""
    augmentation: AugmentationSection = AugmentationSection()


class RecipeSection(_Section):
    """Adam with 1cycle, stepped every batch."""

    epochs: int = Field(default=70, ge=1, le=100_000)
    batch: int = Field(default=20, ge=1, le=65_536)
    """Windows a step, over all processes."""
    accumulate: int = Field(default=1, ge=1, le=65_536)
    """In how many parts a process works through its share of the batch: less memory, the same gradient."""
    learning_rate: float = Field(default=0.015, gt=0, le=10)
    """The maximum of the cycle."""
    weight_decay: float = Field(default=1e-4, ge=0, le=1)
    """Not applied to σ and η."""
    clip_norm: float | None = Field(default=None, gt=0)
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    sync_norm: bool = True
    """Batch statistics over all processes, so that their number does not change the result."""


class ValidationSection(_Section):
    """When the held-out images are looked at, and what decides which weights are best."""

    every_epochs: int = Field(default=1, ge=1)
    fusion: str = "p_ens"
    batch: int = Field(default=1, ge=1, le=65_536)

    @model_validator(mode="after")
    def _known_fusion(self) -> ValidationSection:
        if self.fusion not in FUSIONS:
            raise ValueError(f"must be one of {', '.join(FUSIONS)}, not {self.fusion!r}")
        return self


class MachineSection(_Section):
    """Where it runs: nothing here changes what is learnt, so a run can be resumed with other values."""

    device: str = "auto"
    threads: int | None = Field(default=None, ge=1, le=1024)
    workers: int = Field(default=0, ge=0, le=256)
    checkpoint_seconds: float = Field(default=300, ge=0)
    tensorboard: bool = True


class TrainingConfig(_Section):
    """A run."""

    model: ModelSection = ModelSection()
    data: DataSection
    recipe: RecipeSection = RecipeSection()
    validation: ValidationSection = ValidationSection()
    seed: int = Field(default=0, ge=0, lt=2**32)
    machine: MachineSection = MachineSection()


def read_config(path: Path, overrides: Sequence[str] = ()) -> TrainingConfig:
    """The config of a YAML file with `a.b=value` overrides applied, or one line that names what is wrong."""
    tree = _read_yaml(path)
    for override in overrides:
        _apply(tree, override)
    return checked_config(tree, str(path))


def checked_config(tree: Mapping[str, Any], where: str) -> TrainingConfig:
    """The typed config of a plain tree."""
    _refuse_unknown(TrainingConfig, tree, where)
    try:
        return TrainingConfig.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        given = "" if first["type"] == "missing" else f" (={first['input']!r})"
        raise InputError(f"{where}: `{name}`{given}: {first['msg'].removeprefix('Value error, ')}") from None


def to_yaml(config: TrainingConfig) -> str:
    """The whole config, defaults included, as a file that `read_config` reads."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def learning_fields(config: TrainingConfig) -> dict[str, str]:
    """Everything that decides what is learnt, as dotted names and JSON: not where it runs or where the data lies."""
    tree = config.model_dump(mode="json", exclude={"machine": True, "data": {"root"}})
    return {name: json.dumps(value, ensure_ascii=False) for name, value in _leaves(tree, "")}


def _leaves(tree: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


class _PlainYaml(yaml.SafeLoader):
    """YAML itself takes the last of two equal keys in silence, and ten lines of aliases can stand for a billion."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                break  # refused by YAML itself
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is there twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not for configs; write the value again", mark)
        return super().compose_node(parent, index)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give a config file") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise InputError(f"{path}: larger than {MAX_CONFIG_BYTES:,} bytes; this is no config")
    return _mapping(_parse(data, str(path)), str(path))


def _parse(text: str | bytes, where: str) -> Any:
    try:
        return yaml.load(text, _PlainYaml)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not text"
        raise InputError(f"{where}{line}: not YAML ({problem})") from None


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{where}: must be a mapping of names to values, e.g. `seed: 0`")
    return value


def _apply(tree: dict[str, Any], override: str) -> None:
    """Set one value: `recipe.batch=8`."""
    name, equals, text = override.partition("=")
    if not equals or not name:
        raise InputError(f"--set {override!r}: must be NAME=VALUE, e.g. --set recipe.batch=8")
    *parents, last = name.split(".")
    place = tree
    for parent in parents:
        inner = place.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise InputError(f"--set {override!r}: {parent!r} is a value, not a section")
        place = inner
    place[last] = _parse(text, f"--set {override!r}")


def _refuse_unknown(section: type[BaseModel], tree: Any, where: str, prefix: str = "") -> None:
    if not isinstance(tree, Mapping):
        return  # pydantic says what was expected there
    for key, value in tree.items():
        field = section.model_fields.get(key)
        if field is None and section.model_config.get("extra") == "forbid":
            error = unknown_name("key", key, section.model_fields)
            raise InputError(f"{where}: {f'in `{prefix[:-1]}`: ' if prefix else ''}{error}")
        inner = field.annotation if field is not None else None
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            _refuse_unknown(inner, value, where, f"{prefix}{key}.")
