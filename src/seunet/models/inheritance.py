"""What a model that goes on from a trained one takes over from it: what was measured there and is still true here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from seunet.models.card import ModelCard
from seunet.models.unet_skeleton import ScaleUNet

SAME_SCALE_OCTAVES: Final = 0.25
"""Half the step between the heads of `nuclei`: farther apart, another head would fit the images."""


class Inheritance(NamedTuple):
    """The card of the new model, and for people what it has from the start and what it has not."""

    card: ModelCard
    kept: list[str]
    lost: list[str]


def same_classes(own: ModelCard, start: ScaleUNet) -> bool:
    """Whether the head of `start` tells what is to be told: as many classes, the foreground of the same names.

    A rim is part of its objects, so whether one of them has it makes no difference.
    """
    names = () if start.card is None else start.card.told_names
    if start.told_classes != len(own.told_names):
        return False
    return not names or [name.casefold() for name in names[1:]] == [name.casefold() for name in own.told_names[1:]]


def inherit(own: ModelCard, start: ScaleUNet, learnt_at_scale_1: int | None = None) -> Inheritance:
    """`own` is what the data says; `learnt_at_scale_1` the head that the recipe shows the images as they are, if one.

    - what the heads were measured to be needs the same classes, at the same µm per pixel;
    - the estimator reads pixels and not predictions: it holds for any H&E, and needs to know at what mpp was learnt;
    - what the licence of the first images asks, it asks of all weights that come from them.
    """
    card = start.card or ModelCard()
    changes: dict[str, Any] = {
        "trained_on": _joined(card.trained_on, own.trained_on),
        "learnt_from": tuple(sorted({*card.learnt_from, *own.learnt_from})),
    }
    kept: list[str] = []
    lost: list[str] = []
    for item in _items(own, start, card, learnt_at_scale_1):
        if item.lost is None:
            changes |= item.changes
            kept += [item.words] if item.words else []
        else:
            lost.append(f"{item.words} ({item.lost})")
    return Inheritance(own.model_copy(update=changes), kept, lost)


class _Item(NamedTuple):
    """Something that the start has: what it is called, what it is in the card, why it is not true here."""

    words: str
    changes: dict[str, Any]
    lost: str | None = None


def _items(own: ModelCard, start: ScaleUNet, card: ModelCard, learnt_at_scale_1: int | None) -> Iterator[_Item]:
    other_classes = None if same_classes(own, start) else "other classes"
    other_scale = _other_scale(own, card)
    if start.scale_estimator is not None:
        unusable = "the set states no µm per pixel: prepare it with --mpp" if own.mpp is None else None
        yield _Item("scale estimator", {}, unusable)
    if card.instances and not own.instances:
        yield _Item("objects counted one by one", {"instances": True}, other_classes)
    if learnt_at_scale_1 is not None:
        yield _Item(f"matched head {learnt_at_scale_1}", {"matched_head": learnt_at_scale_1})
    elif card.matched_head is not None:
        yield _Item(f"matched head {card.matched_head}", {"matched_head": card.matched_head}, other_scale)
    if start.card is not None and other_scale is None:
        yield _Item("", {"scaled_filters_range": card.scaled_filters_range})
    if card.blind_fusion != own.blind_fusion:
        yield _Item(f"blind fusion {card.blind_fusion}", {"blind_fusion": card.blind_fusion}, other_classes)
    if card.calibration is not None:
        measured = {"calibration": card.calibration, "calibrated_on": card.calibrated_on}
        yield _Item("calibration of the heads", measured, other_classes or other_scale)
    if card.licence:
        yield _Item(f"licence: {card.licence}", {"licence": card.licence})


def _other_scale(own: ModelCard, start: ModelCard) -> str | None:
    """Why what was measured at the scale of `start` is not true at that of the new images; None if it is."""
    if own.mpp is None or start.mpp is None:
        return f"{'the set' if own.mpp is None else 'the start'} states no µm per pixel"
    if abs(math.log2(own.mpp / start.mpp)) > SAME_SCALE_OCTAVES:
        return f"measured at {start.mpp:g} µm per pixel, the set has {own.mpp:g}"
    return None


def _joined(before: str, now: str) -> str:
    return "; then ".join(dict.fromkeys(text for text in (before, now) if text))
