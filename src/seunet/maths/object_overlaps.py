r"""How well found objects are the true ones: AJI, PQ with its parts DQ and SQ, F1.

All of them follow from the areas of the objects and of their overlaps, which one pass over the pixels gives.  With
G the true and S the found objects, and IoU(G, S) = |G ∩ S| / |G ∪ S|:

    AJI = Σ |G ∩ S_G| / (Σ |G ∪ S_G| + Σ |S| of those S that are nobody's S_G),   S_G the S of highest IoU with G
    DQ  = TP / (TP + ½ FP + ½ FN),   TP the pairs with IoU > ½: no object can be in two of them
    SQ  = Σ IoU of those pairs / TP,   PQ = DQ · SQ

AJI is that of Kumar et al. (IEEE TMI 2017): one S may be the best of several G; a G that nothing overlaps counts with
its area.  PQ is that of Kirillov et al. (CVPR 2019).  F1 at IoU 0.5 is the DQ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError

Numbers = NDArray[np.int64]

MATCHED_IOU = 0.5


class Overlaps(NamedTuple):
    """Areas in pixels of the true and of the found objects, and of every pair that shares a pixel."""

    true_areas: Numbers
    found_areas: Numbers
    true: Numbers
    """[pairs]: place in `true_areas`."""
    found: Numbers
    """[pairs]: place in `found_areas`."""
    shared: Numbers
    """[pairs]: pixels in both."""

    @property
    def ious(self) -> NDArray[np.float64]:
        """[pairs]"""
        either = self.true_areas[self.true] + self.found_areas[self.found] - self.shared
        return self.shared / either


class InstanceScores(NamedTuple):
    """Scores of one image; NaN where they are not defined: without any object, and SQ without a pair."""

    aji: float
    pq: float
    dq: float
    sq: float
    pairs: int
    true: int
    found: int


def overlaps(truth: NDArray[np.integer], found: NDArray[np.integer]) -> Overlaps:
    """Of two maps of object numbers, 0 where there is none; numbers need not be consecutive."""
    if truth.shape != found.shape:
        raise InputError(f"`truth` of shape {list(truth.shape)} and `found` {list(found.shape)} must agree")
    if truth.size and min(int(truth.min()), int(found.min())) < 0:
        raise InputError("`truth` and `found` must hold numbers from 0 up")
    width = int(found.max(initial=0)) + 1
    both, counts = np.unique(
        truth.astype(np.int64).ravel() * width + found.astype(np.int64).ravel(), return_counts=True
    )
    true_number, found_number = np.divmod(both, width)
    true_numbers, true_place = np.unique(true_number, return_inverse=True)
    found_numbers, found_place = np.unique(found_number, return_inverse=True)
    true_areas = np.bincount(true_place, counts, len(true_numbers)).astype(np.int64)
    found_areas = np.bincount(found_place, counts, len(found_numbers)).astype(np.int64)
    # 0 is no object: where it occurs it is the first number.
    no_true, no_found = int((true_numbers == 0).any()), int((found_numbers == 0).any())
    pair = (true_number > 0) & (found_number > 0)
    return Overlaps(
        true_areas[no_true:],
        found_areas[no_found:],
        true_place[pair] - no_true,
        found_place[pair] - no_found,
        counts[pair],
    )


def instance_scores(counted: Overlaps) -> InstanceScores:
    """All scores of one image."""
    ious = counted.ious
    matched = ious > MATCHED_IOU
    pairs, true, found = int(matched.sum()), len(counted.true_areas), len(counted.found_areas)
    dq = 2 * pairs / (true + found) if true + found else math.nan
    sq = float(ious[matched].mean()) if pairs else math.nan
    pq = dq * sq if pairs else dq
    return InstanceScores(aji(counted), pq, dq, sq, pairs, true, found)


def aji(counted: Overlaps) -> float:
    """The aggregated Jaccard index; NaN without any object."""
    ious = counted.ious
    # Of each true object the pair of highest IoU; of equal ones the first.
    order = np.lexsort((counted.found, -ious, counted.true))
    _, first = np.unique(counted.true[order], return_index=True)
    best = order[first]
    shared = int(counted.shared[best].sum())
    either = int(counted.true_areas.sum()) + int(counted.found_areas[counted.found[best]].sum()) - shared
    used = np.zeros(len(counted.found_areas), dtype=np.bool_)
    used[counted.found[best]] = True
    total = either + int(counted.found_areas[~used].sum())
    return shared / total if total else math.nan
