"""`seunet info` and `seunet warm-up`: parse, call, print."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import typer

from seunet.errors import InputError

TARGET = typer.Argument(
    ..., metavar="FILE|MODEL", help="An image, a slide, a model folder, the name of a model, or hf-hub:owner/name."
)
FULL = typer.Option(False, "--full", help="Of a model: every σ and the whole card.")
AS_JSON = typer.Option(False, "--json", help="Print JSON.")


def info(target: str = TARGET, full: bool = FULL, as_json: bool = AS_JSON) -> None:
    """Describe an image (size, levels, µm per pixel and where that comes from) or a model (its card).

    Example: seunet info slides/CMU-1.svs
    """
    path = Path(target)
    if path.exists() and not path.is_dir():
        from seunet.images.facts import description_text as text

        description = _image(path)
    else:
        from seunet.models.describe import full_model_text, model_text

        description, text = _model(target), full_model_text if full else model_text
    print(json.dumps(description, indent=2, ensure_ascii=False) if as_json else text(description))


def _model(target: str) -> dict[str, Any]:
    from seunet.hub.repository import is_on_hub
    from seunet.models.describe import describe_architecture, describe_model
    from seunet.models.registry import list_models

    if is_on_hub(target) or Path(target).is_dir() or target in list_models(pretrained=True):
        return describe_model(target)
    if target in list_models():
        return describe_architecture(target)
    known = ", ".join([*list_models(pretrained=True), *list_models()])
    raise InputError(f"{target}: no such file, model folder or model; check the path (models: {known})")


def _image(path: Path) -> dict[str, Any]:
    from contextlib import closing

    from seunet.images.facts import describe
    from seunet.images.sandboxed import open_guarded
    from seunet.scale.of_slide import estimate_slide
    from seunet.segmentation.scale_choice import describe_estimate

    with closing(open_guarded(path)) as image:
        return describe(image) | {"scale_from_pixels": describe_estimate(estimate_slide(image), image.mpp)}


def warm_up() -> None:
    """Compile what the first `segment` would wait for; what is compiled already is left alone.

    Example: seunet warm-up
    """
    from seunet.segmentation.warm_up import warm_up as compile_everything

    began = time.monotonic()
    folder = compile_everything()
    print(f"compiled functions are in {folder} ({time.monotonic() - began:.0f} s)")
