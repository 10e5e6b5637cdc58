"""Train what is missing, measure it, and hand the numbers to the page: every step can be interrupted and goes on.

OUT/protocol.yaml            what was asked for
OUT/runs/NAME-seedN/         training runs (training/run_folder.py)
OUT/measured/NAME-seedN/     evaluation.json, equivariance.json
OUT/figures/, report.md, report.html
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from seunet.atomic import write_text
from seunet.errors import InputError, unknown_name
from seunet.evaluation import equivariance_report
from seunet.evaluation.equivariance_report import measure_equivariance
from seunet.evaluation.evaluate import Settings, evaluate
from seunet.evaluation.protocol import Job, Protocol, Tiles, jobs, slug
from seunet.evaluation.report_folder import REPORTS, read_report
from seunet.evaluation.scales import TEST_SCALES, check_way_scales
from seunet.models.files import load
from seunet.settings import to_yaml
from seunet.training.loop import train
from seunet.training.processes import Processes
from seunet.training.reports import Observer
from seunet.training.run_folder import RunFolder

Announce = Callable[[str], None]
Progress = Callable[[int, int, str], None]


class Measured(NamedTuple):
    """A trained model and its reports."""

    job: Job
    run: RunFolder
    evaluation: dict[str, Any]
    equivariance: dict[str, Any] | None


class Interrupted(NamedTuple):
    """The work was asked to stop; everything goes on from here next time."""

    job: Job


class _StoppedError(Exception):
    """Out of the middle of a measurement, whose finished parts are kept."""


def claim(out: Path, protocol: Protocol) -> None:
    """Make OUT ours: new, empty, or of the same protocol, to which models and seeds may have been added."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; choose a folder for the report")
    mark = out / "protocol.yaml"
    entries = sorted(entry.name for entry in out.iterdir()) if out.is_dir() else []
    if entries and not mark.is_file():
        raise InputError(f"{out}: holds something else ({entries[0]}); choose a new or empty folder")
    if mark.is_file():
        before, now = yaml.safe_load(mark.read_text()), protocol.model_dump(mode="json")
        for name in now:
            if name not in ("models", "training", "data") and before.get(name) != now[name]:
                raise InputError(
                    f"{out}: belongs to another protocol (its `{name}` is {before.get(name)!r}, not {now[name]!r}); "
                    "choose another folder"
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
    measuring: Callable[[], AbstractContextManager[Progress | None]] = nullcontext,
    announce: Announce = lambda text: None,
    stop_wanted: Callable[[], bool] = lambda: False,
) -> list[Measured] | Interrupted:
    """All jobs of the protocol, or of its models `only`, one after the other; what was done before is read."""
    todo = chosen_jobs(protocol, only, training_overrides)
    check_way_scales(protocol.way_scales, TEST_SCALES)  # before hours of training
    claim(out, protocol)
    measured = []
    for place, job in enumerate(todo, start=1):
        announce(f"[{place}/{len(todo)}] {job.entry.name}, seed {job.seed}")
        run = RunFolder(out / "runs" / job.folder_name)
        with watching(run.root) as observers:
            outcome = train(
                job.config,
                run.root,
                processes,
                resume=run.last.is_file(),
                observers=observers,
                stop_wanted=stop_wanted,
            )
        if not outcome.finished:
            return Interrupted(job)
        try:
            with measuring() as show:
                folder = out / "measured" / job.folder_name
                measured.append(_measure(protocol, job, run, folder, _stoppable(show, stop_wanted)))
        except _StoppedError:
            return Interrupted(job)
    return measured


def chosen_jobs(protocol: Protocol, only: tuple[str, ...] | None, training_overrides: tuple[str, ...]) -> list[Job]:
    """All jobs, or those of the models whose names, as parts of paths, are in `only`."""
    every = list(jobs(protocol, training_overrides))
    if only is None:
        return every
    wanted, known = {slug(name) for name in only}, {slug(entry.name) for entry in protocol.models}
    for name in sorted(wanted - known):
        raise unknown_name("model", name, known)
    return [job for job in every if slug(job.entry.name) in wanted]


def is_measured(protocol: Protocol, out: Path) -> bool:
    """Whether nothing is missing in OUT."""
    kinds = {job.folder_name: REPORTS if job.entry.equivariance else REPORTS[:1] for job in jobs(protocol)}
    return all((out / "measured" / name / f"{kind}.json").is_file() for name in kinds for kind in kinds[name])


def read_measured(protocol: Protocol, out: Path) -> list[Measured]:
    """What `reproduce` left in OUT, read again: reports are made from it alone."""
    return [
        Measured(
            job,
            RunFolder(out / "runs" / job.folder_name),
            read_report(out / "measured" / job.folder_name / "evaluation.json", "evaluation"),
            _equivariance_report(out / "measured" / job.folder_name, job),
        )
        for job in jobs(protocol)
    ]


def _equivariance_report(folder: Path, job: Job) -> dict[str, Any] | None:
    return read_report(folder / "equivariance.json", "equivariance") if job.entry.equivariance else None


def _stoppable(show: Progress | None, stop_wanted: Callable[[], bool]) -> Progress:
    def tell(done: int, total: int, text: str) -> None:
        if stop_wanted():
            raise _StoppedError
        if show is not None:
            show(done, total, text)

    return tell


def _measure(protocol: Protocol, job: Job, run: RunFolder, folder: Path, progress: Progress) -> Measured:
    model, data = load(run.model), protocol.data
    asked = Settings(
        split=protocol.split,
        ways=job.ways,
        way_scales={way: scales for way, scales in protocol.way_scales.items() if way in job.ways},
        tiles_px=_numbers(protocol.tiles),
    )
    report = evaluate(model, data, folder, asked, progress=progress)
    if not job.entry.equivariance:
        return Measured(job, run, report, None)
    errors = equivariance_report.Settings(split=protocol.split, tiles_px=_numbers(protocol.equivariance_tiles))
    return Measured(job, run, report, measure_equivariance(model, data, folder, errors, progress=progress))


def _numbers(tiles: Tiles | None) -> tuple[int, ...] | None:
    return None if tiles is None else (tiles.size_px, tiles.stride_px, tiles.every)
