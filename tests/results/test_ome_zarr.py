"""OME-Zarr read back with zarr, its metadata against NGFF 0.5."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr

from seunet.errors import InputError, StorageError
from seunet.results import ome_zarr as module
from seunet.results import pyramid
from seunet.results.ome_zarr import write_probabilities
from seunet.results.planes import as_byte
from seunet.results.pyramid import halved_by_mean
from seunet.storage import atomic_folder
from support.datasets import tree_bytes
from support.planes import ArrayPlane, nuclei_frame


@pytest.fixture
def bytes_of_classes(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    monkeypatch.setattr(module, "CHUNK_PX", 64)
    random = np.random.default_rng(0)
    shares = random.dirichlet([1, 1, 1], (150, 201)).transpose(2, 0, 1)
    return list(as_byte(shares))


def test_levels_and_metadata_are_as_ngff_wants_them(bytes_of_classes: list[np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / "probabilities.ome.zarr"
    write_probabilities(path, [ArrayPlane(plane) for plane in bytes_of_classes], nuclei_frame(mpp=0.5), "slide")
    root = zarr.open_group(path, mode="r")
    ome = root.attrs["ome"]
    assert ome["version"] == "0.5"
    (multiscale,) = ome["multiscales"]
    assert [(axis["name"], axis["type"], axis.get("unit")) for axis in multiscale["axes"]] == [
        ("c", "channel", None),
        ("y", "space", "micrometer"),
        ("x", "space", "micrometer"),
    ]
    expected = np.stack(bytes_of_classes)
    for number, data in enumerate(multiscale["datasets"]):
        array = root[data["path"]]
        assert np.array_equal(array[:], expected)
        assert array.metadata.dimension_names == ("c", "y", "x")
        scale, shift = data["coordinateTransformations"]
        assert scale == {"type": "scale", "scale": [1.0, 0.5 * 2**number, 0.5 * 2**number]}
        # The centre of the first pixel of a level is the middle of the centres it was made from.
        assert shift == {"type": "translation", "translation": [0.0, *[0.25 * (2**number - 1)] * 2]}
        expected = np.stack([halved_by_mean(plane) for plane in expected])
    assert len(multiscale["datasets"]) == 3
    assert [channel["label"] for channel in ome["omero"]["channels"]] == list(nuclei_frame().class_names)
    assert ome["omero"]["channels"][1]["color"] == "FFD640"


def test_the_same_bytes_each_time_and_an_old_folder_is_replaced(
    bytes_of_classes: list[np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planes = [ArrayPlane(plane) for plane in bytes_of_classes]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "old").write_text("old")
    write_probabilities(tmp_path / "a", planes, nuclei_frame(), "slide")
    monkeypatch.setattr(pyramid, "BAND_PIXELS", 1)
    write_probabilities(tmp_path / "b", planes, nuclei_frame(), "slide")
    assert tree_bytes(tmp_path / "a") == tree_bytes(tmp_path / "b")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "b"]


def test_a_small_image_has_two_levels_and_no_unit_without_mpp(tmp_path: Path) -> None:
    planes = [ArrayPlane(np.full((3, 5), value, dtype=np.uint8)) for value in (200, 50, 5)]
    write_probabilities(tmp_path / "small", planes, nuclei_frame(mpp=None), "small")
    root = zarr.open_group(tmp_path / "small", mode="r")
    (multiscale,) = root.attrs["ome"]["multiscales"]
    assert [root[data["path"]].shape for data in multiscale["datasets"]] == [(3, 3, 5), (3, 2, 3)]
    assert all("unit" not in axis for axis in multiscale["axes"])
    assert multiscale["datasets"][1]["coordinateTransformations"][0]["scale"] == [1.0, 2.0, 2.0]


def test_probabilities_become_bytes_by_rounding() -> None:
    assert as_byte(np.array([0.0, 0.001, 0.5, 1.0, 1.0000001])).tolist() == [0, 0, 128, 255, 255]


def test_a_wrong_number_of_planes_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 planes of probabilities for 3 classes"):
        write_probabilities(tmp_path / "p", [ArrayPlane(np.zeros((2, 2), dtype=np.uint8))], nuclei_frame(), "x")


def test_a_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    def fail() -> None:
        with atomic_folder(tmp_path / "out") as part:
            (part / "half").write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match=r"out: cannot be written \(No space left on device\)"):
        fail()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError), atomic_folder(tmp_path / "file" / "out"):
        pass
