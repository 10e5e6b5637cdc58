"""`seunet train`: what goes wrong is one line and an exit code, and nothing is lost."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from seunet.data import epoch_order
from seunet.training import Checkpoint, loop, read_checkpoint, write_checkpoint
from support.cli import Ran, seunet
from support.datasets import tree_bytes
from support.training import (
    environment,
    failing_call,
    file_size_limit,
    learnt,
    poisoned,
    prepared_nuclei,
    tiny_config,
    tiny_file,
    train_alone,
)

BETWEEN = 10_000
"""Bytes: more than the log of a tiny run, fewer than its checkpoint."""


def command(config: Path, run: Path, *options: object) -> Ran:
    return seunet("train", config, "-o", run, "--no-progress", *options)


@pytest.fixture
def config(nuclei: Path, tmp_path: Path) -> Path:
    return tiny_file(tmp_path / "config.yaml", nuclei)


@pytest.fixture(scope="module")
def half_done(nuclei: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run stopped after 6 of 12 steps, to be copied."""
    folder = tmp_path_factory.mktemp("half") / "run"
    train_alone(tiny_config(nuclei), folder, 6)
    return folder


@pytest.fixture(scope="module")
def unbroken(nuclei: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    train_alone(tiny_config(nuclei), folder)
    return learnt(folder)


@pytest.fixture
def begun(half_done: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(half_done, tmp_path / "run"))


def one_line(ran: Ran, code: int) -> str:
    assert ran.code == code, ran.err
    assert ran.err.startswith("seunet: ")
    assert ran.err.endswith("\n")
    assert ran.err.count("\n") == 1
    return ran.err.removeprefix("seunet: ").removesuffix("\n")


def test_a_run_says_where_its_model_is_and_shows_its_scores(config: Path, tmp_path: Path) -> None:
    ran = seunet("train", config, "-o", tmp_path / "run")
    assert ran.code == 0, ran.err
    rule, *_, outcome = ran.out.splitlines()
    assert rule == "learns from 4 images of 4 patients; held out: 2 images of 2 patients (one of every 3 patients)"
    assert outcome.startswith("finished 12 steps, best validation IoU 0.")
    assert outcome.endswith(f": {tmp_path / 'run' / 'model'}")
    lines = ran.err.splitlines()
    assert [line.split(":")[0] for line in lines if line.startswith("epoch")] == ["epoch 1", "epoch 2", "epoch 3"]
    assert any(line.startswith("[12/12] loss ") for line in lines)
    names = {path.name for path in (tmp_path / "run").iterdir()} - {".lock"}
    assert names == {
        "best.safetensors",
        "clock.jsonl",
        "config.yaml",
        "last.safetensors",
        "log.jsonl",
        "model",
    }


def test_a_terminal_gets_a_bar_instead(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("support.cli.io.StringIO", Terminal)
    ran = seunet("train", config, "-o", tmp_path / "run", "--set", "recipe.epochs=1")
    assert ran.code == 0, ran.err
    assert "4/4" in ran.err
    assert "epoch 1:" not in ran.err


def test_the_folder_of_the_run_must_be_given(config: Path) -> None:
    ran = seunet("train", config)
    assert ran.code == 2
    assert "needs the folder of the run" in ran.err


def test_the_help_has_an_example() -> None:
    ran = seunet("train", "--help")
    assert ran.code == 0
    assert "Example: seunet train configs/monuseg-cpu.yaml" in " ".join(ran.out.split())


def test_short_options_set_device_and_workers(config: Path) -> None:
    ran = seunet("train", config, "--print-config", "--device", "cuda", "--workers", 3)
    assert ran.code == 0
    assert "device: cuda\n" in ran.out
    assert "workers: 3\n" in ran.out


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("model.widhts=[5]", "unknown option 'widhts'; did you mean 'widths'? (known: classes, "),
        ("model.name=seunt", "unknown model 'seunt'; did you mean 'seunet'? (known: disco, "),
        ("model.preset=papr", "unknown preset of seunet 'papr'; did you mean 'paper'? (known: geometric, paper)"),
        ("model.widths=[7]", "`widths` (=[7]) must be divisible by `scales` (=5)"),
        ("model.classes=1", "class 1 (nucleus) is not among the 1 of `model.classes`; set it to 2 or leave it out"),
        ("recipe.batch=17", "set: 16 training windows do not fill a batch of 17; lower `recipe.batch`"),
        ("data.hold_out=[N0,N1,N2,N3,N4,N5]", "set: no training images are left beside the 6 held out"),
        ("data.hold_out=[N7]", "unknown image in `data.hold_out` 'N7'; did you mean 'N"),
        (
            "data.hold_out_every=null",
            "set: has no split `validation`; set `data.hold_out_every` or `data.hold_out` ([] for none), or",
        ),
        ("data.augmentation.crop_px=33", "set: `crop_px` (=33) is larger than the windows, 32 px"),
        ("data.augmentation.scale_range=[2, 1]", "`data.augmentation.scale_range` (=[2, 1]): must rise within 0.1–10"),
        ("data.root=nowhere", "nowhere"),
        ("machine.device=gpu", "`machine.device` (='gpu') is no device; use auto, cpu or cuda"),
        ("recipe.epoch=3", "in `recipe`: unknown key 'epoch'; did you mean 'epochs'?"),
        pytest.param(
            "machine.device=cuda",
            "`machine.device` (='cuda'): this machine has no usable GPU; use auto or cpu",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU"),
        ),
    ],
)
def test_what_cannot_be_run_is_one_line_exit_code_2_and_no_folder(
    options: str, text: str, config: Path, tmp_path: Path
) -> None:
    assert text in one_line(command(config, tmp_path / "run", "--set", options), 2)
    assert not (tmp_path / "run").exists()


