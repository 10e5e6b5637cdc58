"""Decide whether OUT may be written, and keep a report that grows: each part is on the disk before the next begins."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from seunet.errors import InputError
from seunet.evaluation.provenance import note_part, source_commit
from seunet.evaluation.way_names import with_new_names
from seunet.limits import MAX_MANIFEST_BYTES
from seunet.storage.atomic import write_text
from seunet.storage.files import canonical_json, read_limited
from seunet.storage.output_folder import first_difference, names_in, overwriting, something_else
from seunet.training.observers import machine_facts

_VERBS: Final = {"evaluation": "evaluate", "equivariance": "equivariance"}
REPORTS: Final = tuple(_VERBS)
_BESIDE: Final = {"objects": "evaluate", "agreement": "evaluate --agreement"}
"""Reports that may lie beside them, of which no figure of `seunet plot` is drawn."""
CLOCK: Final = "clock"
"""The one field of a report that differs between two runs of the same: what it cost, and on what machine."""


class ReportFolder:
    """OUT/KIND.json, and OUT/KIND.partial.json while it is being made."""

    def __init__(self, root: Path, kind: str) -> None:
        self.root, self.kind = root, kind
        self.report, self.partial = root / f"{kind}.json", root / f"{kind}.partial.json"

    def claim(self, identity: dict[str, Any], overwrite: bool) -> dict[str, Any] | None:
        """What there is of this very report, finished or not; None if it is to be begun.

        OUT is written to if it is new, empty or holds reports of ours, and never over another run's report.
        """
        entries = names_in(self.root, "OUT")
        if overwrite:
            with overwriting(self.root):
                for path in (self.report, self.partial):
                    path.unlink(missing_ok=True)
            return None
        for path in (self.report, self.partial):
            if path.name in entries:
                return self._same(path, identity)
        ours = {f"{kind}{ending}" for kind in (*REPORTS, *_BESIDE) for ending in (".json", ".partial.json")}
        foreign = [name for name in entries if not name.endswith(".part")]
        if foreign and not ours & set(entries):
            raise something_else(self.root, foreign[0], "pass --overwrite or choose an empty OUT")
        return None

    def made(
        self,
        identity: dict[str, Any],
        begun: dict[str, Any],
        end: str,
        work: Callable[[dict[str, Any]], None],
        overwrite: bool,
    ) -> dict[str, Any]:
        """The report that `work` fills: the one that is there if it has the field `end`, or begun, or gone on with."""
        document = self.claim(identity, overwrite)
        if document is not None and end in document:
            return document
        clock = {"seconds": 0.0, "peak_memory_mib": 0.0, "machine": machine_facts(), "seconds_by_part": {}}
        document = document or {**identity, **begun, "commits": [], "results": [], CLOCK: clock}
        commit = source_commit()
        if commit not in document["commits"]:
            document["commits"].append(commit)
        self.keep(document)
        work(document)
        document[CLOCK] = document.pop(CLOCK)  # last, where it is out of the way of a comparison
        write_text(self.report, one_line_a_result(document))
        self.partial.unlink(missing_ok=True)
        return document

    @contextmanager
    def part(self, document: dict[str, Any], name: str) -> Iterator[None]:
        """A part of the work, which is timed and then kept."""
        start = time.monotonic()
        yield
        note_part(document[CLOCK], name, time.monotonic() - start)
        self.keep(document)

    def keep(self, document: dict[str, Any]) -> None:
        """What is finished so far."""
        write_text(self.partial, one_line_a_result(document))

    def _same(self, path: Path, identity: dict[str, Any]) -> dict[str, Any]:
        found = read_report(path, self.kind)
        different = first_difference(identity, found)
        if different is not None:
            name, now, before = different
            raise InputError(
                f"{self.root}: holds another {self.kind} (its `{name}` is {_short(before)}, not {_short(now)}); "
                "pass --overwrite or choose another OUT"
            )
        return found


def read_report(path: Path, kind: str | None = None) -> dict[str, Any]:
    """A report of ours, finished or not, in today's words; anything else is refused in one line."""
    try:
        document = json.loads(read_limited(path, MAX_MANIFEST_BYTES))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not JSON, or cut short; make it again with --overwrite") from None
    kinds = REPORTS if kind is None else (kind,)
    formats = [f"seunet-{name}/1" for name in kinds]
    if not isinstance(document, dict) or document.get("format") not in formats:
        verbs = " or ".join(f"`seunet {(_VERBS | _BESIDE)[name]}`" for name in kinds)
        raise InputError(f'{path}: not a report of {verbs} (no "format": "{formats[0]}")')
    return with_new_names(document)


def one_line_a_result(document: dict[str, Any]) -> str:
    """JSON with one line per field and per result: two reports can be compared with `diff`."""
    lines = []
    for name, value in document.items():
        if name == "results":
            rows = ",\n".join(canonical_json(row) for row in value)
            lines.append(f'"results":[\n{rows}\n]')
        else:
            lines.append(f"{json.dumps(name)}:{canonical_json(value)}")
    return "{" + ",\n".join(lines) + "}\n"


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
