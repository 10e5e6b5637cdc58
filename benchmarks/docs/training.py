"""The tables of docs/results/training.md."""

from __future__ import annotations

from benchmarks.measure.model.training_runs import facts, kept_runs
from benchmarks.record import results, source
from seunet.evaluation import markdown_table


def published_runs() -> str:
    """The runs whose logs are kept in results/training."""
    rows = []
    for folder in kept_runs():
        found = facts(folder)
        best, last = found["best"]["validation"], found["last"]["validation"]
        rows.append(
            (
                f"[`{found['config']['model']['name']}`](../../results/training/{folder.name}/log.jsonl)",
                f"**{best['p_ens']:.4f}**",
                " ".join(f"{head:.3f}" for head in best["heads"]),
                f"{last['p_ens']:.4f}",
                f"{found['steps']:,}",
                f"{found['cpu_seconds'] / 60:.0f} min",
                f"{found['peak_memory_mib']:,.0f} MiB",
            )
        )
    header = ["", "IoU, best", "its heads", "IoU, last", "steps", "processor time", "peak memory"]
    return markdown_table(header, rows)


def throughput() -> str:
    report = results("training")
    found = report["throughput"]
    rows = [
        (
            f"`{name}`",
            f"{row['windows_per_second']:.2f}",
            f"{row['median_ms'] / 1000:.2f} s",
            f"{row['median_ratio']:.2f}",
            f"{found['peak_memory_mib'][name]:,} MiB",
        )
        for name, row in found["rows"].items()
    ]
    header = ["paper's widths", "windows a second", f"step of {found['windows']} windows", "× unet", "peak memory"]
    size = f"{found['side_px']} × {found['side_px']} windows, median of {found['rounds']} interleaved rounds"
    return f"{markdown_table(header, rows)}\n\n{size}, {report['threads']} threads: {source(report)}"


def epoch_parts() -> str:
    report = results("training")
    epoch = report["epoch"]
    parts = sorted(epoch["parts"].items(), key=lambda part: -part[1]["seconds"])
    rows = [(name, f"{part['seconds']:.2f} s", f"{100 * part['share']:.1f} %") for name, part in parts]
    text = f"An epoch of `{epoch['config']}` ({epoch['steps']} steps and a validation) in {epoch['seconds']:.0f} s"
    shown = markdown_table(["part of an epoch", "time", "share"], rows)
    return f"{shown}\n\n{text}, {report['threads']} threads: {source(report)}"


BLOCKS = {
    "docs/results/training.md": {"runs": published_runs, "throughput": throughput, "epoch": epoch_parts},
}
