"""`seunet demo`: a real tissue image at three magnifications, none of them stated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from seunet.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAGE: Final = "demo.html"
TITLE: Final = "One image, three magnifications"
SOURCE: Final = (
    "A real tissue image (scikit-image's *immunohistochemistry*: colon, haematoxylin and DAB, a stain the model has "
    "never seen) at half, once and twice its size. The magnification is not stated: the "
    "model `nuclei` of the package estimates it from the pixels, scales its filters or the pixels to match the "
    "training, and predicts with the head that learnt at that scale. On the right: which head is surest when the scale "
    "is not estimated. The heads share their weights and differ in the size of their filters. The surest head is not "
    "always the one that fits, which is why the scale is estimated."
)
OUT = typer.Option("-o", "--out", "--output", metavar="OUT", help="Folder for the page.")
MODEL = typer.Option("-m", "--model", metavar="MODEL", help="A model of the package, or a model folder.")


def demo(out: Annotated[Path, OUT] = Path("out/demo"), model: Annotated[str, MODEL] = "nuclei") -> None:
    """Segment a real tissue image at three magnifications and write one page to look at.

    Example: seunet demo -o out/demo
    """
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file, but -o takes a folder; choose another name")
    image = tissue_image()

    from seunet.evaluation.demo import at_scales, counts_table, page
    from seunet.evaluation.page import as_html, write_pictures
    from seunet.models.files import load
    from seunet.storage.atomic import write_text

    shown = at_scales(image, load(model))
    blocks = page(TITLE, SOURCE, shown, out / "figures")
    write_pictures(blocks)
    write_text(out / PAGE, as_html(TITLE, blocks))
    table = counts_table(shown)
    print(aligned([table.header, *table.rows]))
    print(f"\n{out / PAGE}")


def tissue_image() -> NDArray[np.uint8]:
    """scikit-image's immunohistochemistry image: uint8 [512, 512, 3]."""
    try:
        from skimage.data import immunohistochemistry
    except ImportError as error:
        raise InputError("the demo's image needs scikit-image; pip install scikit-image") from error
    image: NDArray[np.uint8] = immunohistochemistry()  # type: ignore[no-untyped-call]
    return image


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The rows as columns of text.

    >>> print(aligned([["", "a"], ["long", "1"]]))
          a
    long  1
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)
