"""`seunet export`: parse, call, print."""

from __future__ import annotations

from pathlib import Path

import typer

MODEL = typer.Argument(..., metavar="MODEL", help="A model of the package, a model folder, or hf-hub:owner/name.")
OUT = typer.Option(..., "-o", "--out", metavar="DIR", help="New folder for the exported model.")
TO = typer.Option("onnx", "--to", metavar="onnx|torchscript|openvino|bioimageio|qupath", help="For which program.")
SCALE = typer.Option(1.0, "--scale", metavar="S", help="σ × S: for images whose structures are S times as large.")
HEAD = typer.Option("auto", "--head", metavar="auto|matched|all|N", help="auto: the card's matched head, else all.")
OPSET = typer.Option(17, "--opset", metavar="N", help="Of ONNX, 13 to 21.")


def export(
    model: str = MODEL,
    out: Path = OUT,
    to: str = TO,
    scale: float = SCALE,
    head: str = HEAD,
    opset: int = OPSET,
) -> None:
    """Write a model in the form of another program, compared with ours before it is there.

    Example: seunet export nuclei -o nuclei-qupath --to qupath
    """
    from seunet.export.choice import choose
    from seunet.export.write import write_export

    facts = write_export(choose(model, scale=scale, head=head), out, to, opset)
    print(f"{out / facts['file']}: differs from the model by {facts['largest_difference']:.1g} in probability at most")
