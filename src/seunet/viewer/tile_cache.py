"""The tiles that were asked for last, in bounded memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

CACHE_BYTES: Final = 64 << 20


class TileCache:
    """The tiles that were asked for last."""

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._tiles: OrderedDict[tuple[object, ...], tuple[bytes, str]] = OrderedDict()
        self._bytes, self._limit, self._lock = 0, limit_bytes, threading.Lock()

    def get(self, key: tuple[object, ...], make: Callable[[], tuple[bytes, str] | None]) -> tuple[bytes, str] | None:
        """The tile of this key, made if it is not there."""
        with self._lock:
            if key in self._tiles:
                self._tiles.move_to_end(key)
                return self._tiles[key]
        made = make()
        if made is not None:
            with self._lock:
                self._bytes += len(made[0]) - len(self._tiles.get(key, (b"", ""))[0])
                self._tiles[key] = made
                while self._bytes > self._limit:
                    self._bytes -= len(self._tiles.popitem(last=False)[1][0])
        return made
