"""`seunet plot …`: draw figures again from what a run or a report wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from seunet.errors import InputError
from seunet.evaluation.way_names import WAYS, way_name

app = typer.Typer(help="Draw figures from reports and logs.", no_args_is_help=True)

REPORTS = typer.Argument(..., readable=False, metavar="REPORT...", help="evaluation.json of one or several models.")
SOURCE = typer.Argument(..., readable=False, metavar="SOURCE", help="An evaluation.json or a model folder.")
LOG = typer.Argument(..., readable=False, metavar="LOG", help="The log.jsonl of a training run.")
OUT = typer.Option(..., "-o", "--out", readable=False, metavar="PNG", help="The picture.")
ROW = typer.Option(None, "--row", metavar="NAME", help="Row of each report, e.g. p_dist; default: p_ens.")
WAY = typer.Option("blind", "--way", metavar="|".join(WAYS), help="Which way of predicting.")
LABELS = typer.Option(None, "--labels", metavar="NAME,…", help="One name per report.")
TITLE = typer.Option(None, "--title", help="Default: what the file says.")


@app.command("curves")
def curves(
    reports: list[Path] = REPORTS,
    out: Path = OUT,
    row: str | None = ROW,
    way: str = WAY,
    labels: str | None = LABELS,
    title: str | None = TITLE,
) -> None:
    """IoU at every scale: of one report with its heads, or of several models in one figure.

    Example: seunet plot curves out/seunet/evaluation.json out/unet/evaluation.json -o curves.png
    """
    from seunet.cli.evaluate import names
    from seunet.evaluation.figures.curves import curves_figure, own_curves, rival_curves
    from seunet.evaluation.figures.style import write_png
    from seunet.evaluation.report_folder import read_report
    from seunet.evaluation.scores import metric_name

    documents = [read_report(path, "evaluation") for path in reports]
    for path, document in zip(reports, documents, strict=True):
        if "scores" not in document:
            raise InputError(f"{path}: was interrupted; finish it with the `seunet evaluate` that began it")
    alone = len(documents) == 1 and row is None and labels is None and way == "blind"
    lines = own_curves(documents[0]) if alone else rival_curves(documents, names(labels) or (), row, way_name(way))
    first = documents[0]
    default = f"{first['model']['name'] + ' on ' if alone else ''}{first['data']['dataset']}, {first['data']['split']}"
    _write(out, lambda: write_png(curves_figure(lines, metric_name(first), title or default), out))


@app.command("sigmas")
def sigmas(source: Path = SOURCE, out: Path = OUT, title: str | None = TITLE) -> None:
    """σ of every layer and scale with its bounds.

    Example: seunet plot sigmas runs/nuclei/model -o sigmas.png
    """
    from seunet.evaluation.figures.sigmas import sigmas_figure
    from seunet.evaluation.figures.style import write_png
    from seunet.evaluation.provenance import sigma_facts
    from seunet.evaluation.report_folder import read_report
    from seunet.models.files import load

    if source.is_dir():
        model = load(source)
        name, sigma = model.name, sigma_facts(model)
    else:
        document = read_report(source, "evaluation")
        name, sigma = document["model"]["name"], document["sigma"]
    if sigma is None:
        raise InputError(f"{source}: {name} has no σ; give a model made of Gaussian derivatives")
    _write(out, lambda: write_png(sigmas_figure(sigma, title or f"σ of {name}, {sigma['mode']}"), out))


@app.command("weights")
def weights(log: Path = LOG, out: Path = OUT, title: str | None = TITLE) -> None:
    """The weight of each head and σ over the steps of a training run.

    Example: seunet plot weights runs/nuclei/log.jsonl -o weights.png
    """
    from seunet.evaluation.figures.style import write_png
    from seunet.evaluation.figures.training import course, training_figure
    from seunet.storage.jsonl import rows

    try:
        shown = course(rows(log), str(log))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{log}: cannot be read ({getattr(error, 'strerror', 'not text')}); give a log.jsonl"
        ) from None
    except (ValueError, AttributeError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{log}: not the log of a training run; give its log.jsonl") from None
    _write(out, lambda: write_png(training_figure(shown, title or str(log.parent.name)), out))


def _write(out: Path, draw: Callable[[], None]) -> None:
    if out.is_dir():
        raise InputError(f"{out}: is a folder; give a name for the picture, e.g. {out / 'curves.png'}")
    draw()
    print(out)


@app.command("filters")
def filters(out: Path = OUT) -> None:
    """What scale equivariance is: filters of many sizes on a real tissue image and on its rescaled copies.

    Example: seunet plot filters -o filters.png
    """
    import torch

    from seunet.evaluation.demo import sample
    from seunet.evaluation.figures.filters import HEIGHT_PX, WIDTH_PX, filters_figure
    from seunet.evaluation.figures.style import DPI
    from seunet.evaluation.filter_study import explanation, filter_study
    from seunet.storage.atomic import atomic_path

    # A part of the image: the whole one is twenty times the work, and its matrices look the same.
    middle = slice(400, 656)
    image = sample().pixels[middle, middle].copy()
    # Opened before the work, so that a place that cannot be written is reported at once.
    with atomic_path(out) as part:
        study = filter_study(torch.from_numpy(image))
        filters_figure(study).savefig(part, format="png", dpi=DPI)
    print(f"{out}  ({WIDTH_PX}×{HEIGHT_PX} px)")
    print(explanation(study))
