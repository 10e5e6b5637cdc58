"""Objects of a map of classes as `seunet segment` makes them, in tensors alone, so that TorchScript compiles it.

The rules are those of `results/splitting.py`, where they are explained.  What is a loop over pixels there is a step for
all pixels here; only basins that meet are looked at one by one.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad


def parted(inside: Tensor, rim: Tensor | None, neck: float, slack_px: float, min_core_px: int) -> Tensor:
    """The part that each pixel of a mask [H, W] belongs to, as positive numbers; 0 outside."""
    if rim is None:
        return parts_of(inside, neck, slack_px)
    wholes = connected(inside.float()).long()
    touched = torch.zeros(int(wholes.max()) + 1, dtype=torch.bool, device=inside.device)
    touched[wholes[inside & rim]] = True
    marks = parts_of(inside & ~rim, neck, slack_px)
    small = torch.bincount(marks.flatten()) < min_core_px
    marks = torch.where(small[marks] & touched[wholes], 0, marks)
    left_over = touched.clone()
    left_over[wholes[marks > 0]] = False
    again = inside & left_over[wholes]
    by_necks = parts_of(again, neck, slack_px)
    marks = torch.where(again, by_necks + marks.max(), marks)
    return grown_into(marks, inside)


def parts_of(inside: Tensor, neck: float, slack_px: float) -> Tensor:
    """Basins of the inscribed radius, joined where there is no neck between them; numbers from 1, in no order."""
    framed = pad(inside.float(), [1, 1, 1, 1]) > 0
    heights = squared_distance(framed).flatten()
    places = framed.flatten().nonzero()[:, 0]
    if places.numel() == 0:
        return torch.zeros_like(inside, dtype=torch.long)
    places = places[torch.sort(heights[places], descending=True, stable=True)[1]]
    count = places.numel()
    # From here on a pixel is its turn, the highest first; those that are not inside come after all others.
    turns = torch.full_like(heights, count)
    turns[places] = torch.arange(count, device=inside.device)
    width = framed.shape[1]
    around = torch.stack([turns[places - width], turns[places - 1], turns[places + 1], turns[places + width]])
    here = turns[places]
    radius = heights[places].double().sqrt() - 0.5
    basins = _basins(around, here, heights[places])
    theirs = torch.where(around < here, basins[around.clamp(max=count - 1)], basins)
    meeting = (theirs != basins).T.nonzero()
    ours: list[int] = basins[meeting[:, 0]].tolist()
    others: list[int] = theirs[meeting[:, 1], meeting[:, 0]].tolist()
    necks: list[float] = radius[meeting[:, 0]].tolist()
    peaks: list[float] = radius.tolist()
    parents: list[int] = here.tolist()
    for number, neck_radius in enumerate(necks):
        a, b = _root(parents, ours[number]), _root(parents, others[number])
        smaller = min(peaks[a], peaks[b])
        if a != b and neck_radius > min(neck * smaller, smaller - slack_px):
            if peaks[a] >= peaks[b]:
                parents[b] = a
            else:
                parents[a] = b
    roots = torch.tensor(parents, device=inside.device)
    marks = torch.zeros_like(heights)
    marks[places] = _followed(roots)[basins] + 1
    return marks.view(framed.shape)[1:-1, 1:-1]


def _root(parents: list[int], basin: int) -> int:
    while parents[basin] != basin:
        basin = parents[basin]
    return basin


def _basins(around: Tensor, here: Tensor, heights: Tensor) -> Tensor:
    """The peak from which each pixel is reached: it joins the highest neighbour whose turn was before.

    Of equally high ones the first: above, left, right, below.
    """
    count = here.numel()
    best, towards = torch.full_like(here, -1), here
    for other in around:
        height = torch.where(other < here, heights[other.clamp(max=count - 1)], -1)
        towards = torch.where(height > best, other, towards)
        best = torch.maximum(best, height)
    return _followed(towards)


def _followed(towards: Tensor) -> Tensor:
    """Where each ends that goes on and on to the one it points at."""
    further = towards[towards]
    while bool((further != towards).any()):
        towards = further
        further = towards[towards]
    return towards


def squared_distance(framed: Tensor) -> Tensor:
    """Squared distance of each pixel to the nearest one that is not inside, whole numbers; the frame is outside."""
    rows = torch.arange(framed.shape[0], device=framed.device)[:, None].expand_as(framed)
    above = torch.where(framed, 0, rows).cummax(0)[0]
    below = torch.where(framed, 0, rows.flip(0)).flip(0).cummax(0)[0].flip(0)
    upright = torch.minimum(rows - above, rows.flip(0) - below).square()
    squared = upright.clone()
    step = 1
    while step * step < int(squared.max()) and step < framed.shape[1]:
        squared[:, step:] = torch.minimum(squared[:, step:], upright[:, :-step] + step * step)
        squared[:, :-step] = torch.minimum(squared[:, :-step], upright[:, step:] + step * step)
        step += 1
    return squared


def grown_into(marks: Tensor, inside: Tensor) -> Tensor:
    """Each pixel inside without a mark takes that of the nearest part, by steps through edges, all parts in turn."""
    marks, open_ = pad(marks, [1, 1, 1, 1]).flatten(), pad(inside.float(), [1, 1, 1, 1]).flatten() > 0
    width = inside.shape[1] + 2
    never = 4 * marks.numel()
    turns = torch.where(marks > 0, torch.arange(marks.numel(), device=marks.device), never)
    waiting = (open_ & (marks == 0)).nonzero()[:, 0]
    while waiting.numel() > 0:
        # Whoever lies below is reached as the last of a pixel's four neighbours: the sides are the other way round.
        asked = torch.stack([waiting + width, waiting + 1, waiting - 1, waiting - width])
        keys = turns[asked] * 4 + torch.arange(4, device=marks.device)[:, None]
        first, side = keys.min(0)
        reached = first < never
        if not bool(reached.any()):
            break
        order = torch.sort(first[reached])[1]
        pixels = waiting[reached][order]
        marks[pixels] = marks[asked.gather(0, side[None])[0][reached][order]]
        turns = torch.full_like(turns, never)
        turns[pixels] = torch.arange(pixels.numel(), device=marks.device)
        waiting = waiting[~reached]
    return marks.view(inside.shape[0] + 2, width)[1:-1, 1:-1]


def connected(mask: Tensor) -> Tensor:
    """4-connected parts of a mask [H, W] of 0 and 1, each with a number of its own, as float64.

    Every pixel takes the largest number around it, and then the number of the pixel that this number stands for:
    numbers run along a part in few rounds, whatever its length.
    """
    numbers = torch.arange(1, mask.numel() + 1, device=mask.device, dtype=torch.float64).view(mask.shape)
    labels = numbers * mask
    before = labels - 1
    while bool((before != labels).any()):
        before = labels
        flat = (grown(labels) * mask).flatten()
        places = (flat.long() - 1).clamp(min=0)
        labels = torch.maximum(flat, flat[places] * mask.flatten()).view(mask.shape)
    return labels


def grown(values: Tensor) -> Tensor:
    """The largest of a pixel and its four neighbours, [H, W]; beyond the image there is nothing."""
    image = values[None, None]
    across = max_pool2d(image, [1, 3], [1, 1], [0, 1])
    down = max_pool2d(image, [3, 1], [1, 1], [1, 0])
    return torch.maximum(across, down)[0, 0]


def renumbered(labels: Tensor, min_area_px: int) -> Tensor:
    """1, 2, … for the labels of at least so many pixels, 0 for the others."""
    flat = labels.flatten()
    areas = torch.bincount(flat)
    kept = areas >= min_area_px
    kept[0] = False
    return torch.where(kept, kept.cumsum(0), torch.zeros_like(areas))[flat].view(labels.shape)
