"""The index is made beside the server, in a process that may die, while the slide and its labels are shown already."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

from seunet.errors import InputError, SeunetError
from seunet.storage.sandbox import Child
from seunet.viewer.objects.index import ObjectIndex

MODULE: Final = "seunet.viewer.objects.worker"
LIMIT_BYTES: Final = 6 << 30
STEP_SECONDS: Final = 120.0


class IndexBuilder:
    """Makes the index of one file of objects when it is first asked for."""

    def __init__(self, objects: Path, size: tuple[int, int], offset: tuple[int, int]) -> None:
        self._objects, self._size, self._offset = objects, size, offset
        self._into: Path | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._done = threading.Event()
        self._index: ObjectIndex | None = None
        self._child: Child | None = None
        self.fault: str | None = None
        self.share = 0.0
        self.objects = 0

    def start(self) -> None:
        """Begin, unless it has begun."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._build, daemon=True)
                self._thread.start()

    def index(self) -> ObjectIndex | None:
        """The index if it is there; an InputError if it cannot be made."""
        if self.fault is not None:
            raise InputError(self.fault)
        return self._index

    def wait(self, seconds: float) -> None:
        """Until it is made or cannot be made."""
        self._done.wait(seconds)

    def close(self) -> None:
        """End the process, if it is still at work, and remove the index."""
        if self._child is not None:
            self._child.stop()
        if self._index is not None:
            self._index.close()
        if self._into is not None:
            shutil.rmtree(self._into, ignore_errors=True)

    def _build(self) -> None:
        try:
            self._into = into = Path(tempfile.mkdtemp(prefix="seunet-view-"))
            self._child = Child(MODULE, LIMIT_BYTES)
            request: dict[str, Any] = {
                "objects": str(self._objects.absolute()),
                "into": str(into),
                "size": self._size,
                "offset": self._offset,
            }
            reply = self._ask(request)
            while "finished" not in reply:
                reply = self._ask({"go": True})
                self.share, self.objects = reply.get("share", self.share), reply.get("objects", self.objects)
            unpacked = into / "objects.geojson"
            self._index = ObjectIndex(into, unpacked if unpacked.exists() else self._objects, reply, self._offset)
            self.share = 1.0
        except (SeunetError, OSError, ValueError) as error:
            self.fault = f"{self._objects.name}: {error}" if self._objects.name not in str(error) else str(error)
        finally:
            if self._child is not None:
                self._child.stop()
            self._done.set()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._child is not None
        reply = self._child.exchange(request, STEP_SECONDS)
        if isinstance(reply, SeunetError):
            raise reply
        if "fault" in reply:
            raise InputError(reply["fault"])
        return reply
