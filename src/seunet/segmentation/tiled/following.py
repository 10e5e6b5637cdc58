"""Results are made while tiles come in: planes that are read from as far as they are written, by another thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Condition
from typing import Generic, Self, TypeVar

from seunet.results.label_plane import Bytes2d, Labels
from seunet.results.planes import PlaneFiles
from seunet.segmentation.tiled.tiling import Tile

Made = TypeVar("Made")


class AbandonedError(Exception):
    """Raised in who follows when nothing more will come."""


class RowsDone:
    """How many rows of an image, from the top, are written: told by who writes, waited for by who follows."""

    def __init__(self, height_px: int, todo: Sequence[Tile]) -> None:
        """`todo` are done in this order; what lies outside of them is there already."""
        self._changed, self._abandoned = Condition(), False
        self._fault: BaseException | None = None
        later = [height_px]
        for tile in reversed(todo):
            later.append(min(later[-1], tile.rows.start))
        self._rows = later.pop()
        self._later = dict(zip((tile.number for tile in todo), reversed(later), strict=True))
        """With which row the first of the tiles after each begins."""

    def note(self, tile: Tile, row: int) -> None:
        """Everything of `tile` that is above `row` is written.  What went wrong in who follows is raised here."""
        with self._changed:
            if self._fault is not None:
                raise self._fault
            rows = self._later[tile.number] if row >= tile.rows.stop else min(row, self._later[tile.number])
            self._rows = max(self._rows, rows)
            self._changed.notify_all()

    def wait_for(self, row: int) -> None:
        """Return when all rows above `row` are written."""
        with self._changed:
            self._changed.wait_for(lambda: self._abandoned or self._rows >= row)
            if self._abandoned:
                raise AbandonedError

    def abandon(self) -> None:
        """Nothing more will come."""
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()

    def failed(self, fault: BaseException) -> None:
        """Who follows cannot go on."""
        with self._changed:
            self._fault = fault


class FollowedPlane:
    """A plane of which a block is there to be read when it is written."""

    def __init__(self, plane: Labels, done: RowsDone) -> None:
        self._plane, self._done = plane, done
        self.height_px, self.width_px = plane.height_px, plane.width_px

    def read(self, y: int, x: int, height_px: int, width_px: int) -> Bytes2d:
        """The block at row `y`, column `x`, cut to the plane."""
        self._done.wait_for(min(y + height_px, self.height_px))
        return self._plane.read(y, x, height_px, width_px)


class Follower(Generic[Made]):
    """A thread that makes something of planes while another one writes them; with it, or before, all ends."""

    def __init__(self, make: Callable[[Mapping[str, Labels]], Made]) -> None:
        self._make, self._thread = make, ThreadPoolExecutor(1, "seunet-results")
        self._done: RowsDone | None = None
        self._made: Future[Made] | None = None

    def follow(self, files: PlaneFiles, done: RowsDone) -> None:
        """Begin, with planes that are there and are being written."""
        self._done = done
        self._made = self._thread.submit(self._follow, files, done)

    def made(self) -> Made:
        """What was made, when it is."""
        if self._made is None:
            raise ValueError("nothing was followed")
        return self._made.result()

    def _follow(self, files: PlaneFiles, done: RowsDone) -> Made:
        try:
            with files.opened() as planes:
                return self._make({name: FollowedPlane(plane, done) for name, plane in planes.items()})
        except BaseException as fault:
            done.failed(fault)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._done is not None:
            self._done.abandon()
        self._thread.shutdown()
