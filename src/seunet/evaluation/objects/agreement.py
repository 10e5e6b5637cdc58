"""Whether a model agrees with itself: the area it outlines in an image, and in the same image made smaller or stained
otherwise.  It needs no masks.

The area is a share of the image, told nothing, as `seunet segment` gives it.  Smaller images are averages of pixels,
as a scan at low power is.  Eosin is changed alone, by the stains fitted to the image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

from seunet import __version__
from seunet.errors import InputError, SeunetError, StorageError
from seunet.evaluation.objects.as_segment import USUAL, Found, found_objects
from seunet.evaluation.page import markdown_table
from seunet.evaluation.provenance import model_facts
from seunet.evaluation.report_folder import ReportFolder
from seunet.images.image import RgbArray
from seunet.images.sandboxed import open_guarded
from seunet.maths.rescaling import rescale_pixels
from seunet.maths.stain import START, NoStains, fit_stains, with_gains
from seunet.models.unet_skeleton import ScaleUNet
from seunet.progress import Progress, silent
from seunet.segmentation.inputs import Item

FORMAT: Final = "seunet-agreement/1"
LARGEST_PX: Final = 4096
"""Per side; of a larger image the middle is taken."""
SMALLEST_PX: Final = 64
"""Per side of the smallest variant: less than that is no image."""

WITHIN: Final = 1.2
DOUBLE: Final = 2.0


class Variant(NamedTuple):
    """What is done to an image."""

    name: str
    size: float = 1.0
    eosin: float = 1.0

    def of(self, rgb: RgbArray) -> RgbArray:
        """The image changed like that."""
        if self.eosin != 1:
            fitted = fit_stains(rgb)
            matrix = (
                START / np.linalg.norm(START, axis=1, keepdims=True) if isinstance(fitted, NoStains) else fitted.matrix
            )
            rgb = with_gains(rgb, matrix, (1.0, self.eosin))
        return rescale_pixels(rgb, self.size, antialias=True)


VARIANTS: Final = (
    Variant("½", 0.5),
    Variant("¼", 0.25),
    Variant("eosin × 0.7", 1, 0.7),
    Variant("eosin × 1.4", 1, 1.4),
)


def measure_agreement(
    model: ScaleUNet, items: Sequence[Item], out: Path, *, overwrite: bool = False, progress: Progress = silent
) -> dict[str, Any]:
    """The report OUT/agreement.json; each image is kept when it is finished, and an interrupted run resumes.

    What cannot be read is listed in `failed` with the line that says why, and the others are done.
    """
    counts = model.classes == 2 if model.card is None else model.card.instances
    if not counts:
        raise InputError(
            f"this {model.name} finds regions, not objects to count; --agreement compares areas of objects"
        )
    identity = {
        "format": FORMAT,
        "seunet": __version__,
        "model": model_facts(model),
        "images": [[item.name, item.path.stat().st_size] for item in items],
        "arguments": {
            "variants": [list(variant) for variant in VARIANTS],
            "choices": USUAL.deciding(),
            **({} if model.scale_estimator is None else {"estimator": model.scale_estimator.sha256()}),
        },
    }
    folder = ReportFolder(out, "agreement")

    def work(document: dict[str, Any]) -> None:
        _work_through(model, items, document, folder, progress)
        document["scores"] = scores(document["results"])

    return folder.made(identity, {"failed": {}}, "scores", work, overwrite)


def _work_through(
    model: ScaleUNet, items: Sequence[Item], document: dict[str, Any], folder: ReportFolder, progress: Progress
) -> None:
    finished = {row["image"] for row in document["results"]} | set(document["failed"])
    for number, item in enumerate(items):
        progress(number, len(items), item.name)
        if item.name in finished:
            continue
        with folder.part(document, item.name):
            try:
                document["results"].append(_of_image(model, item))
            except StorageError:
                raise
            except SeunetError as error:
                document["failed"][item.name] = " ".join(str(error).split())


def _of_image(model: ScaleUNet, item: Item) -> dict[str, Any]:
    rgb = _middle(item)
    found = {name: found_objects(changed, model, device=model.device.type) for name, changed in _changed(rgb)}
    whole = found.pop("1").area_share
    return {
        "image": item.name,
        "pixels_sha256": hashlib.sha256(rgb.tobytes()).hexdigest(),
        "size_px": list(rgb.shape[:2]),
        "area_share": round(whole, 6),
        "variants": {name: _compared(each, whole) for name, each in found.items()},
    }


def _changed(rgb: RgbArray) -> Iterable[tuple[str, RgbArray]]:
    yield "1", rgb
    yield from ((variant.name, variant.of(rgb)) for variant in VARIANTS)


def _compared(found: Found, whole: float) -> dict[str, Any]:
    share = found.area_share
    used = found.scale.used
    return {
        "area_share": round(share, 6),
        "ratio": round(share / whole, 4) if whole else (1.0 if not share else None),
        "mpp": None if used is None else used.mean,
    }


def _middle(item: Item) -> RgbArray:
    with closing(open_guarded(item.path, item.mpp)) as image:
        bounds = image.bounds
        width, height = min(bounds.width_px, LARGEST_PX), min(bounds.height_px, LARGEST_PX)
        if min(width, height) * min(variant.size for variant in VARIANTS) < SMALLEST_PX:
            least = round(SMALLEST_PX / min(variant.size for variant in VARIANTS))
            raise InputError(f"{item.path.name}: {width}×{height} px; {least} per side are needed to be shrunk to ¼")
        x, y = bounds.x + (bounds.width_px - width) // 2, bounds.y + (bounds.height_px - height) // 2
        return image.read(0, x, y, width, height)


def scores(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each variant, for both sizes and for both stains: how many agree within 20 %, and how many are doubled."""
    sizes, stains = (tuple(v.name for v in VARIANTS if (v.size != 1) == small) for small in (True, False))
    groups = [*((variant.name, (variant.name,)) for variant in VARIANTS), ("sizes", sizes), ("stains", stains)]
    rows = []
    for name, variants in groups:
        ratios = [row["variants"][each]["ratio"] for row in results for each in variants]
        # Where nothing is found at full size and something else elsewhere, no ratio can say by how much it is more.
        known = [ratio for ratio in ratios if ratio is not None]
        within = sum(1 / WITHIN <= ratio <= WITHIN for ratio in known)
        doubled = sum(ratio > DOUBLE for ratio in known) + len(ratios) - len(known)
        rows.append(
            {
                "variant": name,
                "cases": len(ratios),
                "within_20_percent": round(within / len(ratios), 4) if ratios else None,
                "above_2_times": doubled,
                "median_ratio": round(median(known), 4) if known else None,
                "highest_ratio": max(known, default=None),
            }
        )
    return rows


