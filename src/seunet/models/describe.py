"""What there is to know of a model: its options, size and σ, and the card that lies beside it."""

from __future__ import annotations

import textwrap
from typing import Any, Final

from seunet.limits import MAX_CONFIG_BYTES
from seunet.models.files import load, weights_sha256
from seunet.models.places import CARD_NAME, model_folder
from seunet.models.registry import create_model
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet
from seunet.storage.files import read_limited

SCREEN_COLUMNS: Final = 100
SHORT_CARD: Final = ("trained_on", "mpp", "class_names", "instances", "matched_head", "blind_fusion")
"""What of a card stands on one screen, after its licence."""


def describe_model(name_or_folder: str) -> dict[str, Any]:
    """A model of the package, in a folder or on the hub, checked in full, and the text of its card if there is one."""
    model = load(name_or_folder)
    path = model_folder(model.source or name_or_folder) / CARD_NAME
    text = read_limited(path, MAX_CONFIG_BYTES).decode(errors="replace") if path.is_file() else None
    name = model.source or path.parent.name
    return {"name": name, **_facts(model), "weights_sha256": weights_sha256(model), "readme": text}


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
    """One screen: what it is, what it may be used for, its card and options in short."""
    card, sigmas = description["card"] or {}, description["sigmas"]
    rows = [("licence", card["licence"] or "not stated; see its card")] if card else []
    rows += _head_rows(description)
    rows += [(key, _option_text(card[key])) for key in SHORT_CARD if key in card]
    rows.append(("options", "; ".join(f"{key} {_option_text(value)}" for key, value in description["options"].items())))
    if sigmas is not None:
        ends = (1, sigmas[0]), (len(sigmas), sigmas[-1])
        rows.append(("σ, px", ", ".join(f"{min(row):.2f}–{max(row):.2f} in layer {number}" for number, row in ends)))
    rows.append(("more", f"seunet info {description['name']} --full (the whole card) or --json"))
    wrap = textwrap.TextWrapper(SCREEN_COLUMNS, subsequent_indent=" " * 19, break_on_hyphens=False).fill
    return "\n".join([description["name"], *(wrap(f"  {key:16} {value}") for key, value in rows)])


def full_model_text(description: dict[str, Any]) -> str:
    """Everything: each field of the card, each option, each σ, and the card's text."""
    rows = _head_rows(description)
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


def _head_rows(description: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("model", description["model"]),
        ("weights", description["weights_sha256"] or "not trained"),
        ("parameters", f"{description['parameters']:,}"),
        ("heads", str(description["heads"])),
    ]
    return rows if description["factor"] == 1 else [*rows, ("σ ×", f"{description['factor']:g}")]


def _option_text(value: object) -> str:
    if value is None or value in ("", []):
        return "–"
    return ", ".join(str(part) for part in value) if isinstance(value, list) else str(value)
