"""The tables of docs/outputs.md."""

from __future__ import annotations

from benchmarks.record import results, source
from seunet.evaluation import markdown_table


def splitting() -> str:
    """With and without splitting, and how fast it is."""
    report = results("splitting")
    rows = []
    for split in ("train", "test"):
        group = report[split]
        for name in ("whole", "split"):
            row = group[name]
            rows.append(
                (
                    f"{split}, {group['images']} images",
                    "on" if name == "split" else "off",
                    f"{row['objects']:,} of {row['nuclei']:,}",
                    f"{100 * row['count_error']:.1f} %",
                    f"{row['f1']:.3f}",
                    f"{row['aji']:.3f}",
                )
            )
    header = ["MoNuSeg", "splitting", "objects", "count off by", "F1 at IoU 0.5", "AJI"]
    rate = report["nuclei_per_cpu_second"]
    speed = f"One core finds {rate['whole']:,} objects a second without splitting and {rate['split']:,} with it."
    return f"{markdown_table(header, rows)}\n\n{speed} {source(report)}"


def result_files() -> str:
    """Random masks there and back, polygons a second, memory by size."""
    report = results("objects")
    masks = [
        (
            "smooth" if row["smooth"] else "along pixel edges",
            f"{row['scale_to_level0']:g}",
            f"{row['masks']:,}",
            f"{row['polygons']:,}",
            row["invalid"],
            f"{100 * row['max_area_error']:.2f} %",
            f"{row['min_iou']:.4f}",
        )
        for row in report["masks"]
    ]
    header = [
        "outlines",
        "scale",
        "random masks",
        "polygons",
        "invalid",
        "area off by at most",
        "least IoU, there and back",
    ]
    parts = [markdown_table(header, masks)]
    rows = [
        (
            f"GeoJSON of {row['polygons']:,} polygons, {row['megapixels']:,} megapixels",
            f"{row['polygons_per_cpu_second']:,} polygons a second of one core",
            f"{row['peak_memory_mib']} MiB",
        )
        for row in report["polygons"]
    ]
    rows += [
        (
            f"all files of {row['side_px']:,} × {row['side_px']:,} labels, {row['objects']:,} objects",
            f"{row['cpu_seconds']:.0f} s of one core",
            f"{row['peak_memory_mib']} MiB",
        )
        for row in report["slide"]
    ]
    parts.append(markdown_table(["", "speed", "peak memory of the process"], rows))
    large = report["slide"][-1]
    if stages := large.get("cpu_seconds_by_stage"):
        total = sum(stages.values())
        shown = [(stage, f"{spent:.1f} s", f"{100 * spent / total:.0f} %") for stage, spent in stages.items()]
        parts.append(markdown_table([f"{large['objects']:,} objects, CPU by stage", "one core", "of all"], shown))
    parts.append(source(report))
    return "\n\n".join(parts)


BLOCKS = {"docs/outputs.md": {"splitting": splitting, "results": result_files}}
