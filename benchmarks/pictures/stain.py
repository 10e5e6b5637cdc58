"""The picture of stain normalisation in docs/data.md: `python -m benchmarks.pictures.stain`.

Four slides of BCSS (CC0), each from another institution: above as scanned, below normalised to the built-in target.
"""

from __future__ import annotations

import sys

import numpy as np
from PIL import Image

from benchmarks.declare import REAL, Benchmark
from benchmarks.record import ROOT
from seunet.data import normalise_stain
from seunet.storage import atomic_path
from support.real_data import real_data

BENCHMARK = Benchmark(
    "pictures.stain",
    ("docs/images/vahadane.jpg",),
    1,
    needs=(REAL,),
)

NAMES = (
    "core_A0CE_A7_x_ini_1074_y_ini_716",
    "core_A12F_AO_x_ini_0_y_ini_358",
    "core_A2DB_GM_x_ini_5370_y_ini_1790",
    "core_A6SB_EW_x_ini_1074_y_ini_2864",
)
CROP_PX = 240
GAP_PX = 6


def main() -> None:
    """Write docs/images/vahadane.jpg."""
    BENCHMARK.parser(__doc__).parse_args()
    data = real_data()
    if data is None:
        sys.exit("no real data: set SEUNET_DATA or put it in ../shared/data")
    step = CROP_PX + GAP_PX
    canvas = np.full((2 * step - GAP_PX, len(NAMES) * step - GAP_PX, 3), 255, dtype=np.uint8)
    for column, name in enumerate(NAMES):
        before = np.asarray(Image.open(data / "bcss" / "patches" / "images" / f"{name}.png"))
        after, sentence = normalise_stain(before)
        print(f"{name}: {sentence}")
        for row, pixels in enumerate((before, after)):
            place = canvas[row * step : row * step + CROP_PX, column * step : column * step + CROP_PX]
            place[:] = pixels[136 : 136 + CROP_PX, 136 : 136 + CROP_PX]
    with atomic_path(ROOT / "docs" / "images" / "vahadane.jpg") as part:
        Image.fromarray(canvas).save(part, format="JPEG", quality=90, optimize=True)


if __name__ == "__main__":
    main()
