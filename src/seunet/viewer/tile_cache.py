"""What was made last, in bounded memory: tiles, and the planes that the coarsest are cut out of."""

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
        self._making: dict[tuple[object, ...], threading.Lock] = {}

    def get(self, key: tuple[object, ...], make: Callable[[], tuple[bytes, str] | None]) -> tuple[bytes, str] | None:
        """The tile of this key, made if it is not there; who asks for it meanwhile waits for the same one."""
        with self._lock:
            if key in self._tiles:
                self._tiles.move_to_end(key)
                return self._tiles[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._tiles:
                    return self._tiles[key]
            try:
                made = make()
                if made is not None:
                    self._keep(key, made)
                return made
            finally:
                with self._lock:
                    self._making.pop(key, None)

    def _keep(self, key: tuple[object, ...], made: tuple[bytes, str]) -> None:
        with self._lock:
            self._bytes += len(made[0]) - len(self._tiles.get(key, (b"", ""))[0])
            self._tiles[key] = made
            while self._bytes > self._limit:
                self._bytes -= len(self._tiles.popitem(last=False)[1][0])
