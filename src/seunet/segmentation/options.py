"""What can be chosen about a segmentation: plain values, so that they can be written down and sent elsewhere."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from seunet.limits import MPP_RANGE
from seunet.models.object_rule import MIN_AREA_UM2
from seunet.settings import Section

ScaleChoice = Literal["auto", "stated", "native"]


def scale_name(scale: Any) -> Any:
    """Today's name of a choice of scale: `stated` was `told` before."""
    return "stated" if scale == "told" else scale


AUTO: Final = "auto"
MIN_AREA_PX: Final = 10.0
"""Of the slide, where nobody knows how large its pixels are."""


def area_name(text: Any) -> str:
    """An area as it is written down: `4um2`, `10px` (pixels of the slide) or `auto`; a bare number is of µm².

    >>> [area_name(text) for text in ("4", "4 µm²", "2.50um^2", "10 px", "auto")]
    ['4um2', '4um2', '2.5um2', '10px', 'auto']
    """
    plain = re.sub(r"[\s^]", "", str(text).lower()).translate(str.maketrans("µμ²", "uu2"))
    if plain == AUTO:
        return AUTO
    found = re.fullmatch(r"([0-9]*\.?[0-9]+|[0-9]+\.)(um2|px2?)?", plain)
    if found is None:
        raise ValueError("write µm² or pixels of the slide, e.g. 4um2 or 10px")
    return f"{float(found[1]):g}{'px' if (found[2] or '').startswith('px') else 'um2'}"


class LeastArea(NamedTuple):
    """The smallest object that is kept."""

    working_px: int
    slide_px: float
    um2: float | None
    """As asked for; None where pixels decide."""
    note: str | None
    """A sentence, where it is not what was asked for."""


def least_area(chosen: str, slide_mpp: float | None, downsample: float) -> LeastArea:
    """What `chosen` (`area_name`) is in working pixels, of which each is `downsample` pixels of the slide wide."""
    asked = MIN_AREA_UM2 if chosen == AUTO else float(chosen.removesuffix("um2").removesuffix("px"))
    note = None
    if chosen.endswith("px") or slide_mpp is None:
        slide_px, um2 = (asked, None) if chosen.endswith("px") else (MIN_AREA_PX, None)
        if chosen.endswith("um2"):
            note = f"no µm per pixel is known: objects from {MIN_AREA_PX:g} px on are kept (--min-area {chosen})"
    else:
        slide_px, um2 = asked / slide_mpp**2, asked
    # What has the very area is kept, whatever the last bit of a quotient says.
    working_px = max(1, math.ceil(slide_px / downsample**2 * (1 - 1e-9)))
    return LeastArea(working_px, round(slide_px, 2), um2, note)


class Choices(Section, allow_inf_nan=False):
    """The options of `seunet segment`.  `overwrite` and `strict` decide how a run goes, the others what comes of it."""

    model: str = "nuclei"
    mpp: float | None = Field(default=None, ge=MPP_RANGE[0], le=MPP_RANGE[1])
    scale: Annotated[ScaleChoice, BeforeValidator(scale_name)] = "auto"
    """`auto`: a stated mpp, else one estimated from the pixels; `stated`: a stated mpp only; `native`: pixels and
    filters as they are, mpp for areas only."""
    fusion: Literal["auto", "mean", "p_dist", "p_ens", "calibrated"] = "auto"
    tile_px: int | None = Field(default=None, ge=64, le=16_384)
    tissue: bool = True
    split: bool = True
    min_area: Annotated[str, BeforeValidator(area_name)] = AUTO
    """The smallest object that is kept: `4um2`, `10px` of the slide, or `auto` (MIN_AREA_UM2, or else MIN_AREA_PX)."""
    smooth: bool = False
    probabilities: bool = False
    zipped: bool = False
    instances: bool = False
    strict: bool = False
    overwrite: bool = False
    roi: str | None = None
    """A GeoJSON file of regions, or a folder with NAME.geojson for each image: only there is analysed."""
    device: Literal["cpu", "cuda", "mps"] = "cpu"
    runtime: Literal["native", "onnx", "openvino"] = "native"

    def deciding(self) -> dict[str, object]:
        """What the files of a result depend on; the size of a tile is not among it."""
        apart = {"model", "mpp", "tile_px", "strict", "overwrite", "roi"}
        # Where there was no choice before, what is as it was then is not written: results of then are recognised.
        usual = (("device", "cpu"), ("runtime", "native"), ("instances", False))
        as_before = {name for name, value in usual if getattr(self, name) == value}
        return self.model_dump(mode="json", exclude=apart | as_before)

    def deciding_labels(self) -> dict[str, object]:
        """What the labels depend on; the others decide what is made of them."""
        of_files = {"split", "min_area", "smooth", "zipped", "instances"}
        return {name: value for name, value in self.deciding().items() if name not in of_files}
