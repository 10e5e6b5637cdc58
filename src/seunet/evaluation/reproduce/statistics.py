"""Every mean of a comparison with its interval, and the questions of the protocol answered from paired differences.

OUT/statistics.json carries all that the page says about differences; a sentence says no more than it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seunet.errors import InputError
from seunet.evaluation.figures.curves import main_row, row_of
from seunet.evaluation.page import Block, Heading, Table, Text
from seunet.evaluation.reproduce.protocol import Protocol, Question
from seunet.evaluation.reproduce.run import Measured
from seunet.maths.bootstrap import Draws, Interval, draw_images, drawn_ious, interval, over_seeds

FORMAT: Final = "seunet-statistics/1"
DRAWS: Final = 10_000
LEVEL: Final = 0.95
DIGITS: Final = 6
ANSWERS: Final = {1: "yes", -1: "no", 0: "not decided by these data"}
NOT_MEASURED: Final = "not measured yet"
STEADY: Final = 0.015
"""How far the IoU may move with the size of the window before it is marked."""

SMALL, LARGE = 0.5, 2.0
"""Up to which and from which test scale images count as small and as large, where the best head is asked for."""


def statistics_of(protocol: Protocol, groups: Mapping[str, Sequence[Measured]], draws: int = DRAWS) -> dict[str, Any]:
    """The document: systems with intervals, every pair of systems, and the answers to the protocol's questions."""
    first = next(iter(groups.values()))[0].evaluation
    images = list(first["results"][0]["by_image"])
    drawn = draw_images(len(images), draws, np.random.default_rng(0))
    blind = {name: _seed_ious(seeds, images, "blind", drawn) for name, seeds in groups.items()}
    means = {name: over_seeds(ious.mean(-1), drawn.random) for name, ious in blind.items()}
    pairs = [(one, other) for place, one in enumerate(groups) for other in list(groups)[place + 1 :]]
    return {
        "format": FORMAT,
        "images": images,
        "draws": draws,
        "level": LEVEL,
        "scales": first["arguments"]["scales"],
        "systems": {
            name: _system(name, seeds, images, blind[name], means[name], drawn) for name, seeds in groups.items()
        },
        "differences": [
            {"first": one, "second": other, **_facts(interval(means[one] - means[other], LEVEL))}
            for one, other in pairs
        ],
        "questions": [_answer(question, groups, means, images, drawn) for question in protocol.questions],
    }


def _system(
    name: str, seeds: Sequence[Measured], images: Sequence[str], ious: NDArray[Any], means: NDArray[Any], drawn: Draws
) -> dict[str, Any]:
    """Mean over the scales, and each scale, with intervals; the seeds' own means beside them."""
    by_scale = over_seeds(ious, drawn.random)
    other_ways = [way for way in seeds[0].evaluation["arguments"]["ways"] if way != "blind"]
    return {
        "seeds": [one.job.seed for one in seeds],
        "row": main_row(seeds[0].evaluation, "blind"),
        "mean": {**_facts(interval(means, LEVEL)), "by_seed": [_short(value) for value in ious[0].mean(-1)]},
        "by_scale": [_facts(interval(by_scale[:, place], LEVEL)) for place in range(by_scale.shape[1])],
        "ways": {way: found for way in other_ways if (found := _way(seeds, images, way, drawn)) is not None},
    }


def _way(seeds: Sequence[Measured], images: Sequence[str], way: str, drawn: Draws) -> dict[str, Any] | None:
    """The mean of another way of predicting, over the seeds that have it at all scales."""
    scales = len(seeds[0].evaluation["arguments"]["scales"])
    whole = [one for one in seeds if len(_results(one, way)) == scales]
    if not whole:
        return None
    ious = _seed_ious(whole, images, way, drawn)
    return {
        "seeds": [one.job.seed for one in whole],
        **_facts(interval(over_seeds(ious.mean(-1), drawn.random), LEVEL)),
    }


def _answer(
    question: Question,
    groups: Mapping[str, Sequence[Measured]],
    means: Mapping[str, NDArray[Any]],
    images: Sequence[str],
    drawn: Draws,
) -> dict[str, Any]:
    asked = question.model_dump(mode="json")
    if not {question.first, question.second or question.first} <= set(groups):
        return {**asked, "answer": NOT_MEASURED}
    if question.second is not None:
        found = interval(means[question.first] - means[question.second], LEVEL)
        unit = "points of mean IoU"
    else:
        found = interval(_head_movement(groups[question.first], images, drawn), LEVEL)
        unit = f"heads, from scales up to {SMALL:g} to scales from {LARGE:g}"
    return {**asked, **_facts(found), "unit": unit, "answer": ANSWERS[found.verdict]}


def _head_movement(seeds: Sequence[Measured], images: Sequence[str], drawn: Draws) -> NDArray[Any]:
    """[draws]: by how many heads the best one moves to larger σ between small and large images, mean over the seeds."""
    scales = np.array(seeds[0].evaluation["arguments"]["scales"])
    moved = []
    for one in seeds:
        heads = [row["row"] for row in one.evaluation["scores"] if row["way"] == "blind" and row["head"]]
        ious = np.stack([drawn_ious(_counts(one, images, "blind", head), drawn) for head in heads])
        best = ious.argmax(0).astype(np.float64)
        moved.append(best[:, scales >= LARGE].mean(1) - best[:, scales <= SMALL].mean(1))
    return over_seeds(np.stack(moved, axis=1), drawn.random)


