"""A plan → a prepared set: all cores, resumable, the same bytes for the same source.

While it runs, DEST/.work holds the run's fingerprint and one record for each finished image.  The manifest is
written last, then .work goes: a folder with a manifest is complete.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from seunet.data.manifest import FORMAT, Manifest, fingerprint, write_manifest
from seunet.data.prepare.claim import claim, finish, finished_before, note_finished, sweep_set
from seunet.data.prepare.one_image import IGNORE_CODE, Job, annotated_windows
from seunet.data.prepare.plan import Plan
from seunet.data.prepare.pool import run_jobs
from seunet.errors import InputError, SeunetError, StorageError
from seunet.images.pillow_codec import decode_codes, read_image
from seunet.maths.windows import fitting_size_px
from seunet.progress import Progress, silent
from seunet.storage.files import sha256

LEFT_OUT = "left out: "


class Prepared(NamedTuple):
    """The manifest, the faults of images left out, and how many images were there already."""

    manifest: Manifest
    faults: list[SeunetError]
    resumed: int


class FaultsError(InputError):
    """Some images cannot be prepared: `faults` has an error for each."""

    def __init__(self, faults: Sequence[SeunetError]) -> None:
        self.faults = list(faults)
        self.exit_code = max(fault.exit_code for fault in faults)
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(f"{faults[0]}{more}")


def prepare(
    plan: Plan,
    dest: Path,
    *,
    workers: int | None = None,
    overwrite: bool = False,
    skip_errors: bool = False,
    progress: Progress = silent,
) -> Prepared:
    """Carry out `plan` into `dest`; what is wrong with it is raised after every image was looked at."""
    _check_jobs(plan)
    marks = {job["name"]: _mark(job) for job in plan.jobs}
    options = fingerprint([plan.dataset, plan.options])
    whole = fingerprint([options, plan.decisions, sorted(marks.items())])
    done = claim(dest, options, whole, overwrite)
    if done is not None:
        left_out = [line.removeprefix(LEFT_OUT) for line in done.decisions if line.startswith(LEFT_OUT)]
        return Prepared(done, [InputError(line) for line in left_out], len(done.images))
    records = {job["name"]: record for job in plan.jobs if (record := finished_before(dest, job, marks[job["name"]]))}
    resumed = len(records)
    waiting = [job for job in plan.jobs if job["name"] not in records]
    try:
        faults = plan.faults + _work(plan, waiting, dest, marks, records, workers or os.cpu_count() or 1, progress)
    finally:
        sweep_set(dest)
    faults.sort(key=str)
    if faults and not (skip_errors and records):
        raise FaultsError(faults)
    manifest = _assemble(plan, whole, [records[name] for name in sorted(records)], faults, dest)
    write_manifest(dest, manifest)
    finish(dest, manifest)
    return Prepared(manifest, faults, resumed)


def _work(
    plan: Plan,
    waiting: list[Job],
    dest: Path,
    marks: dict[str, str],
    records: dict[str, dict[str, Any]],
    workers: int,
    progress: Progress,
) -> list[SeunetError]:
    """Do the waiting jobs: records are added, faults returned; storage that fails ends the run."""
    faults: list[SeunetError] = []
    with closing(run_jobs(waiting, workers)) as outcomes:
        for outcome in outcomes:
            job = waiting[outcome.number]
            if isinstance(outcome.error, StorageError):
                raise outcome.error
            if outcome.error is not None:
                faults.append(outcome.error)
            elif outcome.record is not None:
                records[job["name"]] = outcome.record
                note_finished(dest, job, marks[job["name"]], outcome.record)
            progress(len(records) + len(faults), len(plan.jobs), job["name"])
    return faults


def _assemble(plan: Plan, whole: str, records: list[dict[str, Any]], faults: list[SeunetError], dest: Path) -> Manifest:
    options, decisions = plan.options, list(plan.decisions)
    size_px, stride_px = options["window_px"], options["stride_px"]
    sizes = [(record["height_px"], record["width_px"]) for record in records]
    fitting = fitting_size_px(sizes, size_px) if plan.fit_windows else size_px
    if fitting < size_px:
        decisions.append(f"windows of {fitting} px in place of {size_px}, which many images do not fill")
        size_px = fitting
        stride_px = min(stride_px, fitting)
        records = [record | _cut(dest, record, fitting, stride_px, options["min_annotated"]) for record in records]
    rows = [[index, x, y] for index, record in enumerate(records) for x, y in record["windows"]]
    images = [{key: value for key, value in record.items() if key != "windows"} for record in records]
    return Manifest.model_validate(
        {
            "format": FORMAT,
            "dataset": plan.dataset,
            "fingerprint": whole,
            "classes": plan.classes,
            "ignore_code": IGNORE_CODE,
            "options": options,
            "decisions": [*decisions, *(f"{LEFT_OUT}{fault}" for fault in faults)],
            "images": images,
            "windows": {
                "size_px": size_px,
                "stride_px": stride_px,
                "min_annotated": options["min_annotated"],
                "rows": rows,
            },
        }
    )


def _cut(dest: Path, record: dict[str, Any], size_px: int, stride_px: int, min_annotated: float) -> dict[str, Any]:
    """The windows of an image, from the mask that was just written."""
    mask = decode_codes(read_image(dest / record["mask"]["path"]), record["name"]).pixels
    kept, left_out = annotated_windows(mask, size_px, stride_px, min_annotated)
    return {"windows": kept, "windows_left_out": left_out}


def _mark(job: Job) -> str:
    """A hash of all that decides an image's output: what is told of it, not where it lies, and its bytes."""
    told = {key: value for key, value in job.items() if key not in ("dest", "image", "annotation")}
    return fingerprint([told, sha256(read_image(Path(job["image"]))), sha256(read_image(Path(job["annotation"])))])


def _check_jobs(plan: Plan) -> None:
    seen: dict[str, str] = {}
    for job in plan.jobs:
        other = seen.setdefault(job["name"].casefold(), job["image"])
        if other != job["image"]:
            raise InputError(f"{job['name']}: two images have this name ({other}, {job['image']}); rename one")
    splits: dict[str, Job] = {}
    for job in plan.jobs:
        first = splits.setdefault(job["patient"], job)
        if first["split"] != job["split"]:
            raise InputError(
                f"patient {job['patient']}: in {first['split']} ({first['name']}) and "
                f"{job['split']} ({job['name']}); give all images of a patient one split"
            )
    if not plan.jobs:
        if plan.faults:
            raise FaultsError(sorted(plan.faults, key=str))
        raise InputError(f"no image with its annotation was found for {plan.dataset}; check SRC")
