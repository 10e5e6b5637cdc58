"""Every figure of a report: a function from numbers to a matplotlib figure, and one style.

May import: what `evaluation` may.  Begin with `style.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.evaluation.figures.curves import Curve, curves_figure
    from seunet.evaluation.figures.style import COLORS, QUIET, new_figure, open_frame, scale_axis, write_png
    from seunet.evaluation.figures.training import training_curves, training_figure
else:
    __getattr__, __dir__ = door(__name__)
