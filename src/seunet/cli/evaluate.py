"""`seunet evaluate`: parse, call, print."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from seunet.cli.progress import PROGRESS, duration, progress_of
from seunet.cli.stopping import resumable
from seunet.errors import InputError, check_known

if TYPE_CHECKING:
    from seunet.evaluation.run import EvaluationSettings
    from seunet.models.unet_skeleton import ScaleUNet

MODEL = typer.Argument(..., readable=False, metavar="MODEL", help="A model folder, or a model of the package: nuclei.")
DATA = typer.Argument(..., readable=False, metavar="DATA", help="A prepared set; for evaluate --agreement: images.")
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
SHRINKING = typer.Option(
    "paper",
    "--shrinking",
    metavar="paper|averaging|both",
    help="How images are made smaller: without averaging as in the paper, with it as a scan at low power is, or both.",
)
ANTIALIAS = typer.Option(False, "--antialias", hidden=True, help="Old name of --shrinking averaging.")
OBJECTS = typer.Option(
    True, "--objects/--no-objects", help="AJI, PQ and F1 of whole images, where the set has its nuclei one by one."
)
OBJECTS_AT = typer.Option("1", "--objects-at", metavar="S,…|all", help="Test scales for the objects; all: --scales.")
AGREEMENT = typer.Option(
    False,
    "--agreement",
    help="Without masks: areas in the images of a folder, and in the same made smaller or restained.",
)
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


def evaluate(
    context: typer.Context,
    model: Path = MODEL,
    data: Path = DATA,
    out: Path = OUT,
    split: str = SPLIT,
    images: str | None = IMAGES,
    tiles: str | None = TILES,
    scales: str | None = SCALES,
    fusions: str | None = FUSIONS,
    shrinking: str = SHRINKING,
    antialias: bool = ANTIALIAS,
    objects: bool = OBJECTS,
    objects_at: str = OBJECTS_AT,
    agreement: bool = AGREEMENT,
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
    from seunet.evaluation.test_scales import TEST_SCALES, parsed_scales
    from seunet.models.files import load
    from seunet.models.heads_to_use import known_fusions
    from seunet.models.places import model_folder
    from seunet.scale.files import load_estimator

    if agreement:
        _check_alone(context)
        _agree(load(model).to(usable_device(device)), data, out, overwrite, progress)
        return
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
        estimator=None if estimator is None else load_estimator(model_folder(estimator)),
    )
    at = settings.scales if objects_at == "all" else parsed_scales(objects_at)
    for averaging, place in _forms(shrinking, antialias, out):
        chosen = replace(settings, antialias=averaging)
        _evaluate(network, data, place, chosen, at if objects else (), panels, overwrite, progress)


def _forms(shrinking: str, antialias: bool, out: Path) -> list[tuple[bool, Path]]:
    """Whether images are averaged where they are shrunk, and where that report goes."""
    forms = {"paper": [(False, out)], "averaging": [(True, out)], "both": [(False, out), (True, out / "averaging")]}
    check_known("way of shrinking", shrinking, tuple(forms))
    return forms["averaging"] if antialias else forms[shrinking]


def _evaluate(
    network: ScaleUNet,
    data: Path,
    out: Path,
    settings: EvaluationSettings,
    objects_at: tuple[float, ...],
    panels: bool,
    overwrite: bool,
    progress: bool,
) -> None:
    from seunet.evaluation.objects.run import ObjectSettings, evaluate_objects, has_objects
    from seunet.evaluation.report_files import write_evaluation, write_objects, write_panels
    from seunet.evaluation.run import evaluate as run
    from seunet.evaluation.run import open_windows

    with resumable(), progress_of(progress, timed=True) as show:
        document = run(network, data, out, settings, overwrite=overwrite, progress=show)
        write_evaluation(document, out)
        windows = open_windows(data, settings.split, settings.images)
        counted = None
        if objects_at and has_objects(network, windows):
            ways = ("estimated", "stated") if "stated" in settings.ways else ("estimated",)
            how = ObjectSettings(objects_at, ways, settings.antialias)
            counted = evaluate_objects(network, windows, settings.split, out, how, overwrite=overwrite, progress=show)
            write_objects(counted, out)
    if panels:
        write_panels(document, network, data, settings, out)
    _print_summary(document, counted, out)


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


def _print_summary(document: dict[str, Any], counted: dict[str, Any] | None, out: Path) -> None:
    from seunet.evaluation.objects.scores import HEADER, table_rows
    from seunet.evaluation.scores import metric_name

    for note in document["notes"]:
        print(f"note: {note}")
    scales, clock = document["arguments"]["scales"], document["clock"]
    print(f"{metric_name(document)}, mean over {len(scales)} scales, {document['data']['windows']} windows:")
    for row in document["scores"]:
        if not row["head"] or document["model"]["heads"] == 1:
            print(f"  {row['label']:32} {'–' if row['mean'] is None else format(100 * row['mean'], '.2f'):>6}")
    if counted is not None:
        print(f"objects of {len(counted['data']['images'])} whole images, as `seunet segment` finds them:")
        for row in table_rows(counted):
            values = ", ".join(f"{name} {value}" for name, value in zip(HEADER[2:], row[2:], strict=True))
            print(f"  {row[0]}, s = {row[1]}: {values}")
    print(f"{duration(clock['seconds'])}, {clock['peak_memory_mib']:.0f} MiB: {out / 'evaluation.md'}")


def _check_alone(context: typer.Context) -> None:
    """--agreement goes without the options of an evaluation on masks."""
    with_it = {"model", "data", "out", "overwrite", "device", "progress", "agreement"}
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in with_it and source is not None and source.name == "COMMANDLINE":
            raise InputError(f"--agreement needs no masks and goes without --{name.replace('_', '-')}; leave one out")


def _agree(network: ScaleUNet, data: Path, out: Path, overwrite: bool, progress: bool) -> None:
    """Compare, write agreement.json, .md and .png, print the table."""
    from seunet.evaluation.objects.agreement import measure_agreement, table_rows
    from seunet.evaluation.report_files import write_agreement
    from seunet.segmentation.inputs import find_inputs
    from seunet.segmentation.segment_many import EXIT_PART

    inputs = find_inputs([str(data)])
    for fault in inputs.faults:
        print(f"seunet: {fault}", file=sys.stderr)
    with progress_of(progress, timed=True) as show:
        document = measure_agreement(network, inputs.items, out, overwrite=overwrite, progress=show)
    if not document["results"]:
        raise InputError(next(iter(document["failed"].values())))
    write_agreement(document, out)
    count = len(document["results"])
    print(f"area of objects relative to the image as it is, {count} image{'s' * (count != 1)}:")
    for row in table_rows(document):
        print(f"  {row[0].replace('*', ''):14} {row[2]:>6} within 20 %, {row[3]} above 2 ×, median {row[4]}")
    print(f"{duration(document['clock']['seconds'])}: {out / 'agreement.md'}")
    for line in document["failed"].values():
        print(f"seunet: {line}", file=sys.stderr)
    if document["failed"] or inputs.faults:
        raise typer.Exit(EXIT_PART)
