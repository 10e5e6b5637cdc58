"""The tables of the model card of `nuclei`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from benchmarks.docs.told import HOWS
from benchmarks.measure.model.nuclei import KEPT, SHIPPED, STAGES, ious, kept
from benchmarks.measure.model.training_runs import facts
from benchmarks.record import RESULTS, ROOT, results, short, source
from seunet.evaluation import TEST_SCALES, markdown_table, read_report, scale_label
from seunet.models import SEUNet, load

MATCHED = "matched head"

ROWS = {
    "blind, P_Ens": ("blind", "p_ens"),
    "blind, P_Dist": ("blind", "p_dist"),
    "blind, mean of heads": ("blind", "mean"),
    "scaled filters (σ × s), P_Ens": ("scaled_filters", "p_ens"),
    "scaled filters (σ × s), matched head": ("scaled_filters", MATCHED),
    "resampled, P_Ens": ("resampled", "p_ens"),
    "resampled, matched head": ("resampled", MATCHED),
    "stated, P_Ens": ("stated", "p_ens"),
    "stated, calibrated": ("stated", "calibrated"),
    "**stated, matched head (as `segment` does)**": ("stated", MATCHED),
    "estimated, P_Ens": ("estimated", "p_ens"),
    "estimated, calibrated": ("estimated", "calibrated"),
    "**estimated, matched head (as `segment` does)**": ("estimated", MATCHED),
    "blind, the best head at each scale (an oracle)": ("blind", "best head (oracle)"),
}


def scale_table(report_name: str) -> str:
    """IoU at every test scale, in every way of predicting that the report has."""
    report = kept(report_name)
    rows = []
    card = load(SHIPPED).card
    matched = "" if card is None else f"head {card.matched_head}"
    for title, (way, name) in ROWS.items():
        row = matched if name == MATCHED else name
        if any((line["way"], line["row"]) == (way, row) for line in report["scores"]):
            found = ious(report, way, row)
            mean = sum(found.values()) / len(found)
            rows.append([title, *(f"{100 * iou:.1f}" for iou in found.values()), f"**{100 * mean:.2f}**"])
    header = ["IoU, % at s =", *(scale_label(scale) for scale in report["arguments"]["scales"]), "mean"]
    commits = ", ".join(short(commit) for commit in report["commits"] if commit)
    clock = report["clock"]
    cost = f"{clock['seconds'] / 60:.0f} min, {clock['peak_memory_mib']:,.0f} MiB"
    data = report["data"]
    windows = f"{len(data['images'])} images, {data['windows']} windows of {data['window_px']} px"
    return f"{markdown_table(header, rows)}\n\n{windows}; {cost} at commit {commits}."


TRIALS = RESULTS / "trials"
STAGE_REPORTS = {
    "first stage": STAGES[0] / "held-out.json",
    "then 760 steps, 3 of 10 windows foreign, to be right": TRIALS / "nuclei-foreign-share" / "held-out.json",
    "then 304 steps, 4 of 10 foreign, to be unsure": TRIALS / "nuclei-unsure" / "held-out.json",
    "then 760 steps, 1 of 4 foreign, to be unsure": TRIALS / "nuclei-unsure-760" / "held-out.json",
    "**then 1,900 steps, 1 of 4 foreign, to be unsure: `nuclei`**": KEPT / "held-out.json",
}
STAGE_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
STAGE_ROWS = {"P_Dist": ("blind", "p_dist"), "P_Ens": ("blind", "p_ens"), "head 2, resampled": ("resampled", "head 2")}


TEST_REPORTS = {"first stage": STAGES[0] / "test.json", "both stages": KEPT / "test.json"}
TEST_ROWS = {
    "blind, P_Dist": ("blind", "p_dist"),
    "blind, P_Ens": ("blind", "p_ens"),
    "scale estimated, head 2": ("estimated", "head 2"),
    "scale stated, head 2": ("stated", "head 2"),
}


def stage_table(reports: dict[str, Path], chosen: dict[str, tuple[str, str]], images: str) -> str:
    """What second stages gain blind, and what the head that fits the images pays for it."""
    rows = []
    for title, path in reports.items():
        report = read_report(path, "evaluation")
        for number, (name, (way, row)) in enumerate(chosen.items()):
            found = ious(report, way, row)
            values = [f"{100 * found[scale]:.1f}" if scale in found else "–" for scale in STAGE_SCALES]
            whole = f"{100 * fmean(found.values()):.2f}" if len(found) == len(TEST_SCALES) else "–"
            rows.append(["" if number else title, name, *values, whole])
    header = [f"IoU, %, {images} images, at s =", "", *map(scale_label, STAGE_SCALES), f"mean of {len(TEST_SCALES)}"]
    return markdown_table(header, rows)


def whole_images() -> str:
    report = results("geojson_scores")
    return (
        f"The {report['images']} whole images at s = 1, P_Ens, blind: "
        f"**{100 * report['iou_of_evaluate']['whole']:.2f}**. {source(report)}"
    )


def model_facts() -> str:
    """What the card in config.json and the log of the run say."""
    model, stages = load(SHIPPED), [facts(stage) for stage in STAGES]
    card = model.card
    assert card is not None
    assert card.matched_head is not None
    ended = stages[-1]["last"]["validation"]
    steps = " + ".join(f"{stage['steps']:,}" for stage in stages)
    minutes = " + ".join(f"{stage['cpu_seconds'] / 60:.0f}" for stage in stages)
    rows = [
        ("classes", ", ".join(card.class_names)),
        ("µm per pixel it learnt at", f"{card.mpp:g}"),
        ("parameters", f"{sum(parameter.numel() for parameter in model.parameters()):,}"),
        ("trained on", card.trained_on),
        ("licence of the data", card.licence),
        ("steps of the two stages, processor time", f"{steps}, {minutes} min"),
        (
            "IoU on the held-out windows",
            f"{ended['heads'][card.matched_head - 1]:.4f} by head {card.matched_head}, {ended['p_ens']:.4f} by P_Ens",
        ),
        ("head that is enough where the scale is known", card.matched_head),
        ("fusion where it is not", HOWS[card.blind_fusion]),
        (
            "filters are scaled for s from … to …",
            f"{card.scaled_filters_range[0]:.3g} to {card.scaled_filters_range[1]:.3g}",
        ),
        ("sha256 of the weights", f"`{kept('held-out')['model']['weights_sha256']}`"),
    ]
    return markdown_table(["", ""], rows)


def sigma_table() -> str:
    model = load(SHIPPED)
    assert isinstance(model, SEUNet)
    sigmas = model.sigmas().tolist()
    rows = [[number, *(f"{value:.3f}" for value in row)] for number, row in enumerate(sigmas, start=1)]
    return markdown_table(["layer", *(f"head {head}" for head in range(1, model.heads + 1))], rows)


def evaluation_speed() -> str:
    """What one command takes."""
    report = kept("evaluation-speed")
    clock, data, scales = report["clock"], report["data"], len(report["arguments"]["scales"])
    size = f"{len(data['images'])} test images, {data['windows']} windows of {data['window_px']} px, {scales} scales"
    commits = ", ".join(short(commit) for commit in report["commits"] if commit)
    time = f"{clock['seconds'] / 60:.0f} min on {clock['machine']['threads']} thread"
    return (
        f"`seunet evaluate nuclei prepared/monuseg -o out --tiles 500,500,4` ({size}, all heads and fusions) takes "
        f"{time} and {clock['peak_memory_mib']:,.0f} MiB, at commit {commits}."
    )


CARD = (SHIPPED / "README.md").relative_to(ROOT).as_posix()
Blocks = dict[str, Callable[[], str]]


def card_blocks() -> Blocks:
    tables: Blocks = {"facts": model_facts, "held-out": lambda: scale_table("held-out"), "sigmas": sigma_table}
    tested: Blocks = {"test": lambda: scale_table("test"), "whole": whole_images}
    return tables | (tested if (KEPT / "test.json").is_file() else {})


BLOCKS: dict[str, Blocks] = {CARD: card_blocks()} if (SHIPPED / "config.json").is_file() else {}
BLOCKS["docs/decisions/0031-each-head-at-its-own-magnification.md"] = {
    "stages": lambda: stage_table(STAGE_REPORTS, STAGE_ROWS, "held-out"),
    "stages-test": lambda: stage_table(TEST_REPORTS, TEST_ROWS, "test"),
}
if (KEPT / "evaluation-speed.json").is_file():
    BLOCKS["docs/evaluate.md"] = {"cost": evaluation_speed}
