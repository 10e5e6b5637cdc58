"""What a trained model learns afterwards: the scale from pixels, and how far its heads are to be believed.

May import: what `evaluation` may.  Begin with `commands.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.evaluation.fitting.commands import calibrate, fit_scale
    from seunet.evaluation.fitting.head_choices import HeadChoices, chosen_heads, range_around_one
    from seunet.evaluation.fitting.head_samples import SCALES, Sampled, sampled_heads
    from seunet.evaluation.fitting.held_out import check_not_learnt, images_to_fit
    from seunet.evaluation.fitting.scale_fit import (
        COVERAGE,
        REFUSED_WITH_HEADS,
        LeftOut,
        covering_factors,
        error_scores,
        fit_estimator,
        fitted_templates,
        head_templates,
        left_out,
        limits_of,
        looked_at,
        read_sample,
        read_samples,
    )
    from seunet.evaluation.fitting.scale_samples import (
        PLAIN_SCALES,
        Observed,
        observed,
        regions_of,
        varied,
    )
else:
    __getattr__, __dir__ = door(__name__)
