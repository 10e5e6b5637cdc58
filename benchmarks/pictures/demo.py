"""docs/images/demo.jpg: the picture of `seunet demo`, one image at four sizes, told nothing.

    python -m benchmarks.pictures.demo

Depends on the weights of `nuclei`: to be made again with them.  With --rival RUN a second network, of which the results
and not the weights are shipped, is run blind on the same four images first, and packed into the package:

    python -m benchmarks.pictures.demo --rival runs/unet-2/model --name "plain UNet, equally trained"
"""

from __future__ import annotations

import argparse
import io
import json
import shlex
import sys
import tempfile
from pathlib import Path

from PIL import Image

from benchmarks.declare import Benchmark
from benchmarks.record import ROOT, commit
from benchmarks.watching import run_seunet
from seunet.evaluation import SCALES, RivalFacts, at_scales, pack_rival, sample
from seunet.models import model_folder
from seunet.segmentation import Choices
from seunet.storage import write_bytes

BENCHMARK = Benchmark("pictures.demo", ("docs/images/demo.jpg",), 1)
PICTURE = ROOT / "docs" / "images" / "demo.jpg"
RIVAL = ROOT / "src" / "seunet" / "samples" / "rival.zip"
WIDTH_PX = 1600


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--rival", metavar="RUN", help="a model to be shown beside ours, its pixels taken as they are")
    made.add_argument("--name", default="plain UNet", help="what the page calls it")
    made.add_argument("--label", default="unet", help="begins the names of its folders")
    made.add_argument("--into", type=Path, default=RIVAL, metavar="FILE", help="where its results are packed")
    return made


def write_rival(run: str, name: str, label: str, into: Path) -> None:
    """The results of a network that scales neither pixels nor filters, with what made them.

    Specks below 4 µm² are left out of what it finds as of what ours does: for that alone the true scale is told.
    """
    config = json.loads((model_folder(run) / "config.json").read_text())
    command = shlex.join([*BENCHMARK.program.split(), *sys.argv[1:]])
    facts = RivalFacts(name=name, label=label, command=command, commit=commit(), config=config)
    with tempfile.TemporaryDirectory() as out:
        at_scales(sample(), Choices(model=run, scale="native", overwrite=True), Path(out), stated=True)
        write_bytes(into, pack_rival(facts, Path(out), list(SCALES)))
    print(into)


def main() -> None:
    """Run the demo and keep its picture, smaller."""
    chosen = parser().parse_args()
    if chosen.rival is not None:
        write_rival(chosen.rival, chosen.name, chosen.label, chosen.into)
    if chosen.into != RIVAL:
        return
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
