"""Two processes that train together come to what one comes to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from seunet.data import epoch_order
from seunet.errors import InputError
from seunet.storage import rows
from seunet.training.checkpoint import read_checkpoint, restore_model
from seunet.training.distributed import joined
from seunet.training.loading import Sources
from seunet.training.new_model import make_model
from seunet.training.trainer import Batch
from seunet.training.validation import ious_of, validation_counts
from support.training import (
    ALONE,
    ended,
    environment,
    learnt,
    start_training,
    tiny_config,
    tiny_file,
    train_alone,
    wait_for_rows,
)
from tests.support.two_processes import BATCH, CASES, CHANGES, gradients, whole_batch

SCRIPT = Path(__file__).parents[1] / "support" / "two_processes.py"


@pytest.fixture(scope="module")
def together(nuclei: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that two processes filled, beside runs of one."""
    folder = tmp_path_factory.mktemp("together")
    config = tiny_config(nuclei, **CHANGES)
    train_alone(config, folder / "alone")
    train_alone(config, folder / "begun alone", 5)
    train_alone(tiny_config(nuclei, recipe__epochs=20, recipe__learning_rate=0.03, **CHANGES), folder / "trained")
    weights = read_checkpoint(folder / "trained" / "last.safetensors").tensors
    prefix = "model/"
    save_file(
        {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)},
        folder / "weights.safetensors",
    )
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [sys.executable, *launcher, str(SCRIPT), str(nuclei), str(folder)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return folder


def in_the_order_of_two(batch: Batch) -> Batch:
    """The parts of a batch that two processes take in two parts each: first halves together, then second halves."""
    order = torch.arange(BATCH).view(2, 2, -1).transpose(0, 1).flatten()
    return Batch(*(part[order] for part in batch))


@pytest.mark.parametrize("case", CASES)
def test_the_gradient_of_every_parameter_is_that_of_one_process_at_the_same_batch(
    case: str, together: Path, nuclei: Path
) -> None:
    config = tiny_config(nuclei, **CHANGES)
    sources = Sources(config.data, config.seed)
    batch = whole_batch(sources)
    halves = [int((part != 255).sum()) for part in batch.masks.split(BATCH // 2)]
    assert halves[0] > 2 * halves[1]
    expected = gradients(case, config, sources, ALONE, in_the_order_of_two(batch) if "parts" in case else batch)
    assert any(name.endswith("sigma_position") for name in expected)
    assert "eta" in expected
    found = {name.removeprefix(f"{case}/"): value for name, value in load_file(together / "found.safetensors").items()}
    largest = max(float(value.abs().max()) for name, value in expected.items() if not name.startswith("head"))
    limit = 1e-5 if CASES[case][0] == torch.float32 else 1e-8
    for name, value in expected.items():
        if name == "head losses":
            torch.testing.assert_close(found[name], value)
        elif CASES[case][0] == torch.float32:
            assert float((found[name] - value).abs().max()) <= limit * largest, name
        else:
            assert float((found[name] - value).abs().max()) <= limit * float(value.abs().max()), name
    if CASES[case][2]:  # and it is not what a process would find by itself
        first = gradients(case, config, sources, ALONE, Batch(*(part[: BATCH // 2] for part in batch)))
        assert float((first["eta"] - expected["eta"]).abs().max()) > 1e-3 * float(expected["eta"].abs().max())


def test_no_thread_of_the_group_outlives_it(together: Path) -> None:
    """Python cannot end safely beside them: now and then a process aborted after its work."""
    for rank in range(2):
        left = json.loads((together / f"threads{rank}.json").read_text())
        assert left
        assert not [name for name in left if "gloo" in name]


def test_validation_counts_the_same_pixels_whoever_counts_them(together: Path, nuclei: Path) -> None:
    config = tiny_config(nuclei, **CHANGES)
    sources = Sources(config.data, config.seed)
    model = make_model(config, sources.manifest)
    untrained = ious_of(validation_counts(model, sources.validation, ALONE))
    model.load_state_dict(load_file(together / "weights.safetensors"))
    alone = ious_of(validation_counts(model, sources.validation, ALONE))
    assert json.loads((together / "scores.json").read_text()) == alone
    assert alone != untrained
    assert len(set(alone["heads"])) > 1


def test_stopped_by_one_and_resumed_two_processes_end_with_the_bytes_of_an_unbroken_run(together: Path) -> None:
    assert learnt(together / "cut") == learnt(together / "unbroken")
    stops = [row["step"] for row in rows(together / "cut" / "clock.jsonl") if row["event"] == "stopped"]
    assert stops == [6]


@pytest.mark.parametrize("name", ["unbroken", "begun alone"])
def test_two_processes_learn_what_one_learns_also_from_where_one_stopped(name: str, together: Path) -> None:
    pairs = zip(rows(together / name / "log.jsonl"), rows(together / "alone" / "log.jsonl"), strict=True)
    losses = [(row["loss"], expected["loss"]) for row, expected in pairs if "loss" in row]
    assert len(losses) == 12
    for loss, expected in losses:
        assert loss == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", ["unbroken", "apart"])
def test_the_scores_are_those_of_the_weights_that_are_kept_with_norms_together_or_apart(
    name: str, together: Path, nuclei: Path
) -> None:
    config = tiny_config(nuclei, **CHANGES)
    sources = Sources(config.data, config.seed)
    model = make_model(config, sources.manifest)
    restore_model(read_checkpoint(together / name / "last.safetensors"), model)
    logged = [row["validation"] for row in rows(together / name / "log.jsonl") if "validation" in row]
    assert logged[-1] == ious_of(validation_counts(model, sources.validation, ALONE))


def test_what_is_refused_is_refused_by_every_process(together: Path) -> None:
    first, second = (json.loads((together / f"refused{rank}.json").read_text()) for rank in range(2))
    assert first == second
    assert first[:2] == [
        f"{together / 'cut'}: holds a run; pass --resume to continue it or --overwrite to replace it",
        "`recipe.batch` (=5) must be divisible by the 2 processes",
    ]


def test_a_window_that_spoils_the_loss_of_the_second_process_stops_both_and_is_named(together: Path) -> None:
    line = json.loads((together / "refused1.json").read_text())[2]
    assert ": the loss or gradient of step 1 is not finite (windows of N" in line
    assert json.loads((together / "poisoned" / "stopped.json").read_text())["windows"] == epoch_order(16, 0, 0)[:4]


def test_torchrun_started_runs_stop_on_a_signal_and_go_on(together: Path, nuclei: Path, tmp_path: Path) -> None:
    config = tiny_file(tmp_path / "config.yaml", nuclei, **CHANGES)
    process = start_training(config, tmp_path / "run", processes=2)
    wait_for_rows(tmp_path / "run", 6, process)
    for child in children(process.pid):
        os.kill(child, signal.SIGTERM)
    ended(process)
    assert 5 <= read_checkpoint(tmp_path / "run" / "last.safetensors").facts["progress"]["step"] <= 12
    process = start_training(config, tmp_path / "run", "--resume", processes=2)
    code, out, err = ended(process)
    assert code == 0, err
    assert out.count("finished 12 steps") == 1
    assert learnt(tmp_path / "run") == learnt(together / "unbroken")


def test_two_processes_that_are_killed_go_on_from_the_last_checkpoint_to_the_same_bytes(
    together: Path, nuclei: Path, tmp_path: Path
) -> None:
    config = tiny_file(tmp_path / "config.yaml", nuclei, **CHANGES)
    process = start_training(config, tmp_path / "run", processes=2)
    wait_for_rows(tmp_path / "run", 6, process)
    for child in [*children(process.pid), process.pid]:
        os.kill(child, signal.SIGKILL)
    process.communicate()
    assert read_checkpoint(tmp_path / "run" / "last.safetensors").facts["progress"]["step"] < 12
    code, _, err = ended(start_training(config, tmp_path / "run", "--resume", processes=2))
    assert code == 0, err
    assert learnt(tmp_path / "run") == learnt(together / "unbroken")


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


@pytest.mark.parametrize("name", ["gpu", "meta", "mps", "cpu0"])
def test_an_unknown_device_is_refused(name: str) -> None:
    with pytest.raises(InputError) as error, joined(name):
        pass
    assert str(error.value) == f"`machine.device` (={name!r}) is no device; use auto, cpu or cuda"


@pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU")
@pytest.mark.parametrize("name", ["cuda", "cuda:3"])
def test_a_gpu_that_is_not_there_is_said_to_be_missing(name: str) -> None:
    with pytest.raises(InputError) as error, joined(name):
        pass
    assert str(error.value) == f"`machine.device` (={name!r}): this machine has no usable GPU; use auto or cpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU")
def test_auto_is_the_processor_where_there_is_no_gpu() -> None:
    with joined("auto") as processes:
        assert (processes.rank, processes.size, processes.device) == (0, 1, torch.device("cpu"))
