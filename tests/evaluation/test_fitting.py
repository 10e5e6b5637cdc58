"""A model of one's own gets what `nuclei` has: scale estimator, matched head, filter range, calibration."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from seunet.cli import fitting
from seunet.errors import InputError
from seunet.evaluation.fitting.head_choices import chosen_heads, temperatures_of
from seunet.evaluation.fitting.head_samples import BLIND, RESAMPLED, SCALED, Sampled
from seunet.evaluation.fitting.scale_fit import (
    covering_factors,
    fit_estimator,
    fitted_templates,
    left_out,
    mean_error,
)
from seunet.evaluation.fitting.scale_samples import observed, varied
from seunet.models import ModelCard, load
from seunet.scale import estimate_scale, load_estimator, save_estimator, shipped_estimator
from support.cli import seunet
from support.datasets import write_image
from support.made_tissue import made_tissue
from support.training import tiny_tree
from tests.support.prepared import saved_model
from tests.support.tissue_model import dark_disc_model, discs

PIXELS = 400


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four patients of made tissue at 0.25 µm per pixel, one of them at 0.5, and a model that finds dark discs."""
    root = tmp_path_factory.mktemp("fitting")
    rows = ["image,patient,split,mpp"]
    for number in range(5):
        scale = 0.5 if number == 3 else 1.0
        write_image(root / "lab" / "images" / f"N{number}.png", made_tissue(320, scale, number))
        write_image(root / "lab" / "masks" / f"N{number}.png", np.zeros((320, 320), np.uint8))
        rows.append(f"N{number}.png,P{number},{'test' if number == 4 else 'train'},{0.25 / scale}")
    (root / "lab" / "table.csv").write_text("\n".join(rows) + "\n")
    options = ("--table", root / "lab" / "table.csv", "--window", 64, "--class-map", root / "map.csv")
    (root / "map.csv").write_text("code,class\n0,background\n1,nucleus\n")
    assert seunet("data", "prepare", "folder", root / "lab", root / "tissue", *options).code == 0
    random = np.random.default_rng(3)
    for number in range(4):
        pixels = discs(96, 96, random)
        write_image(root / "discs" / "images" / f"D{number}.png", pixels)
        write_image(root / "discs" / "masks" / f"D{number}.png", (pixels.mean(2) < 153).astype(np.uint8))
    options = ("--mpp", 0.25, "--window", 48, "--class-map", root / "map.csv")
    assert seunet("data", "prepare", "folder", root / "discs", root / "prepared", *options).code == 0
    dark_disc_model(root / "model")
    return root


def model_copy(root: Path, place: Path, **fields: object) -> Path:
    model = load(root / "model")
    assert model.card is not None
    model.card = model.card.model_copy(update=fields)
    model.save_pretrained(place)
    return place


def test_fit_scale_gives_a_model_an_estimator_that_knows_the_scale(root: Path, tmp_path: Path) -> None:
    folder = model_copy(root, tmp_path / "model", mpp=None)
    ran = seunet("fit-scale", root / "tissue", "-m", folder, "--samples", 8, "--no-progress")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("scale estimator of 4 images, judged by leaving out a patient at a time:\n  images: ")
    estimator = load_estimator(folder)
    assert estimator.mpp == 0.25
    assert estimator.fitted_on["images"] == 4
    assert estimator.fitted_on["left_out"]["whole_images"]["count"] > 20
    assert load(folder).card.mpp == 0.25
    for scale in (0.5, 1.0, 2.0):
        found = estimate_scale(made_tissue(400, scale, 9), estimator=estimator)
        assert found.relative_scale == pytest.approx(scale, rel=0.25), found


def test_heads_have_their_say_where_they_know_the_scale_and_none_where_they_do_not() -> None:
    """Five heads, each surest at its own scale; the same numbers in another order know nothing."""
    random = np.random.default_rng(1)
    images = []
    for number in range(4):
        image = observed(f"I{number}", made_tissue(260, 1.0, number), count=2)
        said = 1 - (np.log2(image.scales)[:, None] - np.linspace(-1, 1, 5)) ** 2
        images.append(image._replace(heads=said + random.normal(0, 0.1, said.shape)))
    texture = shipped_estimator()
    knowing, samples = fit_estimator(images, str, 0.25, {"by": "test"}, texture)
    assert knowing.heads is not None
    assert knowing.heads.templates.means.shape[1] == 5
    assert mean_error(samples) < mean_error(left_out(images, str, texture.templates))
    assert knowing.templates is texture.templates
    assert (knowing.limits, knowing.fitted_on) == (texture.limits, {"by": "test"})
    shuffled = [image._replace(heads=random.permutation(image.heads)) for image in images]
    assert fit_estimator(shuffled, str, 0.25, {}, texture)[0].heads is None


