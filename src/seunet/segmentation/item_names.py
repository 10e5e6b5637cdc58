"""What the results of an image are called: a name that any system takes, and that no other image of the call has."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".btf", ".tf8", ".bmp", ".webp")
MAX_NAME_BYTES = 160
RESERVED = {"con", "prn", "aux", "nul", "summary.csv"}
"""Names that a system forbids, or that our own results have."""


def result_name(path: Path) -> str:
    """The file's name without its suffix (`.ome.tif` is one), safe as the name of a folder anywhere.

    >>> [result_name(Path(text)) for text in ("a/B 1.ome.tif", "x:y?.svs", ".png", "nul.tif")]
    ['B 1', 'x_y_', 'png', 'nul_']
    """
    stem = re.sub(r"\.ome$", "", path.stem, flags=re.IGNORECASE) if path.suffix.lower() in PICTURES else path.stem
    return safe_name(stem)


def safe_name(text: str) -> str:
    """`text` as the name of a folder anywhere."""
    safe = re.sub(r'[\x00-\x1f\x7f<>:"/\\|?*]', "_", text).strip(". ")
    safe = safe.encode()[:MAX_NAME_BYTES].decode(errors="ignore").rstrip(". ")
    return f"{safe}_" if not safe or safe.lower() in RESERVED else safe


def names_for(files: Sequence[tuple[Path, Path | None]]) -> list[str]:
    """Of each file the name of its results, beside those of the others; with a base, the folder it was found below.

    The file's name; below the folders it lies in where it was searched for in them, or where others have its name.
    Files with one name are told apart by their folders below the one that they have in common.
    """
    alike: dict[str, dict[Path, Path]] = {}
    for path, base in files:
        if base is None:
            alike.setdefault(result_name(path).casefold(), {})[path.resolve()] = _folder(path)
    names = []
    for path, base in files:
        if base is None:
            folders = alike[result_name(path).casefold()].values()
            base = Path(os.path.commonpath(folders)) if len(folders) > 1 else _folder(path)
        inner = _folder(path).relative_to(Path(os.path.abspath(base))).parts
        names.append("/".join([*map(safe_name, inner), result_name(path)]))
    return names


def _folder(path: Path) -> Path:
    """As it was given: a link stands for the file where the link lies."""
    return Path(os.path.abspath(path)).parent
