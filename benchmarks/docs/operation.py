"""The tables of docs/results/operation.md."""

from __future__ import annotations

from benchmarks.record import results, source
from seunet.evaluation import markdown_table


def cluster() -> str:
    """Kills of workers, and what a scheduler costs."""
    report = results("cluster")
    killed, overhead = report["killed"], report["overhead"]
    rows = [
        ("slides", killed["slides"]),
        ("workers killed (−9), each in the middle of a slide", killed["kills"]),
        ("slides lost", killed["lost"]),
        ("slides doubled", killed["doubled"]),
        ("slides whose bytes are not those of one process", killed["other_bytes"]),
        (f"scheduler and client, per slide, {overhead['tasks']:,} tasks: CPU", f"{overhead['cpu_ms_per_slide']} ms"),
        ("… by the clock, with the workers on the same cores", f"{overhead['ms_per_slide']} ms"),
    ]
    return f"{markdown_table(['two workers', ''], rows)}\n\n{source(report)}"


def slide_kills() -> str:
    """Kills at random moments of one slide."""
    report = results("slide_kills")
    kill = report["kill"]
    rows = [(f"killed {moment}", count) for moment, count in kill["moments"].items()]
    rows += [("kills in all", kill["kills"]), ("runs that then did not end", kill["failed"])]
    rows += [("results whose bytes are not those of a run that was never broken", kill["other_bytes"])]
    return f"{markdown_table([kill['slide'], ''], rows)}\n\n{source(report)}"


def soak() -> str:
    """A long run in one process."""
    report = results("soak")
    inputs, memory = report["inputs"], report["memory_mib"]
    rows = [(f"memory {name}", f"{mib} MiB") for name, mib in memory.items() if name.startswith("after")]
    rows += [(f"{name} left at the end", count) for name, count in report["left"].items()]
    images = f"{inputs['images']} images of about {inputs['image_px']}²"
    slides = f"{inputs['slides']} slides of {inputs['slide_px']}²"
    return f"{markdown_table([f'{images}, then {slides}', ''], rows)}\n\n{source(report)}"


BLOCKS = {"docs/results/operation.md": {"slide-kills": slide_kills, "cluster": cluster, "soak": soak}}
