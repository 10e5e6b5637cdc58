"""Images opened and read in a process of their own: a file that hangs, crashes or bloats its decoder costs a region.

The same `Image` as from `open.open_image`.  Pixels come back through memory that both processes hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from seunet.errors import InputError, RegionError, ResourceError, SeunetError
from seunet.images.facts import facts_of
from seunet.images.image import Facts, Image, RgbArray, region_error
from seunet.images.open import open_image
from seunet.limits import MAX_READ_SECONDS, MAX_READER_BYTES
from seunet.storage.sandbox import Child, SharedBytes, new_shared_file
from seunet.system import CAN_CONFINE

MODULE = "seunet.images.sandboxed_worker"


class ReadingProcess:
    """A process that reads one image at a time; after a death the next request starts another."""

    def __init__(self, limit_bytes: int = MAX_READER_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._child: Child | None = None
        self._shared: SharedBytes | None = None
        self.holder: object = None
        """Whose image is open in it."""
        self.deaths = 0
        """How many processes had to be replaced."""
        self.peak_bytes = 0
        """The largest memory that one of them was seen to use."""

    @property
    def pid(self) -> int | None:
        """Of the process at work; None if there is none."""
        return self._child.pid if self._child is not None else None

    def open(self, path: Path, user_mpp: float | None, limit_seconds: float) -> dict[str, Any]:
        """Open an image in place of the one that is open; what there is to know of it."""
        self.holder = None
        reply = self.ask({"open": str(path.absolute()), "mpp": user_mpp}, limit_seconds)
        if isinstance(reply, SeunetError):
            raise InputError(f"{path.name}: {reply}") from None
        if reply.get("kind") == "memory":
            raise InputError(f"{path.name}: takes more memory to open than a reader may use; save it as a tiled TIFF")
        if "fault" in reply:
            raise InputError(reply["fault"])
        image: dict[str, Any] = reply["image"]
        return image

    def ask(self, request: dict[str, Any], limit_seconds: float) -> dict[str, Any] | SeunetError:
        """The answer; or, after it was ended, what became of the process."""
        if self._child is None:
            try:
                self._shared = self._shared or SharedBytes(new_shared_file())
                self._child = Child(MODULE, self._limit_bytes, [str(self._shared.file)], [self._shared.file])
            except OSError as error:
                raise ResourceError(f"no process to read images with could be started ({error.strerror})") from error
        reply = self._child.exchange({**request, "seconds": limit_seconds}, limit_seconds)
        if isinstance(reply, SeunetError):
            self.deaths += 1
            self.holder = None
            self._child.stop()
            self._child = None
        else:
            self.peak_bytes = max(self.peak_bytes, int(reply["peak_bytes"]))
        return reply

    def pixels(self, width_px: int, height_px: int) -> RgbArray:
        """What the last read left in the shared memory; to be copied before the next."""
        if self._shared is None:
            raise ValueError("nothing was read")
        return self._shared.first(width_px * height_px * 3).reshape(height_px, width_px, 3)

    def stop(self) -> None:
        """End the process and let go of the shared file."""
        if self._child is not None:
            self._child.stop()
            self._child = None
        if self._shared is not None:
            self._shared.close()
            self._shared = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class GuardedImage(Image):
    """An image in another process; see `open_guarded`."""

    def __init__(self, facts: Facts, process: ReadingProcess, owned: bool, path: Path, limit_seconds: float) -> None:
        super().__init__(facts)
        self._process, self._owned, self._path, self._limit_seconds = process, owned, path, limit_seconds
        process.holder = self

    def _fill(self, out: RgbArray, level: int, x: int, y: int) -> None:
        height_px, width_px = out.shape[:2]
        with self._lock:
            if self._process.holder is not self:
                self._open_again(out, level, x, y)
            reply = self._process.ask({"read": (level, x, y, width_px, height_px)}, self._limit_seconds)
            if isinstance(reply, SeunetError):
                raise region_error(self.name, level, x, y, out, str(reply))
            if reply.get("kind") == "memory":
                raise region_error(self.name, level, x, y, out, "it takes more memory than a reader may use")
            if "fault" in reply:
                raise RegionError(reply["fault"])
            out[:] = self._process.pixels(width_px, height_px)

    def _open_again(self, out: RgbArray, level: int, x: int, y: int) -> None:
        try:
            self._process.open(self._path, None, self._limit_seconds)
        except InputError as error:
            raise region_error(self.name, level, x, y, out, str(error)) from error
        self._process.holder = self

    def _let_go(self) -> None:
        if self._owned:
            self._process.stop()
        elif self._process.holder is self:
            self._process.holder = None
            self._process.ask({"close": True}, self._limit_seconds)


def open_guarded(
    path: Path,
    user_mpp: float | None = None,
    limit_seconds: float = MAX_READ_SECONDS,
    limit_bytes: int = MAX_READER_BYTES,
    process: ReadingProcess | None = None,
) -> Image:
    """Open an image in a process of its own, or in one that is at hand and reads no other image meanwhile.

    No file can hang or crash this process: opening then ends in an InputError, reading a region in a RegionError, after
    `limit_seconds` at the latest, and the next region is read by a fresh process.  Where the system cannot confine a
    process (Windows), the image is opened in this one, and a hostile file can harm it.
    """
    if not CAN_CONFINE:
        return open_image(path, user_mpp)
    own = ReadingProcess(limit_bytes) if process is None else process
    try:
        facts = facts_of(own.open(path, user_mpp, limit_seconds))
        return GuardedImage(facts, own, process is None, path, limit_seconds)
    except BaseException:
        if process is None:
            own.stop()
        raise
