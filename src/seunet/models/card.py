"""What a model's numbers alone do not say: what its classes are called, at which resolution it learnt, from what."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import AliasChoices, Field, model_validator

from seunet.limits import MPP_RANGE
from seunet.settings import Section

Color = tuple[int, int, int]

LICENCES: Final = {
    "CC BY-NC-SA 4.0": "CC-BY-NC-SA-4.0",
    "CC BY-SA 4.0": "CC-BY-SA-4.0",
    "CC BY-NC 4.0": "CC-BY-NC-4.0",
    "CC BY 4.0": "CC-BY-4.0",
    "CC0 1.0": "CC0-1.0",
    "Apache 2.0": "Apache-2.0",
    "MIT": "MIT",
}
"""How a card's licence begins, and its name by SPDX."""


class HeadCalibration(Section, allow_inf_nan=False):
    """Learnt of the heads on held-out images (`maths.fusion.Calibration`): one number per head in each list."""

    temperatures: tuple[float, ...] = Field(min_length=1)
    prior: tuple[float, ...]
    sharpness: float = Field(ge=0)
    """Where the scale is not known."""
    prior_at_scale: tuple[float, ...]
    sharpness_at_scale: float = Field(ge=0)
    """Where the scale is known, so that structures are as large for the filters as in training."""

    @model_validator(mode="after")
    def _fits_itself(self) -> HeadCalibration:
        if not len(self.temperatures) == len(self.prior) == len(self.prior_at_scale):
            raise ValueError("`temperatures`, `prior` and `prior_at_scale` must have a number for each head")
        if min(self.temperatures) <= 0:
            raise ValueError("temperatures are positive")
        return self


class ModelCard(Section, allow_inf_nan=False):
    """The part of the model card that programs read; kept in config.json."""

    mpp: float | None = Field(default=None, ge=MPP_RANGE[0], le=MPP_RANGE[1])
    """µm per pixel of the images it learnt from."""
    class_names: tuple[str, ...] = ()
    class_colors: tuple[Color, ...] = ()
    instances: bool = False
    """Whether the foreground classes are things to be counted (nuclei) rather than regions (stroma)."""
    rim: int | None = Field(default=None, ge=2)
    """The class that is the rim between touching objects: the last one, part of the class before it in labels and
    scores; objects are parted along it."""
    rim_odds: float = Field(default=0.6, gt=0)
    """From which odds of the rim to the inside of an object on a pixel parts objects: rim is the rarer of the two."""
    scaled_filters_range: tuple[float, float] = Field(
        default=(1.0, 2.0), validation_alias=AliasChoices("scaled_filters_range", "told_range")
    )
    """Relative scales s at which σ × s was measured to be as good as resampling (docs/results); cards
    written before call it `told_range`."""
    matched_head: int | None = Field(default=None, ge=1)
    """The head that is used alone where the scale is known, counted from 1: the one that learnt at scale 1."""
    blind_fusion: Literal["mean", "p_dist", "p_ens"] = "p_ens"
    """How its heads become one prediction where the scale is not known."""
    calibration: HeadCalibration | None = None
    """For `--fusion calibrated`."""
    calibrated_on: str = ""
    """Which images heads, fusion and calibration were chosen by (`seunet calibrate`)."""
    learnt_from: tuple[str, ...] = ()
    """SHA-256 of the pixels of the images it learnt from: it is not to be calibrated on them."""
    trained_on: str = ""
    licence: str = ""
    """Of the data: what it allows to be done with the weights."""

    @property
    def spdx(self) -> str | None:
        """The licence by its name of SPDX, where it has one."""
        return next((name for start, name in LICENCES.items() if self.licence.startswith(start)), None)

    @property
    def told_names(self) -> tuple[str, ...]:
        """The names of the classes that labels and scores have."""
        return self.class_names if self.rim is None else self.class_names[:-1]

    @model_validator(mode="after")
    def _fits_itself(self) -> ModelCard:
        if self.class_colors and len(self.class_colors) != len(self.class_names):
            raise ValueError(f"{len(self.class_colors)} colours for {len(self.class_names)} classes")
        if self.rim is not None and self.rim != len(self.class_names) - 1:
            raise ValueError(f"`rim` (={self.rim}) must be the last of the {len(self.class_names)} classes")
        if any(not 0 <= value <= 255 for color in self.class_colors for value in color):
            raise ValueError("colours are three numbers from 0 to 255")
        if not 0 < self.scaled_filters_range[0] <= self.scaled_filters_range[1]:
            raise ValueError(f"`scaled_filters_range` {list(self.scaled_filters_range)} must rise and be positive")
        return self
