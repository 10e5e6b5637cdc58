"""`seunet segment`: parse, call, print."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack, nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer

from seunet.cli.progress import PROGRESS, progress_of
from seunet.cli.stopping import resumable
from seunet.errors import InputError
from seunet.memory import keep_freed_memory
from seunet.progress import silent

if TYPE_CHECKING:
    from seunet.models import ScaleUNet
    from seunet.progress import Progress
    from seunet.segmentation.inputs import Inputs, Item
    from seunet.segmentation.options import Choices
    from seunet.segmentation.segment_many import Result

CONNECT_SECONDS = 5

RECURSIVE = typer.Option(False, "--recursive", "-r", help="Search folders at any depth; OUT mirrors their subfolders.")
INPUTS = typer.Argument(
    ...,
    metavar="INPUT...",
    help="Images, slides, folders, patterns, their addresses (s3://, gs://, https://), or a CSV with path,mpp.",
)
OUT = typer.Option(
    ...,
    "-o",
    "--out",
    metavar="OUT",
    help="Folder for the results, or one in a store (s3://, gs://); each input gets a folder of its own in it.",
)
MODEL = typer.Option(
    "nuclei",
    "-m",
    "--model",
    metavar="MODEL",
    help="A model of the package, a model folder, or hf-hub:owner/name.",
)
MPP = typer.Option(None, "--mpp", metavar="µm", help="µm per pixel of all inputs; replaces what the files state.")
MAGNIFICATION = typer.Option(None, "--magnification", metavar="X", help="Same as --mpp 10/X; --mpp is more exact.")
SCALE = typer.Option(
    "auto",
    "--scale",
    metavar="auto|stated|native",
    help="auto: the stated mpp as far as pixels allow, else an estimate; stated: that alone; native: pixels as is.",
)
FUSION = typer.Option(
    "auto",
    "--fusion",
    metavar="auto|mean|p_dist|p_ens|calibrated",
    help="How the heads become one prediction. auto: one head if the scale is known, else as the model card says.",
)
TILE = typer.Option(None, "--tile-size", metavar="PX", help="Side of a tile; changes memory and speed, not the result.")
TISSUE = typer.Option(True, "--tissue/--no-tissue", help="Skip glass without tissue on slides.")
SPLIT = typer.Option(True, "--split/--no-split", help="Separate touching nuclei where they narrow.")
MIN_AREA = typer.Option(
    "auto",
    "--min-area",
    metavar="AREA",
    help="Smallest object that is kept: 4um2, or 10px of the slide. auto: 4um2, or 10px if no mpp is known.",
)
SMOOTH = typer.Option(False, "--smooth", help="Outlines with fewer vertices, not along the edges of pixels.")
PROBABILITIES = typer.Option(False, "--probabilities", help="Also write probabilities as OME-Zarr.")
INSTANCES = typer.Option(False, "--instances", help="Also write instances.tif: the object's number at each pixel.")
GZIP = typer.Option(False, "--gzip", help="Write objects.geojson.gz.")
ROI = typer.Option(
    None, "--roi", metavar="FILE|FOLDER", help="GeoJSON of regions, or a folder with NAME.geojson: analyse only there."
)
STRICT = typer.Option(False, "--strict", help="Stop a slide at its first unreadable region.")
OVERWRITE = typer.Option(False, "--overwrite", help="Recompute existing results.")
DEVICE = typer.Option("cpu", "--device", metavar="auto|cpu|cuda|mps", help="Where the network computes.")
RUNTIME = typer.Option("native", "--runtime", metavar="native|onnx|openvino", help="Who computes the network.")
THREADS = typer.Option(None, "--threads", metavar="N", help="Threads, of all processes together; default: all cores.")
DASK = typer.Option(None, "--dask", metavar="ADDRESS|local", help="Spread the inputs over a Dask cluster.")
WORKERS = typer.Option(
    None,
    "--workers",
    metavar="N",
    help="Inputs at once, each in a process; default: several if many are small.",
)


def segment(
    inputs: list[str] = INPUTS,
    out: str = OUT,
    recursive: bool = RECURSIVE,
    model: str = MODEL,
    mpp: float | None = MPP,
    magnification: float | None = MAGNIFICATION,
    scale: str = SCALE,
    fusion: str = FUSION,
    tile_size: int | None = TILE,
    tissue: bool = TISSUE,
    split: bool = SPLIT,
    min_area: str = MIN_AREA,
    smooth: bool = SMOOTH,
    probabilities: bool = PROBABILITIES,
    instances: bool = INSTANCES,
    gzip: bool = GZIP,
    roi: str | None = ROI,
    strict: bool = STRICT,
    overwrite: bool = OVERWRITE,
    device: str = DEVICE,
    runtime: str = RUNTIME,
    threads: int | None = THREADS,
    dask: str | None = DASK,
    workers: int | None = WORKERS,
    progress: bool = PROGRESS,
) -> None:
    """Segment images and slides of any magnification. Repeat the command to resume; finished results are kept.

    Example: seunet segment slides/ -o out
    """
    dask = _cluster(dask, workers)
    if threads is not None and threads < 1:
        raise InputError(f"--threads {threads}: must be 1 or more")
    choices = _choices(
        mpp=_mpp(mpp, magnification),
        scale=scale,
        fusion=fusion,
        tile_px=tile_size,
        tissue=tissue,
        split=split,
        min_area=min_area,
        smooth=smooth,
        probabilities=probabilities,
        instances=instances,
        zipped=gzip,
        roi=None if roi is None else str(Path(roi).absolute()),
        strict=strict,
        overwrite=overwrite,
        runtime=runtime,
    )
    from seunet.segmentation.warm_up import compile_beside

    compile_beside()  # before torch is loaded
    import torch

    from seunet.device import usable_device
    from seunet.models.files import shared_model
    from seunet.models.places import pinned_name
    from seunet.segmentation.inputs import find_inputs
    from seunet.segmentation.segment_many import check_out, one_after_the_other, segment_all
    from seunet.segmentation.side_by_side import shared_out, side_by_side
    from seunet.segmentation.stores import OutPlace, through_stores

    keep_freed_memory()
    if threads is not None:
        torch.set_num_threads(threads)
    device = usable_device(device)
    model = pinned_name(model)  # so that all inputs, here and on a cluster, are segmented by one commit
    used = shared_model(model).model  # a missing model is reported once, not per input
    choices = choices.model_copy(update={"model": model, "device": device})
    place = OutPlace(out)
    check_out(place.folder)
    found = find_inputs(inputs, recursive)
    in_stores = place.url is not None or any(item.remote is not None for item in found.items)
    if in_stores and (dask is not None or (workers or 1) > 1):
        raise InputError("--dask and --workers take folders, no addresses of stores; mount the store on all nodes")
    _print_notes(model, used, found.warnings)
    results: Iterable[Result]
    bars = ExitStack()
    announce = _announcer(found, place.named, bars)
    with resumable(), place.opened() if in_stores else nullcontext(), bars:
        if dask is None:
            numbers = {item.name: number for number, item in enumerate(found.items, start=1)}

            def shown(item: Item) -> Progress:
                if not progress:
                    return silent
                name = f"{numbers[item.name]} of {len(numbers)} {Path(item.name).parent / item.path.name}"
                return bars.enter_context(progress_of(True, timed=True, name=name))

            if in_stores:
                results = through_stores(found.items, place, choices, shown)
            else:
                shares = shared_out(found.items, choices, workers, threads)
                together = side_by_side(shares.together, place.folder, choices, shares.processes, shares.threads)
                results = chain(together, one_after_the_other(shares.after, place.folder, choices, shown))
        else:
            from seunet.segmentation.cluster.cohort import over_cluster

            results = over_cluster(found.items, place.folder, choices, dask, workers)
        totals = segment_all(found, place.folder, results, announce)
    if len(found.items) + len(found.faults) > 1:
        print(totals)
    if totals.exit_code:
        raise typer.Exit(totals.exit_code)


def _print_notes(name: str, model: ScaleUNet, warnings: Iterable[str]) -> None:
    if model.source is not None:
        print(f"note: model {model.source}", file=sys.stderr)
    if model.card is not None and model.card.licence:
        print(f"note: licence of {name}: {model.card.licence}", file=sys.stderr)
    for warning in warnings:
        print(f"note: {warning}", file=sys.stderr)


def _choices(**options: Any) -> Choices:
    from pydantic import ValidationError

    from seunet.segmentation.options import Choices
    from seunet.settings import first_fault

    try:
        choices = Choices.model_validate(options)
    except ValidationError as error:
        name, _, message = first_fault(error)
        option = "tile-size" if name == "tile_px" else name.replace("_", "-")
        raise InputError(f"--{option} {options[name]}: {message}") from None
    area = options["min_area"]
    if area.replace(".", "").isdigit():
        meant = f"{choices.min_area}; write {area}px for pixels of the slide"
        print(f"note: --min-area {area} is read as {meant}", file=sys.stderr)
    return choices


def _mpp(mpp: float | None, magnification: float | None) -> float | None:
    if magnification is None:
        return mpp
    if mpp is not None:
        raise InputError("--mpp and --magnification say the same; give --mpp alone")
    if not magnification > 0:
        raise InputError(f"--magnification {magnification}: must be a positive number, e.g. 40")
    print(f"note: magnification {magnification:g} is read as {10 / magnification:g} µm per pixel", file=sys.stderr)
    return 10 / magnification


def _cluster(address: str | None, workers: int | None) -> str | None:
    """`--workers` is of this machine, without Dask or with; another cluster has workers of its own."""
    if workers is None:
        _refuse_unless_somebody_listens(address)
    elif workers < 1:
        raise InputError(f"--workers {workers}: must be 1 or more")
    elif address not in (None, "local"):
        raise InputError(f"--workers {workers}: the cluster at {address} has its own; leave it out or use --dask local")
    return address


def _refuse_unless_somebody_listens(address: str | None) -> None:
    """A closed port is known at once, before libraries are loaded that take seconds."""
    where = urlsplit(address if address is None or "//" in address else f"//{address}")
    try:
        if address != "local" and where.scheme in ("", "tcp", "tls") and where.hostname and where.port:
            socket.create_connection((where.hostname, where.port), timeout=CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        reason = f"no scheduler answers there ({type(error).__name__})"
        raise InputError(f"--dask {address}: {reason}; start one or correct it") from None


def _announcer(inputs: Inputs, named: Callable[[str], str], bars: ExitStack) -> Any:
    from seunet.segmentation.segment_many import Failure

    paths: dict[str, Item] = {item.name: item for item in inputs.items}

    def announce(result: Result) -> None:
        bars.close()  # a slide's progress bar goes before its result is printed
        if isinstance(result, Failure):
            print(f"seunet: {result.line}", file=sys.stderr)
            return
        for line in result.lines:
            where = paths[result.name].path.name
            print(f"note: {line if where in line else f'{where}: {line}'}", file=sys.stderr)
        counts = ", ".join(
            f"{value} {name.removesuffix(':objects')}"
            for name, value in result.row.items()
            if name.endswith(":objects")
        )
        done = {"done": "", "part": " (in part)", "before": " (was there)"}[result.state]
        print(f"{named(result.name)}: {counts or 'no objects'}{done}")

    return announce
