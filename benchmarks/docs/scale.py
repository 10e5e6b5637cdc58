"""The tables of docs/scale.md."""

from __future__ import annotations

from typing import Any

from benchmarks.docs.told import SCALE_BLOCKS, coverage
from benchmarks.record import results, source
from seunet.evaluation import markdown_table

SAMPLES = {
    "plain": "whole, 17 scales",
    "blurred": "out of focus by 0.8 px, 5 scales",
    "other_stains": "optical density of each colour × 0.7–1.3, 5 scales",
    "jpeg": "JPEG of quality 75, 5 scales",
}

SETS = {"cpm17": "CPM17", "tnbc": "TNBC", "consep": "CoNSeP", "monuseg": "MoNuSeg"}
OTHERS = ["within 25 %", "90 % interval covers", "half of it, median", "no answer"]


def accuracy() -> str:
    report = results("scale_estimate")
    header = [f"{report['images']} {report['split']} images", "median error", "within 25 %", "within 2 ×"]
    header += ["90 % interval covers", "half of it, median", "no answer"]
    rows = [(title, *_cells(report[key])) for key, title in SAMPLES.items()]
    return f"{markdown_table(header, rows)}\n\n{source(report)}"


def by_scale() -> str:
    report = results("scale_estimate")
    header = ["s", "median error", "bias", "within 25 %", "interval covers", "no answer"]
    rows = [
        (
            scale,
            f"× {row['median_factor']:.2f}",
            f"× {row['bias_factor']:.2f}",
            percent(row["within_25_percent"]),
            percent(row["covered"]),
            row["refused"],
        )
        for scale, row in report["by_scale"].items()
    ]
    return markdown_table(header, rows)


def leaving_out() -> str:
    report = results("fit_scale")
    rows = [
        (f"{what}, {left}", f"× {row['median_factor']:.3f}", percent(row["within_25_percent"]), row["count"])
        for left, group in (("patients", "leaving_out_patients"), ("organs", "leaving_out_organs"))
        for what, row in report[group].items()
    ]
    header = ["left out of the fit", "median error", "within 25 %", "samples"]
    return f"{markdown_table(header, rows)}\n\n{source(report)}"


def half_scale() -> str:
    report = results("fit_scale")["half_scale_images"]
    rows = [(f"`{name[:12]}`", *row.values()) for name, row in report.items()]
    return markdown_table(["estimate ÷ scale, at s =", *next(iter(report.values()))], rows)


def other_things() -> str:
    report = results("scale_estimate")
    foreign = report["foreign"]
    sizes = 4 * foreign["count"]
    text = (
        f"Of {foreign['count']} images of other things {len(foreign['answered'])} get an answer. "
        f"Shown again at four other sizes, {len(foreign['answered_at_other_sizes'])} of {sizes} do: "
        f"{', '.join(foreign['answered_at_other_sizes']) or 'none'}."
    )
    rows = [(f"× {scale}", *_answer(row)) for scale, row in report["ihc"].items()]
    stain = markdown_table(["`ihc.png` at", "estimate", "90 % interval"], rows)
    return f"{text}\n\n{stain}\n\n{_slide(report['slide'])}"


def elsewhere() -> str:
    report = results("scale_elsewhere")
    ratios = ", ".join(f"{ratio:.2f}" for ratio in report["median_ratio_by_image"].values())
    found = report["all"]
    return (
        f"{report['images']} patches of 512 × 512 px, {report['all']['asked']} samples: median error × "
        f"{found['median_factor']:.2f}, {percent(found['within_25_percent'])} within 25 %, "
        f"{percent(found['within_2_times'])} within 2 ×; the interval covers {percent(found['covered'])}. "
        f"Estimate ÷ truth by patch: {ratios}.\n\n{source(report)}"
    )


def as_segment() -> str:
    report = results("scale_as_segment")
    rows = [
        (f"{SETS[name]}, {row['asked']} images, `{model}`", *_shares(row), f"{len(row['refused'])}")
        for model, measured in report["models"].items()
        for name, row in measured["sets"].items()
    ]
    return f"{markdown_table(['images as they are', *OTHERS], rows)}\n\n{source(report)}"


def leaving_out_sets() -> str:
    report = results("scale_heads")
    with_heads = {
        **{name: (row, "with heads; strange to the network too") for name, row in report["measured"].items()},
        **{name: (row, "with heads; left out of their fit") for name, row in report["left_out"].items()},
    }
    rows = [
        (f"{SETS[name]}, {title}", *_shares(row["as they are"]), percent(row["as they are"]["refused"]))
        for name, both in with_heads.items()
        for row, title in ((report["texture_alone"][name], "texture alone"), both)
    ]
    count = max(report["images"].values())
    return f"{markdown_table([f'images as they are, {count} per set', *OTHERS], rows)}\n\n{source(report)}"


def cost() -> str:
    report = results("scale_estimate")["cost"]
    network = report["network_ns_per_pixel"]
    rows = [
        (f"{size} px", f"{ns:.0f} ns", f"{100 * ns / network:.1f} %")
        for size, ns in report["estimate_ns_per_pixel"].items()
    ]
    header = ["image", "processor time a pixel", f"of the network's, {network:.0f} ns"]
    return markdown_table(header, rows)


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"× {row['median_factor']:.3f}",
        percent(row["within_25_percent"]),
        percent(row["within_2_times"]),
        percent(row["covered"]),
        f"× {row['median_half_interval']:.2f}",
        f"{row['refused']} of {row['asked']}",
    )


def _shares(row: dict[str, Any]) -> tuple[str, str, str]:
    return percent(row["within_25_percent"]), percent(row["covered"]), f"× {row['median_half_interval']:.2f}"


def _answer(row: dict[str, Any]) -> tuple[str, str]:
    if not row["known"]:
        return "don't know", row["reason"]
    return f"{row['relative_scale']:.2f}", f"{row['low']:.2f}–{row['high']:.2f}"


def _slide(slide: dict[str, Any] | None) -> str:
    if slide is None:
        return "No slide was given."
    estimate, interval = _answer(slide)
    return (
        f"`{slide['file']}`, another scanner and laboratory, has {slide['mpp_of_metadata']:g} µm per pixel, so "
        f"s = {slide['true']:.2f}: {estimate}, interval {interval}, from {slide['reason']}."
    )


BLOCKS = {
    "docs/scale.md": {
        "accuracy": accuracy,
        "by-scale": by_scale,
        "other-things": other_things,
        "elsewhere": elsewhere,
        "as-segment": as_segment,
        "cost": cost,
        **SCALE_BLOCKS,
    },
    "docs/decisions/0055-heads-in-the-scale-estimate.md": {"leaving-out-sets": leaving_out_sets},
    "docs/decisions/0050-scale-from-pixels.md": {
        "leaving-out": leaving_out,
        "half-scale": half_scale,
        "coverage": coverage,
    },
}
