"""One thing that is shown, opened: its size and scale, its layers and their tiles, its objects."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError, SeunetError
from seunet.results.pictures.heads_map import head_colors
from seunet.viewer.finding import HEADS, LABELS, OBJECTS, PROBABILITIES, Shown
from seunet.viewer.objects.building import IndexBuilder
from seunet.viewer.objects.coverage import coverage_tile
from seunet.viewer.objects.index import Mask, ObjectIndex
from seunet.viewer.readers import Readers
from seunet.viewer.run_facts import Color, class_colors
from seunet.viewer.tile_cache import TileCache
from seunet.viewer.tiles import (
    CLEAR,
    FAITHFUL,
    FAITHFUL_PIXELS,
    TILE_PX,
    Grid,
    Paint,
    Source,
    code_painter,
    cut_out,
    heat_painter,
    jpeg,
    png,
    tile_pixels,
)

HEAT: Final = [(0, 0, 60), (80, 0, 130), (190, 30, 100), (250, 110, 30), (255, 220, 60)]
"""From unlikely to likely."""
BACKGROUND: Final = "background"
NO_TILE: Final = png(np.full((1, 1, 4), CLEAR, dtype=np.uint8))


class Item:
    """A slide, a result, or both.  What cannot be opened is said in `notes`; the rest is shown."""

    def __init__(self, shown: Shown, readers: Readers, cache: TileCache) -> None:
        self.shown, self._readers, self._cache = shown, readers, cache
        self._objects: IndexBuilder | None = None

    @cached_property
    def grid(self) -> Grid:
        """The size of level 0: of the slide, or, where that is gone, what run.json says."""
        if self.slide is not None:
            level = self._readers.image(self.slide).levels[0]
            return Grid(level.width_px, level.height_px)
        if self.shown.facts is None:
            raise InputError(self._slide_fault or "nothing to show")
        first = self.shown.facts.image.levels[0]
        return Grid(first.width_px, first.height_px)

    @cached_property
    def _slide_fault(self) -> str | None:
        try:
            if self.shown.slide is not None:
                self._readers.image(self.shown.slide)
        except InputError as error:
            return str(error)
        return None

    @property
    def slide(self) -> Path | None:
        """The image, if it can be opened."""
        return None if self._slide_fault else self.shown.slide

    @property
    def offset(self) -> tuple[int, int]:
        """Where the scanned part, which coordinates in GeoJSON begin at, lies on level 0."""
        if self.shown.facts is not None:
            return self.shown.facts.image.bounds.x, self.shown.facts.image.bounds.y
        bounds = self._readers.image(self.slide).bounds if self.slide is not None else None
        return (0, 0) if bounds is None else (bounds.x, bounds.y)

    @cached_property
    def classes(self) -> dict[str, Color]:
        """Names and colours by code; the background is one of them."""
        return {} if self.shown.facts is None else class_colors(self.shown.facts, self.shown.file(*OBJECTS))

    def facts(self) -> dict[str, Any]:
        """What the page needs to show it."""
        shown = self.shown
        if shown.slide is not None and shown.facts is None and self._slide_fault:
            return {"name": shown.name, "error": self._slide_fault, "notes": list(shown.notes)}
        counts = shown.facts.results.objects if shown.facts is not None else {}
        notes = [*shown.notes, *([self._slide_fault] if self._slide_fault else [])]
        return {
            "name": shown.name,
            "file": shown.slide.name if shown.slide is not None else shown.facts and shown.facts.image.file,
            "width": self.grid.width,
            "height": self.grid.height,
            "tile": TILE_PX,
            "coarsest": self.grid.coarsest,
            "scale": self.scale(),
            "classes": [
                {"name": name, "color": color, "count": counts.get(name), "background": name == BACKGROUND}
                for name, color in self.classes.items()
            ],
            "layers": sorted(self.layers),
            "heads": self.heads(),
            "offset": self.offset,
            "outlines": shown.file(*OBJECTS) is not None,
            "notes": notes,
        }

    def scale(self) -> dict[str, Any] | None:
        """µm per pixel, and how it is known."""
        facts = self.shown.facts
        if facts is None:
            mpp = self._readers.image(self.slide).mpp if self.slide is not None else None
            return None if mpp is None else {"mpp": mpp.mean, "how": "stated"}
        estimate = facts.scale.estimate
        if facts.scale.source == "estimated" and estimate is not None and estimate.mpp:
            return {"mpp": estimate.mpp, "how": "estimated", "low": estimate.mpp_low, "high": estimate.mpp_high}
        if facts.image.mpp is None:
            return None
        return {"mpp": (facts.image.mpp.x * facts.image.mpp.y) ** 0.5, "how": "stated"}

    @cached_property
    def layers(self) -> dict[str, tuple[Source, Paint | None]]:
        """What there are tiles of: where they are read and how they are coloured."""
        found: dict[str, tuple[Source, Paint | None]] = {}
        if self.slide is not None:
            found["slide"] = Source(self.slide), None
        makers: dict[str, tuple[str, Callable[[], Paint]]] = {
            "labels": (LABELS, self._label_paint),
            "heads": (HEADS, self._head_paint),
            "heat": (PROBABILITIES, lambda: heat_painter(HEAT)),
        }
        for layer, (name, paint) in makers.items():
            path = self.shown.file(name)
            if path is not None and (source := self._source(path)) is not None:
                found[layer] = source, paint()
        return found

    def _label_paint(self) -> Paint:
        shown = {code: color for code, (name, color) in enumerate(self.classes.items()) if name != BACKGROUND}
        return code_painter(shown)

    def _head_paint(self) -> Paint:
        return code_painter({number: color for number, color in enumerate(self._head_colors(), start=1)})

    def _head_colors(self) -> list[Color]:
        facts = self.shown.facts
        return head_colors(max(1, len(facts.results.heads_won))) if facts is not None else []

    def heads(self) -> list[dict[str, Any]] | None:
        """The heads with their colours, where it is known which won where."""
        facts = self.shown.facts
        if facts is None or "heads" not in self.layers:
            return None
        sigmas, won = facts.results.head_sigmas_px, facts.results.heads_won
        lines = []
        for number, color in enumerate(self._head_colors()):
            width = f", σ {sigmas[number][0]:.2g}–{sigmas[number][1]:.2g} px" if sigmas and number < len(sigmas) else ""
            share = "" if won[number] is None else f": {100 * float(won[number] or 0):.0f} %"
            lines.append({"name": f"head {number + 1}{width}{share}", "color": color})
        return lines

    def _source(self, path: Path) -> Source | None:
        try:
            own = self._readers.image(path).levels[0]
        except InputError:
            return None
        # A plane of pixels that are `downsample` wide ends up to one of them beyond the slide.
        wide = self.shown.facts.magnification.downsample if self.shown.facts is not None else 1.0
        exact = self.grid.width / own.width_px
        faithful = FAITHFUL if own.width_px * own.height_px <= FAITHFUL_PIXELS else 2 * FAITHFUL
        return Source(path, wide if abs(own.width_px * wide - self.grid.width) < wide else exact, faithful)

    def tile(self, layer: str, halvings: int, x: int, y: int) -> tuple[bytes, str] | None:
        """A tile and its kind of file; None if there is no such tile."""
        if layer not in self.layers or (size := self.grid.size(halvings, x, y)) is None:
            return None
        source, paint = self.layers[layer]
        if paint is None:
            return jpeg(tile_pixels(self._readers, source, halvings, x, y, size)), "image/jpeg"
        if halvings >= (overview := self.grid.overview):
            pixels = cut_out(self._overview(layer, source, paint), halvings - overview, x, y, size)
        else:
            pixels = tile_pixels(self._readers, source, halvings, x, y, size, paint)
        return (png(pixels) if pixels[..., 3].any() else NO_TILE), "image/png"

    def _overview(self, layer: str, source: Source, paint: Paint) -> NDArray[np.uint8]:
        """All of a layer, as seen from afar."""
        halvings = self.grid.overview
        width, height = size = self.grid.whole(halvings)
        make = partial(tile_pixels, self._readers, source, halvings, 0, 0, size, paint)
        made = self._cache.get((self, layer), lambda: (make().tobytes(), "plane"))
        assert made is not None
        return np.frombuffer(made[0], dtype=np.uint8).reshape(height, width, 4)

    def prepare(self) -> None:
        """Begin with what the first view needs: processes that read, and the labels from afar."""
        paths = [path for path in (self.shown.slide, self.shown.file(LABELS)) if path is not None]
        with suppress(SeunetError), ThreadPoolExecutor() as pool:
            for _ in pool.map(self._readers.image, paths):
                pass
        with suppress(SeunetError):
            self.tile("labels", self.grid.coarsest, 0, 0)

    def chosen_tile(self, index: ObjectIndex, mask: Mask, halvings: int, x: int, y: int) -> tuple[bytes, str] | None:
        """A tile of some of the objects, every one of them as its share of the pixels."""
        if (size := self.grid.size(halvings, x, y)) is None:
            return None
        side = TILE_PX * 2**halvings
        return png(coverage_tile(index, mask, (x * side, y * side), 2**halvings, size)), "image/png"

    @property
    def objects(self) -> IndexBuilder | None:
        """The objects of the result, whose index is being made from now on."""
        path = self.shown.file(*OBJECTS)
        if self._objects is None and path is not None:
            self._objects = IndexBuilder(path, (self.grid.width, self.grid.height), self.offset)
            self._objects.start()
        return self._objects

    def close(self) -> None:
        """End what is at work for it."""
        if self._objects is not None:
            self._objects.close()
