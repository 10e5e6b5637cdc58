"""docs/images/heads.png: what `seunet segment` writes of scikit-image's immunohistochemistry picture, side by side.

    python -m benchmarks.pictures.heads

Depends on the weights of `nuclei`: to be made again with them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import skimage
from PIL import Image

from benchmarks.declare import SKIMAGE, Benchmark
from benchmarks.record import ROOT
from benchmarks.watching import run_seunet
from seunet.images import encode_png
from seunet.storage import write_bytes

BENCHMARK = Benchmark(
    "pictures.heads",
    ("docs/images/heads.png",),
    1,
    needs=(SKIMAGE,),
)

PICTURE = ROOT / "docs" / "images" / "heads.png"
GAP_PX = 16


def main() -> None:
    """Segment the picture and put its overlay and its heads beside each other."""
    BENCHMARK.parser(__doc__).parse_args()
    source = Path(skimage.__file__).parent / "data" / "ihc.png"
    with tempfile.TemporaryDirectory() as out:
        ran = run_seunet("segment", source, "-o", out, "--fusion", "p_dist", "--no-progress")
        if ran.code:
            raise SystemExit(ran.err)
        pictures = [_pixels(Path(out) / "ihc" / name) for name in ("overlay.png", "heads.png")]
    height = max(len(one) for one in pictures)
    even = [np.pad(one, ((0, height - len(one)), (0, GAP_PX), (0, 0)), constant_values=255) for one in pictures]
    write_bytes(PICTURE, encode_png(np.concatenate(even, axis=1)))
    print(PICTURE)


def _pixels(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


if __name__ == "__main__":
    main()
