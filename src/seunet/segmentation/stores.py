"""Inputs and OUT in object stores: copied here, done here, copied there.

An input is copied into a folder of this process, analysed as any other file, and removed: one at a time, so the disk
holds one slide.  Readers of slides want files, and each slide is read as a whole once.

OUT has a twin on this disk, where results are made and resumed.  A result that is whole is copied to the store,
`run.json` last: where it is, the result is complete.  The twin then keeps `run.json` alone, by which a second command
knows what is done without copying the slide again.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import seunet
from seunet.errors import SeunetError, StorageError
from seunet.models.files import shared_model
from seunet.progress import Progress
from seunet.results.cohort import RUN_NAME, SUMMARY_NAME, WORK_NAME, read_document
from seunet.segmentation.inputs import Item, is_url
from seunet.segmentation.one_file import FileResult
from seunet.segmentation.options import Choices
from seunet.segmentation.run_json import FORMAT, finished
from seunet.segmentation.segment_many import Failure, Result, attempt
from seunet.storage.object_store import (
    WRITTEN_TO,
    check_kind,
    fetch,
    files_below,
    remove,
    send,
    shown,
)
from seunet.storage.store_cache import cache_folder, check_room, forget_copies

SPARE: Final = 2
"""How many times the size of an input must be free for it."""


class OutPlace:
    """OUT: a folder of this disk or, with a twin there, one of a store."""

    def __init__(self, out: str) -> None:
        self.url = out.rstrip("/") if is_url(out) else None
        self.published: set[str] = set()
        """Names of results that the store holds whole."""
        if self.url is None:
            self.folder = Path(out)
            return
        check_kind(self.url, WRITTEN_TO)
        name = hashlib.sha256(self.url.encode()).hexdigest()[:16]
        self.folder = cache_folder() / f"out-{name}"

    def named(self, name: str) -> str:
        """Where a result is, for people."""
        return str(self.folder / name) if self.url is None else f"{shown(self.url)}/{name}"

    @contextmanager
    def opened(self) -> Iterator[None]:
        """What the store holds is known in the block, and summary.csv goes there at its end; copies are removed."""
        forget_copies()
        try:
            if self.url is not None:
                self._look(self.url)
            yield
        except BaseException:
            with suppress(SeunetError):  # what stopped it is said
                self._publish_summary()
            raise
        else:
            self._publish_summary()
        finally:
            forget_copies()

    def _look(self, url: str) -> None:
        """The twin gets the run.json of each result in the store, and loses others."""
        found = {name: file for name, file in files_below(url).items() if name.endswith(f"/{RUN_NAME}")}
        self.published = {name.removesuffix(f"/{RUN_NAME}") for name in found}
        for name, file in found.items():
            fetch(file, self.folder / name)
        for path in [*self.folder.rglob(RUN_NAME)] if self.folder.is_dir() else ():
            alone = not any(other != path and not other.name.startswith(".") for other in path.parent.iterdir())
            if alone and path.parent.relative_to(self.folder).as_posix() not in self.published:
                path.unlink()  # the store had it and has it no more

    def publish(self, name: str) -> None:
        """Copy a result to the store, run.json last; what lies there of an earlier one goes first."""
        folder, target = self.folder / name, f"{self.url}/{name}"
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and WORK_NAME not in path.parts]
        mine = {path.relative_to(folder).as_posix(): path for path in files if not path.name.startswith(".lock")}
        there = files_below(target)
        if RUN_NAME in there:
            remove(there[RUN_NAME].url)
        for other in there.keys() - mine.keys():
            remove(there[other].url)
        for inner, path in mine.items():
            if inner != RUN_NAME:
                send(path, f"{target}/{inner}")
        send(mine[RUN_NAME], f"{target}/{RUN_NAME}")
        self.published.add(name)
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != RUN_NAME:
                path.unlink()

    def _publish_summary(self) -> None:
        """summary.csv, after all results."""
        if self.url is not None and (self.folder / SUMMARY_NAME).is_file():
            send(self.folder / SUMMARY_NAME, f"{self.url}/{SUMMARY_NAME}")


def through_stores(
    items: Sequence[Item], place: OutPlace, choices: Choices, progress: Callable[[Item], Progress]
) -> Iterator[Result]:
    """Results as they come, one after the other."""
    for item in items:
        yield _one(item, place, choices, progress)


def _one(item: Item, place: OutPlace, choices: Choices, progress: Callable[[Item], Progress]) -> Result:
    try:
        if place.url is not None and item.remote is not None and not choices.overwrite:
            before = _kept(item, place, choices)
            if before is not None:
                return before
        if item.remote is not None:
            check_room(item.path.parent, SPARE * item.remote.size_bytes, shown(item.remote.url))
            fetch(item.remote, item.path)
        result = attempt(item, place.folder, choices, progress(item))
        fresh = isinstance(result, FileResult) and (result.state != "before" or item.name not in place.published)
        if place.url is not None and fresh:
            place.publish(item.name)
        return result
    except StorageError:
        raise
    except SeunetError as error:
        return Failure(item.name, " ".join(str(error).split()), error.exit_code)
    finally:
        if item.remote is not None:
            with suppress(OSError):
                item.path.unlink()


def _kept(item: Item, place: OutPlace, choices: Choices) -> FileResult | None:
    """The result that the store holds of this very input, without a look at its pixels; None where one is needed."""
    document = read_document(place.folder / item.name / RUN_NAME) if item.name in place.published else None
    if document is None or item.remote is None or choices.roi is not None:
        return None
    image: dict[str, Any] = document.get("image", {})
    asked, had = item.mpp if item.mpp is not None else choices.mpp, image.get("mpp") or {}
    stated = (had.get("x"), had.get("y")) if had.get("source") == "user" else (None, None)
    if stated != (asked, asked):
        return None
    facts = {"file": item.path.name, "bytes": item.remote.size_bytes, "modified_ns": item.remote.modified_ns}
    chosen = shared_model(choices.model)
    identity = {
        "format": FORMAT,
        "seunet": seunet.__version__,
        "image": {**image, **facts},
        "model": {"name": chosen.model.name, "sha256": chosen.weights_sha256},
        "choices": choices.deciding(),
    }
    before = finished(place.folder / item.name, identity)
    return None if before is None else FileResult(item.name, "before", before.notes, before.document["summary"])