def test_the_texture_of_a_model_can_be_kept_if_it_has_one(root: Path, tmp_path: Path) -> None:
    folder = model_copy(root, tmp_path / "model")
    options = ("fit-scale", root / "tissue", "-m", folder, "--keep-texture", "--no-progress")
    ran = seunet(*options)
    assert (ran.code, ran.out) == (2, "")
    assert "has no scale estimator or one head only; leave --keep-texture out" in ran.err
    save_estimator(shipped_estimator(), folder)
    ran = seunet(*options)
    assert (ran.code, ran.err) == (0, "")
    found = load_estimator(folder)
    assert np.array_equal(found.templates.means, shipped_estimator().templates.means)
    assert found.limits == shipped_estimator().limits
    assert found.fitted_on["texture"] == shipped_estimator().fitted_on
    assert ("the heads of the model have their say in it" in ran.out) == (found.heads is not None)


def test_a_scale_is_not_fitted_on_images_without_an_mpp_nor_on_two_patients(root: Path, tmp_path: Path) -> None:
    folder = model_copy(root, tmp_path / "model")
    before = (folder / "config.json").read_bytes()
    for images, mpp, line in (
        (4, "", "N0 and 3 more have no mpp; prepare the set again with --mpp or a table"),
        (2, "0.25", "images of 2 patients; a scale estimator needs those of 3 or more, to see how it does on images"),
    ):
        rows = [f"N{number}.png,P{number},train,{mpp}" for number in range(images)]
        rows += [f"N{number}.png,P{number},test,{mpp}" for number in range(images, 5)]
        (tmp_path / "table.csv").write_text("\n".join(["image,patient,split,mpp", *rows]) + "\n")
        prepared = tmp_path / f"set{images}"
        options = ("--table", tmp_path / "table.csv", "--window", 64, "--class-map", root / "map.csv")
        assert seunet("data", "prepare", "folder", root / "lab", prepared, *options).code == 0
        ran = seunet("fit-scale", prepared, "-m", folder, "--samples", 1, "--no-progress")
        assert (ran.code, ran.out) == (2, "")
        assert line in ran.err
    assert (folder / "config.json").read_bytes() == before


def test_calibrate_chooses_heads_fusion_and_temperatures_on_held_out_images(root: Path, tmp_path: Path) -> None:
    folder = model_copy(root, tmp_path / "model")
    ran = seunet("calibrate", root / "prepared", "-m", folder, "--images", "D0,D1,D2", "--no-progress")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("matched head ")
    card = load(folder).card
    assert card is not None
    assert card.calibration is not None
    assert len(card.calibration.temperatures) == 5
    assert card.matched_head is not None
    assert 0.5 <= card.scaled_filters_range[0] <= 1 <= card.scaled_filters_range[1] <= 2
    assert card.calibrated_on.startswith("3 held-out images of ")
    assert load(folder).state_dict().keys() == load(root / "model").state_dict().keys()


def test_images_that_were_learnt_from_are_refused_by_their_pixels(root: Path, tmp_path: Path) -> None:
    entries = json.loads((root / "prepared" / "manifest.json").read_text())["images"]
    learnt = tuple(entry["image"]["pixel_sha256"] for entry in entries if entry["name"] in ("D1", "D2"))
    folder = model_copy(root, tmp_path / "model", learnt_from=learnt)
    before = (folder / "config.json").read_bytes()
    ran = seunet("calibrate", root / "prepared", "-m", folder, "--images", "D0,D1,D2", "--no-progress")
    assert (ran.code, ran.err) == (
        2,
        f"seunet: {root / 'prepared'}: the model learnt from D1 and 1 more, and is surer of it than of a user's image; "
        "name held-out images\n",
    )
    ran = seunet("calibrate", root / "prepared", "-m", folder, "--no-progress")
    assert (ran.code, ran.err) == (2, "seunet: 2 held-out images; heads are chosen by 3 or more\n")
    assert (folder / "config.json").read_bytes() == before


