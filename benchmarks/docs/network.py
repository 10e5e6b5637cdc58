"""What the network costs: the tables of docs/speed.md, docs/gpu.md and the decisions on kernels."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.docs.slides import one_head
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


def kernel() -> str:
    """The network by the kernels of two commits, beside a plain UNet and the limits of the machine."""
    report = results("kernel")
    ms, limits = report["ms"], report["limits"]
    titles = {
        "plain, now": "plain UNet of torch's layers",
        "seunet, before": f"`seunet` at `{report['before_commit']}`",
        "seunet, now": "`seunet` now",
        "order 2, before": f"`seunet`, order 2, at `{report['before_commit']}`",
        "order 2, now": "`seunet`, order 2, now",
    }
    tasks = list(ms["plain, now"])
    rows = [
        (title, *(f"{ms[row][task]:.0f} ms ({ms[row][task] / ms['plain, now'][task]:.3f})" for task in tasks))
        for row, title in titles.items()
        if row in ms
    ]
    counted, forward = report["arithmetic_256"]["seunet"], tasks[0]
    peak = limits["convolution_gmac_per_second"]
    least = sum(counted.values()) / peak * 1000
    versions = [version for version in ("before", "now") if f"order 2, {version}" in ms]
    ratios = [ms[f"order 2, {version}"][forward] / ms[f"seunet, {version}"][forward] for version in versions]
    more = sum(report["arithmetic_256"]["order 2"].values()) / sum(counted.values())
    text = (
        f"One thread, milliseconds of processor time (× the plain UNet), the smallest of {report['rounds']} rounds in "
        f"turn. The first pass finds weights that a training step has just changed, the second finds them as they "
        f"were. Order 2 × order 1, {forward}²: {', now '.join(f'{ratio:.2f}' for ratio in ratios)}, with {more:.2f} × "
        f"the multiply-adds. One core of this machine has {peak:.0f} billion of them a second in torch's best "
        f"convolution, {limits['matrix_product_gmac_per_second']:.0f} in its matrix product, and copies "
        f"{limits['copy_gb_per_second']:.0f} GB a second (read and written). At the first of these rates the "
        f"{sum(counted.values()):.2f} billion of a 256² pass take {least:.0f} ms."
    )
    return f"{markdown_table(['', *tasks], rows)}\n\n{text} {source(report)}"


def speed_tables() -> str:
    report = results("speed")
    parts = []
    for title, group in (("Forward", report["forward"]), ("Training step", report["training_step"])):
        for shape, rows in group.items():
            header = [f"{title}, {shape}", "median", "× unet", "fastest", "× unet"]
            parts.append(markdown_table(header, (_speed_row(name, row) for name, row in rows.items())))
    for shape, rows in report["reference"].items():
        header = [f"SEUNet forward, {shape}, by backend", "median", "× reference", "fastest", "× reference"]
        parts.append(markdown_table(header, (_speed_row(name, row) for name, row in rows.items())))
    sizes = [f"{row['size_px']}²" for row in report["sweep"]]
    parts.append(
        markdown_table(
            ["SEUNet forward", *sizes], [["ns per pixel", *(row["ns_per_pixel"] for row in report["sweep"])]]
        )
    )
    memory = [(shape, row["unet"], row["seunet"]) for shape, row in report["peak_memory_mib"].items()]
    parts.append(markdown_table(["Peak memory of a training step, MiB", "unet", "seunet"], memory))
    bound, forward = report["arithmetic_256"], report["forward"]["1×3×256×256"]["seunet"]["fastest_ms"]
    parts.append(
        f"**What remains.** A 256² forward pass has {bound['mixing_gmac']} billion multiply-adds of mixing and "
        f"{bound['filtering_gmac']} of filtering (mirrored taps counted once). At the rate of torch's large matrix "
        f"product, {bound['matrix_product_gmac_per_second']} billion a second here, they take {bound['bound_ms']} ms; "
        f"the fastest pass took {forward:.0f} ms. That rate is no limit: torch's best convolution is faster on "
        f"processors that its matrix product does not know (above). Pooling and upsampling run at the speed of memory, "
        f"filters at that of their loads."
    )
    parts.append(source(report))
    return "\n\n".join(parts)


def _speed_row(name: str, row: dict[str, float]) -> tuple[str, ...]:
    median, fastest = f"{row['median_ms']:.0f} ms", f"{row['fastest_ms']:.0f} ms"
    return f"`{name}`", median, f"{row['median_ratio']:.3f}", fastest, f"{row['fastest_ratio']:.3f}"


def cold_start() -> str:
    """The first image before and now."""
    report = results("cold_start")
    titles = {
        "call, no cache": "`seunet.segment`, nothing compiled",
        "call, new process": "`seunet.segment`, new process",
        "call, second": "`seunet.segment`, second call",
        "command, no cache": "`seunet segment`, nothing compiled",
        "command, new process": "`seunet segment`, new process",
        "warm-up": "`seunet warm-up`",
    }
    versions = [name for name in ("before", "now") if name in report]
    rows = [(title, *(_seconds(report[version].get(row)) for version in versions)) for row, title in titles.items()]
    header = ["", *({"before": f"`{report['before_commit']}`", "now": "now"}[name] for name in versions)]
    alone = f"`import torch` alone, in a process of its own: {_seconds(report['import_torch'])} s."
    note = f"The smallest of {report['rounds']} rounds in turn."
    return f"{markdown_table(header, rows)}\n\n{alone} {note} {source(report)}"


def _seconds(times: dict[str, float] | None) -> str:
    return "–" if times is None else f"{times['cpu_s']:.1f} ({times['clock_s']:.1f})"


def parts() -> str:
    """The parts of the CPU path by themselves."""
    report = results("parts")
    threads = markdown_table(
        ["one layer right after an operation of torch", "median", "× one thread"],
        ((name, f"{row['median_ms']:.2f} ms", f"{row['median_ratio']:.2f}") for name, row in report["threads"].items()),
    )
    maps = markdown_table(
        ["60 channels at 256²", "torch", "ours", "× torch"],
        (
            (
                name,
                f"{row['torch']['median_ms']:.2f} ms",
                f"{row['ours']['median_ms']:.2f} ms",
                row["ours"]["median_ratio"],
            )
            for name, row in report["maps"].items()
        ),
    )
    return f"{threads}\n\n{maps}\n\n{source(report)}"


BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "docs/gpu.md": {"counted": counted},
    "docs/speed.md": {"kernel": kernel, "tables": speed_tables, "cold-start": cold_start, "one-head": one_head},
    "docs/decisions/0002-fused-kernel.md": {"parts": parts},
}
