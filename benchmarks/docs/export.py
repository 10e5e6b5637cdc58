"""The tables of docs/export.md."""

from __future__ import annotations

import numpy as np

from benchmarks.record import results, source
from seunet.evaluation import markdown_table

TITLES = {
    "onnx, told the size": "ONNX Runtime in `seunet segment`, which tells it the size",
    "onnx": "ONNX Runtime, the exported file as it is",
    "openvino": "OpenVINO",
    "torchscript": "TorchScript",
}


def runtimes() -> str:
    report = results("runtimes")
    rows = [
        [f"{size}²", *(f"{row[name]['ratio']:.2f}" for name in TITLES)]
        for size, row in ((int(size), row) for size, row in report["sizes"].items())
    ]
    with_system = [f"{row['onnx, told the size']['ratio_with_system']:.2f}" for row in report["sizes"].values()]
    worst = max(row["largest_difference"] for rows_ in report["sizes"].values() for row in rows_.values())
    how = (
        f"The matched head of `nuclei`, one thread, processor time without the system's, the fastest of "
        f"{report['rounds']} rounds in turn. With the system's (memory is got page by page) the "
        f"first column is {', '.join(with_system)}. Logits differ by {worst:.0e} at most."
    )
    return f"{markdown_table(['image, native = 1', *TITLES.values()], rows)}\n\n{how} {source(report)}"


def round_trips() -> str:
    report = results("round_trips")
    sides = list(next(iter(report["iou"].values())))
    ious = report["iou"] | {
        title: {side: figures["iou"] for side, figures in row.items()} for title, row in report["qupath"].items()
    }
    rows = [[title, *(f"{row[side]:.4f}" for side in sides)] for title, row in ious.items()]
    same = min(figures["same_objects"] for figures in next(iter(report["qupath"].values())).values())
    how = f"On the same pixels {same:.1%} of our objects are those of the model for QuPath, pixel by pixel."
    table = markdown_table(["IoU with our labels", *(f"{side}²" for side in sides)], rows)
    return f"{table}\n\n{how} {source(report)}"


def qupath_normalisation() -> str:
    report = results("qupath_normalisation")
    rows = []
    for name, ways in report["sets"].items():
        for way, found in ways.items():
            off = np.abs(np.array(found["off"])).mean(0)
            rows.append(
                [
                    name,
                    way,
                    f"{np.median(found['iou']):.3f}",
                    f"{min(found['iou']):.3f}",
                    *(f"{one:.1f}" for one in off),
                ]
            )
    head = ["images of", "pixels reconstructed", "IoU, median", "least", "off in red", "green", "blue"]
    return f"{markdown_table(head, rows)}\n\n{source(report)}"


BLOCKS = {
    "docs/export.md": {"round_trips": round_trips, "runtimes": runtimes},
    "docs/decisions/0083-what-qupath-hands-over.md": {"qupath_normalisation": qupath_normalisation},
}
