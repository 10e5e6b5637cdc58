"""Windows of several prepared sets as one, drawn in shares by weight."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from torch.utils.data import Dataset

from seunet.data.augment import epoch_order
from seunet.data.windows import Window, WindowDataset


class JoinedWindows(Dataset[Window]):
    """Windows of several sets, numbered on from set to set."""

    def __init__(
        self, sets: Sequence[WindowDataset], weights: Sequence[float] | None = None, epoch_windows: int | None = None
    ) -> None:
        self.sets = list(sets)
        self._ends = list(accumulate(len(one) for one in self.sets))
        self._weights = list(weights) if weights is not None else [float(len(one)) for one in self.sets]
        self.epoch_windows = epoch_windows or len(self)
        self.scale_bands = self.sets[0].scale_bands

    def __len__(self) -> int:
        return self._ends[-1]

    def epoch_keys(self, seed: int, epoch: int) -> list[tuple[int, int]]:
        """(round, number) of the windows of an epoch in order: from each set its share, none twice in a round."""
        keys: list[tuple[int, int]] = []
        begins = [0, *self._ends[:-1]]
        counts = shares_of(self.epoch_windows, self._weights)
        for place, (begin, one, count) in enumerate(zip(begins, self.sets, counts, strict=True)):
            drawn = rounds_of(len(one), epoch * count, (epoch + 1) * count, seed + place)
            keys += [(turn, begin + index) for turn, index in drawn]
        order = np.random.default_rng([seed, epoch, len(self.sets)]).permutation(len(keys))
        return [keys[number] for number in order]

    def __getitem__(self, key: int | tuple[int, ...]) -> Window:
        turn, number, *band = key if isinstance(key, tuple) else (0, int(key))
        place, index = self._place(number)
        return self.sets[place][(turn, index, *band)]._replace(number=number)

    def image_name(self, number: int) -> str:
        """The image that a window is of."""
        place, index = self._place(number)
        return self.sets[place].image_name(index)

    def preload(self) -> None:
        """Decode every image now, so that workers started later share what this process holds."""
        for one in self.sets:
            one.preload()

    def _place(self, number: int) -> tuple[int, int]:
        place = bisect_right(self._ends, number)
        return place, number - (self._ends[place - 1] if place else 0)


def shares_of(total: int, weights: Sequence[float]) -> list[int]:
    """`total` shared out by weight, in whole numbers that add up to it.

    >>> shares_of(10, [1, 1, 2])
    [2, 3, 5]
    """
    ends = [round(total * end / sum(weights)) for end in accumulate(weights)]
    return [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def rounds_of(length: int, start: int, stop: int, seed: int) -> list[tuple[int, int]]:
    """Places `start` to `stop` of an endless row of rounds, each of which visits all `length` windows once:
    (round, index)."""
    first, last = start // length, -(-stop // length)
    row = [(turn, index) for turn in range(first, last) for index in epoch_order(length, seed, turn)]
    return row[start - first * length : stop - first * length]
