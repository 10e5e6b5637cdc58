"""Which scale an analysis goes by, and at which pixels a model is then run.

`auto`    a stated mpp, as far as the pixels allow; where none is stated, the estimated one
`stated`  a stated mpp alone; nothing is estimated
`native`  neither: the network runs on the pixels as they are
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast, get_args

from seunet.errors import InputError, check_known
from seunet.images.image import Image, Level, Mpp
from seunet.limits import MPP_RANGE
from seunet.models.heads_to_use import DEFAULT_RANGE, filter_range, model_mpp
from seunet.models.sureness import second_opinion
from seunet.models.unet_skeleton import ScaleUNet
from seunet.scale.estimator import ScaleEstimate, conflict, unknown
from seunet.scale.of_slide import estimate_slide
from seunet.segmentation.options import ScaleChoice, scale_name
from seunet.segmentation.scale_plan import Working, is_same, working_pixels

DIGITS: Final = 3
"""Of an estimated mpp: far finer than it is known, and no last bit of a processor decides over a result."""


class KnownScale(NamedTuple):
    """Lengths and areas go by what is stated, pixels and filters by `used`; None leaves these as they are."""

    choice: ScaleChoice
    stated: Mpp | None
    estimate: ScaleEstimate | None
    """None where nothing was estimated, or the model has no estimator."""
    used: Mpp | None
    conflict: str | None
    """A sentence, where the stated mpp is not what the pixels look like."""

    @property
    def mpp(self) -> float | None:
        """µm per pixel, stated or else estimated, whether or not the network goes by it."""
        known = self.stated or self.used
        return None if known is None else known.mean


@dataclass(frozen=True)
class ReadingPlan:
    """What is read and how the network is set.  All numbers count along the side of a pixel."""

    level: int
    """The pyramid level that is read."""
    resample: float
    """Working pixels in one of that level; 1 leaves the pixels alone."""
    factor: float
    """What every σ is multiplied by."""
    relative_scale: float | None
    """How many times as large as in training structures are in level 0; None if that is not known."""
    downsample: float
    """Level-0 pixels in a working pixel."""
    reason: str
    """A sentence."""


def checked_choice(scale: str) -> ScaleChoice:
    """`scale`, if it is one of the three."""
    check_known("scale", scale_name(scale), get_args(ScaleChoice))
    return cast(ScaleChoice, scale_name(scale))


def known_scale(image: Image, model: ScaleUNet, choice: ScaleChoice = "auto") -> KnownScale:
    """The scale of `image` for `model`."""
    if choice != "auto":
        return KnownScale(choice, image.mpp, None, image.mpp if choice == "stated" else None, None)
    found = _estimate(image, model)
    if found is None:
        return KnownScale(choice, image.mpp, None, image.mpp, None)
    if image.mpp is None:
        return KnownScale(choice, None, found, _as_mpp(found), None)
    has_looked = model.scale_estimator is not None and model.scale_estimator.heads is not None
    used = within_interval(image.mpp, found) if has_looked else image.mpp
    contradiction = conflict(image.mpp.mean, found)
    if contradiction is not None and used != image.mpp:
        contradiction = f"{contradiction}; {_moved_to(used)}"
    return KnownScale(choice, image.mpp, found, used, contradiction)


def within_interval(stated: Mpp, found: ScaleEstimate) -> Mpp:
    """What is stated, or the end of the estimate's interval that is next to it (docs/decisions/0056)."""
    if found.mpp_interval is None:
        return stated
    low, high = found.mpp_interval
    if low <= stated.mean <= high:
        return stated
    mpp = _rounded(min(max(stated.mean, low), high))
    return Mpp(mpp, mpp, stated.source)


def _estimate(image: Image, model: ScaleUNet) -> ScaleEstimate | None:
    estimator = model.scale_estimator
    if estimator is None:
        return None
    if model.card is None or model.card.mpp is None:
        return unknown("the model does not say at how many µm per pixel it learnt")
    sureness = None if estimator.heads is None else second_opinion(model)
    return estimate_slide(image, estimator=estimator, sureness=sureness)


def _as_mpp(found: ScaleEstimate) -> Mpp | None:
    if found.mpp is None:
        return None
    mpp = _rounded(found.mpp)
    return Mpp(mpp, mpp, "estimated")


def _rounded(mpp: float) -> float:
    return min(max(float(f"{mpp:.{DIGITS}g}"), MPP_RANGE[0]), MPP_RANGE[1])


def plan_for(model: ScaleUNet, mpp: Mpp | None, levels: Sequence[Level]) -> ReadingPlan:
    """The plan for a model by its card; one without σ always sees its training scale."""
    return plan(mpp, levels, model_mpp(model), filter_range(model))


