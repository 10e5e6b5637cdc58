"""The process that opens and reads images of unknown origin for sandboxed.py.

`python -m seunet.images.sandboxed_worker LIMIT_BYTES PARENT FILE`: one JSON line in, one JSON line out; pixels go into
the file with the descriptor FILE, which the parent shares.  Requests: {"open": path, "mpp": …}, {"read": [level, x, y,
width, height]}, {"close": true}; each with {"seconds": …}, after which the process ends itself if its parent has not.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

from seunet.errors import InputError, RegionError
from seunet.images.facts import describe
from seunet.images.image import Image
from seunet.images.open import open_image
from seunet.memory import keep_freed_memory
from seunet.storage.sandbox import SharedBytes, confine, serve

GRACE_SECONDS = 5


class Reader:
    """Holds one open image at a time."""

    def __init__(self, file: int) -> None:
        self._shared = SharedBytes(file)
        self._image: Image | None = None

    def answer(self, line: bytes) -> dict[str, Any]:
        """Do what is asked; what is wrong with the image comes back as a fault."""
        request = json.loads(line)
        # Death with the parent is by the closed pipe; one that hangs in a decoder never sees it, but has this clock.
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + GRACE_SECONDS)
        try:
            return self._done(request)
        except RegionError as error:
            return {"fault": str(error), "kind": "region"}
        except InputError as error:
            return {"fault": str(error), "kind": "input"}
        except MemoryError:
            return {"kind": "memory"}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _done(self, request: dict[str, Any]) -> dict[str, Any]:
        if "read" in request:
            assert self._image is not None
            level, x, y, width_px, height_px = request["read"]
            pixels = self._shared.first(width_px * height_px * 3).reshape(height_px, width_px, 3)
            self._image.read_into(pixels, level, x, y)
            return {}
        if self._image is not None:
            self._image.close()
            self._image = None
        if "open" in request:
            self._image = open_image(Path(request["open"]), request["mpp"])
            return {"image": describe(self._image)}
        return {}


def main() -> None:
    """Entry point."""
    keep_freed_memory()  # each region is a block of megabytes: fresh pages for every one cost a tenth of the time
    replies = confine(int(sys.argv[1]))
    serve(replies, Reader(int(sys.argv[3])).answer)


if __name__ == "__main__":
    main()
