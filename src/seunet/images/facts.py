"""What we see in an image: as plain JSON values, and as text for people."""

from __future__ import annotations

from typing import Any

from seunet.images.image import Bounds, Facts, Image, Level, Mpp


def describe(image: Image) -> dict[str, Any]:
    """All that is known of an image without reading its pixels."""
    return {
        "name": image.name,
        "format": image.format,
        "levels": [level._asdict() for level in image.levels],
        "mpp": None if image.mpp is None else {name: getattr(image.mpp, name) for name in ("x", "y", "source")},
        "bounds": image.bounds._asdict(),
        "warnings": list(image.warnings),
        "properties": dict(image.properties),
    }


def facts_of(description: dict[str, Any]) -> Facts:
    """The way back from `describe`."""
    typed = {
        "levels": tuple(Level(**level) for level in description["levels"]),
        "mpp": None if description["mpp"] is None else Mpp(**description["mpp"]),
        "bounds": Bounds(**description["bounds"]),
        "warnings": tuple(description["warnings"]),
    }
    return Facts(**description | typed)


def description_text(description: dict[str, Any]) -> str:
    """A few lines to read."""
    first = description["levels"][0]
    rows = [
        ("format", description["format"]),
        ("size", f"{first['width_px']} × {first['height_px']} px"),
        ("µm per pixel", _mpp_text(description["mpp"])),
    ]
    if "scale_from_pixels" in description:
        rows.append(("from the pixels", description["scale_from_pixels"]["text"]))
    for number, level in enumerate(description["levels"][1:], start=1):
        size = f"{level['width_px']} × {level['height_px']} px"
        rows.append((f"level {number}", f"{size}, 1 : {level['downsample']:.4g}"))
    bounds = description["bounds"]
    if bounds != {"x": 0, "y": 0, "width_px": first["width_px"], "height_px": first["height_px"]}:
        part = f"{bounds['width_px']} × {bounds['height_px']} px from ({bounds['x']}, {bounds['y']})"
        rows.append(("scanned part", part))
    rows += [(key, _value_text(value)) for key, value in description["properties"].items()]
    rows += [("warning", line) for line in description["warnings"]]
    if doubt := description.get("scale_from_pixels", {}).get("conflict"):
        rows.append(("warning", doubt))
    return "\n".join([description["name"], *(f"  {key:16} {value}" for key, value in rows)])


def _mpp_text(mpp: dict[str, Any] | None) -> str:
    if mpp is None:
        return "unknown"
    sides = f"{mpp['x']:.4g}" if mpp["x"] == mpp["y"] else f"{mpp['x']:.4g} × {mpp['y']:.4g}"
    return f"{sides} ({mpp['source']})"


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " × ".join(str(part) for part in value) if isinstance(value, list) else str(value)
