"""`seunet evaluate`: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from seunet.cli.progress import duration
from seunet.cli.progress import progress as progress_of
from seunet.errors import InputError

if TYPE_CHECKING:
    from seunet.evaluation.run import EvaluationSettings
    from seunet.models.unet_skeleton import ScaleUNet

MODEL = typer.Argument(..., readable=False, metavar="MODEL", help="A model folder, or a model of the package: nuclei.")
DATA = typer.Argument(..., readable=False, metavar="DATA", help="A prepared set.")
OUT = typer.Option(..., "-o", "--out", readable=False, metavar="OUT", help="A folder for the report.")
SPLIT = typer.Option("test", "--split", metavar="train|validation|test", help="The split to evaluate on.")
IMAGES = typer.Option(None, "--images", metavar="NAME,…", help="Only these images of the split.")
TILES = typer.Option(
    None,
    "--tiles",
    metavar="PX[,STRIDE[,N]]",
    help="Windows other than the set's: side, stride (default: the side), and every N-th window per image.",
)
SCALES = typer.Option(None, "--scales", metavar="S,…", help="Test scales; default: the paper's 17 from 0.25 to 4.")
FUSIONS = typer.Option(None, "--fusions", metavar="NAME,…", help="Default: mean,p_dist,p_ens.")
ANTIALIAS = typer.Option(False, "--antialias", help="Antialias where images are shrunk; the paper does not.")
SCALED_FILTERS = typer.Option(False, "--scaled-filters", help="Also with every σ × s. For models with σ.")
STATED = typer.Option(False, "--stated", help="Also with the true scale stated, and used as `seunet segment` does.")
RESAMPLED = typer.Option(False, "--resampled", help="Also with images resampled to the training scale: the ceiling.")
ESTIMATED = typer.Option(False, "--estimated", help="As --stated, with the scale estimated from each whole image.")
TOLD = typer.Option(False, "--told", hidden=True, help="Old name of --scaled-filters.")
KNOWN = typer.Option(False, "--known", hidden=True, help="Old name of --stated.")
ORACLE = typer.Option(False, "--oracle", hidden=True, help="Old name of --resampled.")
ESTIMATOR = typer.Option(
    None,
    "--estimator",
    readable=False,
    metavar="MODEL",
    help="For --estimated: the model or folder whose scale estimator is used; default: the evaluated model's.",
)
PYRAMID = typer.Option(
    False, "--pyramid", help="Also with each image at five sizes, fused as heads are; takes 8 times as long."
)
PANELS = typer.Option(True, "--panels/--no-panels", help="Draw one window with truth and predictions.")
OVERWRITE = typer.Option(False, "--overwrite", help="Replace the report in OUT.")
DEVICE = typer.Option("cpu", "--device", metavar="auto|cpu|cuda|mps", help="Where the network computes.")
PROGRESS = typer.Option(True, "--progress/--no-progress", help="Show progress.")


def evaluate(
    model: Path = MODEL,
    data: Path = DATA,
    out: Path = OUT,
    split: str = SPLIT,
    images: str | None = IMAGES,
    tiles: str | None = TILES,
    scales: str | None = SCALES,
    fusions: str | None = FUSIONS,
    antialias: bool = ANTIALIAS,
    scaled_filters: bool = SCALED_FILTERS,
    stated: bool = STATED,
    resampled: bool = RESAMPLED,
    estimated: bool = ESTIMATED,
    estimator: Path | None = ESTIMATOR,
    pyramid: bool = PYRAMID,
    told: bool = TOLD,
    known: bool = KNOWN,
    oracle: bool = ORACLE,
    panels: bool = PANELS,
    overwrite: bool = OVERWRITE,
    device: str = DEVICE,
    progress: bool = PROGRESS,
) -> None:
    """Score a model at many magnifications. Repeat an interrupted command to resume.

    Example: seunet evaluate runs/nuclei/model prepared/monuseg -o out/nuclei --stated --estimated
    """
    from seunet.device import usable_device
    from seunet.evaluation.run import EvaluationSettings
    from seunet.evaluation.run import evaluate as run
    from seunet.evaluation.test_scales import TEST_SCALES, parsed_scales
    from seunet.models.files import load, model_folder
    from seunet.models.heads_to_use import known_fusions
    from seunet.scale.files import load_estimator

    extra = {
        "scaled_filters": scaled_filters or told,
        "stated": stated or known,
        "resampled": resampled or oracle,
        "estimated": estimated,
        "pyramid": pyramid,
    }
    network = load(model).to(usable_device(device))
    settings = EvaluationSettings(
        split=split,
        images=names(images),
        tiles_px=tile_sizes(tiles),
        scales=TEST_SCALES if scales is None else parsed_scales(scales),
        ways=("blind", *(name for name, wanted in extra.items() if wanted)),
        fusions=names(fusions) or known_fusions(network),
        antialias=antialias,
        estimator=None if estimator is None else load_estimator(model_folder(estimator)),
    )
    with progress_of(progress, timed=True) as show:
        document = run(network, data, out, settings, overwrite=overwrite, progress=show)
    _write_results(document, out)
    if panels:
        _write_panels(document, network, data, settings, out)
    _print_summary(document, out)


def names(text: str | None) -> tuple[str, ...] | None:
    """The names of `a,b`; None if the option was not given."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def tile_sizes(text: str | None) -> tuple[int, ...] | None:
    """Size and stride in `500` or `400,200`, and every n-th window in `500,500,4`; None if the option was not given."""
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) > 3 or not all(part.strip().isdecimal() for part in parts):
        raise InputError(f"--tiles {text!r}: must be a size and perhaps a stride in pixels, e.g. 500 or 400,200")
    sizes = [int(part) for part in parts]
    return (sizes[0], sizes[0]) if len(sizes) == 1 else tuple(sizes)


