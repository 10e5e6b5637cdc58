"""What is known of the scale of an image: what somebody states, what its pixels look like, and which is used.

`auto`    a stated mpp, compared with the pixels; where there is none, what the pixels look like
`told`    a stated mpp alone; the pixels are not asked
`native`  neither: the network runs on the pixels as they are
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from seunet.images.image import Image, Mpp
from seunet.limits import MPP_RANGE
from seunet.models.heads_to_use import model_mpp
from seunet.models.unet_skeleton import ScaleUNet
from seunet.scale.estimator import ScaleEstimate, conflict, unknown
from seunet.scale.of_slide import estimate_slide

ScaleChoice = Literal["auto", "told", "native"]

DIGITS: Final = 3
"""Of an estimated mpp: far finer than it is known, and no last bit of a processor decides over a result."""


class KnownScale(NamedTuple):
    """`used` is what the analysis goes by; None leaves pixels and filters as they are."""

    choice: ScaleChoice
    stated: Mpp | None
    estimate: ScaleEstimate | None
    """None where the pixels were not asked, or the model brings nothing to ask them by."""
    used: Mpp | None
    conflict: str | None
    """A sentence, where the stated mpp is not what the pixels look like."""


def known_scale(image: Image, model: ScaleUNet, choice: ScaleChoice = "auto") -> KnownScale:
    """The scale of `image` for `model`."""
    if choice != "auto":
        return KnownScale(choice, image.mpp, None, image.mpp if choice == "told" else None, None)
    found = _estimate(image, model)
    if found is None:
        return KnownScale(choice, image.mpp, None, image.mpp, None)
    if image.mpp is not None:
        return KnownScale(choice, image.mpp, found, image.mpp, conflict(image.mpp.mean, found))
    return KnownScale(choice, None, found, _as_mpp(found), None)


def _estimate(image: Image, model: ScaleUNet) -> ScaleEstimate | None:
    if model.scale_estimator is None:
        return None
    if model_mpp(model) is None:
        return unknown("the model does not say at how many µm per pixel it learnt")
    return estimate_slide(image, estimator=model.scale_estimator)


def _as_mpp(found: ScaleEstimate) -> Mpp | None:
    if found.mpp is None:
        return None
    mpp = min(max(float(f"{found.mpp:.{DIGITS}g}"), MPP_RANGE[0]), MPP_RANGE[1])
    return Mpp(mpp, mpp, "estimated")


def scale_facts(scale: KnownScale) -> dict[str, Any]:
    """For run.json."""
    return {
        "choice": scale.choice,
        "source": "none" if scale.used is None else scale.used.source,
        "stated_mpp": None if scale.stated is None else scale.stated.mean,
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
    """One line for people where the pixels were asked: what is stated, what they look like, and what was done."""
    if scale.estimate is None:
        return ()
    stated = "no mpp stated" if scale.stated is None else f"{scale.stated.mean:.4g} µm/px ({scale.stated.source})"
    return (f"scale: {stated}; from the pixels {estimate_text(scale.estimate)}; {reason}",)


def estimate_text(found: ScaleEstimate) -> str:
    """The estimate in µm per pixel with its interval, or why there is none."""
    if found.mpp is None or found.mpp_interval is None:
        return f"not to be told: {found.reason}"
    low, high = found.mpp_interval
    return f"{found.mpp:.2g} µm/px (90 %: {low:.2g}–{high:.2g}; {found.reason})"


def describe_estimate(found: ScaleEstimate, stated: Mpp | None) -> dict[str, Any]:
    """What the pixels look like, beside what the file says."""
    warning = None if stated is None else conflict(stated.mean, found)
    return {**estimate_facts(found), "text": estimate_text(found), "conflict": warning}
