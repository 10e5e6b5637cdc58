"""`seunet equivariance`: parse, call, print."""

from __future__ import annotations

from pathlib import Path

import typer

from seunet.cli.evaluate import (
    ANTIALIAS,
    DATA,
    IMAGES,
    MODEL,
    OUT,
    OVERWRITE,
    SPLIT,
    TILES,
    names,
    tile_sizes,
)
from seunet.cli.progress import PROGRESS, duration, progress_of
from seunet.cli.stopping import resumable

SCALES = typer.Option(None, "--scales", metavar="S,…", help="Test scales; default: the paper's 16 without 1.")


def equivariance(
    model: Path = MODEL,
    data: Path = DATA,
    out: Path = OUT,
    split: str = SPLIT,
    images: str | None = IMAGES,
    tiles: str | None = TILES,
    scales: str | None = SCALES,
    antialias: bool = ANTIALIAS,
    overwrite: bool = OVERWRITE,
    progress: bool = PROGRESS,
) -> None:
    """Measure how far a model is from scale-equivariant. Repeat an interrupted command to resume.

    Example: seunet equivariance runs/nuclei/model prepared/monuseg -o out/nuclei
    """
    from seunet.evaluation.equivariance_report import VARIANTS, EquivarianceSettings, markdown, measure_equivariance
    from seunet.evaluation.figures.filters import errors_figure
    from seunet.evaluation.figures.style import write_png
    from seunet.evaluation.test_scales import parsed_scales
    from seunet.models.files import load
    from seunet.storage.atomic import write_text

    chosen = {} if scales is None else {"scales": parsed_scales(scales)}
    settings = EquivarianceSettings(
        split=split, images=names(images), tiles_px=tile_sizes(tiles), antialias=antialias, **chosen
    )
    with resumable(), progress_of(progress, timed=True) as show:
        document = measure_equivariance(load(model), data, out, settings, overwrite=overwrite, progress=show)
    write_text(out / "equivariance.md", markdown(document))
    if document["model"]["heads"] > 1:
        write_png(errors_figure(document, VARIANTS[0]), out / "equivariance.png")
    print(f"equivariance error of the logits, mean over {len(settings.scales)} scales:")
    for variant, label in zip(VARIANTS, ("", ", without the mean of each map", ", not squared"), strict=True):
        mean = document["mean"][variant]
        pairs = f"σ-matched {mean['matched']:.3f}, same head {mean['same']:.3f}, best pair {mean['best']:.3f}"
        print(f"  {pairs if document['model']['heads'] > 1 else format(mean['same'], '.3f')}{label}")
    clock = document["clock"]
    print(f"{duration(clock['seconds'])}, {clock['peak_memory_mib']:.0f} MiB: {out / 'equivariance.md'}")
