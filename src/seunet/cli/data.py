"""`seunet data …`: prepare a data set, verify one."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from seunet.cli.progress import PROGRESS, progress_of
from seunet.cli.stopping import resumable
from seunet.errors import SeunetError

if TYPE_CHECKING:
    from seunet.data.prepare.plan import Plan, PrepareSettings

EXIT_PART = 5

app = typer.Typer(help="Prepare data sets and verify prepared ones.", no_args_is_help=True)
prepare_app = typer.Typer(
    help="Bring a data set into the one form that training and evaluation read.", no_args_is_help=True
)
app.add_typer(prepare_app, name="prepare")

# `readable=False`: what cannot be read is said by the rooms below, in one line and with the right exit code.
SOURCE = typer.Argument(..., readable=False, metavar="SRC", help="Folder of the images, or of what archives held.")
DEST = typer.Argument(..., readable=False, metavar="DEST", help="A new or empty folder for the prepared set.")
PREPARED = typer.Argument(..., readable=False, metavar="DEST", help="A prepared set.")
WINDOW = typer.Option(
    None, "--window", metavar="PX", help="Side of a window; for folders 512, or less where images are smaller."
)
STRIDE = typer.Option(None, "--stride", metavar="PX", help="Step from one window to the next.")
VALIDATION = typer.Option(
    0.0, "--validation", metavar="SHARE", help="Fraction of the training patients held out for validation."
)
SEED = typer.Option(0, "--seed", help="Seed for drawing patients.")
MPP = typer.Option(None, "--mpp", metavar="µm", help="µm per pixel of all images; replaces what the files state.")
STAIN = typer.Option(
    None, "--stain", metavar="vahadane|vahadane-tuned", help="Normalise stains to the built-in target."
)
CLIP = typer.Option(False, "--clip", help="Clip outlines that reach more than 4 px beyond the image.")
MIN_ANNOTATED = typer.Option(
    0.5, "--min-annotated", metavar="SHARE", help="Leave out windows with a smaller annotated fraction."
)
INSTITUTIONS = typer.Option(None, "--test-institutions", metavar="OL,LL,…", help="TCGA site codes of the test split.")
KIND = typer.Option("classes", "--kind", metavar="classes|binary|instances", help="What the numbers in the masks mean.")
BINARY = typer.Option(False, "--binary", help="Masks of 0 and 255 (or 1); short for --kind binary.")
CLASS_MAP = typer.Option(
    None,
    "--class-map",
    readable=False,
    metavar="CSV",
    help="Table with columns code,class; pixels of class “ignore” are not scored.",
)
CLASS_NAME = typer.Option(
    "nucleus", "--class-name", "--instance-class", metavar="NAME", help="Class of binary masks or of all instances."
)
PATTERN = typer.Option(
    None, "--patient-pattern", metavar="REGEX", help="Regular expression for file names; its one group is the patient."
)
TABLE = typer.Option(
    None, "--table", readable=False, metavar="CSV", help="Table with columns image[,patient][,split][,mpp]."
)
TEST = typer.Option(0.0, "--test", metavar="SHARE", help="Fraction of the patients in the test split.")
WORKERS = typer.Option(None, "--workers", "--num-workers", min=1, max=256, help="Processes; default: one per core.")
OVERWRITE = typer.Option(
    False, "--overwrite", help="Replace a prepared set or an unfinished run in DEST; other files there stay."
)
SKIP = typer.Option(False, "--skip-errors", help="Leave out faulty images, list them, exit with code 5.")


@dataclass(frozen=True)
class Shared:
    """What every `prepare` takes: the fields are the options, their defaults say how they look."""

    source: Path = SOURCE
    dest: Path = DEST
    window: int | None = WINDOW
    stride: int | None = STRIDE
    validation: float = VALIDATION
    seed: int = SEED
    mpp: float | None = MPP
    stain: str | None = STAIN
    workers: int | None = WORKERS
    overwrite: bool = OVERWRITE
    skip_errors: bool = SKIP
    progress: bool = PROGRESS


def sharing(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the shared options; they reach it as one `shared` argument."""
    shared = inspect.signature(Shared, eval_str=True).parameters
    own = {key: value for key, value in inspect.signature(verb, eval_str=True).parameters.items() if key != "shared"}

    @functools.wraps(verb)
    def command(**given: Any) -> None:
        verb(Shared(**{name: given.pop(name) for name in shared}), **given)

    parameters = [*shared.values(), *own.values()]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


