"""What a model does with a scale that is known: whether filters or pixels follow it, and which heads are believed."""

from __future__ import annotations

from typing import Final

from seunet.errors import InputError, check_known
from seunet.maths.fusion import CALIBRATED, FUSIONS, Calibration, Fusion
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet

DEFAULT_RANGE: Final = (0.5, 2.0)
"""Where the filters are scaled rather than the pixels, for a model whose card does not say."""

NO_RANGE: Final = (1.0, 1.0)
"""For models that have no σ."""


def filter_range(model: ScaleUNet) -> tuple[float, float]:
    """The relative scales at which every σ is multiplied and the pixels are left alone."""
    if not isinstance(model, SEUNet):
        return NO_RANGE
    return DEFAULT_RANGE if model.card is None else model.card.scaled_filters_range


def model_mpp(model: ScaleUNet) -> float | None:
    """µm per pixel of the images the model learnt from, where its card says so."""
    return None if model.card is None else model.card.mpp


AUTO: Final = "auto"
"""The matched head alone where the scale is known and the card names one, else the card's fusion of all heads."""


def only_head(model: ScaleUNet, fusion: str, scale_known: bool) -> int | None:
    """The number of the one head that has to be computed, from 0; None for all of them."""
    if fusion != AUTO or not scale_known or model.card is None or model.card.matched_head is None or model.heads == 1:
        return None
    if model.card.matched_head > model.heads:
        raise InputError(
            f"the card names head {model.card.matched_head} and the model has {model.heads}; mend the card"
        )
    return model.card.matched_head - 1


def known_fusions(model: ScaleUNet) -> tuple[str, ...]:
    """The names of the fusions that the model can do."""
    has_one = model.card is not None and model.card.calibration is not None and model.heads > 1
    return (*FUSIONS, CALIBRATED) if has_one else FUSIONS


def fusion_of(model: ScaleUNet, name: str, scale_known: bool) -> Fusion:
    """The fusion of that name; a calibrated one believes other heads where the scale is known."""
    if name == AUTO:
        return "p_ens" if model.card is None else model.card.blind_fusion
    if name != CALIBRATED:
        check_known("fusion", name, known_fusions(model))
        return name
    found = None if model.card is None else model.card.calibration
    if found is None:
        raise InputError(f"the card of this {model.name} has no calibration of its heads; use {', '.join(FUSIONS)}")
    if len(found.prior) != model.heads:
        raise InputError(f"the calibration in the card is of {len(found.prior)} heads, the model has {model.heads}")
    if scale_known:
        return Calibration(found.temperatures, found.prior_at_scale, found.sharpness_at_scale)
    return Calibration(found.temperatures, found.prior, found.sharpness)
