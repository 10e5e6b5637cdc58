"""The names of the ways of predicting (docs/glossary.md), and those that older reports and protocols have for them."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

WayName = Literal["blind", "scaled_filters", "stated", "resampled", "estimated", "pyramid"]

WAYS: Final = get_args(WayName)

OLD_NAMES: Final = {"told": "scaled_filters", "known": "stated", "oracle": "resampled"}


def way_label(way: str) -> str:
    """What the rows of a way begin with in a table."""
    return "" if way == "blind" else f"{way.replace('_', ' ')}, "


def way_name(name: Any) -> Any:
    """Today's name of a way; what is no name of one is left to whoever checks it."""
    return OLD_NAMES.get(name, name) if isinstance(name, str) else name


def with_new_names(report: dict[str, Any]) -> dict[str, Any]:
    """An evaluation, finished or not, as it would be written today."""
    arguments = report.get("arguments")
    ways = arguments.get("ways") if isinstance(arguments, dict) else None
    if not isinstance(ways, list) or not any(old in ways for old in OLD_NAMES):
        return report
    found = report | {"arguments": {**report["arguments"], "ways": [way_name(way) for way in ways]}}
    if "way_scales" in report["arguments"]:
        found["arguments"]["way_scales"] = scales_by_way(report["arguments"]["way_scales"])
    found["results"] = [row | {"way": way_name(row["way"])} for row in report["results"]]
    if "scores" in report:
        named = [row | {"way": way_name(row["way"])} for row in report["scores"]]
        found["scores"] = [row | {"label": f"{way_label(row['way'])}{row['row']}"} for row in named]
    parts = report["clock"]["seconds_by_part"].items()
    renamed = {" ".join([way_name(part.split()[0]), *part.split()[1:]]): seconds for part, seconds in parts}
    return found | {"clock": {**report["clock"], "seconds_by_part": renamed}}


def scales_by_way(way_scales: dict[str, Any]) -> dict[str, Any]:
    """Scales by today's names of the ways."""
    return {way_name(way): scales for way, scales in way_scales.items()}
