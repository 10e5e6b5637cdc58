"""The tables of a reproduction: ours beside the paper's, heads by scale, errors, and where each number comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from seunet.evaluation.equivariance_report import VARIANTS
from seunet.evaluation.figures.curves import main_row, row_of
from seunet.evaluation.page import Table
from seunet.evaluation.reproduce.paper_numbers import PaperNumbers
from seunet.evaluation.reproduce.run import Measured
from seunet.evaluation.scores import BEST_HEAD
from seunet.evaluation.test_scales import scale_label
from seunet.maths.fusion import FUSIONS
from seunet.storage.jsonl import rows as log_rows

SHOWN_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
WAY_NAMES = {
    "blind": "",
    "scaled_filters": ", scaled filters (σ × s)",
    "stated": ", scale stated (as `segment` uses it)",
    "resampled": ", image resampled",
    "estimated": ", scale estimated from the pixels",
    "pyramid": ", image pyramid",
}


def grouped(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    """The seeds of each model together, in the order of the protocol."""
    groups: dict[str, list[Measured]] = {}
    for one in measured:
        groups.setdefault(one.job.entry.name, []).append(one)
    return groups


def spread(values: Iterable[float | None], percent: bool = True) -> str:
    """`58.31 (58.02–58.60)`, or the one number there is."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    shown = [f"{100 * value:.2f}" if percent else f"{value:.3f}" for value in (mean(known), *known)]
    return shown[0] if len(known) == 1 else f"{shown[0]} ({min(shown[1:])}–{max(shown[1:])})"


def row_names(evaluation: dict[str, Any], way: str) -> list[str]:
    """The rows that stand for a way: its fusions, or the only prediction."""
    names = [row["row"] for row in evaluation["scores"] if row["way"] == way]
    return [name for name in names if name in FUSIONS] or names[:1]


def table_of(rows: Sequence[Mapping[str, str]]) -> Table:
    """A table of rows that have the same columns."""
    return Table(list(rows[0]) if rows else [], [list(row.values()) for row in rows])


def systems_table(measured: Sequence[Measured], paper: PaperNumbers) -> Table:
    """A row for each model and fusion: ours, at s = 1, the paper's, and the equivariance error."""
    rows = []
    for name, seeds in grouped(measured).items():
        fusions = row_names(seeds[0].evaluation, "blind")
        for fusion in fusions:
            title = f"{name}, {fusion}" if len(fusions) > 1 else name
            found = [row_of(one.evaluation, "blind", fusion) for one in seeds]
            at_one = seeds[0].evaluation["arguments"]["scales"].index(1.0)
            published = paper.scores.get(title)
            rows.append(
                {
                    "system": title,
                    f"ours, mean {paper.metric}": spread(row["mean"] for row in found),
                    "ours, s = 1": spread(row["ious"][at_one] for row in found),
                    f"paper, mean {paper.metric}": "–" if published is None else f"{published:.2f}",
                    "parameters": f"{seeds[0].evaluation['model']['parameters']:,}",
                    "seeds": str(len(seeds)),
                }
            )
    return table_of(rows)


def ways_table(measured: Sequence[Measured]) -> Table:
    """Every way of predicting, at a few scales and in the mean."""
    lines = []
    for name, seeds in grouped(measured).items():
        for way in seeds[0].evaluation["arguments"]["ways"]:
            for row in (main_row(seeds[0].evaluation, way), BEST_HEAD):
                found = [
                    line
                    for one in seeds
                    for line in one.evaluation["scores"]
                    if line["way"] == way and line["row"] == row
                ]
                if not found or (row == BEST_HEAD and way not in ("blind", "scaled_filters")):
                    continue
                suffix = "" if row == "prediction" else f", {row}"
                scales = seeds[0].evaluation["arguments"]["scales"]
                places = [scales.index(scale) for scale in SHOWN_SCALES if scale in scales]
                cells = [spread(line["ious"][place] for line in found) for place in places]
                shown = spread(_mean([line["ious"][place] for place in places]) for line in found)
                alone = f" (seed {seeds[0].job.seed} alone)" if len(found) < len(seeds) else ""
                label = f"{name}{WAY_NAMES[way]}{suffix}{alone}"
                lines.append([label, *cells, shown, spread(line["mean"] for line in found)])
    header = ["system", *(f"s = {scale_label(scale)}" for scale in SHOWN_SCALES), "mean of these", "mean of all"]
    return Table(header, lines)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if known and len(known) == len(values) else None


