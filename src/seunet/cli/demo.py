"""`seunet demo`: one picture that shows what scale equivariance is, on a real tissue image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from seunet.atomic import atomic_path
from seunet.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from seunet.evaluation.scale_matching import FilterStudy, ScaleMatch

PICTURE: Final = "filters-and-equivariance.png"
_CROP_PX: Final = 256
_TOLD_SCALES: Final = (0.5, 2.0)


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="Folder for the picture.")] = Path(
        "out/demo"
    ),
) -> None:
    """Draw multi-scale filters and how they match on a rescaled tissue image.

    Example: seunet demo -o out/demo
    """
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file, but -o takes a folder; choose another name")
    image = tissue_image()

    from seunet.evaluation.filters_figure import HEIGHT_PX, WIDTH_PX, filters_figure, save_png
    from seunet.evaluation.scale_matching import filter_study

    # Opened before the work, so that a place that cannot be written is told at once.
    with atomic_path(output / PICTURE) as part:
        study = filter_study(image)
        save_png(filters_figure(study), part)
    print(f"{output / PICTURE}  ({WIDTH_PX}×{HEIGHT_PX} px)")
    print(explanation(study))


def tissue_image() -> Tensor:
    """The middle of scikit-image's immunohistochemistry image, real tissue stained with haematoxylin: uint8 [H, W, 3].

    A quarter of it: the whole one is four times the work, and its matrices look the same.
    """
    try:
        from skimage.data import immunohistochemistry
    except ImportError as error:
        raise InputError("the demo's image needs scikit-image; pip install 'seunet[demo]'") from error
    import torch

    whole = torch.from_numpy(immunohistochemistry())  # type: ignore[no-untyped-call]
    top, left = ((size - _CROP_PX) // 2 for size in whole.shape[:2])
    return whole[top : top + _CROP_PX, left : left + _CROP_PX]


def explanation(study: FilterStudy) -> str:
    """What a newcomer sees in the picture, in plain lines."""
    told = [match for match in study.matches if match.scale in _TOLD_SCALES]
    return "\n".join(
        [
            "",
            f"Top row: one filter at {len(study.sigmas)} sizes. The weights are the same, only σ differs.",
            f"Below: the image rescaled by s ({len(study.matches)} values) and filtered with every σ. A matrix has",
            "the error between filter-then-rescale and rescale-then-filter. It is lowest where the ratio of the",
            "two σ is s, or near it if no pair has that ratio:",
            *(_match_line(match) for match in told),
            "SEUNet runs all σ side by side with shared weights, so that one of them fits when the",
            "magnification changes.",
        ]
    )


def _match_line(match: ScaleMatch) -> str:
    row, column = match.best
    original, rescaled = (f"{match.sigmas[k]:g}" for k in (row, column))
    return (
        f"  s = {match.scale:g}: σ {original} on the original and σ {rescaled} on the rescaled image match best, "
        f"error {match.errors[row, column]:.2%}; with σ {original} on both it is {match.errors[row, row]:.2%}"
    )
