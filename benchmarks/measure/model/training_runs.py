"""The logs of published runs, kept in results/training, and their picture.

python -m benchmarks.measure.model.training_runs RUN=TITLE ...   # copy config and logs of finished runs there, and draw
python -m benchmarks.measure.model.training_runs                 # draw again from what is there
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import yaml

from benchmarks.declare import Benchmark
from benchmarks.record import RESULTS, ROOT
from seunet.errors import InputError
from seunet.evaluation.figures import training_curves
from seunet.storage import atomic_path, rows, write_text

BENCHMARK = Benchmark(
    "measure.model.training_runs",
    ("results/training", "docs/images/training-monuseg-cpu.png"),
    1,
    arguments="runs/seunet=seunet runs/unet=unet",
    needs=("runs/seunet, runs/unet",),
)

KEPT = RESULTS / "training"
PICTURE = ROOT / "docs" / "images" / "training-monuseg-cpu.png"
LOGS = ("log.jsonl", "clock.jsonl")


def kept_runs() -> list[Path]:
    """Folders of published runs, SEUNet first."""
    return sorted(KEPT.iterdir(), key=lambda folder: (folder.name != "seunet", folder.name)) if KEPT.is_dir() else []


def facts(folder: Path) -> dict[str, Any]:
    """What a log says about its run."""
    validations = [row for row in rows(folder / "log.jsonl") if "validation" in row]
    best = max(validations, key=lambda row: float(row["validation"]["p_ens"]))
    events = list(rows(folder / "clock.jsonl"))
    config = yaml.safe_load((folder / "config.yaml").read_text())
    return {
        "config": config,
        "steps": events[-1]["step"],
        "best": best,
        "last": validations[-1],
        "seconds": _totals(events, "seconds"),
        "cpu_seconds": _totals(events, "cpu_seconds"),
        "peak_memory_mib": max(event.get("peak_memory_mib", 0) for event in events),
        "threads": sorted({event["threads"] for event in events if "threads" in event}),
        "starts": sum(event["event"] == "started" for event in events),
    }


def _totals(events: list[dict[str, Any]], name: str) -> float:
    """Summed over the starts of a run: each counts from zero, and what was done after a last checkpoint is lost."""
    total = latest = 0.0
    for event in events:
        if event["event"] == "started":
            total, latest = total + latest, 0.0
        latest = event.get(name, latest)
    return total + latest


def keep(run: Path, place: Path) -> None:
    """Copy config and logs of a finished run to `place`."""
    last = list(rows(run / "clock.jsonl"))[-1]
    if last["event"] != "finished":
        raise InputError(f"{run}: is not finished (its last event is {last['event']!r}); resume it first")
    for name in LOGS:
        with atomic_path(place / name) as part:
            shutil.copyfile(run / name, part)
    config = yaml.safe_load((run / "config.yaml").read_text())
    # Not where things lay on one machine.
    config["data"]["root"] = f"prepared/{Path(config['data']['root']).name}"
    if config.get("start") is not None and Path(config["start"]).is_absolute():
        config["start"] = Path("runs", *Path(config["start"]).parts[-2:]).as_posix()
    write_text(place / "config.yaml", yaml.safe_dump(config, sort_keys=False, allow_unicode=True))


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("runs", nargs="*", metavar="RUN=TITLE", help="finished runs to copy; default: draw again")
    return made


def main() -> None:
    for argument in parser().parse_args().runs:
        run, _, title = argument.partition("=")
        keep(Path(run), KEPT / (title or Path(run).name))
    logs = {folder.name: folder / "log.jsonl" for folder in kept_runs()}
    with atomic_path(PICTURE) as part:
        training_curves(logs).savefig(part, format="png", dpi=130)
    for folder in kept_runs():
        found = facts(folder)
        print(folder.name, found["best"]["step"], found["best"]["validation"], round(found["cpu_seconds"]))


if __name__ == "__main__":
    main()
