"""Fill the tables of README and docs from the committed results.

    python -m benchmarks.docs            # rewrite the blocks <!-- name --> … <!-- /name -->
    python -m benchmarks.docs --check    # exit 1 if a page differs from its results

No number of these tables is typed by hand; a test runs the check.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.declare import Benchmark
from benchmarks.docs import (
    data,
    export,
    install,
    network,
    nuclei,
    nuclei_2,
    operation,
    outputs,
    published_report,
    reliability,
    scale,
    slides,
    told,
    training,
    view,
)
from benchmarks.record import ROOT, results, source
from seunet.evaluation import markdown_table
from seunet.storage import write_text

BENCHMARK = Benchmark(
    "docs",
    (),
    1,
)


def readme_speed() -> str:
    report = results("speed")
    shape, step = "1×3×512×512", "4×3×128×128"
    forward, training = report["forward"][shape], report["training_step"][step]
    memory, dense_rows = report["peak_memory_mib"][step], report["reference"][shape]
    ours = dense_rows["numba"]["median_ratio"]
    by_scale = dense_rows["reference, scale by scale"]["median_ratio"] / ours
    rows = [
        (f"forward, {shape}", f"**{forward['seunet']['median_ratio']:.2f} ×**"),
        (f"training step, {step}", f"**{training['seunet']['median_ratio']:.2f} ×**"),
        (
            f"peak memory of that step, {memory['seunet']} against {memory['unet']} MiB",
            f"{memory['seunet'] / memory['unet']:.2f} ×",
        ),
        ("parameters, 366,841 against 25,449,602", f"{366_841 / 25_449_602:.3f} ×"),
    ]
    text = markdown_table(["SEUNet at the paper's widths", "plain UNet 60 … 960 = 1"], rows)
    dense = (
        f"With dense filters, as such layers are published, the same forward pass takes {1 / ours:.0f} times as long, "
        f"or {by_scale:.0f} times with a convolution of its own size for each scale."
    )
    run = f"Side by side in one run, median of {report['rounds']} rounds on two threads"
    return f"{text}\n\n{dense} {run}: {source(report)}"


def eight_layers() -> str:
    report = results("equivariance")
    header = ["σ", "kernel", "cut at", "0.05: s = ½", "s = 2", "0.12: s = ½", "s = 2"]
    rows = [
        [row["schedule"], row["discretisation"], f"{row['truncation']:g} σ"]
        + [f"{row[cutoff][s]:.5f}" for cutoff in ("cutoff_0.05", "cutoff_0.12") for s in ("0.5", "2")]
        for row in report["eight_layers"]
    ]
    return f"{markdown_table(header, rows)}\n\n{source(report)}"


def at_scale() -> str:
    report = results("equivariance")
    rows = [(f"`{preset}`", *row.values()) for preset, row in report["at_scale_2"].items()]
    return markdown_table(["preset", "no pooling", "average pooling", "max pooling"], rows)


def every_model() -> str:
    report = results("equivariance")
    scales = list(next(iter(report["every_model"].values()))["as_in_the_paper"])
    rows = [
        (f"`{name}`", *row["as_in_the_paper"].values(), *row["without_mean"].values())
        for name, row in report["every_model"].items()
    ]
    header = ["s", *scales, *(f"{s}, no mean" for s in scales)]
    return f"{markdown_table(header, rows)}\n\n{source(report)}"


def networks() -> str:
    """Forward and training step of every model: the row of the docs on rivals."""
    report = results("speed")
    groups = [*report["forward"].values(), *report["training_step"].values()]
    titles = [f"forward {s}" for s in report["forward"]] + [f"step {s}" for s in report["training_step"]]
    rows = [(f"`{name}`", *(f"{group[name]['median_ratio']:.2f}" for group in groups)) for name in groups[0]]
    return f"{markdown_table(['× unet, median', *titles], rows)}\n\n{source(report)}"


def layers() -> str:
    """One layer at each level of the U, relative to a plain convolution."""
    report = results("rival_layers")
    levels = list(dict.fromkeys((row["size_px"], row["channels_per_scale"]) for row in report["rows"]))
    cells = {(row["layer"], row["size_px"]): row for row in report["rows"]}
    shown = {
        "sesn": "`sesn`",
        "disco": "`disco`",
        "disco, scales √2 apart": "`disco`, scales 1, √2, 2, 2√2, 4",
        "sesn, padded": "`sesn` as published: grouped 11×11",
        "disco, padded": "`disco` as published: grouped 11×11",
    }
    rows = []
    for layer, title in shown.items():
        found = [cells[layer, size] for size, _ in levels]
        rows.append([title, *(f"{row['forward_ratio']:.2f} / {row['step_ratio']:.2f}" for row in found)])
    text = markdown_table(["median", *(f"{size}² × 5·{channels}" for size, channels in levels)], rows)
    return f"{text}\n\n{source(report)}"


BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"speed": readme_speed, "told": told.in_short, "throughput": slides.in_short},
    "docs/decisions/0003-geometric-preset.md": {"eight-layers": eight_layers},
    "docs/rivals.md": {"networks": networks, "layers": layers},
    "docs/equivariance.md": {"at-scale": at_scale, "every-model": every_model},
    **data.BLOCKS,
    **export.BLOCKS,
    **install.BLOCKS,
    **training.BLOCKS,
    **scale.BLOCKS,
    **told.BLOCKS,
    **nuclei.BLOCKS,
    **nuclei_2.BLOCKS,
    **published_report.BLOCKS,
    **outputs.BLOCKS,
    **slides.BLOCKS,
    **view.BLOCKS,
    **network.BLOCKS,
    **operation.BLOCKS,
    **reliability.BLOCKS,
}


def _filled(content: str, block: re.Match[str]) -> str:
    return f"{block[1]}{content}\n{block[2]}"


def rendered(page: str) -> str:
    """The page with its blocks made anew."""
    text = (ROOT / page).read_text()
    for name, make in BLOCKS[page].items():
        block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text, count = block.subn(partial(_filled, make()), text)
        if count != 1:
            raise SystemExit(f"{page}: block {name!r} must be there once, is there {count} times")
    return text


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("--check", action="store_true", help="exit 1 if a page differs from its results")
    return made


def main() -> int:
    check: bool = parser().parse_args().check
    stale = [page for page in BLOCKS if rendered(page) != (ROOT / page).read_text()]
    for page in stale:
        print(f"{page}: {'differs from its results; run python -m benchmarks.docs' if check else 'rewritten'}")
        if not check:
            write_text(Path(ROOT / page), rendered(page))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
