"""Folders for bioimage.io and QuPath: they validate, and called as those programs call them they give our result."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile
import torch
import yaml
from numpy.typing import NDArray

import seunet
from seunet.errors import InputError
from seunet.export import OriginalPixels, choose, write_export
from seunet.export.qupath_objects import connected, parted, renumbered
from seunet.export.qupath_pixels import TYPICAL_HIGH, TYPICAL_LOW
from seunet.models import MIN_CORE_PX, NECK, SLACK_PX
from seunet.results import ArrayPlane, Frame, objects
from tests.support.networks import calm_model


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


def as_the_extension_normalises(pixels: NDArray[np.uint8], whole: NDArray[np.uint8] | None = None) -> torch.Tensor:
    """InstanSeg's extension: (x − low)/(high − low + 1e-6), clipped to −0.5 … 1.5, [1, 3, H, W].

    Percentiles are those of the annotation, which may be larger than the tile.
    """
    low, high = np.percentile(pixels if whole is None else whole, (0.1, 99.9), axis=(0, 1))
    scaled = (pixels - low) / (high - low + 1e-6)
    return torch.from_numpy(np.clip(scaled, -0.5, 1.5).transpose(2, 0, 1)[None].astype(np.float32))


def demo_pixels() -> NDArray[np.uint8]:
    """A part of the H&E image that ships with the package."""
    pixels: NDArray[np.uint8] = tifffile.imread(Path(seunet.__file__).parent / "samples" / "OS-1-detail.ome.tif")
    return np.ascontiguousarray(pixels[:320, :320, :3])


def same_objects(found: NDArray, expected: NDArray) -> bool:
    """Whether two images of numbers have the same objects, whatever their numbers are."""
    pairs = set(zip(found.ravel().tolist(), expected.ravel().tolist(), strict=True))
    return len(pairs) == len(np.unique(found)) == len(np.unique(expected))


def segmented(pixels: NDArray[np.uint8], name: str, mpp: float) -> NDArray[np.int32]:
    """The objects of `seunet segment`, numbered."""
    found = seunet.segment(pixels, name, mpp=mpp)
    rim = None if found.rim is None else ArrayPlane(found.rim.astype(np.uint8))
    numbers = np.zeros(found.labels.shape, np.int32)
    every = objects(ArrayPlane(found.labels), found.frame, min_area_px=found.min_area_px, rim=rim)
    for number, one in enumerate(every, start=1):
        for row, start, end in one.runs.T.tolist():
            numbers[row, start:end] = number
    return numbers


@pytest.mark.parametrize(("name", "mpp"), [("nuclei", 0.252), ("nuclei-2", 0.25)])
def test_called_as_the_extension_calls_it_the_objects_are_those_of_segment(
    name: str, mpp: float, tmp_path: Path
) -> None:
    facts = write_export(choose(name), tmp_path / "out", "qupath")
    assert facts["file"] == "instanseg.pt"
    module = torch.jit.load(tmp_path / "out" / "instanseg.pt")
    image = demo_pixels()
    for tile, size in ((image[:192, :160], (192, 160)), (image[100:229, 131:262], (129, 131))):
        given = as_the_extension_normalises(tile, image)
        labels = module(given)
        assert labels.shape == (1, 1, *size)
        assert labels.dtype == torch.float32
        assert torch.equal(module(given, torch.tensor([1], dtype=torch.int32)), labels)
        seen = (OriginalPixels()(given)[0].permute(1, 2, 0) * 255).numpy()
        assert np.abs(seen - seen.round()).max() < 1e-4
        ours = segmented(seen.round().astype(np.uint8), name, mpp)
        assert ours.max() > 5
        assert same_objects(labels[0, 0].numpy(), ours)


def test_pixels_are_found_again_but_for_one_number_per_channel() -> None:
    image = demo_pixels()
    tile = image[40:300, 60:280]
    found = (OriginalPixels()(as_the_extension_normalises(tile, image))[0].permute(1, 2, 0) * 255).numpy()
    for channel in range(3):
        off = found[..., channel] - tile[..., channel]
        assert np.abs(off - off[0, 0]).max() < 1e-3
        assert abs(off[0, 0]) <= 8


def test_a_channel_that_ends_in_a_spike_is_found_again_as_it_was() -> None:
    random = np.random.default_rng(0)
    exposed = np.clip(random.normal(200, 60, (64, 64, 3)), 0, 255).astype(np.uint8)
    found = OriginalPixels()(as_the_extension_normalises(exposed))[0].permute(1, 2, 0) * 255
    np.testing.assert_allclose(found.numpy(), exposed, atol=1e-3)


def test_glass_stays_glass() -> None:
    """An annotation without tissue is stretched to full contrast; its steps tell that it has little."""
    random = np.random.default_rng(0)
    glass = random.integers(238, 247, (64, 64, 3)).astype(np.uint8)
    found = OriginalPixels()(as_the_extension_normalises(glass))[0].numpy() * 255
    assert found.min() >= 240
    plain = OriginalPixels()(torch.ones(1, 3, 8, 8))
    assert plain.min() > 0.9


def test_values_without_equal_steps_are_taken_by_typical_percentiles() -> None:
    values = torch.rand(1, 3, 40, 50, generator=torch.Generator().manual_seed(0))
    low, high = (torch.tensor(each)[:, None, None] for each in (TYPICAL_LOW, TYPICAL_HIGH))
    torch.testing.assert_close(OriginalPixels()(values) * 255, values * (high - low) + low)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("has_rim", [False, True])
def test_parts_are_those_of_the_compiled_loops(seed: int, has_rim: bool) -> None:
    random = np.random.default_rng(seed)
    mask, rim = np.zeros((90, 110), np.uint8), np.zeros((90, 110), np.uint8)
    for _ in range(45):
        centre, axes = random.integers(0, (110, 90)).tolist(), random.integers(1, 12, 2).tolist()
        cv2.ellipse(mask, centre, axes, float(random.integers(180)), 0, 360, 1, -1)
        cv2.line(rim, centre, random.integers(0, (110, 90)).tolist(), 1, 2)
    frame = Frame(1.0, 0, 0, None, ("background", "nucleus"), ((0, 0, 0), (1, 1, 1)))
    expected = np.zeros(mask.shape, np.int32)
    for number, one in enumerate(objects(ArrayPlane(mask), frame, rim=ArrayPlane(rim) if has_rim else None), start=1):
        for row, start, end in one.runs.T.tolist():
            expected[row, start:end] = number
    between = torch.from_numpy(rim) > 0 if has_rim else None
    found = torch.jit.script(parted)(torch.from_numpy(mask) > 0, between, NECK, SLACK_PX, MIN_CORE_PX)
    assert expected.max() > 8
    assert same_objects(found.numpy(), expected)


def test_nothing_has_no_parts() -> None:
    nothing = torch.zeros(7, 9, dtype=torch.bool)
    for rim in (None, ~nothing):
        assert not parted(nothing, rim, NECK, SLACK_PX, MIN_CORE_PX).any()


def test_labels_of_few_pixels_are_left_out_and_the_others_numbered_from_one() -> None:
    labels = torch.tensor([[0, 7, 7, 3], [9, 9, 9, 3]])
    assert renumbered(labels, 3).tolist() == [[0, 0, 0, 0], [1, 1, 1, 0]]
    assert renumbered(labels, 2).tolist() == [[0, 2, 2, 1], [3, 3, 3, 1]]


def test_connected_parts_are_those_of_another_program() -> None:
    random = np.random.default_rng(0)
    for share in (0.3, 0.6, 0.7):
        mask = (random.random((70, 50)) < share).astype(np.uint8)
        ours = connected(torch.from_numpy(mask).float()).numpy()
        theirs = cv2.connectedComponents(mask, connectivity=4)[1]
        pairs = {(a, b) for a, b in zip(ours.ravel().tolist(), theirs.ravel().tolist(), strict=True)}
        assert len(pairs) == len(np.unique(ours)) == len(np.unique(theirs))


def test_qupath_finds_the_pixel_size_and_the_channels_where_it_looks(tmp_path: Path) -> None:
    write_export(choose("nuclei", scale=1.5), tmp_path / "out", "qupath")
    read = yaml.safe_load((tmp_path / "out" / "rdf.yaml").read_text())
    assert [axis["step"] for axis in read["config"]["qupath"]["axes"]] == [0.168, 0.168]
    (given,), (result,) = read["inputs"], read["outputs"]
    assert given["axes"] == result["axes"] == "bcyx"
    assert given["shape"]["min"][1] == 3
    assert given["shape"]["step"][1] != 1  # which would mean any number of channels
    assert round(2 * result["shape"]["offset"][1]) == 1
    assert (tmp_path / "out" / f"{read['name']}_README.md").is_file()
    assert json.loads((tmp_path / "out" / "export.json").read_text())["mpp"] == 0.168


def test_a_model_without_mpp_is_not_for_qupath(tmp_path: Path) -> None:
    calm_model(widths=(5,)).save_pretrained(tmp_path / "mine")
    with pytest.raises(InputError, match="mine: has no µm per pixel in its card, which QuPath needs"):
        write_export(choose(tmp_path / "mine"), tmp_path / "out", "qupath")
    assert not (tmp_path / "out").exists()
