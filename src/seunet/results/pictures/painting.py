"""The loops of the overlay: what each of its pixels stands for, and the lines between objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from seunet.kernels.compiling.first_call import compiled


@compiled
def paint_objects(
    numbers: Any, number: int, first_row: Any, first_column: Any, rows: Any, starts: Any, ends: Any, stops: Any
) -> None:
    """Paint objects, whose runs end before `stops`, as `number`, `number` + 1, …"""
    one = 0
    for run in range(len(rows)):
        while run >= stops[one]:
            one += 1
        left, right = first_column[starts[run]], first_column[ends[run]]
        for row in range(first_row[rows[run]], first_row[rows[run] + 1]):
            for column in range(left, right):
                numbers[row, column] = number + one


@compiled
def count(counts: Any, strip: Any, rows: Any, columns: Any, places: Any) -> int:
    """Count the `places` of the codes in a part of `strip`; the most frequent of them, the first of equals."""
    for place in range(len(counts)):
        counts[place] = 0
    for row in range(rows[0], rows[1]):
        for column in range(columns[0], columns[1]):
            counts[places[strip[row, column]]] += 1
    most = 0
    for place in range(1, len(counts)):
        if counts[place] > counts[most]:
            most = place
    return most


@compiled
def tint(
    picture: Any, labels: Any, lost: Any, strip: Any, rows: Any, columns: Any, places: Any, colors: Any, weights: Any
) -> None:
    """Draw each pixel of `picture` [rows, columns, 3] towards the colours of the codes that it stands for.

    It stands for the pixels of `strip` from rows[0, r] to rows[1, r] and from columns[0, c] to columns[1, c]; `places`
    are those of the 256 codes in `colors` and `weights`, which say how far to go where a code has all of the pixel.
    `labels` gets the place of the most frequent code, and `lost` whether the last place has half of the pixel or more.
    """
    last = len(colors) - 1
    counts = np.zeros(len(colors), dtype=np.int64)
    for r in range(picture.shape[0]):
        for c in range(picture.shape[1]):
            size = (rows[1, r] - rows[0, r]) * (columns[1, c] - columns[0, c])
            first = places[strip[rows[0, r], columns[0, c]]]
            if size == 1:  # all of a picture that is as large as the plane
                labels[r, c], lost[r, c] = first, first == last
                if weights[first] and first != last:
                    for channel in range(3):
                        value = np.float32(picture[r, c, channel])
                        value += weights[first] * (colors[first, channel] - value)
                        picture[r, c, channel] = np.uint8(np.rint(value))
                continue
            labels[r, c] = count(counts, strip, rows[:, r], columns[:, c], places)
            lost[r, c] = 2 * counts[last] >= size
            for channel in range(3):
                value = np.float32(picture[r, c, channel])
                for place in range(last):
                    if counts[place] and weights[place]:
                        weight = weights[place] * np.float32(counts[place] / size)
                        value += weight * (colors[place, channel] - value)
                picture[r, c, channel] = np.uint8(np.rint(value))


@compiled
def draw_lines(picture: Any, labels: Any, numbers: Any, drawn: Any, colors: Any) -> None:
    """Colour pixels of labels that are `drawn`: those beside another label, or beside another object in `numbers`.

    `numbers` [rows, columns] are those of `paint_objects`, 0 for none; without rows where nothing was painted.
    """
    height, width = labels.shape
    numbered = len(numbers) > 0
    for r in range(height):
        for c in range(width):
            label = labels[r, c]
            if not drawn[label]:
                continue
            edge = False
            for row, column in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
                if 0 <= row < height and 0 <= column < width:
                    edge |= labels[row, column] != label
                    if numbered and numbers[r, c] and numbers[row, column]:
                        edge |= numbers[row, column] != numbers[r, c]
            if edge:
                for channel in range(3):
                    picture[r, c, channel] = colors[label, channel]
