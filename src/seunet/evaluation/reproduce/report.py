"""The report of a reproduction: the paper's tables with ours beside them, figures, and where each number comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib.figure import Figure

from seunet.evaluation.equivariance_report import VARIANTS
from seunet.evaluation.figures.curves import Curve, curves_figure, main_row, row_of
from seunet.evaluation.figures.filters import errors_figure
from seunet.evaluation.figures.sigmas import sigmas_figure
from seunet.evaluation.figures.style import COLORS
from seunet.evaluation.figures.training import course, training_curves, training_figure
from seunet.evaluation.page import Block, Heading, Picture, Table, Text
from seunet.evaluation.reproduce.panels import panel_blocks
from seunet.evaluation.reproduce.paper_numbers import PAPER, PaperNumbers
from seunet.evaluation.reproduce.protocol import Protocol, jobs, slug
from seunet.evaluation.reproduce.run import Measured
from seunet.evaluation.reproduce.statistics import statistics_blocks, window_blocks
from seunet.evaluation.scores import BEST_HEAD, metric_name
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


def page(
    protocol: Protocol, measured: Sequence[Measured], figures: Path, statistics: Mapping[str, Any] | None = None
) -> list[Block]:
    """All of it; the pictures belong in `figures`.  Without `statistics` no difference is claimed."""
    paper = PAPER[protocol.paper]
    first = measured[0].evaluation
    return [
        Heading(protocol.title, 1),
        Text(
            f"{metric_name(first)} in percent over {len(first['arguments']['scales'])} test scales from 0.25 to 4, "
            f"{len(first['data']['images'])} images of the {protocol.split} split, {first['data']['windows']} windows "
            f"of {first['data']['window_px']} px; the mean is over the scales. "
            "Weights were chosen on held-out training images. Where a model was trained with several seeds: the mean, "
            "and lowest–highest in brackets."
        ),
        *_still_missing(protocol, measured),
        Heading("The systems (the paper's table 2)"),
        systems_table(measured, paper),
        *([] if statistics is None else statistics_blocks(statistics)),
        *_curves(measured, figures, statistics),
        *_side_by_side(protocol, measured, figures),
        *window_blocks(grouped(measured)),
        Heading("Which head is best at which scale (the paper's table 1)"),
        *(block for one in _of_several_heads(measured) for block in _head_blocks(one)),
        Heading("Blind, with the scale, and strong baselines"),
        Text(
            "A row that names no way is *blind*: the network runs on the pixels as they are. *Scaled filters*: every σ "
            "is multiplied by the scale. *Resampled*: the image is brought back to the training scale before the "
            "network sees it, the ceiling for any network without a notion of scale. *Estimated*: nobody states the "
            "scale; it is estimated from the pixels of each whole image and used as a stated one would be. *Image "
            "pyramid*: five sizes of the image, fused as heads are. *Best head*: the best single head at each scale, "
            "chosen by an oracle."
        ),
        ways_table(measured),
        *_equivariance(measured, paper, figures),
        *_sigma_figures(measured, figures),
        Heading("Training"),
        *_training(measured, figures),
        Heading("Where the numbers come from"),
        provenance_table(measured),
    ]


def _still_missing(protocol: Protocol, measured: Sequence[Measured]) -> list[Block]:
    there = {one.job.folder_name for one in measured}
    names = [f"{job.entry.name} (seed {job.seed})" for job in jobs(protocol) if job.folder_name not in there]
    if not names:
        return []
    return [
        Text(
            f"**Not complete.** {len(names)} of {len(names) + len(there)} are still to be measured: {', '.join(names)}."
        )
    ]


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


def systems_table(measured: Sequence[Measured], paper: PaperNumbers) -> Table:
    """A row for each model and fusion: ours, at s = 1, the paper's, and the equivariance error."""
    lines = []
    for name, seeds in grouped(measured).items():
        fusions = row_names(seeds[0].evaluation, "blind")
        for fusion in fusions:
            title = f"{name}, {fusion}" if len(fusions) > 1 else name
            found = [row_of(one.evaluation, "blind", fusion) for one in seeds]
            at_one = seeds[0].evaluation["arguments"]["scales"].index(1.0)
            published = paper.scores.get(title)
            lines.append(
                [
                    title,
                    spread(row["mean"] for row in found),
                    spread(row["ious"][at_one] for row in found),
                    "–" if published is None else f"{published:.2f}",
                    f"{seeds[0].evaluation['model']['parameters']:,}",
                    str(len(seeds)),
                ]
            )
    header = [
        "system",
        f"ours, mean {paper.metric}",
        "ours, s = 1",
        f"paper, mean {paper.metric}",
        "parameters",
        "seeds",
    ]
    return Table(header, lines)


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
                label = f"{name}{WAY_NAMES[way]}{suffix}"
                lines.append([label, *cells, shown, spread(line["mean"] for line in found)])
    header = ["system", *(f"s = {scale_label(scale)}" for scale in SHOWN_SCALES), "mean of these", "mean of all"]
    return Table(header, lines)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if known and len(known) == len(values) else None


