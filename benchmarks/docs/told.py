"""The tables of docs/results/told-or-not.md, and what docs/scale.md says of conflicts, coverage and cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.measure.model.nuclei import STAGES as NUCLEI_STAGES
from benchmarks.measure.model.training_runs import KEPT, facts
from benchmarks.measure.segmentation.told_or_not import UNET_RUN
from benchmarks.record import MEASURED, results, short, source
from seunet.evaluation import markdown_table, scale_label, way_name

UNET_FIRST_RUN = KEPT / "unet"
WAYS = {"blind": "blind", "estimated": "scale estimated", "stated": "scale stated"}
HOWS = {"p_ens": "P_Ens", "p_dist": "P_Dist", "mean": "mean of heads", "prediction": ""}


def told_or_not(split: str) -> str:
    """IoU at every scale, and the mean; who is ahead in words."""
    if not (MEASURED / "told_or_not.json").is_file() or split not in results("told_or_not")["splits"]:
        return "Not measured yet."
    report = results("told_or_not")
    found = report["splits"][split]
    rows = []
    for name in found["models"]:
        for way, title in WAYS.items():
            for row in found["rows"]:
                if (row["model"], way_name(row["way"])) == (name, way):
                    how = HOWS.get(row["how"], row["how"])
                    ious = [f"{100 * iou:.1f}" for iou in row["ious"]]
                    rows.append([f"{name}, {title}{', ' if how else ''}{how}", *ious, f"**{100 * row['mean']:.2f}**"])
    header = ["IoU, % at s =", *(scale_label(scale) for scale in found["scales"]), "mean"]
    windows = f"{len(found['images'])} images, {found['windows']} windows of {found['window_px']} px"
    weights = ", ".join(
        f"{name} `{facts['weights_sha256'][:12]}` ({facts['parameters']:,} parameters)"
        for name, facts in found["models"].items()
    )
    off = found["estimates"]["SEUNet"]
    answers = f"{off['answered']} of {off['asked']} have an estimate"
    estimate = f"{answers}, off by × {off['median_factor']:.2f} in the median"
    made = f"`{report['again']}` (measured at commit {short(found['commit'])})."
    return f"{markdown_table(header, rows)}\n\n{_verdict(found)}\n\n{windows}; {estimate}. Weights: {weights}. {made}"


def trainings() -> str:
    """What each of the two models of the test table was trained for."""
    header = ["", "steps", "windows of 192 px", "processor time"]
    stages = {"SEUNet": NUCLEI_STAGES, "UNet": (UNET_FIRST_RUN, UNET_RUN)}
    rows = []
    for name, runs in stages.items():
        found = [facts(run) for run in runs]
        windows = sum(run["steps"] * run["config"]["recipe"]["batch"] for run in found)
        steps = " + ".join(f"{run['steps']:,}" for run in found)
        minutes = [run["cpu_seconds"] / 60 for run in found]
        time = f"{' + '.join(f'{each:.0f}' for each in minutes)} = {sum(minutes):.0f} min"
        rows.append([name, steps, f"{windows:,}", time])
    return markdown_table(header, rows)


def _verdict(found: dict[str, Any]) -> str:
    ours = {way: 100 * as_segment_uses_it(found, "SEUNet", way)["mean"] for way in WAYS}
    text = (
        f"SEUNet as `segment` uses it ({HOWS[found['blind_fusion']]} where blind, else the matched head): "
        "estimated is "
        f"{_points(ours['estimated'] - ours['stated'])} stated, and "
        f"{_points(ours['estimated'] - ours['blind'])} blind."
    )
    if "UNet" in found["models"]:
        theirs = {way: 100 * as_segment_uses_it(found, "UNet", way)["mean"] for way in WAYS}
        text += (
            f" The UNet with the estimated scale is {_points(theirs['estimated'] - theirs['blind'])} itself blind "
            f"and {_points(theirs['estimated'] - ours['estimated'])} the SEUNet with the estimated scale; with the "
            f"scale stated it is {_points(theirs['stated'] - ours['estimated'])} the SEUNet that had to estimate it."
        )
    return text


def _points(difference: float) -> str:
    return f"{abs(difference):.2f} points {'above' if difference > 0 else 'below'}"


def conflict() -> str:
    report = results("scale_conflict")
    rows = [row for row in report["nominal"] if row["flagged"]]
    text = markdown_table(
        [f"stated {report['stated_mpp']:g} µm per pixel", "from the pixels", "90 % interval", ""],
        [(f"`{row['image']}`", f"{row['mpp']:.2f}", f"{row['low']:.2f}–{row['high']:.2f}", "flagged") for row in rows],
    )
    others = [row for row in report["nominal"] if not row["flagged"]]
    right, wrong = report["right"], report["wrong"]
    shares = ", ".join(f"× {factor}: {row['flagged']} of {row['asked']}" for factor, row in wrong.items())
    return (
        f"{text}\n\nOf the other {len(others)} training images none is flagged as it is. Shown at nine scales with the "
        f"right value, {right['flagged']} of {right['asked']} are ({', '.join(right['which']) or 'none'}); with a "
        f"value that is wrong by {shares}. {right['no_answer']} have no answer.\n\n{source(report)}"
    )


def coverage() -> str:
    report = results("scale_conflict")
    rows = [
        (
            f"{group}, {what}",
            *(f"{100 * row[share]:.1f} %" for share in ("covered", "covered_near", "covered_far")),
            f"{row['interval_score']:.2f}",
        )
        for group, by_kind in report["coverage"].items()
        for what, row in by_kind.items()
    ]
    header = ["left out, factor by, of", "covered", "the nearer 60 %", "the farther 40 %", "interval score"]
    missed = sorted(report["whole_images_missed_by_organ"].items(), key=lambda item: -item[1])
    misses = f"Whole images missed by organ left out: {', '.join(f'{organ} {count}' for organ, count in missed)}."
    return f"{markdown_table(header, rows)}\n\n{misses} {_pooled(report)} {source(report)}"


def promises() -> str:
    """Promised and kept, at several levels."""
    report = results("scale_calibration")
    images = report["test_images"]
    header = ["interval promises", f"covers, {images} test images", "with limits of left-out patients"]
    header += ["covers, training images, organ left out", f"one standard error of {images} images"]
    shares = ("test_limits_of_organs", "test_limits_of_patients", "training_organs_left_out")
    rows = [
        (
            f"{100 * row['level']:.0f} %",
            *(f"{100 * row[name]:.1f} %" for name in shares),
            f"± {100 * (row['level'] * (1 - row['level']) / images) ** 0.5:.0f} %",
        )
        for row in report["rows"]
    ]
    return f"{markdown_table(header, rows)}\n\n{source(report)}"


def _pooled(report: dict[str, Any]) -> str:
    """Training images that were left out and the test images together: more draws than either."""
    left_out = report["coverage"]["organs, by distance"]["whole images"]["covered"]
    asked = report["right"]["asked"] - report["right"]["no_answer"]
    test = results("scale_estimate")["plain"]
    both = (left_out * asked + test["covered"] * test["count"]) / (asked + test["count"])
    return (
        f"Whole training images by organs left out ({asked} samples) and the test images ({test['count']}) together: "
        f"**{100 * both:.1f} %**."
    )


def cost() -> str:
    report = results("scale_cost")
    rows = [
        (
            f"`{row['file']}`",
            " × ".join(f"{side:,}" for side in row["size_px"]),
            f"{row['seconds']:.1f} s",
            f"{row['seconds_of_estimate']:.2f} s",
            f"{100 * row['share']:.1f} %",
        )
        for row in report["segment"]
    ]
    memory = "; ".join(
        f"{int(side):,} × {int(side):,} px: {row['added_mib']} MiB" for side, row in report["memory"].items()
    )
    text = markdown_table(["`seunet segment`", "pixels", "in all", "asking the pixels", "share"], rows)
    return f"{text}\n\nMemory that the estimate adds to a process, slides of {memory}. {source(report)}"


def calibration() -> str:
    report = results("calibrate_heads")
    found = report["iou_left_out"]
    names = list(found["blind"])
    rows = [(WAYS[way_name(way)], *(f"{100 * row[name]:.1f}" for name in names)) for way, row in found.items()]
    text = markdown_table([f"IoU, %, mean over {len(report['scales'])} scales", *names], rows)
    images = len(report["images"])
    return (
        f"{text}\n\n{images} held-out training images, sampled pixels; `calibrated` is learnt from the images other "
        f"than the one it is measured on. Weights `{report['weights_sha256'][:12]}`. {source(report)}"
    )


def as_segment_uses_it(found: dict[str, Any], name: str, way: str) -> dict[str, Any]:
    """The row of a model and way that `seunet segment` computes: one head where the scale is known, else a fusion."""
    rows: dict[str, dict[str, Any]] = {
        row["how"]: row for row in found["rows"] if (row["model"], way_name(row["way"])) == (name, way)
    }
    return next(rows[how] for how in ("matched head", found["blind_fusion"], "prediction") if how in rows)


def in_short() -> str:
    """For the README: both models, blind, with the scale estimated, and with it stated."""
    report = results("told_or_not")
    found = report["splits"]["test"]
    at_one = found["scales"].index(1.0)
    rows = []
    for name in found["models"]:
        for way, title in WAYS.items():
            row = as_segment_uses_it(found, name, way)
            label = f"{name}, {title}{'' if row['how'] == 'prediction' else ', ' + HOWS.get(row['how'], row['how'])}"
            span = f"{100 * min(row['ious']):.1f}–{100 * max(row['ious']):.1f}"
            rows.append((label, f"**{100 * row['mean']:.2f}**", span, f"{100 * row['ious'][at_one]:.1f}"))
    header = ["IoU of nuclei, %", "mean of 17 magnifications, ¼ × to 4 ×", "lowest–highest", "at s = 1"]
    sizes = ", ".join(f"{name} {facts['parameters']:,}" for name, facts in found["models"].items())
    made = f"{len(found['images'])} test images of MoNuSeg, a quarter of each; parameters: {sizes}."
    return (
        f"{markdown_table(header, rows)}\n\n{made} `{report['again']}` (measured at commit {short(found['commit'])})."
    )


BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "docs/results/told-or-not.md": {"test": partial(told_or_not, "test"), "trainings": trainings},
    "docs/decisions/0051-told-or-not.md": {"calibration": calibration},
}
SCALE_BLOCKS = {"conflict": conflict, "cost-of-asking": cost, "promises": promises}
"""Those of docs/scale.md, which has others too."""
