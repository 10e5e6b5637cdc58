"""Counts and areas by class: one table per slide, and one row per slide for a cohort."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from seunet.results.find_objects import Tally
from seunet.results.frame import NOT_ANALYSED, Frame
from seunet.storage.atomic import write_text

COLUMNS: Final = ("kind", "name", "objects", "area_px", "area_um2", "share_of_analysed")


def counts_rows(tally: Tally, frame: Frame, skipped_px: int = 0) -> list[dict[str, str]]:
    """A row for each class, then the areas: analysed, skipped as background, not analysed, and all.

    Areas in px are those of the slide's full resolution.  `skipped_px` are the working pixels that the tissue mask
    left out; in the plane they have the background's code, and they are taken from its area here.
    """
    pixels = [int(tally.pixels[code]) for code in range(len(frame.class_names))]
    if frame.background is not None:
        pixels[frame.background] -= skipped_px
    analysed, missing = sum(pixels), int(tally.pixels[NOT_ANALYSED])
    rows = []
    for code, name in enumerate(frame.class_names):
        objects = "" if code == frame.background else str(int(tally.objects[code]))
        share = short(pixels[code] / analysed, 6) if analysed else ""
        rows.append(_row("class", name, objects, pixels[code], share, frame))
    areas = {
        "analysed": analysed,
        "skipped as background": skipped_px,
        "not analysed": missing,
        "all": analysed + skipped_px + missing,
    }
    return rows + [_row("area", name, "", area, "", frame) for name, area in areas.items()]


def write_counts(path: Path, tally: Tally, frame: Frame, skipped_px: int = 0) -> None:
    """counts.csv of a slide."""
    write_text(path, _text(COLUMNS, counts_rows(tally, frame, skipped_px)))


def summary_row(name: str, tally: Tally, frame: Frame, skipped_px: int = 0) -> dict[str, str]:
    """One slide in one row: its name, mpp of the full resolution, areas, and counts and areas by class."""
    mpp = "" if frame.mpp is None else short(frame.mpp / frame.scale_to_level0, 6)
    summary = {"name": name, "mpp": mpp}
    classes = []
    for row in counts_rows(tally, frame, skipped_px):
        label = row["name"].replace(" ", "_")
        if row["kind"] == "area":
            summary |= {f"{label}_px": row["area_px"], f"{label}_um2": row["area_um2"]}
        else:
            classes.append((label, row))
    for label, row in classes:
        if row["objects"]:
            summary[f"{label}:objects"] = row["objects"]
        summary |= {
            f"{label}:area_px": row["area_px"],
            f"{label}:area_um2": row["area_um2"],
            f"{label}:share_of_analysed": row["share_of_analysed"],
        }
    return summary


def write_summary(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """summary.csv of a cohort, sorted by name, what has none last; a column for everything that any row has."""
    ordered = sorted(rows, key=lambda row: (not row["name"], row["name"]))
    columns = dict.fromkeys(column for row in ordered for column in row)
    first, last = ([name for name in names if name in columns] for names in (("name", "status"), ("error",)))
    between = [name for name in columns if name not in {*first, *last}]
    write_text(path, _text((*first, *between, *last), ordered))


def _row(kind: str, name: str, objects: str, pixels: int, share: str, frame: Frame) -> dict[str, str]:
    area_um2 = frame.area_um2(pixels)
    in_um2 = "" if area_um2 is None else short(area_um2, 2)
    values = (kind, name, objects, short(frame.area_level0(pixels), 2), in_um2, share)
    return dict(zip(COLUMNS, values, strict=True))


def _text(columns: Iterable[str], rows: Iterable[Mapping[str, str]]) -> str:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def short(value: float, decimals: int) -> str:
    """Rounded to so many decimals (one or more) and written with as few digits as that needs.

    >>> short(20.6875, 2), short(331.0, 2), short(0.5, 3), short(-0.001, 2)
    ('20.69', '331', '0.5', '0')
    """
    return f"{value:z.{decimals}f}".rstrip("0").rstrip(".")
