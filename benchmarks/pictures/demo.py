"""docs/images/demo.jpg: the picture of `seunet demo`, one image at four sizes, told nothing.

    python -m benchmarks.pictures.demo

Depends on the weights of `nuclei`: to be made again with them.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from PIL import Image

from benchmarks.declare import Benchmark
from benchmarks.record import ROOT
from benchmarks.watching import run_seunet
from seunet.storage import write_bytes

BENCHMARK = Benchmark("pictures.demo", ("docs/images/demo.jpg",), 1)
PICTURE = ROOT / "docs" / "images" / "demo.jpg"
WIDTH_PX = 1600


def main() -> None:
    """Run the demo and keep its picture, smaller."""
    BENCHMARK.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as out:
        ran = run_seunet("demo", "-o", out, "--no-progress")
        if ran.code:
            raise SystemExit(ran.err)
        with Image.open(Path(out) / "figures" / "sizes.png") as picture:
            size = WIDTH_PX, WIDTH_PX * picture.height // picture.width
            smaller = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    data = io.BytesIO()
    smaller.save(data, "JPEG", quality=88)
    write_bytes(PICTURE, data.getvalue())
    print(PICTURE)


if __name__ == "__main__":
    main()
