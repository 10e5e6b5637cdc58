"""Train what is missing, measure it, and hand the numbers to the page: every step can be interrupted and resumed.

OUT/protocol.yaml            what was asked for
OUT/runs/NAME-seedN/         training runs (training/run_folder.py)
OUT/measured/NAME-seedN/     evaluation.json, equivariance.json, windows-400px/evaluation.json, panels/
OUT/figures/, report.md, report.html
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from seunet.data.manifest import read_manifest
from seunet.errors import InputError, check_known
from seunet.evaluation.equivariance_report import EquivarianceSettings, measure_equivariance
from seunet.evaluation.report_folder import REPORTS, read_report
from seunet.evaluation.reproduce.panels import write_predictions
from seunet.evaluation.reproduce.protocol import Experiment, Protocol, jobs, slug, tile_numbers
from seunet.evaluation.run import EvaluationSettings, evaluate
from seunet.evaluation.test_scales import TEST_SCALES, check_way_scales
from seunet.evaluation.way_names import scales_by_way
from seunet.models.files import load
from seunet.progress import Progress, silent
from seunet.scale.estimator import shipped_estimator
from seunet.settings import to_yaml
from seunet.storage.atomic import write_text
from seunet.storage.output_folder import first_difference, names_in, something_else
from seunet.training.distributed import Processes
from seunet.training.loop import train
from seunet.training.observers import Observer
from seunet.training.run_files import check_same_config
from seunet.training.run_folder import RunFolder

Announce = Callable[[str], None]


class Measured(NamedTuple):
    """A trained model and its reports."""

    job: Experiment
    run: RunFolder
    folder: Path
    """Where its reports are."""
    evaluation: dict[str, Any]
    equivariance: dict[str, Any] | None
    windows: dict[int, dict[str, Any]]
    """Evaluations at s = 1 by the side of the windows."""


class _StoppedError(Exception):
    """Out of the middle of a measurement, whose finished parts are kept."""


def claim(out: Path, protocol: Protocol) -> None:
    """Make OUT ours: new, empty, or of the same protocol, to which models and seeds may have been added."""
    mark, entries = out / "protocol.yaml", names_in(out, "the report")
    if entries and not mark.is_file():
        raise something_else(out, entries[0], "choose a new or empty folder")
    if mark.is_file():
        before = yaml.safe_load(mark.read_text())
        before["way_scales"] = scales_by_way(before.get("way_scales", {}))
        identity = protocol.model_dump(mode="json", exclude={"models", "training", "data", "questions", "panels"})
        different = first_difference(identity, before)
        if different is not None:
            name, now, then = different
            raise InputError(
                f"{out}: belongs to another protocol (its `{name}` is {then!r}, not {now!r}); choose another folder"
            )
    write_text(mark, to_yaml(protocol))


def reproduce(
    protocol: Protocol,
    out: Path,
    processes: Processes,
    *,
    only: tuple[str, ...] | None = None,
    training_overrides: tuple[str, ...] = (),
    watching: Callable[[Path], AbstractContextManager[tuple[Observer, ...]]] = lambda folder: nullcontext(()),
    measuring: Callable[[], AbstractContextManager[Progress]] = lambda: nullcontext(silent),
    announce: Announce = lambda text: None,
    stop_wanted: Callable[[], bool] = lambda: False,
) -> Experiment | None:
    """All jobs of the protocol, or of its models `only`, one after the other, but for what was done before.

    The job at which the work was asked to stop, where the next call resumes; None at the end.  Results are read by
    `read_measured`.
    """
    todo = chosen_jobs(protocol, only, training_overrides)
    check_way_scales(protocol.way_scales, TEST_SCALES)  # before hours of training
    done = [_is_job_measured(protocol, job, out) for job in todo]
    if not all(done):
        check_windows(protocol)
    claim(out, protocol)
    for place, job in enumerate(todo, start=1):
        announce(f"[{place}/{len(todo)}] {job.entry.name}, seed {job.seed}")
        run = RunFolder(out / "runs" / job.folder_name)
        if done[place - 1]:  # its weights may be gone
            check_same_config(run, job.config)
            continue
        with watching(run.root) as observers:
            outcome = train(
                job.config,
                run.root,
                processes,
                resume=run.last.is_file(),
                observers=observers,
                stop_wanted=stop_wanted,
                say=announce,
            )
        if not outcome.finished:
            return job
        try:
            with measuring() as show:
                folder = out / "measured" / job.folder_name
                _measure(protocol, job, run, folder, _stoppable(show, stop_wanted))
        except _StoppedError:
            return job
    return None


def chosen_jobs(
    protocol: Protocol, only: tuple[str, ...] | None, training_overrides: tuple[str, ...]
) -> list[Experiment]:
    """All jobs, or those of the models (`cnn`) and of the models' seeds (`cnn-seed0`) in `only`."""
    every = list(jobs(protocol, training_overrides))
    if only is None:
        return every
    names = {job.folder_name: {slug(job.entry.name), job.folder_name} for job in every}
    wanted, known = [slug(name) for name in only], set().union(*names.values())
    for name in sorted(wanted):
        check_known("model", name, known)
    return [job for place in wanted for job in every if place in names[job.folder_name]]


