"""Trainings from several sets and with the rim as a class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import seunet as package
from seunet.errors import InputError
from seunet.maths import scale_loss_sums, undecided_shares, without_rim
from seunet.models import ModelCard
from seunet.training.config import checked_config, learning_fields
from seunet.training.loading import Sources
from support.training import tiny_tree, train_alone
from tests.support.prepared import prepared_nuclei, prepared_tissue


def tree_of(roots: list[Path], **changes: Any) -> dict[str, Any]:
    tree = tiny_tree(roots[0], **changes)
    tree["data"] = {key: value for key, value in tree["data"].items() if key not in ("root", "hold_out_every")}
    tree["data"]["sets"] = [{"root": str(root), "hold_out_every": 2} for root in roots]
    return tree


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [prepared_nuclei(tmp_path_factory.mktemp(name), train=3, test=1) for name in ("a", "b")]


def test_a_run_learns_from_several_sets_with_the_rim_and_resumes_to_the_same_bytes(
    roots: list[Path], tmp_path: Path
) -> None:
    # The made images of both sets are the same pixels, so that nothing may be held out in one and learnt in the other.
    config = checked_config(tree_of(roots, data__mpp=0.25, data__rim_um=1.0, data__epoch_windows=12), "test")
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train_alone(config, whole)
    train_alone(config, cut, steps=4)
    train_alone(config, cut, resume=True)
    for name in ("last.safetensors", "log.jsonl"):
        assert (whole / name).read_bytes() == (cut / name).read_bytes()
    card = package.load(whole / "model").card
    assert card is not None
    assert (card.rim, card.class_names, card.mpp) == (2, ("background", "nucleus", "rim"), 0.25)
    assert card.trained_on == "set, set"


def test_sets_of_different_classes_are_refused(roots: list[Path], tmp_path: Path) -> None:
    config = checked_config(tree_of([roots[0], prepared_tissue(tmp_path)]), "test")
    with pytest.raises(InputError, match=r"its classes \(other, tumour, stroma\) are not those of .*prepare both with"):
        Sources(config.data, 0)


def test_a_rim_is_of_one_class_of_objects(tmp_path: Path) -> None:
    tree = tiny_tree(prepared_tissue(tmp_path), data__rim_um=1.0)
    with pytest.raises(
        InputError, match=r"`data.rim_um` is for background and one class of objects, not other, tumour"
    ):
        Sources(checked_config(tree, "test").data, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"root": None}, "needs `root`, a prepared set, or `sets`, a list of them with weights"),
        ({"epoch_windows": 3}, "`epoch_windows` is for `sets`"),
        ({"sets": [{"root": "x"}]}, "needs `root`, a prepared set, or `sets`"),
    ],
)
def test_data_is_one_set_or_several(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    tree = tiny_tree(tmp_path)
    tree["data"] |= changes
    with pytest.raises(InputError, match=message):
        checked_config(tree, "test")


def test_a_run_that_says_nothing_of_the_younger_keys_is_the_run_it_was(tmp_path: Path) -> None:
    fields = learning_fields(checked_config(tiny_tree(tmp_path), "test"))
    assert not [name for name in fields if name.startswith("data.") and ("optics" in name or "sets" in name)]
    assert sorted(name for name in fields if name.startswith("data.")) == [
        "data.augmentation.crop_px",
        "data.augmentation.flips",
        "data.augmentation.scale_range",
        "data.augmentation.shift_px",
        "data.augmentation.stain_jitter",
        "data.hold_out",
        "data.hold_out_every",
    ]


def test_where_sets_lie_is_not_what_is_learnt(roots: list[Path], tmp_path: Path) -> None:
    here, there = (learning_fields(checked_config(tree_of(places), "test")) for places in (roots, [tmp_path] * 2))
    assert here == there


def test_object_and_rim_together_are_the_object_and_the_rim_starts_rare(roots: list[Path], tmp_path: Path) -> None:
    torch.manual_seed(0)
    start = package.create_model("seunet", preset="geometric", widths=(5, 10))
    start.card = ModelCard(class_names=("background", "nucleus"))
    start.save_pretrained(tmp_path / "start")
    from seunet.training.new_model import make_model
    from seunet.training.starting import begin_with, start_model

    tree = tiny_tree(roots[0], data__rim_um=1.0, start=str(tmp_path / "start"), model={})
    config = checked_config(tree, "test")
    begun = start_model(str(tmp_path / "start"))
    model = make_model(config, Sources(config.data, 0).manifest, begun)
    assert "the head is that of" in " ".join(begin_with(model, begun, config))
    images = torch.rand(1, 3, 32, 32)
    with torch.inference_mode():
        before, after = (each.eval()(images).softmax(2) for each in (begun, model))
    assert after.shape[2] == 3
    assert (without_rim(after, 2) - before).abs().max() < 0.02
    assert (after[:, :, 2] < 0.06 * after[:, :, 1]).all()


def test_a_start_with_a_rim_serves_a_set_without_one(roots: list[Path], tmp_path: Path) -> None:
    torch.manual_seed(0)
    start = package.create_model("seunet", classes=3, preset="geometric", widths=(5, 10))
    start.card = ModelCard(class_names=("background", "nucleus", "rim"), rim=2, blind_fusion="p_dist", instances=True)
    start.save_pretrained(tmp_path / "start")
    said: list[str] = []
    config = checked_config(tiny_tree(roots[0], start=str(tmp_path / "start"), model={}, recipe__epochs=1), "test")
    train_alone(config, tmp_path / "run", say=said.append)
    assert any("without the rim; `data.rim_um` would keep it" in line for line in said)
    model = package.load(tmp_path / "run" / "model")
    assert model.card is not None
    assert (model.classes, model.rim, model.card.blind_fusion) == (2, None, "p_dist")
    start.reset_classifier(4)
    assert start.rim is None


def test_who_is_unsure_of_the_rim_is_unsure_of_the_object_as_a_whole() -> None:
    logits = torch.tensor([0.5, 0.25, 0.25]).log().view(1, 1, 3, 1, 1).requires_grad_()
    shares = torch.tensor(undecided_shares(3, 2))
    target, doubt = torch.zeros(1, 1, 1, dtype=torch.int64), torch.ones(1, 1)
    scale_loss_sums(logits, target, doubt=doubt, undecided=shares).sum().backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-6


def test_classes_that_do_not_fit_the_rim_are_refused(roots: list[Path]) -> None:
    from seunet.training.new_model import make_model

    config = checked_config(tiny_tree(roots[0], data__rim_um=1.0, model__classes=2), "test")
    with pytest.raises(InputError, match=r"`model.classes` \(=2\) must be 3 with `data.rim_um`; leave it out"):
        make_model(config, Sources(config.data, 0).manifest)
    with pytest.raises(ValueError, match=r"`rim` \(=2\) must be the last of the 2 classes"):
        ModelCard(class_names=("background", "nucleus"), rim=2)
