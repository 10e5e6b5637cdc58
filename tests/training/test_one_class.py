"""A run that ends with a model that calls everything one class says so, and what to look at."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from seunet.maths import FUSIONS
from seunet.training.validation import ious_of, only_class
from support.training import tiny_config, train_alone


def counted(*confusions: list[list[int]]) -> torch.Tensor:
    return torch.tensor([*confusions, *[confusions[-1]] * (1 + len(FUSIONS) - len(confusions))])


@pytest.mark.parametrize(
    ("confusion", "expected"),
    [
        ([[90, 0], [10, 0]], 0),
        ([[0, 90], [0, 10]], 1),
        ([[89, 1], [10, 0]], None),
        ([[100, 0], [0, 0]], None),  # there is nothing else to be found
    ],
)
def test_one_class_is_predicted_where_there_are_others(confusion: list[list[int]], expected: int | None) -> None:
    counts = counted(confusion)
    assert only_class(counts, "p_ens") == expected
    assert list(ious_of(counts)) == ["heads", *FUSIONS]


def said(data: Path, run: Path, **changes: Any) -> list[str]:
    """What a run says that is too short to learn anything, with weights that make nuclei worthless."""
    lines: list[str] = []
    config = tiny_config(data, recipe__class_weights=[1.0, 1e-6], recipe__epochs=4, **changes)
    train_alone(config, run, say=lines.append)
    return [line for line in lines if line.startswith("note")]


def test_a_one_class_model_is_told_at_validation_and_explained_at_the_end(nuclei: Path, tmp_path: Path) -> None:
    *before, last = said(nuclei, tmp_path / "run")
    assert len(before) == 1  # once, not at every validation
    assert re.fullmatch(r"note: after step (4|8|12) every pixel is predicted (other|nucleus)", before[0])
    assert re.match(
        r"note: after step 16 every pixel is predicted (other|nucleus): the model tells nothing apart", last
    )
    assert f" Look at the masks in {nuclei / 'masks'} (learnt from: other " in last
    assert " %, nucleus " in last
    assert last.endswith(
        " %); train for more than 16 steps (`recipe.steps`), weigh rare classes more (`recipe.class_weights` "
        "(=[1.0, 1e-06])), lower `recipe.learning_rate` (=0.015), or begin with a trained model (--set start=nuclei)"
    )


def test_without_held_out_images_a_few_windows_learnt_from_are_looked_at(nuclei: Path, tmp_path: Path) -> None:
    (line,) = said(nuclei, tmp_path / "run", data__hold_out=[])
    assert re.match(r"note: after step 24 every pixel is predicted (other|nucleus): the model tells nothing", line)