def test_the_folder_of_a_run_is_enough_to_resume_it(begun: Path, unbroken: dict[str, bytes], tmp_path: Path) -> None:
    ran = seunet("train", begun, "--resume", "--no-progress")
    assert ran.code == 0, ran.err
    assert {name: (begun / name).read_bytes() for name in unbroken} == unbroken
    assert one_line(seunet("train", tmp_path, "--resume"), 2) == (
        f"{tmp_path}: holds no run to resume (no last.safetensors); start without --resume"
    )
    assert "cannot be read" in one_line(seunet("train", begun), 2)


def test_resume_with_nothing_there_does_not_start_afresh(config: Path, tmp_path: Path) -> None:
    line = one_line(command(config, tmp_path / "run", "--resume"), 2)
    assert line == f"{tmp_path / 'run'}: holds no run to resume (no last.safetensors); start without --resume"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("recipe.learning_rate=0.02", "`recipe.learning_rate` is 0.02, the run was started with 0.015"),
        ("model.order=2", "`model.order` is 2, the run was started with it left out"),
        ("seed=5", "`seed` is 5, the run was started with 0"),
        ("data.augmentation.crop_px=null", "`data.augmentation.crop_px` is null, the run was started with 24"),
    ],
)
def test_resume_with_another_config_names_the_field_and_changes_nothing(
    change: str, text: str, config: Path, begun: Path
) -> None:
    before = tree_bytes(begun)
    line = one_line(command(config, begun, "--resume", "--set", change), 2)
    assert line == f"{begun}: {text}; resume with the same config or start another run"
    assert tree_bytes(begun) == before


def test_resume_with_another_machine_is_the_same_run(config: Path, begun: Path, unbroken: dict[str, bytes]) -> None:
    ran = command(config, begun, "--resume", "--workers", 1, "--set", "machine.checkpoint_seconds=7")
    assert (ran.code, ran.err) == (0, "")
    assert learnt(begun) == unbroken


def test_resume_with_other_data_is_refused(config: Path, begun: Path, tmp_path: Path) -> None:
    other = prepared_nuclei(tmp_path / "other", images=7)
    before = tree_bytes(begun)
    line = one_line(command(config, begun, "--resume", "--set", f"data.root={other}"), 2)
    assert line == (
        f"{begun}: the set in {other} is not the one the run was started with; "
        "prepare that one again or start another run"
    )
    assert tree_bytes(begun) == before