@pytest.mark.parametrize(
    ("learnt", "names", "line"),
    [
        ((), (), "does not say which images it learnt from; name held-out ones with --images"),
        (None, (), "the model learnt from every image but the test images; train with some held out"),
        ((), ("--images", "D9"), "unknown image 'D9'; did you mean 'D"),
    ],
)
def test_without_held_out_images_nothing_is_calibrated(
    learnt: tuple[str, ...] | None, names: tuple[str, ...], line: str, root: Path, tmp_path: Path
) -> None:
    entries = json.loads((root / "prepared" / "manifest.json").read_text())["images"]
    known = tuple(entry["image"]["pixel_sha256"] for entry in entries) if learnt is None else learnt
    folder = model_copy(root, tmp_path / "model", learnt_from=known)
    ran = seunet("calibrate", root / "prepared", "-m", folder, *names, "--no-progress")
    assert (ran.code, ran.out) == (2, "")
    assert line in ran.err


def test_one_head_and_models_of_the_package_are_not_calibrated(root: Path, tmp_path: Path) -> None:
    saved_model(tmp_path / "unet", "unet", widths=(4, 8))
    ran = seunet("calibrate", root / "prepared", "-m", tmp_path / "unet", "--images", "D0,D1,D2")
    assert (ran.code, ran.err) == (2, "seunet: this unet has one head: there is nothing to calibrate\n")
    ran = seunet("fit-scale", root / "tissue", "-m", "nuclei")
    assert (ran.code, ran.err) == (
        2,
        "seunet: nuclei: is a model of the package; make a copy (in Python: "
        "seunet.load('nuclei').save_pretrained('my-nuclei')) and give that\n",
    )


def sampled(way: str, scale: float, image: str, sure: tuple[float, ...]) -> Sampled:
    """Heads that are right in these shares of the pixels, and always equally sure."""
    random = torch.Generator().manual_seed(round(100 * scale) + ord(image))
    classes = torch.randint(0, 2, (PIXELS,), generator=random)
    right = torch.rand(len(sure), PIXELS, generator=random) < torch.tensor(sure)[:, None]
    said = torch.where(right, classes, 1 - classes)
    one = torch.where(said == 1, 0.95, 0.05)
    return Sampled(image, scale, way, torch.stack([1 - one, one], 1), classes)


def test_the_best_head_at_the_training_scale_is_matched_and_filters_end_where_they_are_worse() -> None:
    samples = []
    for image in "abc":
        for scale in (0.5, 0.5 * 2**0.5, 1.0, 2**0.5, 2.0):
            samples.append(sampled(BLIND, scale, image, (0.7, 0.8, 0.6)))
            samples.append(sampled(RESAMPLED, scale, image, (0.7, 0.9, 0.6)))
            samples.append(sampled(SCALED, scale, image, (0.7, 0.9 if scale >= 1 else 0.6, 0.6)))
    found = chosen_heads(samples)
    assert found.matched_head == 2
    assert found.scaled_filters_range == (0.841, 2.0)
    assert found.ious["stated"]["head 2"] == max(found.ious["stated"][f"head {head}"] for head in (1, 2, 3))
    assert found.calibration.prior_at_scale[1] == 0


def test_a_head_that_is_surer_than_right_gets_a_temperature_above_1() -> None:
    temperatures = temperatures_of([sampled(BLIND, 1.0, "a", (0.95, 0.7))])
    assert temperatures[0] == pytest.approx(1.0, abs=0.15)
    assert temperatures[1] > 2


def test_too_few_images_and_one_head_are_refused() -> None:
    with pytest.raises(InputError, match=r"1 held-out image; heads are chosen by 3 or more"):
        chosen_heads([sampled(BLIND, 1.0, "a", (0.9, 0.8))])
    with pytest.raises(InputError, match="the model has one head: there is nothing to choose among"):
        chosen_heads([sampled(BLIND, 1.0, name, (0.9,)) for name in "abc"])


def test_samples_are_the_same_every_time_and_some_are_averaged_noisy_and_restained() -> None:
    pixels = made_tissue(256, 1.0)
    first, second = (list(varied("a", pixels, 24)) for _ in range(2))
    assert all(np.array_equal(a.pixels, b.pixels) and a[1:] == b[1:] for a, b in zip(first, second, strict=True))
    changes = {change for sample in first for change in sample.changes}
    assert {"averaged", "noise", "stain", "optics", "sharpened after", "jpeg"} <= changes


