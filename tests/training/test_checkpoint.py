"""A checkpoint is one safetensors file: whole, without pickle, and refused if a bit of it is not what was written."""

from __future__ import annotations

import errno
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from seunet.errors import ModelFileError, StorageError
from seunet.models import create_model
from seunet.training.checkpoint import (
    FORMAT,
    Checkpoint,
    model_tensors,
    optimizer_tensors,
    read_checkpoint,
    restore_model,
    restore_optimizer,
    write_checkpoint,
)
from seunet.training.optimizer import make_optimizer
from support.checkpoints import killed_writer, step_of
from support.training import SAVE_CALLS, failing_call

FACTS: dict[str, Any] = {"step": 3, "config": {"recipe.batch": "8"}, "größe": [1.5, None, True]}


def example(value: float = 1.0) -> Checkpoint:
    tensors = {
        "model/a": torch.full((3, 2), value),
        "model/n": torch.tensor(7),
        "optimizer/a/step": torch.tensor(4.0),
        "rng/torch": torch.arange(9, dtype=torch.uint8),
        "model/empty": torch.zeros(0, 3),
        "model/half": torch.ones(5, dtype=torch.bfloat16),
    }
    return Checkpoint(tensors, FACTS)


def header(path: Path) -> tuple[dict[str, Any], int]:
    """The JSON at the head of a safetensors file and where the tensors begin."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), 8 + length


def test_what_is_written_is_read_with_types_shapes_and_facts(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", example())
    read = read_checkpoint(tmp_path / "c")
    assert read.facts == FACTS
    assert set(read.tensors) == set(example().tensors)
    for name, tensor in example().tensors.items():
        assert read.tensors[name].dtype == tensor.dtype
        assert torch.equal(read.tensors[name], tensor)


def test_the_same_state_is_the_same_bytes(tmp_path: Path) -> None:
    for name in "abc":
        write_checkpoint(tmp_path / name, example())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    write_checkpoint(tmp_path / "d", example(1.0000001))
    assert (tmp_path / "d").read_bytes() != (tmp_path / "a").read_bytes()


def test_the_file_is_plain_json_and_numbers_and_nothing_in_it_is_a_pickle(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", example())
    entries, begin = header(tmp_path / "c")
    assert list(entries.pop("__metadata__")) == [FORMAT]
    ends = sorted(entry["data_offsets"] for entry in entries.values())
    assert ends[-1][1] + begin == (tmp_path / "c").stat().st_size
    assert all(first[1] == second[0] for first, second in itertools.pairwise(ends))
    data = (tmp_path / "c").read_bytes()
    assert not data.startswith((b"PK", b"\x80"))
    assert b"pickle" not in data


def test_the_training_room_does_not_unpickle() -> None:
    folder = Path(__file__).parents[2] / "src" / "seunet" / "training"
    for file in folder.glob("*.py"):
        text = file.read_text().replace("never unpickled", "").replace("without pickle", "")
        assert "pickle" not in text, file
        assert "torch.load" not in text, file
        assert "torch.save" not in text, file


def test_any_altered_byte_and_any_missing_tail_is_found(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "whole", example())
    whole, path = (tmp_path / "whole").read_bytes(), tmp_path / "c"
    random = np.random.default_rng(2026)
    for place in {0, 7, 8, len(whole) - 1, *random.integers(0, len(whole), 150).tolist()}:
        data = bytearray(whole)
        data[place] ^= 1 << int(random.integers(0, 8))
        path.write_bytes(bytes(data))
        with pytest.raises(ModelFileError):
            read_checkpoint(path)
    for length in {0, 1, 8, len(whole) - 1, *random.integers(0, len(whole), 30).tolist()}:
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=r"c: damaged \(.*\); restore a copy or start again with --overwrite"):
            read_checkpoint(path)


def test_facts_that_were_edited_are_found(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", example())
    data = (tmp_path / "c").read_bytes()
    edited = data.replace(rb"\"step\": 3", rb"\"step\": 4")
    assert edited != data
    (tmp_path / "c").write_bytes(edited)
    with pytest.raises(ModelFileError) as error:
        read_checkpoint(tmp_path / "c")
    assert str(error.value) == (
        f"{tmp_path / 'c'}: damaged (its sha256 differs); restore a copy or start again with --overwrite"
    )


@pytest.mark.parametrize(
    "metadata",
    [None, {"format": "pt"}, {FORMAT: "no JSON"}, {FORMAT: "[]"}, {FORMAT: '{"facts": {}}'}, {FORMAT: '{"facts": 1}'}],
)
def test_a_foreign_safetensors_file_is_refused(metadata: dict[str, str] | None, tmp_path: Path) -> None:
    save_file({"weight": torch.ones(2)}, tmp_path / "c", metadata)
    with pytest.raises(ModelFileError) as error:
        read_checkpoint(tmp_path / "c")
    assert str(error.value) == f"{tmp_path / 'c'}: not a checkpoint of this release (no {FORMAT!r} in its header)"


def test_a_missing_checkpoint_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as error:
        read_checkpoint(tmp_path / "c")
    assert str(error.value) == f"{tmp_path / 'c'}: no checkpoint there to resume from; start without --resume"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("call", SAVE_CALLS)
def test_a_fault_at_any_system_call_of_a_save_leaves_a_whole_file_and_is_loud(
    call: str, code: int, tmp_path: Path
) -> None:
    path = tmp_path / "c"
    write_checkpoint(path, example(1))
    before = path.read_bytes()
    with failing_call(call, code), pytest.raises(StorageError) as error:
        write_checkpoint(path, example(2))
    reason = {errno.ENOSPC: "No space left on device", errno.EROFS: "Read-only file system"}[code]
    assert str(error.value) == f"{path}: cannot be written ({reason}); free space or choose another place"
    assert error.value.exit_code == 3
    assert [file.name for file in tmp_path.iterdir()] == ["c"]
    if call == "fsync folder":  # the new file is in its place by then
        assert torch.equal(read_checkpoint(path).tensors["model/a"], example(2).tensors["model/a"])
    else:
        assert path.read_bytes() == before


def test_model_and_optimiser_go_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
        images = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
        optimizer.zero_grad()
        model(images).square().mean().backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.01
        optimizer.step()

    first = create_model("unet", widths=[4, 8])
    optimizer = make_optimizer(first, 1e-4)
    step(first, optimizer, 1)
    write_checkpoint(tmp_path / "c", Checkpoint(model_tensors(first) | optimizer_tensors(optimizer, first), {}))
    second = create_model("unet", widths=[4, 8])
    other = make_optimizer(second, 1e-4)
    kept = read_checkpoint(tmp_path / "c")
    restore_model(kept, second)
    restore_optimizer(kept, other, second)
    for seed in (2, 3):
        step(first, optimizer, seed)
        step(second, other, seed)
    for (name, value), (_, expected) in zip(second.state_dict().items(), first.state_dict().items(), strict=True):
        assert torch.equal(value, expected), name


def test_killed_while_it_writes_the_file_is_whole_and_no_finished_checkpoint_is_lost(tmp_path: Path) -> None:
    path, random = tmp_path / "c", np.random.default_rng(2026)
    torch.set_num_threads(1)
    landed = 0
    for number in range(6):
        written = killed_writer(path, [10, 20], float(random.uniform(0, 0.05)), while_writing=bool(number % 2))
        parts = list(tmp_path.glob(".*.part"))
        landed += bool(parts)
        assert written <= step_of(read_checkpoint(path)) <= written + 1
        for part in parts:
            part.unlink()
    assert landed