def test_the_same_data_in_another_place_is_the_same_data(
    config: Path, begun: Path, nuclei: Path, unbroken: dict[str, bytes], tmp_path: Path
) -> None:
    moved = Path(shutil.copytree(nuclei, tmp_path / "moved"))
    assert command(config, begun, "--resume", "--set", f"data.root={moved}").code == 0
    assert learnt(begun) == unbroken


@pytest.mark.parametrize("damage", ["truncated", "altered", "foreign"])
def test_resume_from_a_damaged_checkpoint_is_refused_and_leaves_it(damage: str, config: Path, begun: Path) -> None:
    last = begun / "last.safetensors"
    data = bytearray(last.read_bytes())
    if damage == "altered":
        data[-100] ^= 4
    last.write_bytes({"truncated": bytes(data[:-7]), "altered": bytes(data), "foreign": b"PK\x03\x04"}[damage])
    before = tree_bytes(begun)
    line = one_line(command(config, begun, "--resume"), 2)
    assert line.startswith(f"{last}: damaged (")
    assert line.endswith("); restore a copy or start again with --overwrite")
    assert tree_bytes(begun) == before


def test_a_log_that_lost_its_end_is_refused(config: Path, begun: Path) -> None:
    (begun / "log.jsonl").write_bytes(b"")
    line = one_line(command(config, begun, "--resume"), 2)
    assert line == f"{begun / 'log.jsonl'}: shorter than when the checkpoint was taken; restore it, or --overwrite"


def test_a_used_folder_is_kept_unless_overwrite_is_said(
    config: Path, begun: Path, unbroken: dict[str, bytes], tmp_path: Path
) -> None:
    before = tree_bytes(begun)
    line = one_line(command(config, begun), 2)
    assert line == f"{begun}: holds a run; pass --resume to continue it or --overwrite to replace it"
    line = one_line(command(config, begun, "--resume", "--overwrite"), 2)
    assert line == "--resume continues a run and --overwrite replaces it; give one of them"
    assert tree_bytes(begun) == before
    (begun / "notes.txt").write_text("mine")
    (begun / "tensorboard").mkdir()
    assert command(config, begun, "--overwrite").code == 0
    assert learnt(begun) == unbroken
    assert (begun / "notes.txt").read_text() == "mine"
    assert not (begun / "tensorboard").exists()


