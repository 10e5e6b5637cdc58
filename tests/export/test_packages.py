"""Folders for bioimage.io and QuPath: they validate, and called as those programs call them they give our result."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
import yaml
from numpy.typing import NDArray

import seunet
from seunet.errors import InputError
from seunet.export import choose, write_export
from seunet.export.qupath import TYPICAL_HIGH, TYPICAL_LOW, labelled
from seunet.models import ModelCard
from tests.support.networks import calm_model, picture


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.skipif(find_spec("bioimageio") is None, reason="pip install 'seunet[export]'")
def test_a_package_for_bioimage_io_validates_and_holds_what_the_network_gives(tmp_path: Path) -> None:
    from bioimageio.spec import load_description
    from bioimageio.spec.model.v0_5 import ModelDescr

    out = tmp_path / "package"
    write_export(choose("nuclei"), out, "bioimageio")
    found = load_description(out / "rdf.yaml", perform_io_checks=False)
    assert isinstance(found, ModelDescr)
    assert yaml.safe_load((out / "rdf.yaml").read_text())["license"] == "CC-BY-NC-SA-4.0"
    given, expected = (np.load(out / f"test_{name}.npy") for name in ("input", "output"))
    weights = torch.jit.load(out / "weights.pt")
    np.testing.assert_array_almost_equal(weights(torch.from_numpy(given) / 255).numpy(), expected, decimal=4)
    if find_spec("bioimageio.core") is not None:
        from bioimageio.core import test_model

        assert test_model(found, absolute_tolerance=1e-4).status == "passed"


def as_the_extension_normalises(pixels: NDArray[np.uint8], low: NDArray, high: NDArray) -> torch.Tensor:
    """InstanSeg's extension: (x − low)/(high − low + 1e-6), clipped to −0.5 … 1.5, [1, 3, H, W]."""
    scaled = (pixels / 255 - low) / (high - low + 1e-6)
    return torch.from_numpy(np.clip(scaled, -0.5, 1.5).transpose(2, 0, 1)[None].astype(np.float32))


@pytest.mark.parametrize("size", [(128, 131), (97, 160), (64, 64)])
def test_called_as_the_extension_calls_it_the_objects_cover_our_foreground(
    size: tuple[int, int], tmp_path: Path
) -> None:
    model = calm_model(widths=(10, 20), classes=2)
    model.card = ModelCard(mpp=0.25, class_names=("background", "nucleus"), instances=True, matched_head=2)
    model.save_pretrained(tmp_path / "mine")
    facts = write_export(choose(tmp_path / "mine"), tmp_path / "out", "qupath")
    module = torch.jit.load(tmp_path / "out" / "instanseg.pt")
    pixels = picture(*size)
    tile = as_the_extension_normalises(pixels, np.array(TYPICAL_LOW), np.array(TYPICAL_HIGH))
    labels = module(tile)
    assert labels.shape == (1, 1, *size)
    assert labels.dtype == torch.float32
    assert torch.equal(module(tile, torch.tensor([1], dtype=torch.int32)), labels)
    native = seunet.segment(pixels, model, mpp=0.25).labels == 1
    found = labels[0, 0].numpy() > 0
    assert (found & native).sum() >= 0.999 * found.sum() > 100
    # Left out: parts of fewer than ten pixels, of which the noise of this network has many.
    assert (found & native).sum() >= 0.95 * native.sum()
    assert facts["file"] == "instanseg.pt"


def test_labels_are_connected_parts_without_necks_numbered_from_one() -> None:
    mask = np.zeros((60, 90), np.uint8)
    cv2.circle(mask, (20, 30), 12, 1, -1)
    cv2.circle(mask, (45, 30), 12, 1, -1)
    mask[29:32, 20:45] = 1
    mask[5, 60:85] = 1
    mask[50:52, 80:82] = 1
    found = labelled(torch.from_numpy(mask) > 0, neck_px=3, min_area_px=10).numpy()
    assert sorted(np.unique(found)) == [0, 1, 2, 3]
    assert found[30, 15] != found[30, 50] != 0
    assert found[5, 60] == found[5, 84] > 0
    assert (found[50:52, 80:82] == 0).all()
    for number in (1, 2, 3):
        assert cv2.connectedComponents((found == number).astype(np.uint8), connectivity=4)[0] == 2


def test_connected_parts_are_those_of_another_program() -> None:
    from seunet.export.qupath import connected

    random = np.random.default_rng(0)
    for share in (0.3, 0.6, 0.7):
        mask = (random.random((70, 50)) < share).astype(np.uint8)
        ours = connected(torch.from_numpy(mask).float()).numpy()
        theirs = cv2.connectedComponents(mask, connectivity=4)[1]
        pairs = {(a, b) for a, b in zip(ours.ravel().tolist(), theirs.ravel().tolist(), strict=True)}
        assert len(pairs) == len(np.unique(ours)) == len(np.unique(theirs))


def test_qupath_finds_the_pixel_size_and_the_channels_where_it_looks(tmp_path: Path) -> None:
    write_export(choose("nuclei", scale=2.0), tmp_path / "out", "qupath")
    read = yaml.safe_load((tmp_path / "out" / "rdf.yaml").read_text())
    assert [axis["step"] for axis in read["config"]["qupath"]["axes"]] == [0.126, 0.126]
    (given,), (result,) = read["inputs"], read["outputs"]
    assert given["axes"] == result["axes"] == "bcyx"
    assert given["shape"]["min"][1] == 3
    assert given["shape"]["step"][1] != 1  # which would mean any number of channels
    assert round(2 * result["shape"]["offset"][1]) == 1
    assert (tmp_path / "out" / f"{read['name']}_README.md").is_file()
    assert json.loads((tmp_path / "out" / "export.json").read_text())["mpp"] == 0.126


def test_a_model_without_mpp_is_not_for_qupath(tmp_path: Path) -> None:
    calm_model(widths=(5,)).save_pretrained(tmp_path / "mine")
    with pytest.raises(InputError, match="mine: has no µm per pixel in its card, which QuPath needs"):
        write_export(choose(tmp_path / "mine"), tmp_path / "out", "qupath")
    assert not (tmp_path / "out").exists()
