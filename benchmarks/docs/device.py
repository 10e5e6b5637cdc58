"""The tables of docs/gpu.md."""

from __future__ import annotations

from benchmarks.record import results, source
from seunet.evaluation import markdown_table


def counted() -> str:
    """Memory and operations of a step, counted without a graphics card."""
    report = results("device")
    memory = markdown_table(
        ["kept for the backward pass, MiB", "`unet`", "`seunet`", "of which Gaussian layers, by the formula"],
        (
            (shape, f"{row['unet']:,}", f"{row['seunet']:,}", f"{report['jets_mib'][shape]:,}")
            for shape, row in report["kept_mib"].items()
        ),
    )
    operations = markdown_table(
        ["operations that compute", "`unet`", "`seunet`"],
        (
            (title, *(f"{report['operations'][name][key]:,}" for name in ("unet", "seunet")))
            for title, key in (("forward", "forward"), ("training step, without the optimiser", "training_step"))
        ),
    )
    return f"{memory}\n\n{operations}\n\n{source(report)}"


BLOCKS = {"docs/gpu.md": {"counted": counted}}
