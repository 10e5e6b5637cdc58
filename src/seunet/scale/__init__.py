"""The magnification of an image from its pixels: moments, signature, templates, what the heads of a network say,
the estimator and its files, and the estimate of a slide.

May import: `layers`, `kernels`, `images`, `maths`, `storage`.  Begin with `estimator.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.scale.estimator import (
        INTERVAL_AT,
        HeadTemplates,
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
    from seunet.scale.heads import Sureness, head_profile
    from seunet.scale.of_slide import estimate_slide
    from seunet.scale.regions import Region, observe, spread_boxes
    from seunet.scale.signatures import signature
    from seunet.scale.templates import Reading, Templates, fit_templates, read_both, read_scale
else:
    __getattr__, __dir__ = door(__name__)