def _write_results(document: dict[str, Any], out: Path) -> None:
    from seunet.evaluation.figures.curves import curves_figure, own_curves
    from seunet.evaluation.figures.style import write_png
    from seunet.evaluation.scores import comma_separated, markdown, metric_name
    from seunet.storage.atomic import write_text

    write_text(out / "evaluation.md", markdown(document))
    write_text(out / "evaluation.csv", comma_separated(document))
    title = f"{document['model']['name']} on {document['data']['dataset']}, {document['data']['split']}"
    write_png(curves_figure(own_curves(document), metric_name(document), title), out / "curves.png")


def _write_panels(
    document: dict[str, Any], model: ScaleUNet, data: Path, settings: EvaluationSettings, out: Path
) -> None:
    from seunet.evaluation.figures.panels import PANEL_SCALES, panel, panels_figure
    from seunet.evaluation.figures.style import write_png
    from seunet.evaluation.predictors import ways_of_predicting
    from seunet.evaluation.run import open_windows

    windows = open_windows(data, settings.split, settings.images, settings.tiles_px)
    ways = ways_of_predicting(settings.ways, settings.antialias)
    fusion = "p_ens" if "p_ens" in settings.fusions else settings.fusions[-1]
    scales = [scale for scale in PANEL_SCALES if scale in settings.scales] or settings.scales[:5]
    number = len(windows) // 2
    shown = [
        panel(model, windows, number, scale, ways, fusion, settings.antialias, settings.estimator) for scale in scales
    ]
    title = f"{windows.image_name(number)}: {document['model']['name']}"
    write_png(panels_figure(shown, document["data"]["colors"], title), out / "panels.png")


def _print_summary(document: dict[str, Any], out: Path) -> None:
    from seunet.evaluation.scores import metric_name

    for note in document["notes"]:
        print(f"note: {note}")
    scales, clock = document["arguments"]["scales"], document["clock"]
    print(f"{metric_name(document)}, mean over {len(scales)} scales, {document['data']['windows']} windows:")
    for row in document["scores"]:
        if not row["head"] or document["model"]["heads"] == 1:
            print(f"  {row['label']:32} {'–' if row['mean'] is None else format(100 * row['mean'], '.2f'):>6}")
    print(f"{duration(clock['seconds'])}, {clock['peak_memory_mib']:.0f} MiB: {out / 'evaluation.md'}")
