"""The γ×γ matrices of an equivariance report as heat maps (the paper's Appendix C, for a whole network)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import torch

from seunet.evaluation.figures.filters import draw_matches
from seunet.evaluation.figures.style import new_figure
from seunet.evaluation.filter_study import ScaleMatch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_SCALES: Final = (0.25, 0.5, 0.5 * 2**0.5, 0.5 * 2**0.75, 2**0.25, 2**0.5, 2.0, 4.0)
LIMITS_PERCENT: Final = (1.0, 300.0)


def errors_figure(document: dict[str, Any], variant: str, scales: Sequence[float] = SHOWN_SCALES) -> Figure:
    """Up to eight of the scales; all there are where the report has none of them."""
    wanted = [row for row in document["errors"] if any(abs(row["scale"] / scale - 1) < 1e-6 for scale in scales)]
    rows = wanted or document["errors"][:8]
    sigmas = tuple(document["sigmas"])
    matches = [ScaleMatch(row["scale"], sigmas, torch.tensor(row[variant]["matrix"])) for row in rows]
    lines = -(-len(matches) // 4)
    figure = new_figure(1920, 560 * lines + 240)
    what = f"of {document['model']['name']}'s logits on {document['data']['windows']} windows"
    draw_matches(figure, matches, lines, what, LIMITS_PERCENT)
    return figure
