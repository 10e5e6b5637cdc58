"""The table of docs/view.md."""

from __future__ import annotations

from benchmarks.record import MEASURED, results, source
from seunet.evaluation import markdown_table


def measured() -> str:
    """A large slide in the viewer, and a smaller one beside it."""
    if not (MEASURED / "viewer.json").is_file():
        return "Not measured yet."
    report = results("viewer")
    slides = report["slides"]
    header = ["", *(f"{one['side_px']:,} × {one['side_px']:,} px, {one['objects']:,} objects" for one in slides)]
    rows = [
        ("first view", *(f"{one['first_view_seconds']:.1f} s" for one in slides)),
        ("outlines there after", *(f"{one['index_seconds']:.0f} s" for one in slides)),
        *(
            (f"tile of the {layer}, median (95 %)", *(_tiles(one["tile_ms"][layer]) for one in slides))
            for layer in ("slide", "labels")
        ),
        *(
            (
                f"frames per second, panning at 1 : {1 / slides[0]['frames'][place]['zoom']:.2g}",
                *(_frames(one["frames"][place]) for one in slides),
            )
            for place in range(len(slides[0]["frames"]))
        ),
        ("memory of the server", *(f"{one['server_mib']} MiB" for one in slides)),
        ("… and of all its processes", *(f"{one['all_processes_mib']} MiB" for one in slides)),
    ]
    text = "Headless Chromium without a graphics card, browser and server on the same cores; the largest memory seen."
    if report.get("load_average", 0) > 2 * report["machine"]["cores"]:
        waited = f"{report['load_average']:.0f} processes wanted the {report['machine']['cores']} cores meanwhile"
        text += f" **Times are those of a busy machine ({waited}); measure again on a quiet one.**"
    return f"{markdown_table(header, rows)}\n\n{text} {source(report)}"


def _tiles(milliseconds: dict[str, float]) -> str:
    return f"{milliseconds['median']:.0f} ms ({milliseconds['p95']:.0f} ms)"


def _frames(frames: dict[str, float]) -> str:
    return f"{frames['mean']:.0f}, about {frames['objects_in_view']:,} outlines in view"


BLOCKS = {"docs/view.md": {"measured": measured}}
