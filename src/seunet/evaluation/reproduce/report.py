"""The report of a reproduction: the paper's tables with ours beside them, figures, and where each number comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from seunet.evaluation.equivariance_report import VARIANTS
from seunet.evaluation.figures.curves import Curve, curves_figure, main_row, row_of
from seunet.evaluation.figures.filters import errors_figure
from seunet.evaluation.figures.sigmas import sigmas_figure
from seunet.evaluation.figures.style import COLORS
from seunet.evaluation.figures.training import course, training_curves, training_figure
from seunet.evaluation.page import Block, Heading, Picture, Text
from seunet.evaluation.reproduce.panels import panel_blocks
from seunet.evaluation.reproduce.paper_numbers import PAPER, PaperNumbers
from seunet.evaluation.reproduce.protocol import Protocol, jobs, slug
from seunet.evaluation.reproduce.run import Measured
from seunet.evaluation.reproduce.statistics import statistics_blocks, window_blocks
from seunet.evaluation.reproduce.tables import (
    WAY_NAMES,
    best_heads,
    equivariance_table,
    grouped,
    heads_table,
    provenance_table,
    systems_table,
    ways_table,
)
from seunet.evaluation.scores import metric_name
from seunet.storage.jsonl import rows as log_rows


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
        *panel_blocks(protocol, {name: seeds[0].folder for name, seeds in grouped(measured).items()}, figures),
        *window_blocks(grouped(measured)),
        Heading("Which head is best at which scale (the paper's table 1)"),
        *_head_blocks(measured),
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


def _head_blocks(measured: Sequence[Measured]) -> Iterator[Block]:
    for one in measured:
        if one.evaluation["model"]["heads"] > 1:
            numbers = ", ".join(map(str, best_heads(one.evaluation)))
            name = f"**{one.job.entry.name}, seed {one.job.seed}.**"
            yield Text(f"{name} The best head from the smallest scale to the largest: {numbers}.")
            yield heads_table(one.evaluation)


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
        blocks.append(
            Picture(figures / "ways.png", "What knowing the scale is worth, and to whom: the first seed of each.", draw)
        )
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


def _equivariance(measured: Sequence[Measured], paper: PaperNumbers, figures: Path) -> list[Block]:
    reports = {
        name: found
        for name, seeds in grouped(measured).items()
        if (found := [one.equivariance for one in seeds if one.equivariance is not None])
    }
    pictures = [
        Picture(
            figures / f"equivariance-{slug(name)}.png",
            f"{name}: error between every two heads at several scales (Appendix C).",
            partial(errors_figure, found[0], VARIANTS[0]),
        )
        for name, found in reports.items()
        if found[0]["model"]["heads"] > 1
    ]
    text = (
        "Error ratio of the logits of the last layer, mean over the 16 scales other than 1: squared as in the paper's "
        "eq. 10 unless a column says otherwise. Which of the two forms the paper's column has is not known: code that "
        "its authors published later computes the ratio without the square, over the best pair of heads."
    )
    table = equivariance_table(reports, paper)
    return [Heading("Equivariance error"), Text(text), table, *pictures] if reports else []


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
