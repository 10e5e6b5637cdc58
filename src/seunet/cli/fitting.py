"""`seunet fit-scale` and `seunet calibrate`: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from seunet.cli.progress import PROGRESS, progress_of

if TYPE_CHECKING:
    from seunet.evaluation.fitting.commands import ScaleFit
    from seunet.evaluation.fitting.head_choices import HeadChoices
    from seunet.training.config import TrainingConfig

SETS = typer.Argument(..., readable=False, metavar="PREPARED…", help="Prepared sets whose images have an mpp.")
HELD_OUT_SETS = typer.Argument(..., readable=False, metavar="PREPARED…", help="Prepared sets with held-out images.")
MODEL = typer.Option(..., "-m", "--model", readable=False, metavar="MODEL", help="A model folder; written to.")
SAMPLES = typer.Option(60, "--samples", min=1, help="Changed parts of each image that are looked at.")
KEEP_TEXTURE = typer.Option(
    False, "--keep-texture", help="Fit what the model's heads say of the scale; its templates of texture stay."
)
IMAGES = typer.Option(
    None, "--images", metavar="NAME,…", help="Held-out images; default: all that the model did not learn from."
)


def fit_scale(
    prepared: list[Path] = SETS,
    model: Path = MODEL,
    samples: int = SAMPLES,
    keep_texture: bool = KEEP_TEXTURE,
    progress: bool = PROGRESS,
) -> None:
    """Make the scale estimator of a model: it then tells the magnification of an image from its pixels.

    Example: seunet fit-scale prepared/lab -m runs/lab/model
    """
    from seunet.evaluation.fitting.commands import fit_scale as run

    with progress_of(progress, timed=True) as show:
        found = run(prepared, model, samples, show, keep_texture)
    print_scale(found)
    print(f"written: {model / 'scale.json'}")


def calibrate(
    prepared: list[Path] = HELD_OUT_SETS, model: Path = MODEL, images: str | None = IMAGES, progress: bool = PROGRESS
) -> None:
    """Choose by held-out images which heads of a model are believed, and how far.

    Example: seunet calibrate prepared/lab -m runs/lab/model
    """
    from seunet.cli.evaluate import names
    from seunet.evaluation.fitting.commands import calibrate as run

    with progress_of(progress, timed=True) as show:
        found = run(prepared, model, names(images), progress=show)
    print_heads(found)
    print(f"written: {model / 'config.json'}")


def check_finish(config: TrainingConfig) -> None:
    """Refuse before hours of training what could not be done after them."""
    if config.finish.fit_scale:
        from seunet.evaluation.fitting.commands import images_with_mpp

        images_with_mpp([one.root for one in config.data.all_sets()])


def finish(config: TrainingConfig, model: Path, progress: bool) -> None:
    """What `finish` of the config asks for, once the training is done; an error leaves the trained model as it is."""
    roots = [one.root for one in config.data.all_sets()]
    if config.finish.fit_scale:
        fit_scale(roots, model, SAMPLES.default, False, progress)
    if config.finish.calibrate:
        calibrate(roots, model, None, progress)


def print_scale(found: ScaleFit) -> None:
    """How the estimator does on what was left out."""
    scores = found.scores()
    left_out = found.estimator.fitted_on["left_out_at_a_time"]
    print(
        f"scale estimator of {found.estimator.fitted_on['images']} images, judged by leaving out {left_out} at a time:"
    )
    for name, row in (("images", scores["whole_images"]), ("changed parts", scores["changed_parts"])):
        if row["count"]:
            print(f"  {name}: {100 * row['within_25_percent']:.0f} % within 25 %, median × {row['median_factor']:.2f}")
    print(
        f"  refused {100 * scores['refused']:.0f} %; the 90 % interval covers {100 * scores['interval_covers']:.0f} %, "
        f"median half-width × {scores['interval_half_width']:.2f}"
    )
    if found.estimator.heads is not None:
        print("  the heads of the model have their say in it")


def print_heads(found: HeadChoices) -> None:
    """What was chosen, and the IoUs it rests on."""
    low, high = found.scaled_filters_range
    print(f"matched head {found.matched_head}; filters are scaled for s from {low:g} to {high:g}, beyond it resampled")
    print(f"fusion where the scale is not known: {found.blind_fusion}")
    for way, rows in found.ious.items():
        print(f"  {way}: " + ", ".join(f"{name} {100 * value:.1f}" for name, value in rows.items()))
