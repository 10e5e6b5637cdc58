"""What can be chosen about a model: frozen, typed, and named in the error when it is wrong."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeVar

from pydantic import Field, model_validator

from seunet.errors import check_known
from seunet.limits import MAX_CHANNELS, MAX_CLASSES, MAX_ORDER, MAX_SCALES
from seunet.settings import Section

PAPER_WIDTHS = (60, 120, 240, 480, 960)


class ModelConfig(Section):
    """What every model has; the plain UNet has no more."""

    classes: int = Field(2, ge=1, le=MAX_CLASSES)
    in_channels: int = Field(3, ge=1, le=1024)
    widths: tuple[int, ...] = Field(PAPER_WIDTHS, min_length=1, max_length=8)
    pooling: Literal["max", "average", "none"] = "max"

    @model_validator(mode="after")
    def _widths_are_possible(self) -> ModelConfig:
        for width in self.widths:
            if not 1 <= width <= MAX_CHANNELS:
                raise ValueError(f"`widths` (={list(self.widths)}) must be from 1 to {MAX_CHANNELS}")
            self.check_width(width)
        return self

    def check_width(self, width: int) -> None:
        """What a model asks of each width."""


class GaussianConfig(ModelConfig):
    """Models made of `layers.GaussianConv2d`."""

    scales: int = Field(5, ge=1, le=MAX_SCALES)
    order: int = Field(1, ge=0, le=MAX_ORDER)
    sigma: Literal["constrained", "fixed", "free", "free_from_one"] = "constrained"
    schedule: Literal["paper", "geometric"] = "paper"
    sigma_base: float = Field(0.7, gt=0, le=16)
    """Geometric schedule: the finest σ at every block."""
    sigma_ratio: float = Field(math.sqrt(2), gt=1, le=8)
    """Geometric schedule: between neighbouring scales."""
    discretisation: Literal["sampled", "integrated", "discrete"] = "sampled"
    truncation: float = Field(2.0, gt=0, le=16)
    norm: Literal["group", "shared"] = "group"
    head_weights: Literal["trained", "uniform"] = "trained"

    def check_width(self, width: int) -> None:
        if width % self.scales:
            raise ValueError(f"`widths` (={list(self.widths)}) must be divisible by `scales` (={self.scales})")


class ScaleListConfig(ModelConfig):
    """SESN and DISCO: a list of scales with fixed bases."""

    scales: tuple[float, ...] = Field((1, 2, 3, 4, 5), min_length=1, max_length=MAX_SCALES)

    def check_width(self, width: int) -> None:
        if width % len(self.scales):
            raise ValueError(f"`widths` (={list(self.widths)}) must be divisible by the {len(self.scales)} `scales`")


class SteerableConfig(ScaleListConfig):
    """SESN: which nine Hermite functions its filters are made of (`maths.sesn`)."""

    basis: Literal["grid", "truncated"] = "grid"
    """`grid`: orders 0 to 2 on either axis, total order up to 4.  `truncated`: the released code's nine for order 4."""


Config = TypeVar("Config", bound=ModelConfig)


def validated(kind: type[Config], options: dict[str, Any]) -> Config:
    """The config of these options; one line that names the option, its value and the remedy where it is none."""
    for name in options:
        check_known("option", name, kind.model_fields)
    return kind(**options)
