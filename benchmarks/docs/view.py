"""The table of docs/view.md."""

from __future__ import annotations

from benchmarks.record import MEASURED, results, source
from seunet.evaluation import markdown_table


def measured() -> str:
    """A large slide in the viewer, and smaller ones beside it."""
    if not (MEASURED / "viewer.json").is_file():
        return "Not measured yet."
    report = results("viewer")
    slides = report["slides"]
    header = ["", *(f"{one['side_px']:,} × {one['side_px']:,} px, {one['objects']:,} objects" for one in slides)]
    rows = [
        ("first view, from the page's opening", *(f"{one['first_view_seconds']:.1f} s" for one in slides)),
        ("… from the command", *(f"{one['from_command_seconds']:.1f} s" for one in slides)),
        ("… processor time, server + page", *(_both(one["first_view_cpu_seconds"]) for one in slides)),
        ("outlines there after", *(f"{one['index_seconds']:.0f} s" for one in slides)),
        ("… processor time", *(f"{one['index_cpu_seconds']:.1f} s" for one in slides)),
        *(
            (f"tile of the {layer}, median (95 %)", *(_tiles(one["tile_ms"][layer]) for one in slides))
            for layer in ("slide", "labels")
        ),
        *(
            (
                f"frames per second (processor time of the page), panning at 1 : {1 / zoom:.2g}",
                *(_frames(one["frames"][place]) for one in slides),
            )
            for place, zoom in enumerate(one["zoom"] for one in slides[0]["frames"])
        ),
        ("memory of the server", *(f"{one['server_mib']} MiB" for one in slides)),
        ("… and of all its processes", *(f"{one['all_processes_mib']} MiB" for one in slides)),
    ]
    text = "Headless Chromium without a graphics card, browser and server on the same cores; the largest memory seen."
    if report["load_average"] > report["machine"]["cores"] + 1:
        waited = f"{report['load_average']:.0f} processes wanted the {report['machine']['cores']} cores meanwhile"
        text += f" Times of the clock are those of a busy machine ({waited}); processor times are not."
    return f"{markdown_table(header, rows)}\n\n{text} {source(report)}"


def _tiles(milliseconds: dict[str, float]) -> str:
    return f"{milliseconds['median']:.0f} ms ({milliseconds['p95']:.0f} ms)"


def _frames(frames: dict[str, float]) -> str:
    return f"{frames['mean']:.0f} ({frames['page_cpu_ms']:.0f} ms each), about {frames['objects_in_view']:,} outlines"


def _both(seconds: dict[str, float]) -> str:
    return f"{seconds['server']:.1f} + {seconds['page']:.1f} s"


BLOCKS = {"docs/view.md": {"measured": measured}}
