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


def one_head() -> str:
    """Before and now, the stages, and more threads by Amdahl's law."""
    report = results("one_head")
    candidates, side = report["candidates"], report["side_px"]
    versions = [name for name in ("before", "now") if name in candidates]
    plain = candidates["unet"]["mpx_per_cpu_s"]
    rates = {name: candidates[name]["mpx_per_cpu_s"] for name in versions}
    rows = [
        ("megapixels per CPU second", *(f"{rate:.2f}" for rate in rates.values())),
        ("× the plain UNet", *(f"{rate / plain:.1f}" for rate in rates.values())),
    ]
    for size, group in ((side, candidates), (2 * side, report["twice_as_large"])):
        shares = (
            f"{100 * group[name]['writing_share']:.0f} %, {100 * group[name]['median_writing_share']:.0f} %"
            for name in versions
        )
        rows.append((f"writing, of the time by the clock, fastest and median run, {size}²", *shares))
    titles = {"before": f"`{str(report['before_commit'])[:7]}`", "now": "now"}
    table = markdown_table([f"{side}², one head, one thread", *(titles[name] for name in versions)], rows)
    return f"{table}\n\n{_stages(report)}\n\n{_threads(report)}"


def _stages(report: dict[str, Any]) -> str:
    stages = report["stages_cpu_s"]
    total = sum(stages.values())
    rows = [(name, f"{1000 * seconds:.0f} ms", f"{100 * seconds / total:.1f} %") for name, seconds in stages.items()]
    return markdown_table(["stage", "CPU", "of all"], rows)


def _threads(report: dict[str, Any]) -> str:
    """Measured for one and a few threads; for more from the share that did not get faster."""
    threads, candidates = report["threads"], report["candidates"]
    alone, more = candidates["now"]["clock_s"], candidates[f"now, {threads} threads"]["clock_s"]
    serial = min(1.0, max(0.0, (threads * more / alone - 1) / (threads - 1)))
    rows = [
        ("1, measured", f"{alone:.2f} s", "1.0 ×"),
        (f"{threads}, measured", f"{more:.2f} s", f"{alone / more:.2f} ×"),
    ]
    for cores in (8, 64):
        clock = alone * (serial + (1 - serial) / cores)
        rows.append((f"{cores}, by arithmetic", f"{clock:.2f} s", f"{alone / clock:.1f} ×"))
    kernels = report["stages_cpu_s"]["kernels"] / sum(report["stages_cpu_s"].values())
    text = (
        f"*By arithmetic* (Amdahl): {100 * serial:.0f} % of the time did not get shorter with {threads} threads and is "
        "taken to stay; the rest is taken to be divided by the number of threads, with memory as fast for many cores "
        f"as for {threads}. The kernels, which are what is shared out, have {100 * kernels:.0f} % of the CPU time. "
        "Writing goes on beside computing, in the time of one core. Load of the machine when it was measured: "
        f"{report['load']:.1f} on {report['machine']['cores']} cores; the clock is to be believed where that is about "
        f"{threads} or less."
    )
    return f"{markdown_table(['`--threads`, one image', 'clock', 'against one'], rows)}\n\n{text} {source(report)}"


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
"""`one_head` is a block of docs/speed.md."""