def heads_table(evaluation: dict[str, Any]) -> Table:
    """Heads × scales, the best head of each scale in bold."""
    heads = [row for row in evaluation["scores"] if row["way"] == "blind" and row["head"]]
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
    heads = [row for row in evaluation["scores"] if row["way"] == "blind" and row["head"]]
    places = range(len(heads[0]["ious"]))
    return [1 + max(range(len(heads)), key=lambda head: heads[head]["ious"][place] or 0) for place in places]


def _of_several_heads(measured: Sequence[Measured]) -> list[Measured]:
    return [one for one in measured if one.evaluation["model"]["heads"] > 1]


def _head_blocks(one: Measured) -> list[Block]:
    numbers = ", ".join(map(str, best_heads(one.evaluation)))
    title = f"**{one.job.entry.name}, seed {one.job.seed}.** The best head from the smallest scale to the largest: "
    return [Text(f"{title}{numbers}."), heads_table(one.evaluation)]


def _curves(measured: Sequence[Measured], figures: Path, statistics: Mapping[str, Any] | None) -> list[Block]:
    """All systems as trained; then each way of predicting of the models that have several."""
    firsts = [seeds[0] for seeds in grouped(measured).values()]
    metric = metric_name(firsts[0].evaluation)
    systems = {} if statistics is None else statistics["systems"]
    alone = [
        _over_seeds(_curve(one, "blind", place), systems.get(one.job.entry.name)) for place, one in enumerate(firsts)
    ]
    caption = "Every system as it was trained, blind to the scale"
    blocks: list[Block] = [
        Picture(
            figures / "curves.png",
            f"{caption}; shaded: the intervals of the means over images and seeds." if systems else f"{caption}.",
            partial(curves_figure, alone, metric, "Blind to the scale"),
        )
    ]
    pairs = [(one, way) for one in firsts for way in one.evaluation["arguments"]["ways"] if len(one.job.ways) > 1]
    if pairs:
        lines = [_curve(one, way, place) for place, (one, way) in enumerate(pairs)]
        draw = partial(curves_figure, lines, metric, "Blind and with the scale")
        blocks.append(Picture(figures / "ways.png", "What knowing the scale is worth, and to whom.", draw))
    return blocks


def _curve(one: Measured, way: str, place: int) -> Curve:
    found = row_of(one.evaluation, way, main_row(one.evaluation, way))
    style = "-" if way == "blind" else "--"
    color = COLORS[place % len(COLORS)]
    scales = one.evaluation["arguments"]["scales"]
    known = [(scale, iou) for scale, iou in zip(scales, found["ious"], strict=True) if iou is not None]
    fewer = "" if len(known) == len(scales) else f" (at {len(known)} scales)"
    label = f"{one.job.entry.name}{WAY_NAMES[way]}{fewer}"
    return Curve(label, [scale for scale, _ in known], [iou for _, iou in known], color, 2.2, style)


def _over_seeds(curve: Curve, system: Mapping[str, Any] | None) -> Curve:
    """The mean over the seeds with its interval, where statistics have it."""
    if system is None:
        return curve
    points = system["by_scale"]
    band = [(point["low"], point["high"]) for point in points]
    return curve._replace(ious=[point["value"] for point in points], band=band)


def _side_by_side(protocol: Protocol, measured: Sequence[Measured], figures: Path) -> list[Block]:
    folders = {name: seeds[0].folder for name, seeds in grouped(measured).items()}
    return panel_blocks(protocol, folders, figures)