def heads_table(evaluation: dict[str, Any]) -> Table:
    """Heads × scales, the best head of each scale in bold."""
    heads = _heads(evaluation)
    best = [max(row["ious"][place] or 0 for row in heads) for place in range(len(heads[0]["ious"]))]
    lines = []
    for row in heads:
        cells = [
            f"**{100 * iou:.1f}**" if iou == best[place] else f"{100 * (iou or 0):.1f}"
            for place, iou in enumerate(row["ious"])
        ]
        lines.append([row["label"], *cells, f"{100 * row['mean']:.1f}"])
    return Table(["test scale", *map(scale_label, evaluation["arguments"]["scales"]), "mean"], lines)


def best_heads(evaluation: dict[str, Any]) -> list[int]:
    """The number of the best head at each scale."""
    heads = _heads(evaluation)
    places = range(len(heads[0]["ious"]))
    return [1 + max(range(len(heads)), key=lambda head: heads[head]["ious"][place] or 0) for place in places]


def _heads(evaluation: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in evaluation["scores"] if row["way"] == "blind" and row["head"]]


def equivariance_table(reports: Mapping[str, Sequence[dict[str, Any]]], paper: PaperNumbers) -> Table:
    """A row for each model: the errors of its seeds by pairs of heads and by form."""
    rows = []
    for name, found in reports.items():
        published = paper.equivariance.get(name)
        # Reports of the first edition have no third form.
        raw, centred, rooted = ([report["mean"].get(variant, {}) for report in found] for variant in VARIANTS)
        rows.append(
            {
                "system": name,
                "σ-matched heads": _errors(raw, "matched"),
                "same head": _errors(raw, "same"),
                "best pair": _errors(raw, "best"),
                "σ-matched, without the mean of each map": _errors(centred, "matched"),
                "σ-matched, not squared": _errors(rooted, "matched"),
                "best pair, not squared": _errors(rooted, "best"),
                "paper": "–" if published is None else f"{published:.2f}",
            }
        )
    return table_of(rows)


def _errors(means: Sequence[dict[str, float]], pairing: str) -> str:
    return spread((mean.get(pairing) for mean in means), percent=False)


def provenance_table(measured: Sequence[Measured]) -> Table:
    """Which weights, which source, and what they cost."""
    rows = []
    for one in measured:
        report = one.evaluation
        trained = sum(_spans(list(log_rows(one.run.clock))))
        rows.append(
            {
                "model": f"{one.job.entry.name}, seed {one.job.seed}",
                "weights": f"`{report['model']['weights_sha256'][:12]}`",
                "data": f"`{report['data']['content_hash'][:12]}`",
                "commit": ", ".join(f"`{commit[:12]}`" for commit in report["commits"] if commit) or "–",
                "training": f"{trained / 60:.0f} min",
                "evaluation": f"{report['clock']['seconds'] / 60:.0f} min",
                "its memory": f"{report['clock']['peak_memory_mib']:.0f} MiB",
            }
        )
    return table_of(rows)


def _spans(events: Sequence[dict[str, Any]]) -> Iterable[float]:
    """Processor seconds of each start of a run, up to the last thing noted in it."""
    latest = 0.0
    for event in events:
        if event["event"] == "started":
            yield latest
            latest = 0.0
        latest = event.get("cpu_seconds", latest)
    yield latest
