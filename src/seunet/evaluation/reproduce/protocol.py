"""What `seunet reproduce` does: which models are trained how, and what is measured on them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from seunet.errors import InputError
from seunet.evaluation import way_names
from seunet.models.registry import model_config
from seunet.settings import Section, config_file, read_settings
from seunet.training.config import TrainingConfig, read_config

WayName = Annotated[way_names.WayName, BeforeValidator(way_names.way_name)]
"""Protocols written before have other names for some of them."""


class Entry(Section):
    """A model of the comparison: its name in the tables, what differs from the common training, and how it is used."""

    name: str = Field(min_length=1)
    set: dict[str, Any] = Field(default_factory=dict)
    """Values of the training config by dotted name."""
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    """Each of them once."""
    ways: tuple[WayName, ...] = ("blind",)
    first_seed_ways: tuple[WayName, ...] = ()
    """Further ways, for the first seed alone: what is too dear to be done for all."""
    equivariance: bool = True

    @model_validator(mode="after")
    def _seeds_differ(self) -> Entry:
        for seed in self.seeds:
            if self.seeds.count(seed) > 1:
                raise ValueError(f"seed {seed} of {self.name!r} is there twice; give each seed once")
        return self


class Question(Section):
    """What the report answers with an interval: is `first` above `second`, or, without a second, does its best head
    move to larger σ as the images grow?"""

    ask: str = Field(min_length=1)
    first: str
    second: str | None = None


class Tiles(Section):
    """Windows of the evaluation, where they differ from those of the set."""

    size_px: int = Field(ge=16)
    stride_px: int = Field(ge=1)
    every: int = Field(default=1, ge=1)
    """Of each image the first window and then every n-th."""


class Protocol(Section):
    """The whole comparison."""

    title: str
    paper: Literal["monuseg", "bcss"]
    """Whose numbers stand beside ours."""
    training: Path
    """The training config that all models share, relative to this file."""
    data: Path
    split: Literal["train", "validation", "test"] = "test"
    tiles: Tiles | None = None
    equivariance_tiles: Tiles | None = None
    window_sizes_px: tuple[int, ...] = ()
    """Sides of windows that cover each image, at s = 1: how far a model depends on what surrounds its window."""
    way_scales: dict[WayName, tuple[float, ...]] = Field(default_factory=dict)
    """Some of the test scales, for ways that are too dear for all of them."""
    models: tuple[Entry, ...] = Field(min_length=1)
    questions: tuple[Question, ...] = ()
    panels: tuple[str, ...] = ()
    """Models whose first seeds are shown side by side on one window."""

    @model_validator(mode="after")
    def _names_fit(self) -> Protocol:
        slugs = [slug(entry.name) for entry in self.models]
        for entry in self.models:
            if slugs.count(slug(entry.name)) > 1:
                raise ValueError(f"two models are called {entry.name!r}")
        for question in self.questions:
            for name in (question.first, question.second):
                if name is not None and name not in {entry.name for entry in self.models}:
                    raise ValueError(f"question {question.ask!r}: no model is called {name!r}")
        for name in self.panels:
            if name not in {entry.name for entry in self.models}:
                raise ValueError(f"`panels`: no model is called {name!r}")
        return self


def tile_numbers(tiles: Tiles | None) -> tuple[int, ...] | None:
    """Size, stride and every n-th, as evaluations take them."""
    return None if tiles is None else (tiles.size_px, tiles.stride_px, tiles.every)


class Experiment(NamedTuple):
    """One training and what is measured on its result."""

    entry: Entry
    seed: int
    config: TrainingConfig

    @property
    def ways(self) -> tuple[WayName, ...]:
        """How the model of this seed is used."""
        further = self.entry.first_seed_ways if self.seed == self.entry.seeds[0] else ()
        return (*self.entry.ways, *further)

    @property
    def folder_name(self) -> str:
        return f"{slug(self.entry.name)}-seed{self.seed}"


def slug(name: str) -> str:
    """A name as part of a path."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower().replace("σ", "sigma")).strip("-")


def read_protocol(path: Path, overrides: tuple[str, ...] = ()) -> Protocol:
    """The protocol in a file; `training` is found beside it."""
    protocol = read_settings(Protocol, path, overrides)
    beside = config_file(path).parent / protocol.training
    return protocol.model_copy(update={"training": beside})


def jobs(protocol: Protocol, training_overrides: tuple[str, ...] = ()) -> Iterator[Experiment]:
    """Every model with every seed, in the order of the file."""
    for entry in protocol.models:
        for seed in entry.seeds:
            own = [f"{name}={json.dumps(value)}" for name, value in entry.set.items()]
            common = [f"data.root={protocol.data}", f"seed={seed}"]
            try:
                config = read_config(protocol.training, [*common, *own, *training_overrides])
                model_config(config.model.name, config.model.preset, **config.model.options)
                yield Experiment(entry, seed, config)
            except InputError as error:
                raise InputError(f"model {entry.name!r}: {error}") from None