def plan(
    slide_mpp: Mpp | None,
    levels: Sequence[Level],
    model_mpp: float | None,
    filter_range: tuple[float, float] = DEFAULT_RANGE,
) -> ReadingPlan:
    """How a slide of this resolution is given to a model trained at `model_mpp` (`scale_plan`).

    Any resolution is taken as it is, never rounded to that of a level.
    """
    if slide_mpp is None or model_mpp is None:
        whose = "the image's" if slide_mpp is None else "the model's"
        reason = f"{whose} mpp is not known: the pixels are taken as they are and the heads carry the scale"
        return ReadingPlan(0, 1.0, 1.0, None, 1.0, reason)
    for value in (slide_mpp.x, slide_mpp.y):
        checked_mpp(value)
    mpp = slide_mpp.mean
    scale = checked_mpp(model_mpp) / mpp
    found = working_pixels(scale, [level.downsample for level in levels], filter_range)
    source = ", estimated," if slide_mpp.source == "estimated" else ""
    known = f"{mpp:.4g} µm/px{source} where the model was trained at {model_mpp:.4g}"
    downsample = levels[found.level].downsample
    reason = f"{known}: {_how(found, downsample)}"
    return ReadingPlan(found.level, found.resample, found.factor, scale, downsample / found.resample, reason)


def checked_mpp(mpp: float) -> float:
    """`mpp`, if a light microscope can give it."""
    lowest, highest = MPP_RANGE
    if isinstance(mpp, bool) or not isinstance(mpp, int | float) or not lowest <= mpp <= highest:
        raise InputError(f"mpp {mpp!r}: must be a number of µm per pixel from {lowest:g} to {highest:g}")
    return float(mpp)


def _how(found: Working, downsample: float) -> str:
    """What is done with the pixels and the filters, in words."""
    level = "level 0" if found.level == 0 and found.resample > 1 else f"level {found.level} (1/{downsample:.4g})"
    if found.resample == 1:
        if found.level > 0:
            return f"{level} is read as it is, every σ × {found.factor:.4g}"
        as_they_are = "the pixels and the filters are taken as they are"
        return as_they_are if found.factor == 1 else f"the pixels are left alone, every σ × {found.factor:.4g}"
    if found.resample < 1:
        return f"{level} is shrunk × {found.resample:.4g} to the training scale"
    enlarged = f"{level} is enlarged × {found.resample:.4g}"
    if found.factor != 1:
        return f"{enlarged}, every σ × {found.factor:.4g}"
    if is_same(found.reached, 1):
        return f"{enlarged} to the training scale"
    return f"{enlarged} and structures are still × {found.reached:.2g}: expect little"


def scale_facts(scale: KnownScale) -> dict[str, Any]:
    """For run.json."""
    return {
        "choice": scale.choice,
        "source": "none" if scale.used is None else scale.used.source,
        "stated_mpp": None if scale.stated is None else scale.stated.mean,
        "network_mpp": None if scale.used is None else scale.used.mean,
        "estimate": None if scale.estimate is None else estimate_facts(scale.estimate),
        "conflict": scale.conflict,
    }


def estimate_facts(found: ScaleEstimate) -> dict[str, Any]:
    """An estimate as plain values, with no more digits than mean something."""
    low, high = found.mpp_interval or (None, None)
    values = {"relative_scale": found.relative_scale, "mpp": found.mpp, "mpp_low": low, "mpp_high": high}
    rounded = {name: None if value is None else float(f"{value:.{DIGITS}g}") for name, value in values.items()}
    return {"known": found.known, **rounded, "reason": found.reason}


def scale_lines(scale: KnownScale, reason: str) -> tuple[str, ...]:
    """One line for people where the scale was estimated: what is stated, what is estimated, and what was done."""
    if scale.estimate is None:
        return ()
    stated = "no mpp stated" if scale.stated is None else f"{scale.stated.mean:.4g} µm/px ({scale.stated.source})"
    line = f"scale: {stated}; from the pixels {estimate_text(scale.estimate)}; {reason}"
    return (line, moved_text(scale)) if moved_text(scale) else (line,)


def moved_text(scale: KnownScale) -> str:
    """What the network goes by, where that is not what is stated; a conflict says it in its own line."""
    if scale.stated is None or scale.used is None or scale.used == scale.stated or scale.conflict is not None:
        return ""
    return f"scale: the pixels contradict {scale.stated.mean:.4g} µm/px: {_moved_to(scale.used)}"


def _moved_to(used: Mpp) -> str:
    return (
        f"the network goes by {used.mean:.4g}, lengths and areas by what is stated; `--scale stated` has the network "
        "obey it too"
    )


def estimate_text(found: ScaleEstimate) -> str:
    """The estimate in µm per pixel with its interval, or why there is none."""
    if found.mpp is None or found.mpp_interval is None:
        return f"cannot be estimated: {found.reason}"
    low, high = found.mpp_interval
    return f"{found.mpp:.2g} µm/px (90 %: {low:.2g}–{high:.2g}; {found.reason})"


def describe_estimate(found: ScaleEstimate, stated: Mpp | None) -> dict[str, Any]:
    """What the pixels look like, beside what the file says."""
    warning = None if stated is None else conflict(stated.mean, found)
    return {**estimate_facts(found), "text": estimate_text(found), "conflict": warning}
