"""Decide whether OUT may be written, and keep a report that grows: each part is on the disk before the next begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from seunet.errors import InputError, StorageError
from seunet.evaluation.way_names import with_new_names
from seunet.limits import MAX_MANIFEST_BYTES
from seunet.storage.atomic import write_text
from seunet.storage.files import canonical_json, read_limited

_VERBS: Final = {"evaluation": "evaluate", "equivariance": "equivariance"}
REPORTS: Final = tuple(_VERBS)
CLOCK: Final = "clock"
"""The one field of a report that differs between two runs of the same."""


class ReportFolder:
    """OUT/KIND.json, and OUT/KIND.partial.json while it is being made."""

    def __init__(self, root: Path, kind: str) -> None:
        self.root, self.kind = root, kind
        self.report, self.partial = root / f"{kind}.json", root / f"{kind}.partial.json"

    def claim(self, identity: dict[str, Any], overwrite: bool) -> dict[str, Any] | None:
        """What there is of this very report, finished or not; None if it is to be begun.

        OUT is written to if it is new, empty or holds reports of ours, and never over another run's report.
        """
        if self.root.exists() and not self.root.is_dir():
            raise InputError(f"{self.root}: is a file; choose a folder for OUT")
        try:
            entries = sorted(entry.name for entry in self.root.iterdir()) if self.root.is_dir() else []
        except OSError as error:
            raise StorageError(f"{self.root}: cannot be read ({error.strerror}); check its permissions") from error
        if overwrite:
            self._forget()
            return None
        for path in (self.report, self.partial):
            if path.name in entries:
                return self._same(path, identity)
        ours = {f"{kind}{ending}" for kind in REPORTS for ending in (".json", ".partial.json")}
        foreign = [name for name in entries if not name.endswith(".part")]
        if foreign and not ours & set(entries):
            raise InputError(
                f"{self.root}: holds something else ({foreign[0]}); pass --overwrite or choose an empty OUT"
            )
        return None

    def keep(self, document: dict[str, Any]) -> None:
        """What is finished so far."""
        write_text(self.partial, one_line_a_result(document))

    def finish(self, document: dict[str, Any]) -> None:
        """The whole report; from here on there is no partial one."""
        write_text(self.report, one_line_a_result(document))
        self.partial.unlink(missing_ok=True)

    def _same(self, path: Path, identity: dict[str, Any]) -> dict[str, Any]:
        found = read_report(path, self.kind)
        for name, now, before in _differences(identity, found):
            raise InputError(
                f"{self.root}: holds another {self.kind} (its `{name}` is {_short(before)}, not {_short(now)}); "
                "pass --overwrite or choose another OUT"
            )
        return found

    def _forget(self) -> None:
        try:
            for path in (self.report, self.partial):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                f"{self.root}: cannot be overwritten ({error.strerror}); check its permissions"
            ) from error


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
        verbs = " or ".join(f"`seunet {_VERBS[name]}`" for name in kinds)
        raise InputError(f'{path}: not a report of {verbs} (no "format": "{formats[0]}")')
    return with_new_names(document)


def one_line_a_result(document: dict[str, Any]) -> str:
    """JSON with a field a line and a result a line: two reports can be compared with `diff`."""
    lines = []
    for name, value in document.items():
        if name == "results":
            rows = ",\n".join(canonical_json(row) for row in value)
            lines.append(f'"results":[\n{rows}\n]')
        else:
            lines.append(f"{json.dumps(name)}:{canonical_json(value)}")
    return "{" + ",\n".join(lines) + "}\n"


def _differences(now: Any, before: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """(dotted name, now, before) of what differs; what only `before` has is not looked at on the top."""
    if isinstance(now, dict) and isinstance(before, dict):
        keys = now if not name else {**now, **before}
        pairs = ((key, f"{name}.{key}" if name else key) for key in keys)
        return [row for key, inner in pairs for row in _differences(now.get(key), before.get(key), inner)]
    return [] if canonical_json(now) == canonical_json(before) else [(name, now, before)]


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