def test_a_folder_of_something_else_and_a_file_are_left_alone(config: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("mine")
    line = one_line(command(config, tmp_path / "thesis"), 2)
    assert line == f"{tmp_path / 'thesis'}: holds something else (chapter1.txt); choose a new or empty folder"
    line = one_line(command(config, tmp_path / "thesis" / "chapter1.txt"), 2)
    assert line == f"{tmp_path / 'thesis' / 'chapter1.txt'}: is a file; choose a folder for the run"
    assert (tmp_path / "thesis" / "chapter1.txt").read_text() == "mine"


@pytest.mark.parametrize("place", ["/proc/run", "taken/run"])
def test_a_folder_that_cannot_be_made_is_exit_code_3(place: str, config: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    line = one_line(command(config, tmp_path / place), 3)
    assert line.startswith(f"{tmp_path / place}: cannot be written (")
    assert line.endswith("); free space or choose another place")


def test_a_disk_that_is_full_at_the_start_is_exit_code_3(config: Path, tmp_path: Path) -> None:
    with file_size_limit(BETWEEN):
        ran = command(config, tmp_path / "run")
    expected = "last.safetensors: cannot be written (File too large); free space or choose another place"
    assert one_line(ran, 3) == f"{tmp_path / 'run'}/{expected}"
    assert not (tmp_path / "run" / "last.safetensors").exists()


@pytest.mark.parametrize("file", ["last.safetensors", "log.jsonl"])
def test_a_disk_that_fills_up_in_mid_run_is_exit_code_3_and_the_run_goes_on_later(
    file: str, config: Path, begun: Path, unbroken: dict[str, bytes]
) -> None:
    before = (begun / "last.safetensors").read_bytes()
    room = BETWEEN if file == "last.safetensors" else (begun / "log.jsonl").stat().st_size + 50
    with file_size_limit(room):
        ran = command(config, begun, "--resume")
    assert one_line(ran, 3) == f"{begun / file}: cannot be written (File too large); free space or choose another place"
    assert (begun / "last.safetensors").read_bytes() == before
    assert not list(begun.glob(".*.part"))
    assert command(config, begun, "--resume").code == 0
    assert learnt(begun) == unbroken


def test_a_disk_that_becomes_read_only_is_exit_code_3(config: Path, begun: Path) -> None:
    before = (begun / "last.safetensors").read_bytes()
    with failing_call("replace", 30):
        line = one_line(command(config, begun, "--resume"), 3)
    assert line == f"{begun}/config.yaml: cannot be written (Read-only file system); free space or choose another place"
    assert (begun / "last.safetensors").read_bytes() == before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_disk_too_full_for_tensorboard_is_exit_code_3(config: Path, begun: Path) -> None:
    with file_size_limit(30_000):
        line = one_line(command(config, begun, "--resume", "--set", "machine.tensorboard=true"), 3)
    assert line == (
        f"{begun / 'tensorboard'}: cannot be written (File too large); free space or set `machine.tensorboard` to false"
    )
    assert read_checkpoint(begun / "last.safetensors").facts["progress"]["step"] >= 6


def test_a_loss_that_is_no_number_stops_the_run_in_its_step_and_names_the_batch(
    config: Path, begun: Path, unbroken: dict[str, bytes]
) -> None:
    before = {name: (begun / name).read_bytes() for name in ("last.safetensors", "best.safetensors")}
    batch = epoch_order(16, 0, 1)[12:]  # step 8, the last of the second epoch
    with poisoned(1, batch[2]):
        line = one_line(command(config, begun, "--resume"), 5)
    stopped = json.loads((begun / "stopped.json").read_text())
    assert stopped["step"] == 8
    assert stopped["windows"] == batch
    assert stopped["head_losses"] == ["nan"] * 5
    assert set(stopped["images"]) <= {"N1", "N2", "N4", "N5"}
    shown = ", ".join(stopped["images"][:3]) + (" and 1 more" if len(stopped["images"]) > 3 else "")
    assert line == (
        f"{begun}: the loss or gradient of step 8 is not finite (windows of {shown}; all in stopped.json); the last "
        "good checkpoint is kept: lower `recipe.learning_rate` or set `recipe.clip_norm`, and look at those images"
    )
    assert {name: (begun / name).read_bytes() for name in before} == before
    assert command(config, begun, "--resume").code == 0
    assert learnt(begun) == unbroken
    assert not (begun / "stopped.json").exists()


@pytest.mark.parametrize("value", [float("nan"), 3e38])
def test_weights_that_overflow_stop_the_run_in_its_step(value: float, config: Path, begun: Path) -> None:
    kept = read_checkpoint(begun / "last.safetensors")
    weight = kept.tensors["model/head.convolution.weight"]
    weight[0], weight[1] = value, -value
    write_checkpoint(begun / "last.safetensors", Checkpoint(kept.tensors, kept.facts))
    before = (begun / "last.safetensors").read_bytes()
    assert ": the loss or gradient of step 7 is not finite (" in one_line(command(config, begun, "--resume"), 5)
    assert (begun / "last.safetensors").read_bytes() == before


def test_a_gradient_that_is_no_number_stops_the_run_before_it_spoils_the_weights(
    config: Path, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (begun / "last.safetensors").read_bytes()
    real = loop.Trainer.gradient

    def spoilt(self: Any, batch: Any) -> Any:
        losses = real(self, batch)
        self.model.eta.grad[1] = float("inf")
        return losses

    monkeypatch.setattr(loop.Trainer, "gradient", spoilt)
    assert ": the loss or gradient of step 7 is not finite (" in one_line(command(config, begun, "--resume"), 5)
    assert (begun / "last.safetensors").read_bytes() == before


def test_masks_with_a_class_that_the_set_does_not_list_are_exit_code_2(
    config: Path, nuclei: Path, tmp_path: Path
) -> None:
    from PIL import Image

    spoilt = Path(shutil.copytree(nuclei, tmp_path / "spoilt"))
    for file in (spoilt / "masks").glob("*.png"):
        image = Image.open(file)
        image.putpixel((5, 5), 7)
        image.putpixel((37, 37), 7)
        image.save(file)
    options = ("--set", f"data.root={spoilt}", "--set", "data.augmentation.crop_px=null")
    line = one_line(command(config, tmp_path / "run", *options), 2)
    assert line == "`target` holds class 7; the model knows 0 … 1 and 255 for ignore"


TORCHS_WORDS = "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to"


@pytest.mark.parametrize(
    ("room", "remedy"),
    [
        (1, "1 at a time fit: --set recipe.accumulate=4"),
        (2, "1 at a time fit: --set recipe.accumulate=4"),
        (3, "2 at a time fit: --set recipe.accumulate=2"),
        (0, "raise `recipe.accumulate`, or use smaller crops (`data.augmentation.crop_px`) or widths"),
    ],
)
def test_out_of_memory_says_what_would_fit(
    room: int, remedy: str, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = loop.Trainer.gradient

    def short_of_memory(self: Any, batch: Any) -> Any:
        if -(-len(batch.images) // self.accumulate) > room:
            raise RuntimeError(TORCHS_WORDS)
        return real(self, batch)

    monkeypatch.setattr(loop.Trainer, "gradient", short_of_memory)
    line = one_line(command(config, tmp_path / "run"), 4)
    assert line == f"out of memory with 4 windows of 24×24 at once; {remedy}"
    if room:
        assert command(config, tmp_path / "again", "--set", remedy.split()[-1]).code == 0


def test_out_of_memory_between_the_steps_is_exit_code_4(
    config: Path, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short_of_memory(*_arguments: Any) -> None:
        raise RuntimeError(TORCHS_WORDS)

    monkeypatch.setattr(loop, "validation_counts", short_of_memory)
    line = one_line(command(config, begun, "--resume"), 4)
    assert line == (
        f"{begun}: out of memory between the steps; lower `validation.batch` or the widths, or prepare the set with "
        "smaller windows"
    )


def test_other_errors_of_torch_are_our_bugs(config: Path, begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: Any) -> None:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(loop.Trainer, "gradient", broken)
    line = one_line(command(config, begun, "--resume"), 70)
    remedy = "please report it with the command you ran and what it prints with --debug"
    assert line == f"our bug (RuntimeError: shapes differ); {remedy}"


def test_with_too_little_memory_for_real_the_remedy_that_is_named_fits(tmp_path: Path) -> None:
    data = prepared_nuclei(tmp_path, images=3, size_px=256, window_px=128)
    changes: dict[str, Any] = {
        "model__widths": [40, 80],
        "recipe__batch": 8,
        "recipe__epochs": 1,
        "validation__batch": 1,
        "data__augmentation": {},
    }
    config = tiny_file(tmp_path / "config.yaml", data, **changes)
    warm, code, err = with_little_memory(config, tmp_path / "large")
    assert (warm, code) == (0, 4)
    assert err.startswith("seunet: out of memory with 8 windows of 128×128 at once; ")
    assert " at a time fit: --set recipe.accumulate=" in err
    assert with_little_memory(config, tmp_path / "remedied", *err.split()[-2:]) == [0, 0, ""]


def with_little_memory(config: Path, run: Path, *options: str) -> list[Any]:
    """Exit code of a run before memory was limited, and exit code and errors of the run asked for."""
    script, result = Path(__file__).parents[1] / "support" / "out_of_memory.py", run.with_suffix(".json")
    arguments = [sys.executable, str(script), str(result), str(config), str(run), *options]
    done = subprocess.run(arguments, env=environment(), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(result.read_text())
    return found
