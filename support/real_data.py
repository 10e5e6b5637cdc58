"""Where the real data lies, if it does."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(os.environ.get("SEUNET_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data"))


def real_data() -> Path | None:
    """The folder with monuseg/, bcss/ and wsi/: $SEUNET_DATA or ../shared/data beside the repository."""
    return DATA if (DATA / "monuseg" / "manifest.csv").is_file() else None
