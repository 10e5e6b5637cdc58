"""The picture of README and docs/results/told-or-not.md, from results/benchmarks/told_or_not.json.

python -m benchmarks.pictures.told   # writes docs/images/told-or-not.png
"""

from __future__ import annotations

from typing import Any

from benchmarks.declare import Benchmark
from benchmarks.docs.told import WAYS, as_segment_uses_it
from benchmarks.record import ROOT, results
from seunet.evaluation.figures import COLORS, Curve, curves_figure, write_png

BENCHMARK = Benchmark(
    "pictures.told",
    ("docs/images/told-or-not.png",),
    1,
    needs=("results/benchmarks/told_or_not.json",),
)

PICTURE = ROOT / "docs" / "images" / "told-or-not.png"
STYLES = {"blind": ":", "estimated": "-", "stated": "--"}


def curves(found: dict[str, Any]) -> list[Curve]:
    """Both models, each in one colour; blind dotted, estimated in full, stated dashed."""
    colors = dict(zip(found["models"], COLORS, strict=False))
    return [
        Curve(f"{name}, {title}", found["scales"], row["ious"], colors[name], 2.2, STYLES[way])
        for name in found["models"]
        for way, title in WAYS.items()
        for row in [as_segment_uses_it(found, name, way)]
    ]


def main() -> None:
    BENCHMARK.parser(__doc__).parse_args()
    found = results("told_or_not")["splits"]["test"]
    title = f"{len(found['images'])} test images of MoNuSeg at {len(found['scales'])} magnifications"
    write_png(curves_figure(curves(found), "IoU of nuclei", title), PICTURE)
    print(PICTURE)


if __name__ == "__main__":
    main()
