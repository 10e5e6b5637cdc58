"""`seunet evaluate --agreement`: parse, call, print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from seunet.cli.progress import duration
from seunet.cli.progress import progress as progress_of
from seunet.errors import InputError

if TYPE_CHECKING:
    from seunet.models.unet_skeleton import ScaleUNet


def check_alone(context: typer.Context) -> None:
    """--agreement goes without the options of an evaluation on masks."""
    with_it = {"model", "data", "out", "overwrite", "device", "progress", "agreement"}
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in with_it and source is not None and source.name == "COMMANDLINE":
            raise InputError(f"--agreement needs no masks and goes without --{name.replace('_', '-')}; leave one out")


def agree(network: ScaleUNet, data: Path, out: Path, overwrite: bool, progress: bool) -> None:
    """Compare, write agreement.json, .md and .png, print the table."""
    from seunet.evaluation.figures.agreement import agreement_figure
    from seunet.evaluation.figures.style import write_png
    from seunet.evaluation.objects.agreement import markdown, measure_agreement, table_rows
    from seunet.segmentation.inputs import find_inputs
    from seunet.segmentation.segment_many import EXIT_PART
    from seunet.storage.atomic import write_text

    inputs = find_inputs([str(data)])
    for fault in inputs.faults:
        print(f"seunet: {fault}", file=sys.stderr)
    with progress_of(progress, timed=True) as show:
        document = measure_agreement(network, inputs.items, out, overwrite=overwrite, progress=show)
    if not document["results"]:
        raise InputError(next(iter(document["failed"].values())))
    write_text(out / "agreement.md", markdown(document))
    write_png(agreement_figure(document), out / "agreement.png")
    print(f"area of objects relative to the image as it is, {_images(len(document['results']))}:")
    for row in table_rows(document):
        print(f"  {row[0].replace('*', ''):14} {row[2]:>6} within 20 %, {row[3]} above 2 ×, median {row[4]}")
    print(f"{duration(document['clock']['seconds'])}: {out / 'agreement.md'}")
    for line in document["failed"].values():
        print(f"seunet: {line}", file=sys.stderr)
    if document["failed"] or inputs.faults:
        raise typer.Exit(EXIT_PART)


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count} images"
