"""What lies beside a report: its tables as Markdown and CSV, its curves and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seunet.evaluation.figures.agreement import agreement_figure
from seunet.evaluation.figures.curves import curves_figure, own_curves
from seunet.evaluation.figures.panels import PANEL_SCALES, panel, panels_figure
from seunet.evaluation.figures.style import write_png
from seunet.evaluation.objects import agreement
from seunet.evaluation.objects import scores as object_scores
from seunet.evaluation.predictors import ways_of_predicting
from seunet.evaluation.run import EvaluationSettings, open_windows
from seunet.evaluation.scores import comma_separated, markdown, metric_name
from seunet.models.unet_skeleton import ScaleUNet
from seunet.storage.atomic import write_text


def write_evaluation(document: dict[str, Any], out: Path) -> None:
    """evaluation.md, evaluation.csv and curves.png."""
    write_text(out / "evaluation.md", markdown(document))
    write_text(out / "evaluation.csv", comma_separated(document))
    title = f"{document['model']['name']} on {document['data']['dataset']}, {document['data']['split']}"
    write_png(curves_figure(own_curves(document), metric_name(document), title), out / "curves.png")


def write_objects(document: dict[str, Any], out: Path) -> None:
    """objects.md and objects.csv."""
    write_text(out / "objects.md", object_scores.markdown(document))
    write_text(out / "objects.csv", object_scores.comma_separated(document))


def write_agreement(document: dict[str, Any], out: Path) -> None:
    """agreement.md and agreement.png."""
    write_text(out / "agreement.md", agreement.markdown(document))
    write_png(agreement_figure(document), out / "agreement.png")


def write_panels(
    document: dict[str, Any], model: ScaleUNet, data: Path, settings: EvaluationSettings, out: Path
) -> None:
    """panels.png: the middle window with truth and predictions."""
    windows = open_windows(data, settings.split, settings.images, settings.tiles_px)
    ways = ways_of_predicting(settings.ways, settings.antialias)
    fusion = "p_ens" if "p_ens" in settings.fusions else settings.fusions[-1]
    scales = [scale for scale in PANEL_SCALES if scale in settings.scales] or settings.scales[:5]
    number = len(windows) // 2
    shown = [
        panel(model, windows, number, scale, ways, fusion, settings.antialias, settings.estimator) for scale in scales
    ]
    title = f"{windows.image_name(number)}: {document['model']['name']}"
    facts = document["data"]
    write_png(panels_figure(shown, facts["colors"], title, facts["classes"]), out / "panels.png")
