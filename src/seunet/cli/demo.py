"""`seunet demo`: a real H&E image at four magnifications, none of them stated."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from seunet.cli.progress import PROGRESS, progress_of
from seunet.errors import InputError

PAGE: Final = "demo.html"
FIGURES: Final = "demo.json"
TITLE: Final = "One image, four magnifications"
SOURCE: Final = (
    "An H&E image (a part of OpenSlide's test slide OS-1, Hamamatsu) at a quarter, half, once and twice its size, as "
    "four files without a resolution. `seunet segment` is told nothing: it estimates the µm per pixel from the pixels, "
    "scales its filters or the pixels to match the training, and outlines the nuclei."
)
AFTER: Final = (
    "*IoU with 1 ×*: how far the outlined area is the same as in the image at its own size. On the image at its own "
    "size QuPath's cell detection with its default settings counts 319 cells and its StarDist script 331 (told by "
    "those who chose the image, not counted here); there is no true count."
)
ELSEWHERE: Final = {
    "QuPath, default cell detection": 319,
    "QuPath, StarDist script": 331,
    "source": "told by those who chose the image (seunet/samples/README.md); at its own size",
}
OUT = typer.Option("-o", "--out", "--output", metavar="OUT", help="Folder for the page and the results.")
MODEL = typer.Option("-m", "--model", metavar="MODEL", help="A model of the package, or a model folder.")


def demo(
    out: Annotated[Path, OUT] = Path("out/demo"),
    model: Annotated[str, MODEL] = "nuclei",
    progress: bool = PROGRESS,
) -> None:
    """Segment a real H&E image at four magnifications and write one page to look at.

    Example: seunet demo -o out/demo
    """
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file, but -o takes a folder; choose another name")
    from seunet.evaluation.demo import System, as_json, at_scales, counts_table, page, rival_of, sample
    from seunet.evaluation.page import as_html, write_pictures
    from seunet.segmentation.options import Choices
    from seunet.storage.atomic import write_text

    with progress_of(progress) as show:
        shown = at_scales(sample(), Choices(model=model, overwrite=True), out, show)
    rival = rival_of(shown, out)
    systems = [System(model, shown, {"model": model}), *([rival] if rival is not None else [])]
    live = f"To look around in it: `seunet view {shlex.quote(str(out))}`."
    blocks = page(TITLE, SOURCE, (AFTER, live), systems, out / "figures")
    write_pictures(blocks)
    write_text(out / PAGE, as_html(TITLE, blocks))
    write_text(out / FIGURES, as_json(systems, ELSEWHERE))
    table = counts_table(systems)
    print(aligned([table.header, *table.rows]))
    print(f"\n{out / PAGE}\n{live.replace('`', '').removesuffix('.')}")


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The rows as columns of text.

    >>> print(aligned([["", "a"], ["long", "1"]]))
          a
    long  1
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)
