"""The tables of docs/segment.md: whole slides, throughput, and the written outlines against `evaluate`."""

from __future__ import annotations

from typing import Any

from benchmarks.record import MEASURED, results, source
from seunet.evaluation import markdown_table


def measured() -> str:
    """What has been measured of it; a part without results is left out."""
    parts = {"slides": slides, "throughput": throughput, "geojson_scores": outlines}
    found = [make(results(name)) for name, make in parts.items() if (MEASURED / f"{name}.json").is_file()]
    return "\n\n".join(found)


def slides(report: dict[str, Any]) -> str:
    """Memory by size, kills, and real files."""
    made = report.get("made")
    rows = (
        [] if made is None else [_row(f"made, {row['side_px']:,} × {row['side_px']:,}", row) for row in made["sizes"]]
    )
    rows += [_row(f"`{row['file']}`", row) for row in report.get("real", [])]
    header = ["slide", "megapixels", "of these analysed", "objects", "time", "peak memory"]
    text = markdown_table(header, rows)
    if made is not None:
        moments = [kill["moment"] for kill in made["kills"] if kill["killed"]]
        same = "the same bytes as" if made["byte_identical"] else "OTHER BYTES THAN"
        text += (
            f"\n\nMemory is that of all processes together. Killed with −9 at {len(moments)} moments "
            f"({', '.join(moments)}) and started again each time, the larger one has "
            f"{same} an unbroken run."
        )
    return f"{text} {source(report)}"


def many_images() -> str:
    """Small images one after the other and two at once; more cores by arithmetic."""
    report = results("many_images")
    alone, two = (report["processes"][number] for number in ("1", "2"))
    images, start = report["images"], report["start"]["cpu_s"]
    each = (alone["cpu_s"] - start) / images
    slower = (two["cpu_s"] - 3 * start) / (alone["cpu_s"] - start)
    rows = [
        (
            f"{number}, measured",
            f"{row['cpu_s']:.0f} s",
            f"{row['clock_s']:.0f} s",
            f"{alone['clock_s'] / row['clock_s']:.2f} ×",
        )
        for number, row in (("1", alone), ("2", two))
    ]
    for cores in (2, 8, 64):
        clock = 2 * start + images * each * slower / cores
        rows.append((f"{cores}, by arithmetic", "", f"{clock:.0f} s", f"{(start + images * each) / clock:.1f} ×"))
    header = [f"{images} images of {report['side_px']}², processes", "CPU", "clock", "against one"]
    same = "All files have the same bytes." if report["same_bytes"] else "THE FILES DIFFER."
    text = (
        f"{same} An image takes {each:.2f} s of CPU in one process and {slower:.2f} × that beside another one; a "
        f"process takes {start:.1f} s to start and do its first image. *By arithmetic*: the command starts, then its "
        "processes, then they share the images; memory that is slower for many cores than for two is not in it. The "
        f"clock was measured on a machine with other work (load {report['load']:.0f} on {report['machine']['cores']} "
        "cores); CPU is little changed by that."
    )
    return f"{markdown_table(header, rows)}\n\n{text} {source(report)}"


def _row(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    objects = sum(row["objects"].values())
    time = f"{row['seconds']:.0f} s"
    return name, f"{row['megapixels']:,.1f}", f"{row['megapixels_analysed']:,.1f}", f"{objects:,}", time, _mib(row)


def _mib(row: dict[str, Any]) -> str:
    return f"{row['peak_mib']:,} MiB"


def throughput(report: dict[str, Any]) -> str:
    """Megapixels through the whole command: by processor time, which a busy machine hardly changes, and by clock."""
    header = ["image", "model", "megapixels a second of CPU", "× unet", "× unet by the clock", "network alone, × unet"]
    rows, shares = [], ""
    for size in report["sizes"]:
        plain = size["models"]["unet"]
        for name, row in size["models"].items():
            kinds = ("mpx_per_cpu_s", "fastest_mpx_per_s", "network_mpx_per_s")
            ratios = [f"{row[kind] / plain[kind]:.2f}" for kind in kinds]
            rows.append((f"{size['side_px']}²", f"`{name}`", f"{row['mpx_per_cpu_s']:.3f}", *ratios))
        shares = " ".join(
            f"Time of `{name}`: "
            + ", ".join(f"{part} {100 * share:.1f} %" for part, share in row["shares"].items())
            + "."
            for name, row in size["models"].items()
        )
    text = f"In turn, the fastest of {report['sizes'][0]['rounds']} rounds, threads: {report['threads']}. {shares}"
    return f"{markdown_table(header, rows)}\n\n{text} {source(report)}"


def in_short() -> str:
    """For the README: how many times as fast as with the plain UNet."""
    report = results("throughput")
    models = report["sizes"][0]["models"]
    known, all_heads = (
        models[name]["mpx_per_cpu_s"] / models["unet"]["mpx_per_cpu_s"] for name in ("seunet, scale known", "seunet")
    )
    return (
        f"`seunet segment`, from the file to all files of the result, gets through **{known:.1f} ×** the megapixels of "
        f"the same command with that UNet where the scale is known or estimated (one head), and {all_heads:.1f} × with "
        f"all heads. {source(report)}"
    )


def outlines(report: dict[str, Any]) -> str:
    """The IoU of the files."""
    whole, windows = (report["iou_of_evaluate"][name] for name in ("whole", "windows"))
    return (
        f"MoNuSeg, {report['split']}, {report['images']} images at their own pixels: the outlines in "
        f"`objects.geojson`, painted back, have an IoU of {report['iou_of_geojson']:.4f}; `seunet evaluate` on the "
        f"whole images has {whole:.4f} (on the set's windows, which see less around each pixel, {windows:.4f}). "
        f"{source(report)}"
    )


BLOCKS = {"docs/segment.md": {"measured": measured, "many-images": many_images}}
