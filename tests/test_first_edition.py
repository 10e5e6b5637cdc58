"""What the first edition wrote is read, resumed and recognised by this one (tests/fixtures/make_first_edition.py)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import seunet as package
from seunet.evaluation import with_new_names
from seunet.models import weights_sha256
from seunet.training import read_checkpoint
from support.cli import Ran, seunet

FIXTURES = Path(__file__).parent / "fixtures" / "first_edition"
SCALES = ("--told", "--scales", "0.5,0.71,1,1.41,2", "--no-panels", "--no-progress")
NUCLEI = "d4a291d6"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the fixtures, which is the current folder, as the paths in them are relative."""
    shutil.copytree(FIXTURES, tmp_path / "kept")
    # A result counts as made before if the version and the date of the image's file are those of its run.json.
    identity = read(tmp_path / "kept" / "segmented" / "slide" / "run.json")
    monkeypatch.setattr(package, "__version__", identity["seunet"])
    os.utime(tmp_path / "kept" / "slide.png", ns=(0, identity["image"]["modified_ns"]))
    monkeypatch.chdir(tmp_path / "kept")
    return tmp_path / "kept"


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def segment(out: str, *options: str) -> Ran:
    chosen = ("--mpp", 0.25, "--tile-size", 64, "--no-tissue", "--no-progress")
    return seunet("segment", "slide.png", "-m", "model", *chosen, *options, "-o", out)


def test_a_prepared_set_verifies_and_is_the_set_it_was(kept: Path) -> None:
    assert seunet("data", "verify", "set", "--no-progress").code == 0
    content = read(kept / "evaluated" / "evaluation.json")["data"]["content_hash"]
    assert read_checkpoint(kept / "run" / "last.safetensors").facts["data"] == content


def test_a_model_folder_loads(kept: Path) -> None:
    model = package.load("model")
    assert weights_sha256(model) == read(kept / "model" / "config.json")["weights"]["sha256"]
    assert model.card is not None
    assert model.card.class_names == ("other", "nucleus")
    with torch.no_grad():
        assert model(torch.rand(1, 3, 32, 32)).shape == (1, model.heads, 2, 32, 32)


def test_the_model_of_the_package_loads_with_its_scale_estimator() -> None:
    model = package.load("nuclei")
    assert weights_sha256(model).startswith(NUCLEI)
    assert model.scale_estimator is not None


def test_a_run_resumes_to_the_end_and_its_log_goes_on(kept: Path) -> None:
    log, progress = kept / "run" / "log.jsonl", read_checkpoint(kept / "run" / "last.safetensors").facts["progress"]
    before = log.read_bytes()
    assert len(before) == progress["log_bytes"]
    ran = seunet("train", "run/config.yaml", "-o", "run", "--resume", "--no-progress")
    assert (ran.code, ran.err) == (0, "")
    assert log.read_bytes().startswith(before)
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row["step"] for row in rows if "loss" in row] == list(range(1, 121))
    assert rows[-1]["validation"]["p_ens"] > 0.7
    assert package.load("run/model").classes == 2


def test_the_best_weights_of_a_run_start_another_one(kept: Path) -> None:
    start = ("--set", "start=run/best.safetensors", "--set", "recipe.epochs=1")
    assert seunet("train", "run/config.yaml", "-o", "second", *start, "--no-progress").code == 0


@pytest.mark.parametrize("out", ["evaluated", "evaluated-partly"])
def test_an_evaluation_is_taken_over_whether_finished_or_not(out: str, kept: Path) -> None:
    finished = read(kept / "evaluated" / "evaluation.json")
    name = "evaluation.json" if out == "evaluated" else "evaluation.partial.json"
    before = with_new_names(read(kept / out / name))["results"]
    ran = seunet("evaluate", "model", "set", *SCALES, "-o", out)
    assert (ran.code, ran.err) == (0, "")
    document = with_new_names(read(kept / out / "evaluation.json"))
    assert document["results"][: len(before)] == before
    assert 3 <= len(before) <= len(document["results"]) == 10
    for now, then in zip(document["scores"], finished["scores"], strict=True):
        assert now["ious"] == pytest.approx(then["ious"], abs=0.02)  # another processor may round otherwise


def test_an_equivariance_report_is_taken_over(kept: Path) -> None:
    before = (kept / "evaluated" / "equivariance.json").read_bytes()
    options = ("--scales", "0.5,0.71,1.41,2", "--no-progress")
    assert seunet("equivariance", "model", "set", "-o", "evaluated", *options).code == 0
    assert (kept / "evaluated" / "equivariance.json").read_bytes() == before


def test_a_finished_result_is_recognised(kept: Path) -> None:
    before = (kept / "segmented" / "slide" / "run.json").read_bytes()
    ran = segment("segmented")
    assert ran.code == 0
    assert ran.err == (
        "note: slide.png: was made by an earlier edition: objects from 10 px of the network's grid on are listed, and "
        "labels.tif is on that grid; --overwrite makes it anew\n"
    )
    assert "(was there)" in ran.out
    assert (kept / "segmented" / "slide" / "run.json").read_bytes() == before


def test_an_interrupted_segmentation_goes_on(kept: Path) -> None:
    ledger = kept / "segmented-partly" / "slide" / ".work" / "ledger.jsonl"
    done = len(ledger.read_bytes().splitlines()) - 1
    ran = segment("segmented-partly", "--scale", "told")
    assert ran.code == 0
    found, whole = (read(kept / out / "slide" / "run.json") for out in ("segmented-partly", "segmented"))
    assert found["notes"] == whole["notes"]  # nothing "starts afresh"
    assert 0 < done == found["clock"]["tiles_from_before"] < found["clock"]["tiles"] == whole["clock"]["tiles"]
    assert found["results"]["pixels"]["nucleus"] == pytest.approx(whole["results"]["pixels"]["nucleus"], rel=0.02)
    assert not ledger.exists()