def _seed_ious(seeds: Sequence[Measured], images: Sequence[str], way: str, drawn: Draws) -> NDArray[Any]:
    """[draws, seeds, scales]."""
    rows = [main_row(one.evaluation, way) for one in seeds]
    return np.stack(
        [drawn_ious(_counts(one, images, way, row), drawn) for one, row in zip(seeds, rows, strict=True)], axis=1
    )


def _counts(one: Measured, images: Sequence[str], way: str, row: str) -> NDArray[Any]:
    """[images, scales, classes, classes] of one row of the table."""
    results = _results(one, way)
    name = f"{one.job.entry.name}, seed {one.job.seed}"
    if any("by_image" not in result for result in results):
        raise InputError(f"{name}: its evaluation keeps no counts per image (an older report); evaluate it again")
    if any(list(result["by_image"]) != list(images) for result in results):
        raise InputError(f"{name}: evaluated on other images than the first system; differences cannot be paired")
    place = list(results[0]["confusions"]).index(row)
    return np.array([[result["by_image"][image][place] for result in results] for image in images])


def _results(one: Measured, way: str) -> list[dict[str, Any]]:
    found = [result for result in one.evaluation["results"] if result["way"] == way]
    return sorted(found, key=lambda result: float(result["scale"]))


def _facts(found: Interval) -> dict[str, float]:
    return {"value": _short(found.value), "low": _short(found.low), "high": _short(found.high)}


def _short(value: float) -> float:
    return round(float(value), DIGITS)


def statistics_blocks(document: Mapping[str, Any]) -> list[Block]:
    """The means with intervals, the questions with answers, and every pair of systems."""
    share = f"{100 * document['level']:.0f} %"
    rows = [
        [name, _span(one["mean"], sign=""), ", ".join(f"{100 * value:.2f}" for value in one["mean"]["by_seed"])]
        for name, one in document["systems"].items()
    ]
    answers = [[one["ask"], f"**{one['answer']}**", _difference(one)] for one in document["questions"]]
    names = list(document["systems"])
    found = {(one["first"], one["second"]): one for one in document["differences"]}
    pairs = [[first, *(_cell(found.get((first, second))) for second in names[1:])] for first in names[:-1]]
    return [
        Heading("What these data decide"),
        Text(
            f"Means over the {len(document['scales'])} scales when the scale is not known, with {share} intervals from "
            f"{document['draws']:,} draws of images and seeds. Differences are paired: both systems see the same draw "
            f"of the {len(document['images'])} images. A difference is one where its interval excludes zero. The "
            "spread of n seeds counts √(n/(n − 1)) times, because n draws of them show less than there is; two or "
            "three are few all the same. The many pairs are not corrected for their number."
        ),
        Table(["system", f"mean ({share} interval)", "seed by seed"], rows),
        *([Table(["question", "answer", f"difference ({share} interval)"], answers)] if answers else []),
        *_of_one_training(document),
        Text("Row minus column, in points; bold where the interval excludes zero."),
        Table(["", *names[1:]], pairs),
    ]


def _of_one_training(document: Mapping[str, Any]) -> list[Block]:
    """What an interval cannot know."""
    alone = [name for name, one in document["systems"].items() if len(one["seeds"]) == 1]
    if not alone:
        return []
    return [
        Text(
            f"**One training** of {'; '.join(alone)}: there the interval is of the images alone, and an answer is one "
            "about these weights. Other seeds may differ by points."
        )
    ]


def window_blocks(groups: Mapping[str, Sequence[Measured]]) -> list[Block]:
    """IoU at s = 1 by the side of the window: what a system owes to the padding around it."""
    sizes = sorted({size for seeds in groups.values() for one in seeds for size in one.windows})
    if not sizes:
        return []
    rows = []
    for name, seeds in groups.items():
        found = [[one.windows[size] for one in seeds] for size in sizes]
        ious = [[row_of(one, "blind", main_row(one, "blind"))["ious"][0] for one in row] for row in found]
        by_seed = [max(column) - min(column) for column in zip(*ious, strict=True)]
        cells = [f"{100 * sum(row) / len(row):.2f}" for row in ious]
        widest = max(by_seed)
        rows.append([name, *cells, f"{100 * widest:.2f}" + ("" if widest <= STEADY else ", **depends on it**")])
    header = ["system, mean of its seeds", *(f"{size} px" for size in sizes), "largest range of a seed"]
    text = f"Windows of these sides cover each image at s = 1. More than {100 * STEADY:g} points are marked."
    return [Heading("How far a system depends on the size of its window"), Text(text), Table(header, rows)]


def _span(found: Mapping[str, Any], sign: str = "+", times: int = 100) -> str:
    value, low, high = (f"{times * found[name]:{sign}.2f}" for name in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def _difference(one: Mapping[str, Any]) -> str:
    if one["answer"] == NOT_MEASURED:
        return "–"
    return f"{_span(one, times=1 if one['second'] is None else 100)} {one['unit']}"


def _cell(found: Mapping[str, float] | None) -> str:
    if found is None:
        return ""
    return f"**{_span(found)}**" if found["low"] > 0 or found["high"] < 0 else _span(found)
