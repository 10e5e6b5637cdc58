"""What can be chosen about a segmentation: plain values, so that they can be written down and sent elsewhere."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from seunet.limits import MPP_RANGE

ScaleChoice = Literal["auto", "stated", "native"]


def scale_name(scale: Any) -> Any:
    """Today's name of a choice of scale: `stated` was `told` before."""
    return "stated" if scale == "told" else scale


class Choices(BaseModel):
    """The options of `seunet segment`.  `overwrite` and `strict` decide how a run goes, the others what comes of it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: str = "nuclei"
    mpp: float | None = Field(default=None, ge=MPP_RANGE[0], le=MPP_RANGE[1])
    scale: Annotated[ScaleChoice, BeforeValidator(scale_name)] = "auto"
    """`auto`: a stated mpp, else one estimated from the pixels; `stated`: a stated mpp only; `native`: pixels and
    filters as they are, mpp for areas only."""
    fusion: Literal["auto", "mean", "p_dist", "p_ens", "calibrated"] = "auto"
    tile_px: int | None = Field(default=None, ge=64, le=16_384)
    tissue: bool = True
    split: bool = True
    min_area_px: int = Field(default=10, ge=1)
    smooth: bool = False
    probabilities: bool = False
    zipped: bool = False
    strict: bool = False
    overwrite: bool = False
    device: Literal["cpu", "cuda", "mps"] = "cpu"

    def deciding(self) -> dict[str, object]:
        """What the files of a result depend on; the size of a tile is not among it."""
        apart = {"model", "mpp", "tile_px", "strict", "overwrite"}
        # Other devices round otherwise; results of the CPU are what they were before there was a choice.
        return self.model_dump(mode="json", exclude=apart | ({"device"} if self.device == "cpu" else set()))
