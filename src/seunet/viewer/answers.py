"""The answers: pages, tiles and numbers of what was given on the command line, by its place in the list.

No address holds a path: what was not given cannot be asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from seunet.look.css import look_css
from seunet.viewer.finding import Shown
from seunet.viewer.items import Item
from seunet.viewer.objects import selecting
from seunet.viewer.objects.comparing import Compared, compare
from seunet.viewer.objects.index import Mask, ObjectIndex
from seunet.viewer.readers import Readers
from seunet.viewer.tile_cache import TileCache

STATIC: Final = Path(__file__).parent / "static"
KINDS: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
CHOSEN: Final = "chosen"
"""The layer of the objects that pass a filter, from afar."""
KEEP: Final = {"cache-control": "private, max-age=3600"}
FRESH: Final = {"cache-control": "no-store"}


class Viewer:
    """Everything that is shown, and the answers to what a page asks."""

    def __init__(self, shown: Sequence[Shown]) -> None:
        self._readers, self._cache = Readers(), TileCache()
        self._items = [Item(one, self._readers, self._cache) for one in shown]
        self._comparisons: dict[tuple[int, int], Compared] = {}
        self._lock = threading.Lock()
        self._files = {path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*") if path.suffix in KINDS}

    def prepare(self) -> None:
        """Begin with the first view, while the browser is starting."""
        # Waited for at the end: a thread that is cut off inside a library aborts the process.
        threading.Thread(target=self._items[0].prepare).start()

    def routes(self) -> list[Route]:
        """What can be asked for."""
        return [
            Route("/", lambda request: self._file("index.html")),
            Route("/static/look.css", lambda request: Response(look_css(), media_type="text/css", headers=KEEP)),
            Route("/static/{name:path}", lambda request: self._file(request.path_params["name"])),
            Route("/api/shown", self.list_shown),
            Route("/api/item/{item:int}", self.item),
            Route("/api/progress/{item:int}", self.progress),
            Route("/api/objects/{item:int}", self.objects),
            Route("/api/histogram/{item:int}", self.histogram),
            Route("/api/mask/{item:int}", self.mask),
            Route("/api/at/{item:int}", self.at),
            Route("/api/object/{item:int}/{number:int}", self.one_object),
            Route("/api/compare/{item:int}/{other:int}", self.compare),
            Route("/api/export/{item:int}/{kind}", self.export),
            Route("/tiles/{item:int}/{layer}/{halvings:int}/{x:int}/{y:int}", self.tile),
            Route("/cells/{item:int}/{column:int}/{row:int}", self.cell),
        ]

    def _file(self, name: str) -> Response:
        if name not in self._files:
            raise HTTPException(404)
        path = self._files[name]
        return Response(path.read_bytes(), media_type=KINDS[path.suffix], headers=FRESH)

    def _item(self, request: Request, name: str = "item") -> Item:
        number: int = request.path_params[name]
        if number >= len(self._items):
            raise HTTPException(404)
        return self._items[number]

    def _index(self, request: Request) -> ObjectIndex:
        return self._index_of(self._item(request))

    def _index_of(self, item: Item) -> ObjectIndex:
        builder = item.objects
        if builder is None:
            raise HTTPException(404)
        builder.wait(60)
        index = builder.index()
        if index is None:
            raise HTTPException(503)
        return index

    def _selected(self, request: Request, index: ObjectIndex) -> Mask:
        mask = selecting.selected(index, selecting.read_filter(request.query_params, index))
        if "differs" in request.query_params:
            other = _number(request.query_params["differs"])
            compared = self._compared(request.path_params["item"], other)
            mask &= ~compared.first_matched | compared.other_class
        return mask

    def _compared(self, first: int, second: int) -> Compared:
        """Item `first` beside item `second`; kept, because every tile of a filter asks for it."""
        if max(first, second) >= len(self._items):
            raise HTTPException(404)
        with self._lock:
            if (first, second) not in self._comparisons:
                scale = self._items[first].grid.width / self._items[second].grid.width
                indices = self._index_of(self._items[first]), self._index_of(self._items[second])
                self._comparisons[first, second] = compare(*indices, scale)
            return self._comparisons[first, second]

    def list_shown(self, request: Request) -> Response:
        """The names of all."""
        return JSONResponse([{"name": item.shown.name} for item in self._items], headers=FRESH)

    def item(self, request: Request) -> Response:
        """All about one."""
        return JSONResponse(self._item(request).facts(), headers=FRESH)

    def progress(self, request: Request) -> Response:
        """How far the index of the objects is."""
        builder = self._item(request).objects
        if builder is None:
            return JSONResponse({"share": 1, "objects": 0, "columns": []}, headers=FRESH)
        index = builder.index()
        columns = [] if index is None else index.names
        classes = {} if index is None else index.class_colors
        facts = {"share": builder.share if index is None else 1, "objects": builder.objects}
        return JSONResponse({**facts, "columns": columns, "classes": classes}, headers=FRESH)

    def tile(self, request: Request) -> Response:
        """A tile of a layer."""
        item, layer = self._item(request), request.path_params["layer"]
        halvings, x, y = (request.path_params[name] for name in ("halvings", "x", "y"))
        key = (request.path_params["item"], layer, halvings, x, y, request.url.query if layer == CHOSEN else "")
        make = self._chosen_tile(request) if layer == CHOSEN else partial(item.tile, layer)
        made = self._cache.get(key, lambda: make(halvings, x, y))
        if made is None:
            raise HTTPException(404)
        return Response(made[0], media_type=made[1], headers=KEEP)

    def _chosen_tile(self, request: Request) -> Callable[[int, int, int], tuple[bytes, str] | None]:
        item, index = self._item(request), self._index(request)
        return lambda *place: item.chosen_tile(index, self._selected(request, index), *place)

    def cell(self, request: Request) -> Response:
        """The pieces of outlines in a cell."""
        place = request.path_params
        data = self._index(request).cell(place["column"], place["row"])
        return Response(data, media_type="application/octet-stream", headers=KEEP)

    def objects(self, request: Request) -> Response:
        """A page of the table."""
        index, query = self._index(request), request.query_params
        mask = self._selected(request, index)
        column = query.get("sort", "object")
        if column not in ("object", "class", *map(str, range(len(index.names)))):
            raise HTTPException(400)
        first, count = _number(query.get("from", "0")), min(_number(query.get("count", "100")), selecting.MAX_ROWS)
        numbers = selecting.ordered(index, mask, column, query.get("order") == "down")
        rows = selecting.table_rows(index, numbers[first : first + count])
        counts = {"all": len(index), "selected": len(numbers), "by_class": selecting.totals(index, mask)}
        return JSONResponse({**counts, "rows": rows}, headers=FRESH)

    def histogram(self, request: Request) -> Response:
        """How a measurement is distributed."""
        index, column = self._index(request), _number(request.query_params.get("column", "0"))
        if column >= len(index.names):
            raise HTTPException(404)
        return JSONResponse(selecting.histogram(index, self._selected(request, index), column), headers=FRESH)

    def mask(self, request: Request) -> Response:
        """A bit for each object, from the lowest: whether it is selected."""
        index = self._index(request)
        bits = np.packbits(self._selected(request, index), bitorder="little").tobytes()
        return Response(bits, media_type="application/octet-stream", headers=FRESH)

    def at(self, request: Request) -> Response:
        """The object at a point."""
        index = self._index(request)
        try:
            x, y = float(request.query_params["x"]), float(request.query_params["y"])
        except (KeyError, ValueError):
            raise HTTPException(400) from None
        number = index.at(x, y)
        return JSONResponse(None if number is None else _described(index, number), headers=FRESH)

    def one_object(self, request: Request) -> Response:
        """An object by its number."""
        index, number = self._index(request), request.path_params["number"]
        if number >= len(index):
            raise HTTPException(404)
        return JSONResponse(_described(index, number), headers=FRESH)

    def compare(self, request: Request) -> Response:
        """How many objects two results have in common."""
        first, second = request.path_params["item"], request.path_params["other"]
        found = self._compared(first, second)
        counts = {
            "both": int(found.first_matched.sum()),
            "other_class": int(found.other_class.sum()),
            "only_first": int((~found.first_matched).sum()),
            "only_second": int((~found.second_matched).sum()),
        }
        return JSONResponse(counts, headers=FRESH)

    def export(self, request: Request) -> Response:
        """The selected objects as a file."""
        index, kind = self._index(request), request.path_params["kind"]
        makers: dict[str, tuple[Callable[[ObjectIndex, Mask], Iterator[bytes]], str]] = {
            "objects.csv": (selecting.as_csv, "text/csv"),
            "objects.geojson": (selecting.as_geojson, "application/geo+json"),
        }
        if kind not in makers:
            raise HTTPException(404)
        make, media = makers[kind]
        headers = {**FRESH, "content-disposition": f'attachment; filename="{kind}"'}
        return StreamingResponse(make(index, self._selected(request, index)), media_type=media, headers=headers)

    def close(self) -> None:
        """End every process and remove what was made for looking."""
        for item in self._items:
            item.close()
        self._readers.close()


def _described(index: ObjectIndex, number: int) -> dict[str, Any]:
    row = selecting.table_rows(index, np.array([number]))[0]
    outline = [np.round(ring, 2).tolist() for ring in index.outline(number)]
    return {**row, "id": index.feature(number).get("id"), "box": index.boxes[number].tolist(), "outline": outline}


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise HTTPException(400)
    return int(text)
