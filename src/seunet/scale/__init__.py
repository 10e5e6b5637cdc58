"""The magnification of an image from its pixels: moments, signature, templates, the estimator and its files,
and the estimate of a slide.

May import: `layers`, `kernels`, `images`, `maths`, `storage`.  Begin with `estimator.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.scale.estimator import (
        INTERVAL_AT,
        Limits,
        ScaleEstimate,
        ScaleEstimator,
        colour_fault,
        conflict,
        distance,
        estimate_scale,
        shipped_estimator,
        unknown,
        width,
    )
    from seunet.scale.files import load_estimator, save_estimator
    from seunet.scale.of_slide import estimate_slide
    from seunet.scale.regions import Region, observe, spread_boxes
    from seunet.scale.signatures import signature
    from seunet.scale.templates import Reading, Templates, fit_templates, read_scale
else:
    __getattr__, __dir__ = door(__name__)
