"""Which model, which data, which source: what a report says of where its numbers come from."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import torch

import seunet
from seunet.data.windows import WindowDataset
from seunet.errors import InputError
from seunet.models.files import weights_sha256
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.observers import peak_memory_bytes

MPP_TOLERANCE = 1.05


def identity_of(
    kind: str, model: ScaleUNet, windows: WindowDataset, split: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    """What a report of this format depends on: the release, the model, the data and what was asked for."""
    check_fit(model, windows)
    facts = {"model": model_facts(model), "data": data_facts(windows, split)}
    return {"format": kind, "seunet": seunet.__version__, **facts, "arguments": arguments}


def model_facts(model: ScaleUNet) -> dict[str, Any]:
    """Which model it is, whatever its folder is called."""
    return {
        "name": model.name,
        "options": model.config.model_dump(mode="json"),
        "factor": model.factor,
        "heads": model.heads,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "weights_sha256": weights_sha256(model),
    }


def sigma_facts(model: ScaleUNet) -> dict[str, Any] | None:
    """σ of every layer and scale with its bounds (the paper's figure 3); None for a model without σ."""
    if not isinstance(model, SEUNet):
        return None
    layers = model.gaussian_layers()
    return {
        "sigmas": [[round(value, 6) for value in row] for row in model.sigmas().tolist()],
        "lower": [list(layer.bounds.lower) for layer in layers],
        "upper": [list(layer.bounds.upper) for layer in layers],
        "mode": layers[0].mode,
    }


def data_facts(windows: WindowDataset, split: str) -> dict[str, Any]:
    """Which windows of which set."""
    manifest = windows.manifest
    names = sorted({windows.image_name(number) for number in range(len(windows))})
    known = [image.mpp for image in manifest.images if image.name in names and image.mpp is not None]
    return {
        "dataset": manifest.dataset,
        "content_hash": manifest.content_hash(),
        "fingerprint": manifest.fingerprint,
        "split": split,
        "images": names,
        "windows": len(windows),
        "window_px": windows.size_px,
        "classes": [entry.name for entry in sorted(manifest.classes, key=lambda entry: entry.code)],
        "colors": [list(entry.color) for entry in sorted(manifest.classes, key=lambda entry: entry.code)],
        "mpp": [min(known), max(known)] if known else None,
    }


def data_notes(facts: dict[str, Any], model_mpp: float | None = None) -> list[str]:
    """What is no fault and yet worth knowing."""
    mpp = facts["mpp"]
    if mpp is None:
        return []
    if mpp[1] > MPP_TOLERANCE * mpp[0]:
        return [f"the images have {mpp[0]:g} to {mpp[1]:g} µm per pixel; s is relative to each image's own pixels"]
    if model_mpp is not None and not 1 / MPP_TOLERANCE <= mpp[0] / model_mpp <= MPP_TOLERANCE:
        return [
            f"the images have {mpp[0]:g} µm per pixel, the model learnt at {model_mpp:g}: "
            f"s = {mpp[0] / model_mpp:.3g} is its own scale here"
        ]
    return []


def check_fit(model: ScaleUNet, windows: WindowDataset) -> None:
    """Refuse a set whose classes or channels are not the model's."""
    known = {entry.code: entry.name for entry in windows.manifest.classes}
    needed = max(known) + 1
    if model.told_classes != needed:
        names = ", ".join(known.values())
        raise InputError(
            f"{windows.root}: has {needed} classes ({names}) and the model {model.told_classes}; "
            "evaluate a model on the classes it was trained for"
        )
    if model.in_channels != 3:
        raise InputError(f"the model takes {model.in_channels} channels; the images of {windows.root} have 3")


def source_commit() -> str | None:
    """The commit of the source this runs from, "+changes" if it differs from it; None if it is no git checkout."""
    root = Path(seunet.__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head, changes = (
            subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True, timeout=20).stdout
            for arguments in (["rev-parse", "HEAD"], ["status", "--porcelain", "--", "src"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head.strip() + ("+changes" if changes else "")


def source_line(document: dict[str, Any]) -> str:
    """The last line of a report: of what weights, data and commits it is."""
    weights, data = document["model"]["weights_sha256"][:12], document["data"]["content_hash"][:12]
    commits = ", ".join(f"`{commit[:12]}`" for commit in document["commits"] if commit)
    return f"weights `{weights}`, data `{data}`" + (f", commit {commits}" if commits else "") + "."


def note_part(clock: dict[str, Any], part: str, seconds: float) -> None:
    """Add what a finished part took; over interruptions times add up and the highest memory counts."""
    clock["seconds"] = round(clock["seconds"] + seconds, 2)
    clock["seconds_by_part"][part] = round(seconds, 2)
    peak = peak_memory_bytes(torch.device("cpu")) / 2**20
    clock["peak_memory_mib"] = round(max(clock["peak_memory_mib"], peak), 1)
