"""`seunet reproduce`: parse, call, print."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from seunet.cli.evaluate import names
from seunet.cli.progress import PROGRESS, progress_of
from seunet.cli.train import StopOnSignal, training_observers
from seunet.memory import keep_freed_memory

if TYPE_CHECKING:
    from seunet.evaluation.reproduce.protocol import Protocol

CONFIG = typer.Argument(..., readable=False, metavar="CONFIG", help="E.g. configs/reproduce-monuseg-cpu.yaml.")
OUT = typer.Option(None, "-o", "--out", readable=False, metavar="REPORT", help="The folder of the report.")
SET = typer.Option([], "--set", metavar="NAME=VALUE", help="Change a value of the protocol, e.g. data=prepared/lab.")
ONLY = typer.Option(
    None,
    "--only",
    metavar="NAME,…",
    help="Only these models or seeds, in this order: cnn,seunet-seed1. The report names those that are missing.",
)
TRAIN_SET = typer.Option([], "--train-set", metavar="NAME=VALUE", help="Change a value of every training config.")
PLAN = typer.Option(False, "--plan", help="Print what it would cost, from a step of each model, and end.")


def reproduce(
    config: Path = CONFIG,
    out: Path | None = OUT,
    set_values: list[str] = SET,
    only: str | None = ONLY,
    train_set: list[str] = TRAIN_SET,
    plan: bool = PLAN,
    progress: bool = PROGRESS,
) -> None:
    """Train what is missing, evaluate it, and write one report. Repeat the command to resume.

    Example: seunet reproduce configs/reproduce-monuseg-cpu.yaml -o reports/monuseg-cpu
    """
    from seunet.evaluation.page import as_html, as_markdown, write_pictures
    from seunet.evaluation.reproduce.protocol import read_protocol
    from seunet.evaluation.reproduce.report import page
    from seunet.evaluation.reproduce.run import missing, read_measured
    from seunet.evaluation.reproduce.run import reproduce as run
    from seunet.evaluation.reproduce.statistics import statistics_of
    from seunet.evaluation.reproduce.tables import grouped
    from seunet.storage.atomic import write_text
    from seunet.training.distributed import joined

    protocol = read_protocol(config, tuple(set_values))
    keep_freed_memory()
    if plan:
        print(_planned(protocol, names(only), tuple(train_set)))
        return
    if out is None:
        raise typer.BadParameter("needs the folder of the report", param_hint="-o")
    stop = StopOnSignal()
    with joined("auto") as processes, stop.listening():
        stopped_at = run(
            protocol,
            out,
            processes,
            only=names(only),
            training_overrides=tuple(train_set),
            watching=lambda folder: training_observers(folder, progress, drawn=True),
            measuring=lambda: progress_of(progress, timed=True),
            announce=lambda text: print(text, file=sys.stderr) if progress else None,
            stop_wanted=lambda: stop.received is not None,
        )
    if stopped_at is not None:
        print(f"stopped at {stopped_at.entry.name}, seed {stopped_at.seed}; repeat the command to resume: {out}")
        raise typer.Exit(stop.exit_code)
    measured = read_measured(protocol, out)
    numbers = statistics_of(protocol, grouped(measured))
    write_text(out / "statistics.json", json.dumps(numbers, indent=1, ensure_ascii=False) + "\n")
    blocks = page(protocol, measured, out / "figures", numbers)
    write_pictures(blocks)
    write_text(out / "report.md", as_markdown(blocks, out))
    write_text(out / "report.html", as_html(protocol.title, blocks))
    open_jobs = missing(protocol, out)
    rest = f"; {len(open_jobs)} more are still to be measured" if open_jobs else ""
    print(f"{len(measured)} models{rest}: {out / 'report.html'}")


def _planned(protocol: Protocol, only: tuple[str, ...] | None, train_set: tuple[str, ...]) -> str:
    """A line per model, and the sum."""
    from seunet.evaluation.reproduce.plan import expected_costs
    from seunet.evaluation.reproduce.run import chosen_jobs

    costs = expected_costs(protocol, chosen_jobs(protocol, only, train_set))
    lines = [(name, cost.runs, cost.training, cost.measuring) for name, cost in costs.items()]
    lines.append(("all", *(sum(numbers) for numbers in zip(*costs.values(), strict=True))))
    width = max(len(name) for name, *_ in lines)
    head = f"{'core-hours':{width}}  runs  training  measuring"
    return "\n".join(
        [
            head,
            *(
                f"{name:{width}}  {runs:4}  {train / 3600:8.1f}  {rest / 3600:9.1f}"
                for name, runs, train, rest in lines
            ),
        ]
    )
