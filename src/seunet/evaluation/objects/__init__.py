"""Objects as `seunet segment` finds them: compared with the true nuclei, and with themselves at other sizes and stains.

May import: what `evaluation` may.  Begin with `as_segment.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.evaluation.objects.agreement import VARIANTS, Variant, measure_agreement
    from seunet.evaluation.objects.as_segment import Found, found_objects
    from seunet.evaluation.objects.run import ObjectSettings, evaluate_objects
    from seunet.evaluation.objects.scores import image_scores, set_scores
else:
    __getattr__, __dir__ = door(__name__)
