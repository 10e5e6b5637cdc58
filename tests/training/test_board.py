"""TensorBoard: curves, a picture and a figure; and nothing breaks without it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from seunet.training.tensorboard import board
from support.training import learnt, tiny_config, train_alone


def run_with_board(config_data: Path, folder: Path, steps: int | None = None, resume: bool = False) -> None:
    with board(folder, wanted=True) as writer:
        assert writer is not None
        train_alone(tiny_config(config_data), folder, steps, observers=(writer,), resume=resume)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scalars_a_picture_and_a_figure_are_written_and_what_is_learnt_is_not_changed(
    nuclei: Path, tmp_path: Path
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run_with_board(nuclei, tmp_path / "run", 10)
    run_with_board(nuclei, tmp_path / "run", resume=True)
    seconds = [path.name.split(".")[3] for path in (tmp_path / "run" / "tensorboard").iterdir()]
    assert len(set(seconds)) == 2, "names tell TensorBoard which came first"
    train_alone(tiny_config(nuclei), tmp_path / "plain")
    assert learnt(tmp_path / "run") == learnt(tmp_path / "plain")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    scalars = set(events.Tags()["scalars"])
    assert {"loss", "learning rate", "head 1/loss", "head 5/weight", "validation IoU/p_ens"} <= scalars
    assert [event.step for event in events.Scalars("loss")] == [10]
    assert [event.step for event in events.Scalars("validation IoU/head 3")] == [4, 8, 12]
    assert {"held-out windows", "σ of every layer"} == set(events.Tags()["images"])
    picture = events.Images("held-out windows")[-1]
    assert (picture.width, picture.height) == (3 * 32, 4 * 32)
    figure = events.Images("σ of every layer")[-1]
    assert figure.step == 12
    assert figure.width > 500


def test_without_tensorboard_the_run_goes_on_without_it(
    nuclei: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with board(tmp_path / "run", wanted=True) as writer:
        assert writer is None
    assert not (tmp_path / "run").exists()


def test_unwanted_it_writes_nothing(tmp_path: Path) -> None:
    with board(tmp_path / "run", wanted=False) as writer:
        assert writer is None
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_run_that_is_refused_leaves_no_folder(nuclei: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no run to resume"):
        run_with_board(nuclei, tmp_path / "run", resume=True)
    assert not (tmp_path / "run").exists()
