"""From which odds of the rim to the inside of a nucleus on objects are best parted: AJI and PQ on held-out images.

    python -m benchmarks.measure.model.rim_odds runs/nuclei-2/model --sets prepared/monuseg:5 prepared/tnbc:5

`inf` leaves the rim out: objects parted by their necks alone.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import torch

import seunet
from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.measure.model.trials import CHANGES, images_of, scores, with_sets
from benchmarks.record import write_results

BENCHMARK = Benchmark(
    "measure.model.rim_odds",
    ("results/benchmarks/rim_odds.json",),
    10,
    arguments="nuclei-2 --sets prepared/monuseg:5 prepared/consep:7 prepared/tnbc:5",
    needs=(MONUSEG, "prepared/cpm17, prepared/tnbc, prepared/consep"),
)

ODDS = (math.inf, 1.0, 0.8, 0.7, 0.6, 0.5, 0.4, 0.25)


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("model")
    return with_sets(made)


def main() -> None:
    """Measure, print and write."""
    given = parser().parse_args()
    torch.set_num_threads(1)
    model = seunet.load(given.model)
    if model.card is None or model.rim is None:
        raise SystemExit(f"{given.model}: has not learnt the rim")
    images = images_of(given)
    rows: dict[str, Any] = {}
    for odds in ODDS:
        model.card = model.card.model_copy(update={"rim_odds": min(odds, 1e9)})
        found = {name: scores(model, some, CHANGES["as it is"])["rim"] for name, some in images.items()}
        rows[f"{odds:g}"] = found
        print(odds, found, flush=True)
    write_results(BENCHMARK, {"images": {name: len(some) for name, some in images.items()}, "odds": rows})


if __name__ == "__main__":
    main()
