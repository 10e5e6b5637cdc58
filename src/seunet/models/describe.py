"""What there is to know of a model: its options, size and σ, and the card that lies beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seunet.limits import MAX_CONFIG_BYTES
from seunet.models.files import load, weights_sha256
from seunet.models.registry import create_model
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet
from seunet.storage.files import read_limited

CARD_NAME = "README.md"


def describe_model_folder(folder: Path) -> dict[str, Any]:
    """The model that `save_pretrained` wrote, checked in full, and the text of its card if there is one."""
    model = load(folder)
    path = folder / CARD_NAME
    text = read_limited(path, MAX_CONFIG_BYTES).decode(errors="replace") if path.is_file() else None
    return {"name": folder.name, **_facts(model), "weights_sha256": weights_sha256(model), "readme": text}


def describe_architecture(name: str) -> dict[str, Any]:
    """A model that `create_model` knows, as it is before training."""
    return {"name": name, **_facts(create_model(name)), "weights_sha256": None, "readme": None}


def _facts(model: ScaleUNet) -> dict[str, Any]:
    return {
        "model": model.name,
        "options": model.config.model_dump(mode="json"),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "heads": model.heads,
        "factor": model.factor,
        "card": None if model.card is None else model.card.model_dump(mode="json"),
        "sigmas": model.sigmas().tolist() if isinstance(model, SEUNet) else None,
    }


def model_text(description: dict[str, Any]) -> str:
    """A few lines to read, and the card."""
    rows = [
        ("model", description["model"]),
        ("weights", description["weights_sha256"] or "not trained"),
        ("parameters", f"{description['parameters']:,}"),
        ("heads", str(description["heads"])),
    ]
    if description["factor"] != 1:
        rows.append(("σ ×", f"{description['factor']:g}"))
    for part in (description["card"] or {}, description["options"]):
        rows += [(key, _option_text(value)) for key, value in part.items()]
    lines = [description["name"], *(f"  {key:16} {value}" for key, value in rows)]
    if description["sigmas"] is not None:
        lines += ["  σ in pixels of each layer's map, one column per scale:"]
        for number, layer in enumerate(description["sigmas"], start=1):
            lines.append(f"    layer {number:2}  " + " ".join(f"{sigma:6.3f}" for sigma in layer))
    if description["readme"]:
        lines += ["", description["readme"].rstrip()]
    return "\n".join(lines)


def _option_text(value: object) -> str:
    if value is None or value in ("", []):
        return "–"
    return ", ".join(str(part) for part in value) if isinstance(value, list) else str(value)