def check_windows(protocol: Protocol) -> None:
    """Refuse windows that are larger than the images they are of: what lies beyond would be padding."""
    sizes = [("window_sizes_px", size) for size in protocol.window_sizes_px]
    for name, tiles in (("tiles", protocol.tiles), ("equivariance_tiles", protocol.equivariance_tiles)):
        sizes += [] if tiles is None else [(name, tiles.size_px)]
    for image in read_manifest(protocol.data).images:
        for name, size_px in sizes:
            if image.split == protocol.split and size_px > min(image.height_px, image.width_px):
                raise InputError(
                    f"{protocol.data}: `{name}` asks for windows of {size_px} px, and {image.name} has "
                    f"{image.width_px}×{image.height_px}; ask for smaller ones"
                )


def missing(protocol: Protocol, out: Path) -> list[Experiment]:
    """What is still to be measured in OUT."""
    return [job for job in jobs(protocol) if not _is_job_measured(protocol, job, out)]


def _is_job_measured(protocol: Protocol, job: Experiment, out: Path) -> bool:
    folder = out / "measured" / job.folder_name
    reports = [folder / f"{kind}.json" for kind in (REPORTS if job.entry.equivariance else REPORTS[:1])]
    reports += [_windows_folder(folder, size) / "evaluation.json" for size in protocol.window_sizes_px]
    return all(report.is_file() for report in reports)


def read_measured(protocol: Protocol, out: Path) -> list[Measured]:
    """What `reproduce` has measured in OUT so far: reports are made from it alone."""
    return [_read_job(protocol, job, out) for job in jobs(protocol) if _is_job_measured(protocol, job, out)]


def _read_job(protocol: Protocol, job: Experiment, out: Path) -> Measured:
    folder = out / "measured" / job.folder_name
    return Measured(
        job,
        RunFolder(out / "runs" / job.folder_name),
        folder,
        read_report(folder / "evaluation.json", "evaluation"),
        read_report(folder / "equivariance.json", "equivariance") if job.entry.equivariance else None,
        {size: read_report(_windows_folder(folder, size) / "evaluation.json") for size in protocol.window_sizes_px},
    )


def _stoppable(show: Progress, stop_wanted: Callable[[], bool]) -> Progress:
    def tell(done: int, total: int, text: str) -> None:
        if stop_wanted():
            raise _StoppedError
        show(done, total, text)

    return tell


def _measure(protocol: Protocol, job: Experiment, run: RunFolder, folder: Path, progress: Progress) -> None:
    model, data = load(run.model), protocol.data
    asked = EvaluationSettings(
        split=protocol.split,
        ways=job.ways,
        way_scales={way: scales for way, scales in protocol.way_scales.items() if way in job.ways},
        tiles_px=tile_numbers(protocol.tiles),
        estimator=shipped_estimator()
        if "estimated" in job.ways
        else None,  # models just trained have none of their own
    )
    evaluate(model, data, folder, asked, progress=progress)
    for size in protocol.window_sizes_px:
        at_one = EvaluationSettings(split=protocol.split, scales=(1.0,), tiles_px=(size, size))
        evaluate(model, data, _windows_folder(folder, size), at_one, progress=progress)
    if job.entry.name in protocol.panels and job.seed == job.entry.seeds[0]:
        write_predictions(model, protocol, folder)
    if job.entry.equivariance:
        errors = EquivarianceSettings(split=protocol.split, tiles_px=tile_numbers(protocol.equivariance_tiles))
        measure_equivariance(model, data, folder, errors, progress=progress)


def _windows_folder(folder: Path, size_px: int) -> Path:
    return folder / f"windows-{size_px}px"
