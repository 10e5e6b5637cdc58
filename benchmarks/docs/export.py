"""The tables of docs/export.md."""

from __future__ import annotations

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
    worst = max(row["largest_difference"] for rows_ in report["sizes"].values() for row in rows_.values())
    how = (
        f"The matched head of `nuclei`, one thread, processor time, the fastest of {report['rounds']} rounds in turn. "
        f"Logits differ by {worst:.0e} at most."
    )
    return f"{markdown_table(['image, native = 1', *TITLES.values()], rows)}\n\n{how} {source(report)}"


def round_trips() -> str:
    report = results("round_trips")
    sides = list(next(iter(report["iou"].values())))
    rows = [[title, *(f"{row[side]:.4f}" for side in sides)] for title, row in report["iou"].items()]
    return f"{markdown_table(['IoU with our labels', *(f'{side}²' for side in sides)], rows)}\n\n{source(report)}"


BLOCKS = {"docs/export.md": {"round_trips": round_trips, "runtimes": runtimes}}
