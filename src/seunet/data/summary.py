"""What a person wants to know of a prepared set, as lines."""

from __future__ import annotations

from collections import Counter

from seunet.data.manifest import SPLITS, Manifest


def summary_lines(manifest: Manifest) -> list[str]:
    """Images, patients and windows by split, areas by class, counts and decisions."""
    windows = manifest.window_counts()
    lines = []
    for split in SPLITS:
        images = [image for image in manifest.images if image.split == split]
        if images:
            patients = len({image.patient for image in images})
            left_out = sum(image.windows_left_out for image in images)
            rest = f" ({left_out} left out)" if left_out else ""
            lines.append(
                f"{split}: {len(images)} images of {patients} patients, {windows.get(split, 0)} windows of "
                f"{manifest.windows.size_px} px{rest}"
            )
    for split, areas in manifest.class_areas().items():
        total = sum(areas.values())
        shares = ", ".join(f"{name} {100 * area / total:.2f} %" for name, area in areas.items() if area)
        lines.append(f"{split} area: {shares}")
    counts: Counter[str] = Counter()
    for image in manifest.images:
        counts.update({name: n for name, n in image.counts.items() if not name.startswith("source_code_")})
    if counts:
        lines.append(", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items() if count))
    return lines + [f"decision: {sentence}" for sentence in manifest.decisions]
