"""Another network's results on the images of the demo, kept in the package: a ZIP of what `seunet segment` wrote.

Its weights are not in the package, its results are, with the command, the commit and the config that made them.
They are unpacked beside ours, so that the page and `seunet view` read both alike.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pydantic import Field, ValidationError

from seunet.errors import InputError
from seunet.settings import Section
from seunet.storage.atomic import write_bytes

PACKED: Final = "rival.zip"
FACTS: Final = "rival.json"
FILES: Final = ("run.json", "labels.tif", "objects.geojson")
MAX_BYTES: Final = 64 << 20
"""Of one file inside."""
WHEN: Final = (1980, 1, 1, 0, 0, 0)
"""The same results are the same bytes."""


class RivalFacts(Section):
    """Where the results come from."""

    name: str
    """As the page has it, e.g. "plain UNet"."""
    label: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,30}$")
    """Begins the names of its folders."""
    command: str
    commit: str
    config: dict[str, Any]
    """Of the network and its training."""

    def folder(self, size: str) -> str:
        """The name of the result of a size."""
        return f"{self.label}-{size}"


def pack_rival(facts: RivalFacts, out: Path, sizes: Sequence[str]) -> bytes:
    """The file of the package, from the results in `out`, of which each is named as its size."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        contents = {FACTS: facts.model_dump_json(indent=1).encode()}
        contents |= {f"{size}/{name}": (out / size / name).read_bytes() for size in sizes for name in FILES}
        for name, content in contents.items():
            packed.writestr(zipfile.ZipInfo(name, WHEN), content, zipfile.ZIP_LZMA)
    return data.getvalue()


def shipped_rival() -> bytes | None:
    """The file of the package, where there is one."""
    path = files("seunet") / "samples" / PACKED
    return path.read_bytes() if path.is_file() else None


def unpack_rival(data: bytes, out: Path, sizes: Sequence[str]) -> RivalFacts:
    """Write the results to `out`; only names that are expected are looked at."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            facts = RivalFacts.model_validate_json(_read(packed, FACTS))
            for size in sizes:
                for name in FILES:
                    write_bytes(out / facts.folder(size) / name, _read(packed, f"{size}/{name}"))
    except (zipfile.BadZipFile, KeyError, ValidationError, EOFError) as error:
        what = re.sub(r"\s+", " ", str(error))[:200]
        raise InputError(f"{PACKED}: is not as it was packed ({what}); install seunet again") from None
    return facts


def _read(packed: zipfile.ZipFile, name: str) -> bytes:
    if packed.getinfo(name).file_size > MAX_BYTES:
        raise zipfile.BadZipFile(f"{name} is too large")
    return packed.read(name)
