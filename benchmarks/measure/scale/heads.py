"""What the heads of a network add to the scale estimate on a laboratory that the estimator never saw.

    python -m benchmarks.measure.scale.heads SET … [--measure SET=MPP] [--model nuclei-2] [--images 24] [--cache FOLDER]

The texture is read by the shipped templates, of MoNuSeg.  Templates of what the heads say, and the limits, are fitted
on the training images of all sets but one and read that one; a set of `--measure` is never fitted on, and all its
images are taken to have that mpp.  The network itself learnt from MoNuSeg, TNBC and CoNSeP, so only the sets of
`--measure` are strange to all of it.  `--images`: at most so many of each set.  Writes
results/benchmarks/scale_heads.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import cv2
import torch

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.measure.scale.sources import Answer, answers, images_of, summary
from benchmarks.record import write_results
from seunet.evaluation.fitting import REFUSED_WITH_HEADS, Observed, head_templates, limits_of, looked_at
from seunet.models import load, sureness_of
from seunet.scale import shipped_estimator

BENCHMARK = Benchmark(
    "measure.scale.heads",
    ("results/benchmarks/scale_heads.json",),
    10,
    arguments="prepared/monuseg prepared/tnbc prepared/consep --measure prepared/cpm17=0.25 --cache out/heads",
    needs=(MONUSEG,),
)


def without(sets: dict[str, list[Observed]], name: str | None) -> list[Observed]:
    """The images of all sets but one."""
    return [image for other, own in sets.items() if other != name for image in own]


def figures_of(sets: dict[str, list[Observed]], measured: dict[str, list[Observed]]) -> dict[str, Any]:
    """Of the texture alone, and with the heads."""
    shipped = shipped_estimator()
    texture = shipped.templates
    left_out: dict[str, list[Answer]] = {
        name: answers(texture, images, head_templates(without(sets, name))) for name, images in sets.items()
    }
    figures: dict[str, Any] = {"left_out": {}}
    for name, found in left_out.items():
        others = [one.sample for other, rows in left_out.items() if other != name for one in rows]
        figures["left_out"][name] = summary(found, limits_of(others, refused=REFUSED_WITH_HEADS))
    everyone = [one.sample for rows in left_out.values() for one in rows]
    limits = limits_of(everyone, refused=REFUSED_WITH_HEADS)
    heads = head_templates(without(sets, None))
    figures["limits"] = limits._asdict()
    figures["measured"] = {name: summary(answers(texture, own, heads), limits) for name, own in measured.items()}
    figures["texture_alone"] = {
        name: summary(answers(texture, own), shipped.limits) for name, own in {**sets, **measured}.items()
    }
    return figures


def main() -> None:
    asked = parser().parse_args()
    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    sureness = sureness_of(load(asked.model))

    def looked(root: Path, mpp: float | None = None) -> list[Observed]:
        seen = images_of(root, mpp, asked.samples, asked.cache, sureness, asked.images)
        return [looked_at(image) for image in seen]

    sets = {root.name: looked(root) for root in asked.sets}
    pairs = (text.rpartition("=") for text in asked.measure)
    measured = {Path(root).name: looked(Path(root), float(mpp)) for root, _, mpp in pairs}
    counts = {name: len(images) for name, images in {**sets, **measured}.items()}
    print(write_results(BENCHMARK, {"model": asked.model, "images": counts, **figures_of(sets, measured)}))


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("sets", nargs="+", type=Path)
    made.add_argument("--measure", action="append", default=[])
    made.add_argument("--model", default="nuclei-2")
    made.add_argument("--images", type=int, default=24)
    made.add_argument("--samples", type=int, default=24)
    made.add_argument("--cache", type=Path)
    return made


if __name__ == "__main__":
    main()
