"""Patients → splits.  No patient is ever in two: what is drawn is patients, not images."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from seunet.data.prepare.plan import Found
from seunet.errors import InputError


def draw_patients(patients: Iterable[str], fraction: float, seed: int) -> set[str]:
    """About `fraction` of the patients, at least one of two or more, by the order of their hashes.

    A pure function of names and seed: the order of files and the machine play no part.
    """
    if not 0 <= fraction < 1:
        raise InputError(f"`fraction` (={fraction:g}) must be at least 0 and below 1")
    names = sorted(set(patients), key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).digest())
    wanted = round(fraction * len(names))
    if fraction > 0 and len(names) > 1:
        wanted = min(max(wanted, 1), len(names) - 1)
    return set(names[:wanted])


def move_share(found: Sequence[Found], fraction: float, seed: int, to: str) -> list[Found]:
    """Move the images of a share of the training patients to the split `to`."""
    drawn = draw_patients((item.patient for item in found if item.split == "train"), fraction, seed)
    return [item._replace(split=to) if item.split == "train" and item.patient in drawn else item for item in found]