def _equivariance(measured: Sequence[Measured], paper: PaperNumbers, figures: Path) -> list[Block]:
    lines, pictures = [], []
    for name, seeds in grouped(measured).items():
        reports = [one.equivariance for one in seeds if one.equivariance is not None]
        if not reports:
            continue
        published = paper.equivariance.get(name)
        # Reports of the first edition have no third form.
        raw, centred, rooted = ([report["mean"].get(variant, {}) for report in reports] for variant in VARIANTS)
        lines.append(
            [
                name,
                spread((mean["matched"] for mean in raw), percent=False),
                spread((mean["same"] for mean in raw), percent=False),
                spread((mean["best"] for mean in raw), percent=False),
                spread((mean["matched"] for mean in centred), percent=False),
                spread((mean.get("matched") for mean in rooted), percent=False),
                spread((mean.get("best") for mean in rooted), percent=False),
                "–" if published is None else f"{published:.2f}",
            ]
        )
        if reports[0]["model"]["heads"] > 1:
            path = figures / f"equivariance-{slug(name)}.png"
            caption = f"{name}: error between every two heads at several scales (Appendix C)."
            pictures.append(Picture(path, caption, partial(errors_figure, reports[0], VARIANTS[0])))
    header = [
        "system",
        "σ-matched heads",
        "same head",
        "best pair",
        "σ-matched, without the mean of each map",
        "σ-matched, not squared",
        "best pair, not squared",
        "paper",
    ]
    text = (
        "Error ratio of the logits of the last layer, mean over the 16 scales other than 1: squared as in the paper's "
        "eq. 10 unless a column says otherwise. Which of the two forms the paper's column has is not known: code that "
        "its authors published later computes the ratio without the square, over the best pair of heads."
    )
    return [Heading("Equivariance error"), Text(text), Table(header, lines), *pictures] if lines else []


def _sigma_figures(measured: Sequence[Measured], figures: Path) -> list[Block]:
    blocks: list[Block] = []
    for name, seeds in grouped(measured).items():
        sigma = seeds[0].evaluation["sigma"]
        if sigma is not None:
            path = figures / f"sigmas-{slug(name)}.png"
            caption = f"σ of every layer of {name}, with its bounds (the paper's figure 3)."
            blocks.append(Picture(path, caption, partial(sigmas_figure, sigma, f"σ of {name}")))
    return [Heading("σ"), *blocks] if blocks else []


def _training(measured: Sequence[Measured], figures: Path) -> list[Block]:
    firsts = {name: seeds[0] for name, seeds in grouped(measured).items()}
    draw = partial(training_curves, {name: one.run.log for name, one in firsts.items()})
    blocks: list[Block] = [Picture(figures / "training.png", "Loss and IoU on the held-out images.", draw)]
    for name, one in firsts.items():
        if one.evaluation["sigma"] is not None:
            path = figures / f"weights-{slug(name)}.png"
            caption = f"{name}: the weights of the heads in the loss, and σ, over time."
            blocks.append(Picture(path, caption, partial(_training_picture, one)))
    return blocks


def _training_picture(one: Measured) -> Figure:
    return training_figure(course(log_rows(one.run.log), str(one.run.log)), one.job.entry.name)


def provenance_table(measured: Sequence[Measured]) -> Table:
    """Which weights, which source, and what they cost."""
    lines = []
    for one in measured:
        last = list(log_rows(one.run.clock))
        trained = sum(_spans(last))
        report = one.evaluation
        commits = ", ".join(f"`{commit[:12]}`" for commit in report["commits"] if commit) or "–"
        lines.append(
            [
                f"{one.job.entry.name}, seed {one.job.seed}",
                f"`{report['model']['weights_sha256'][:12]}`",
                f"`{report['data']['content_hash'][:12]}`",
                commits,
                f"{trained / 60:.0f} min",
                f"{report['clock']['seconds'] / 60:.0f} min",
                f"{report['clock']['peak_memory_mib']:.0f} MiB",
            ]
        )
    return Table(["model", "weights", "data", "commit", "training", "evaluation", "its memory"], lines)


def _spans(events: Sequence[dict[str, Any]]) -> Iterable[float]:
    """Processor seconds of each start of a run, up to the last thing noted in it."""
    latest = 0.0
    for event in events:
        if event["event"] == "started":
            yield latest
            latest = 0.0
        latest = event.get("cpu_seconds", latest)
    yield latest
