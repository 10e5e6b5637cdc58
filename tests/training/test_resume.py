"""A run that was stopped, terminated or killed and resumed ends with the bytes of one that never was."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seunet
from seunet.errors import InputError
from seunet.training.checkpoint import read_checkpoint
from seunet.training.config import TrainingConfig
from support.training import (
    KillAt,
    Killed,
    cut_run,
    ended,
    learnt,
    signal_group,
    start_training,
    tiny_config,
    tiny_file,
    train_alone,
    wait_for_rows,
)

STEPS = 12
LONG = 15
"""Epochs of the runs that are ended from outside."""

CUTS = [sorted(np.random.default_rng(2026 + n).choice(np.arange(1, STEPS), 1 + n % 2, replace=False)) for n in range(8)]
"""12 fixed cut points in 8 runs, most of them in mid-epoch (an epoch is 4 steps)."""


@pytest.fixture(scope="module")
def unbroken(nuclei: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("unbroken")
    assert train_alone(tiny_config(nuclei), folder).step == STEPS
    return learnt(folder)


@pytest.mark.parametrize("number", range(len(CUTS)))
def test_stopped_after_any_step_and_resumed_with_any_workers_it_ends_with_the_same_bytes(
    number: int, nuclei: Path, unbroken: dict[str, bytes], tmp_path: Path
) -> None:
    def config(workers: int) -> TrainingConfig:
        return tiny_config(nuclei, machine__workers=workers)

    workers = [(0, 1, 2), (1, 0), (2, 1), (0,)][number % 4]
    cut_run(config, tmp_path / "run", [int(cut) for cut in CUTS[number]], workers)
    assert learnt(tmp_path / "run") == unbroken


@pytest.mark.parametrize(
    "kind",
    ["half precision", "another model", "parts and clipping", "validation now and then", "own windows, averaged"],
)
def test_whatever_the_recipe_the_resumed_run_is_the_unbroken_one(kind: str, nuclei: Path, tmp_path: Path) -> None:
    changes: dict[str, dict[str, Any]] = {
        "half precision": {"recipe__precision": "bfloat16"},
        "another model": {"model__name": "unet", "model__widths": [4, 8]},
        "parts and clipping": {"recipe__accumulate": 3, "recipe__clip_norm": 0.1, "seed": 7},
        "validation now and then": {"validation__every_epochs": 2, "data__augmentation": {"shift_px": 5}},
        "own windows, averaged": {
            "model__preset": "geometric",
            "data__augmentation": {"crop_px": 24, "scale_range": [0.25, 4.0]},
            "recipe__batch": 5,
            "recipe__first_head_scale": 0.5,
            "recipe__average": 0.9,
            "recipe__class_weights": [1.0, 2.0],
        },
    }
    config = tiny_config(nuclei, **changes[kind])
    train_alone(config, tmp_path / "whole")
    cut_run(lambda _: config, tmp_path / "cut", [2, 7], [0])
    assert learnt(tmp_path / "cut") == learnt(tmp_path / "whole")


def test_another_seed_is_another_run(nuclei: Path, unbroken: dict[str, bytes], tmp_path: Path) -> None:
    train_alone(tiny_config(nuclei, seed=1), tmp_path)
    assert all(learnt(tmp_path)[name] != unbroken[name] for name in unbroken)


def test_the_checkpoint_in_mid_epoch_holds_the_step_and_the_length_of_the_log(nuclei: Path, tmp_path: Path) -> None:
    outcome = train_alone(tiny_config(nuclei), tmp_path / "run", 6)
    assert (outcome.finished, outcome.step, outcome.total_steps) == (False, 6, STEPS)
    progress = read_checkpoint(tmp_path / "run" / "last.safetensors").facts["progress"]
    assert progress["step"] == 6
    assert progress["log_bytes"] == (tmp_path / "run" / "log.jsonl").stat().st_size
    assert progress["best_step"] == 4


@pytest.mark.parametrize("step", [3, 6, 8, 11])
def test_ended_without_notice_it_replays_from_the_older_checkpoint_to_the_same_bytes(
    step: int, nuclei: Path, unbroken: dict[str, bytes], tmp_path: Path
) -> None:
    config = tiny_config(nuclei)
    with pytest.raises(Killed):
        train_alone(config, tmp_path, observers=(KillAt(step),))
    kept = read_checkpoint(tmp_path / "last.safetensors").facts["progress"]
    assert kept["step"] == (step - 1) // 4 * 4
    assert (tmp_path / "log.jsonl").stat().st_size > kept["log_bytes"]
    (tmp_path / ".last.safetensors.abc.part").write_bytes(b"half")
    train_alone(config, tmp_path, resume=True)
    assert learnt(tmp_path) == unbroken
    assert not list(tmp_path.glob(".*.part"))


def test_a_checkpoint_is_taken_when_the_interval_has_passed_and_not_before(nuclei: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"

    def ten_seconds_a_step() -> float:
        return 10.0 * log.read_bytes().count(b"learning_rate") if log.is_file() else 0.0

    config = tiny_config(nuclei, machine__checkpoint_seconds=25, recipe__batch=1, recipe__epochs=1)
    train_alone(config, tmp_path, clock=ten_seconds_a_step)
    assert _checkpoints(tmp_path) == [0, 3, 6, 9, 12, 15, 16]


def _checkpoints(folder: Path) -> list[int]:
    events = [json.loads(line) for line in (folder / "clock.jsonl").read_text().splitlines()]
    return [event["step"] for event in events if event["event"] == "checkpoint"]


def test_a_finished_run_is_left_as_it_is_when_resumed(nuclei: Path, unbroken: dict[str, bytes], tmp_path: Path) -> None:
    config = tiny_config(nuclei)
    train_alone(config, tmp_path)
    assert train_alone(config, tmp_path, resume=True).finished
    assert learnt(tmp_path) == unbroken


def test_the_best_weights_are_a_model_folder_that_loads(nuclei: Path, tmp_path: Path) -> None:
    train_alone(tiny_config(nuclei), tmp_path)
    weights = read_checkpoint(tmp_path / "best.safetensors")
    model = seunet.load(tmp_path / "model")
    assert model.card is not None
    assert (model.card.class_names, model.card.instances) == (("other", "nucleus"), False)
    state = model.state_dict()
    assert {f"model/{name}" for name in state} == set(weights.tensors)
    assert all(bool((weights.tensors[f"model/{name}"] == value).all()) for name, value in state.items())


def test_a_run_can_begin_with_the_weights_of_another_and_is_then_another_run(nuclei: Path, tmp_path: Path) -> None:
    train_alone(tiny_config(nuclei), tmp_path / "first")
    start = str(tmp_path / "first" / "model")
    config = tiny_config(nuclei, start=start, recipe__learning_rate=1e-9)
    train_alone(config, tmp_path / "second")
    first, second = (dict(seunet.load(tmp_path / name / "model").named_parameters()) for name in ("first", "second"))
    assert all(torch.allclose(first[name], second[name], atol=1e-5) for name in first)
    fresh = tiny_config(nuclei, recipe__learning_rate=1e-9)
    with pytest.raises(InputError, match="`start` is left out, the run was started with"):
        train_alone(fresh, tmp_path / "second", resume=True)


@pytest.fixture(scope="module")
def long_unbroken(nuclei: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("long")
    train_alone(tiny_config(nuclei, recipe__epochs=LONG), folder)
    return learnt(folder)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_to_it_and_its_workers_ends_a_run_after_its_step_and_resume_ends_with_the_same_bytes(
    number: signal.Signals, code: int, nuclei: Path, long_unbroken: dict[str, bytes], tmp_path: Path
) -> None:
    config = tiny_file(tmp_path / "config.yaml", nuclei, recipe__epochs=LONG, machine__workers=1)
    process = start_training(config, tmp_path / "run")
    wait_for_rows(tmp_path / "run", 7, process)
    signal_group(process, number)
    ended_with, out, err = ended(process)
    line = "seunet: stopping after this step, with a checkpoint; press again to stop at once\n"
    assert (ended_with, err) == (code, line)
    step = read_checkpoint(tmp_path / "run" / "last.safetensors").facts["progress"]["step"]
    assert 6 <= step < 4 * LONG
    assert out.splitlines()[-1].startswith(f"stopped after step {step} of {4 * LONG}, best validation IoU 0.")
    assert out.endswith(f"; resume: seunet train {tmp_path / 'run'} --resume\n")
    train_alone(tiny_config(nuclei, recipe__epochs=LONG), tmp_path / "run", resume=True)
    assert learnt(tmp_path / "run") == long_unbroken


def test_killed_for_real_it_loses_at_most_one_interval_and_ends_with_the_same_bytes(
    nuclei: Path, long_unbroken: dict[str, bytes], tmp_path: Path
) -> None:
    config = tiny_file(tmp_path / "config.yaml", nuclei, recipe__epochs=LONG, machine__checkpoint_seconds=0)
    process = start_training(config, tmp_path / "run")
    wait_for_rows(tmp_path / "run", 14, process)
    signal_group(process, signal.SIGKILL)
    assert ended(process)[0] == -signal.SIGKILL
    lines = [line for line in (tmp_path / "run" / "log.jsonl").read_bytes().split(b"\n") if line.endswith(b"}")]
    kept = read_checkpoint(tmp_path / "run" / "last.safetensors").facts["progress"]["step"]
    assert 0 <= json.loads(lines[-1])["step"] - kept <= 1
    train_alone(tiny_config(nuclei, recipe__epochs=LONG), tmp_path / "run", resume=True)
    assert learnt(tmp_path / "run") == long_unbroken