HEADER: Final = ("image changed", "cases", "within 20 %", "above 2 ×", "median ratio", "highest")
_WORDS: Final = {"½": "shrunk to ½", "¼": "shrunk to ¼", "sizes": "**both sizes**", "stains": "**both stains**"}


def table_rows(document: dict[str, Any]) -> list[list[str]]:
    """What `HEADER` heads."""
    return [
        [
            _WORDS.get(row["variant"], row["variant"]),
            str(row["cases"]),
            "–" if row["within_20_percent"] is None else f"{100 * row['within_20_percent']:.0f} %",
            str(row["above_2_times"]),
            *("–" if row[name] is None else f"{row[name]:.2f}" for name in ("median_ratio", "highest_ratio")),
        ]
        for row in document["scores"]
    ]


def markdown(document: dict[str, Any]) -> str:
    """agreement.md: the table, and a line per image."""
    names = [variant.name for variant in VARIANTS]
    each = [
        [row["image"], f"{100 * row['area_share']:.2f} %", *(_text(row["variants"][name]["ratio"]) for name in names)]
        for row in document["results"]
    ]
    intro = (
        f"# Agreement of {document['model']['name']} with itself\n\nThe area of objects, told nothing, relative to "
        "that in the image as it is. Shrunk with averaging; eosin: its optical density alone.\n"
    )
    weights = document["model"]["weights_sha256"][:12]
    parts = [intro, markdown_table(HEADER, table_rows(document)), "", "## By image\n"]
    parts += [markdown_table(["image", "area of objects", *names], each), ""]
    parts += [f"Not done: {line}." for line in document["failed"].values()]
    return "\n".join([*parts, *([""] if document["failed"] else []), f"weights `{weights}`."]) + "\n"


def _text(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}"
