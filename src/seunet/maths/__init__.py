"""Pure functions of the paper and around it: Gaussian derivatives, σ ranges, rescaling, fusion, losses, stains.
Symbols are the paper's, with the number of the equation.

May import: the foundations, torch and numpy, and nothing else.  Begin with `gaussian.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.maths.confusion import confusion_matrices, confusion_matrix, headline_iou
    from seunet.maths.disco import discrete_basis
    from seunet.maths.fusion import (
        CALIBRATED,
        FUSIONS,
        Calibration,
        Fusion,
        confidence,
        first_largest,
        fuse,
        predicted_classes,
        softmax_in_order,
    )
    from seunet.maths.gaussian import gaussian_derivative, hermite, jet_size
    from seunet.maths.losses import overlap_loss_sums, scale_loss_sums
    from seunet.maths.object_overlaps import InstanceScores, Overlaps, instance_scores, overlaps
    from seunet.maths.polygon_fill import outside_distance, ring_pixels
    from seunet.maths.prediction import Prediction
    from seunet.maths.rescaling import rescale, rescale_mask, rescale_pixels, scaled_size, upsample_to
    from seunet.maths.rim import undecided_shares, without_rim
    from seunet.maths.sesn import TRUNCATED_ORDERS, Orders
    from seunet.maths.sigma import SigmaRange, block_starts, equal_range, filter_radius, geometric_range
    from seunet.maths.stain import (
        DENSITY,
        LAMBDA_FIT,
        START,
        Stains,
        apply_stains,
        concentrations,
        fit_stains,
        tissue,
        with_gains,
    )
else:
    __getattr__, __dir__ = door(__name__)
