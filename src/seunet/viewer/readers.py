"""Images that are looked at: each open in a process of its own, the one longest unused closed when there are many."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final

from seunet.errors import InputError
from seunet.images.image import Image, RgbArray
from seunet.images.sandboxed import open_guarded

MAX_OPEN: Final = 4
READ_SECONDS: Final = 20.0
"""For opening an image or reading one tile: longer than that nobody looks at an empty page."""


class Readers:
    """Reads regions of images by their paths."""

    def __init__(self, limit: int = MAX_OPEN) -> None:
        self._limit = limit
        self._open: OrderedDict[Path, Image] = OrderedDict()
        self._faults: dict[Path, str] = {}
        self._lock = threading.RLock()
        self._opening: dict[Path, threading.Lock] = {}
        self._closed = False

    def image(self, path: Path) -> Image:
        """The open image; an InputError, the same each time and at once, if it cannot be opened."""
        with self._lock:
            if (found := self._found(path)) is not None:
                return found
            opening = self._opening.setdefault(path, threading.Lock())
        with opening:  # others are read and opened meanwhile: a process takes a fifth of a second to start
            with self._lock:
                if (found := self._found(path)) is not None:
                    return found
            try:
                opened = open_guarded(path, limit_seconds=READ_SECONDS)
            except InputError as error:
                self._faults[path] = str(error)
                raise
            with self._lock:
                if self._closed:
                    opened.close()
                    raise InputError(f"{path.name}: the viewer has ended")
                while len(self._open) >= self._limit:
                    self._open.popitem(last=False)[1].close()
                self._open[path] = opened
                return opened

    def _found(self, path: Path) -> Image | None:
        if path in self._faults:
            raise InputError(self._faults[path])
        if path in self._open:
            self._open.move_to_end(path)
        return self._open.get(path)

    def read(self, path: Path, level: int, x: int, y: int, width_px: int, height_px: int) -> RgbArray:
        """See `Image.read`."""
        image = self.image(path)
        try:
            return image.read(level, x, y, width_px, height_px)
        except ValueError as error:
            # Closed between the two lines, because others were looked at meanwhile.
            if isinstance(error, InputError):
                raise
            return self.image(path).read(level, x, y, width_px, height_px)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            while self._open:
                self._open.popitem()[1].close()
