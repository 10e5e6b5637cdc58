"""How sure each head of a model is of each pixel."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from seunet.images.image import RgbArray
from seunet.maths.rim import without_rim
from seunet.models.unet_skeleton import ScaleUNet
from seunet.scale.heads import SIZES, Sureness


def sureness_of(model: ScaleUNet) -> Sureness:
    """(p₁ − p₂)² of the two most probable classes, by each head; a rim is part of its objects."""

    def sureness(rgb: RgbArray) -> NDArray[np.float32]:
        images = torch.from_numpy(np.ascontiguousarray(rgb.transpose(2, 0, 1)))[None].to(model.device).float() / 255
        with torch.inference_mode():
            found = without_rim(model(images).softmax(2), model.rim)[0].topk(2, dim=1).values
            return (found[:, 0] - found[:, 1]).square().cpu().numpy()

    return sureness


def second_opinion(model: ScaleUNet) -> Sureness | None:
    """`sureness_of` a model whose estimator has been fitted to its heads, as they are; else None."""
    heads = None if model.scale_estimator is None else model.scale_estimator.heads
    fits = heads is not None and model.factor == 1 and len(heads.templates.center) == len(SIZES) * model.heads
    return sureness_of(model) if fits else None