def test_an_image_of_another_resolution_is_observed_at_its_relative_scale() -> None:
    seen = observed("a", made_tissue(300, 0.5), own_scale=0.5, count=0)
    assert set(np.log2(seen.scales).round(6)) <= {step / 2 - 2 for step in range(9)}
    assert seen.scales.max() == pytest.approx(4.0)


def test_without_tissue_there_are_no_templates() -> None:
    white = observed("w", np.full((200, 200, 3), 250, np.uint8), count=0)
    with pytest.raises(InputError, match="none of the images shows tissue; a scale estimator is fitted on stained"):
        fitted_templates([white])


def test_where_no_sample_is_near_the_nearest_ones_give_the_interval() -> None:
    from seunet.evaluation.fitting.scale_fit import LeftOut

    samples = [LeftOut(error, 0.0, 1.0, 10.0, True) for error in np.linspace(0, 1, 101)]
    factors = covering_factors(samples, np.full(101, np.log2(10.0)), (np.log2(10.0), np.log2(80.0)), 0.35)
    assert factors == pytest.approx((0.9, 0.9), abs=0.02)


def test_a_card_of_before_has_learnt_from_nothing_it_knows_of() -> None:
    assert ModelCard.model_validate_json("{}").learnt_from == ()


def test_training_can_end_with_both_and_its_own_images_are_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four made tissues are learnt from for a moment, three are held out."""
    monkeypatch.setattr(fitting.SAMPLES, "default", 4)
    rows = ["image,patient,split,mpp"]
    for number in range(7):
        pixels = made_tissue(192, 1.0, number)
        write_image(tmp_path / "lab" / "images" / f"N{number}.png", pixels)
        write_image(tmp_path / "lab" / "masks" / f"N{number}.png", (pixels[..., 0] < 150).astype(np.uint8))
        rows.append(f"N{number}.png,P{number},{'validation' if number > 3 else 'train'},0.25")
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    options = ("--table", tmp_path / "table.csv", "--window", 64, "--class-map", root / "map.csv")
    assert seunet("data", "prepare", "folder", tmp_path / "lab", tmp_path / "set", *options).code == 0
    tree = tiny_tree(tmp_path / "set", recipe__epochs=1, finish={"fit_scale": True, "calibrate": True})
    (tmp_path / "run.yaml").write_text(json.dumps(tree))
    ran = seunet("train", tmp_path / "run.yaml", "-o", tmp_path / "run", "--no-progress")
    assert ran.code == 0, ran.err
    assert "scale estimator of 7 images" in ran.out
    assert "\nmatched head " in ran.out
    model = load(tmp_path / "run" / "model")
    assert model.scale_estimator is not None
    assert model.card is not None
    assert model.card.calibration is not None
    assert len(model.card.learnt_from) == 4
    ran = seunet("calibrate", tmp_path / "set", "-m", tmp_path / "run" / "model", "--images", "N0,N4,N5")
    assert (ran.code, ran.out) == (2, "")
    assert "the model learnt from N0, and is surer of it than of a user's image" in ran.err


def test_what_cannot_be_done_at_the_end_is_refused_at_the_beginning(root: Path, tmp_path: Path) -> None:
    tree = tiny_tree(root / "two", finish={"fit_scale": True})
    (tmp_path / "run.yaml").write_text(json.dumps(tree))
    options = ("--mpp", 0.25, "--window", 48, "--class-map", root / "map.csv")
    for name in ("images", "masks"):
        (tmp_path / "lab" / name).mkdir(parents=True)
        for number in (0, 1):
            place = f"{name}/D{number}.png"
            (tmp_path / "lab" / place).write_bytes((root / "discs" / place).read_bytes())
    assert seunet("data", "prepare", "folder", tmp_path / "lab", root / "two", *options).code == 0
    ran = seunet("train", tmp_path / "run.yaml", "-o", tmp_path / "run")
    assert (ran.code, ran.out) == (2, "")
    assert "images of 2 patients; a scale estimator needs those of 3 or more" in ran.err
    assert not (tmp_path / "run").exists()


def test_images_are_named_of_one_set(root: Path, tmp_path: Path) -> None:
    folder = model_copy(root, tmp_path / "model")
    ran = seunet("calibrate", root / "prepared", root / "tissue", "-m", folder, "--images", "D0")
    assert (ran.code, ran.err) == (2, "seunet: --images are those of one set; give that set alone\n")