@prepare_app.command("monuseg")
@sharing
def prepare_monuseg(shared: Shared, clip: bool = CLIP) -> None:
    """MoNuSeg: the folders “MoNuSeg 2018 Training Data” and “MoNuSegTestData”, or one of them, in SRC.

    Example: seunet data prepare monuseg downloads/ prepared/monuseg
    """
    from seunet.data.formats.monuseg import plan_monuseg

    window = 400 if shared.window is None else shared.window
    settings = _settings(shared, window, max(window // 2, 1), clip=clip)
    _carry_out(plan_monuseg(shared.source, shared.dest, settings), shared)


@prepare_app.command("bcss")
@sharing
def prepare_bcss(
    shared: Shared, min_annotated: float = MIN_ANNOTATED, test_institutions: str | None = INSTITUTIONS
) -> None:
    """BCSS: the folders “rgbs_colorNormalized” (or “rgb”) and “masks” in SRC, with gtruth_codes.tsv.

    Example: seunet data prepare bcss 0_Public-data-Amgad2019_0.25MPP/ prepared/bcss
    """
    from seunet.data.formats.bcss import TEST_INSTITUTIONS, plan_bcss

    settings = _settings(shared, 512, min_annotated=min_annotated)
    sites = TEST_INSTITUTIONS if test_institutions is None else tuple(test_institutions.replace(",", " ").split())
    _carry_out(plan_bcss(shared.source, shared.dest, settings, sites), shared)


@prepare_app.command("folder")
@sharing
def prepare_folder(
    shared: Shared,
    kind: str = KIND,
    class_map: Path | None = CLASS_MAP,
    binary: bool = BINARY,
    class_name: str = CLASS_NAME,
    patient_pattern: str | None = PATTERN,
    table: Path | None = TABLE,
    test: float = TEST,
    min_annotated: float = MIN_ANNOTATED,
) -> None:
    """Your own data: the folders “images” and “masks” in SRC, files of the same name in both.

    Example: seunet data prepare folder lab/ prepared/lab --binary --mpp 0.25
    --patient-pattern '^(P[0-9]+)_' --test 0.2
    """
    from seunet.data.formats.folder import FolderRules, plan_folder

    rules = FolderRules("binary" if binary else kind, class_map, class_name, patient_pattern, table, test)
    settings = _settings(shared, 512, min_annotated=min_annotated)
    plan = plan_folder(shared.source, shared.dest, settings, rules)
    _carry_out(plan._replace(fit_windows=shared.window is None), shared)


def _settings(shared: Shared, window_px: int, stride_px: int | None = None, **chosen: Any) -> PrepareSettings:
    """What was chosen, else the set's defaults; windows lie side by side where it has no stride of its own."""
    from seunet.data.prepare.claim import check_places
    from seunet.data.prepare.plan import PrepareSettings

    check_places(shared.source, shared.dest)
    window = window_px if shared.window is None else shared.window
    stride = shared.stride if shared.stride is not None else stride_px if stride_px is not None else window
    common = {name: getattr(shared, name) for name in ("validation", "seed", "mpp", "stain")}
    return PrepareSettings(window_px=window, stride_px=stride, **common, **chosen)


def _carry_out(plan: Plan, shared: Shared) -> None:
    """Prepare, then print what came of it: decisions, areas, windows, time; one line per fault."""
    from seunet.data.manifest import summary_lines
    from seunet.data.prepare.run import FaultsError, prepare

    started = time.monotonic()
    try:
        with resumable(), progress_of(shared.progress) as progress:
            prepared = prepare(
                plan,
                shared.dest,
                workers=shared.workers,
                overwrite=shared.overwrite,
                skip_errors=shared.skip_errors,
                progress=progress,
            )
    except FaultsError as error:
        _print_faults(error.faults)
        raise typer.Exit(error.exit_code) from None
    for line in summary_lines(prepared.manifest):
        print(line)
    if prepared.resumed:
        print(f"{prepared.resumed} of {len(prepared.manifest.images)} images were finished before")
    print(f"prepared in {time.monotonic() - started:.1f} s: {shared.dest}")
    if prepared.faults:
        _print_faults(prepared.faults)
        raise typer.Exit(EXIT_PART)


def _print_faults(faults: list[SeunetError]) -> None:
    for fault in faults:
        print(f"seunet: {' '.join(str(fault).split())}", file=sys.stderr)


@app.command("verify")
def verify_set(
    folder: Path = PREPARED,
    progress: bool = PROGRESS,
) -> None:
    """Check sizes, codes, hashes, leaks between splits, empty masks and mpp: one line per finding.

    Example: seunet data verify prepared/monuseg
    """
    from seunet.data.manifest import read_manifest
    from seunet.data.verification import verify

    with progress_of(progress) as show:
        findings = verify(folder, show)
    for finding in findings:
        print(finding)
    faults = sum(not finding.note for finding in findings)
    if faults:
        print(f"seunet: {folder}: {faults} faults", file=sys.stderr)
        raise typer.Exit(2)
    print(f"{folder}: {len(read_manifest(folder).images)} images, no faults")
