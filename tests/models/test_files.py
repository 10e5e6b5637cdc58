"""Model files: there and back, and everything that must be refused."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save

import seunet
from seunet.errors import InputError, ModelFileError, StorageError
from seunet.models.card import ModelCard
from seunet.models.places import FolderNotUsed
from seunet.pretrained import BUILT_IN

OPTIONS: dict[str, Any] = {"widths": (10, 20), "classes": 3}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    seunet.create_model("seunet", **OPTIONS).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def change_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def replace_weights(folder: Path, data: bytes) -> None:
    """Other weights, with a config that vouches for them: what is left to check is the content itself."""
    (folder / "model.safetensors").write_bytes(data)
    promise = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    change_config(folder, lambda config: config.update(weights=promise))


@pytest.mark.parametrize("name", seunet.list_models())
def test_a_saved_model_comes_back_the_same(name: str, tmp_path: Path) -> None:
    model = seunet.create_model(name, **OPTIONS)
    model(torch.rand(2, 3, 16, 16))  # running statistics of its own
    model.eval().save_pretrained(tmp_path)
    loaded = seunet.load(tmp_path)
    images = torch.rand(1, 3, 21, 19)
    with torch.no_grad():
        assert torch.equal(loaded(images), model(images))
    assert loaded.config == model.config
    assert not loaded.training


def test_a_card_comes_back_and_belongs_to_other_scales_too(tmp_path: Path) -> None:
    model = seunet.create_model("seunet", **OPTIONS)
    colors = ((255, 255, 255), (200, 0, 0), (0, 0, 200))
    model.card = ModelCard(mpp=0.25, class_names=("rest", "a", "b"), class_colors=colors, instances=True)
    model.at_scale(2.0).save_pretrained(tmp_path)  # type: ignore[attr-defined]
    assert seunet.load(tmp_path).card == model.card


def test_a_card_written_before_has_another_name_for_its_range(folder: Path) -> None:
    change_config(folder, lambda config: config.update(card={"told_range": [0.9, 1.8]}))
    model = seunet.load(folder)
    assert model.card == ModelCard(scaled_filters_range=(0.9, 1.8))
    model.save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["card"]["scaled_filters_range"] == [0.9, 1.8]
    assert seunet.load(folder).card == model.card


@pytest.mark.parametrize(
    ("card", "sentence"),
    [
        ({"mpp": -1}, "`card.mpp` (=-1): Input should be greater than or equal to 0.05"),
        ({"mpp": "0.25"}, "`card.mpp` (='0.25'): Input should be a valid number"),
        ({"class_names": ["one"]}, "names 1 classes of 3"),
        ({"class_names": ["a", "b", "c"], "class_colors": [[0, 0, 0]]}, "1 colours for 3 classes"),
        ({"scaled_filters_range": [2, 1]}, "`scaled_filters_range` [2.0, 1.0] must rise and be positive"),
        ({"secret": 1}, "`card.secret` (=1): Extra inputs are not permitted"),
        ([], "`card` (=[]): Input should be an object"),
    ],
)
def test_a_card_that_cannot_be_is_refused(folder: Path, card: object, sentence: str) -> None:
    change_config(folder, lambda config: config.update(card=card))
    with pytest.raises(ModelFileError) as caught:
        seunet.load(folder)
    assert sentence in str(caught.value)


def test_a_model_at_another_scale_comes_back_at_that_scale(folder: Path, tmp_path: Path) -> None:
    scaled = seunet.load(folder).at_scale(2.5)  # type: ignore[attr-defined]
    scaled.save_pretrained(tmp_path / "scaled")
    loaded = seunet.load(tmp_path / "scaled")
    torch.testing.assert_close(loaded.sigmas(), scaled.sigmas())  # type: ignore[attr-defined]


def test_the_same_model_is_written_as_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    seunet.load(folder).save_pretrained(tmp_path / "again")
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_no_derived_filter_is_in_the_file(folder: Path) -> None:
    header = (folder / "model.safetensors").read_bytes()
    assert b"coefficients" in header
    assert b"lower" not in header
    assert b"taps" not in header


def test_truncated_weights_are_refused(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match=r"bytes where the config promises \d+; truncated\? fetch it again"):
        seunet.load(folder)


def test_every_altered_byte_is_found(folder: Path) -> None:
    weights = folder / "model.safetensors"
    data = weights.read_bytes()
    for position in range(0, len(data), max(1, len(data) // 50)):
        weights.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        with pytest.raises(ModelFileError, match="its sha256 is not the config's"):
            seunet.load(folder)


class Bomb:
    """Unpickling this would write a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_in_disguise_is_refused_and_not_run(folder: Path, tmp_path: Path) -> None:
    replace_weights(folder, pickle.dumps(Bomb(tmp_path / "exploded")))
    with pytest.raises(ModelFileError, match="not a safetensors file"):
        seunet.load(folder)
    assert not (tmp_path / "exploded").exists()


def header_file(header: Any, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 7,
        b"\xff" * 64,
        header_file(b"{}", length=2**62),
        header_file(b"[" * 100_000),
        header_file([1, 2]),
        header_file({"a": 3}),
        header_file({"a": {"dtype": "F32", "shape": "no", "data_offsets": [0, 4]}}),
        header_file(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'),
        header_file({"a": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]}}),
        b"PK\x03\x04" + b"\x00" * 200,
        torch.zeros(8).numpy().tobytes(),
    ],
)
def test_twelve_malicious_or_foreign_files_are_refused_in_one_line(folder: Path, data: bytes) -> None:
    replace_weights(folder, data)
    with pytest.raises(ModelFileError) as error:
        seunet.load(folder)
    assert "\n" not in str(error.value)
    assert "model.safetensors" in str(error.value)


def test_weights_of_another_network_are_refused_naming_the_first_that_differ(folder: Path) -> None:
    other = seunet.create_model("seunet", widths=(20, 40), classes=3)
    replace_weights(folder, save(other.state_dict()))
    with pytest.raises(
        ModelFileError,
        match=r"does not fit the config: encoder.0.convolutions.0.coefficients is \[3, 3, 4\] .* and \d+ more",
    ):
        seunet.load(folder)


def test_a_missing_and_a_foreign_tensor_are_named(folder: Path) -> None:
    state = seunet.create_model("seunet", **OPTIONS).state_dict()
    state["surprise"] = state.pop("eta")
    replace_weights(folder, save(state))
    with pytest.raises(ModelFileError, match="eta is missing; surprise is not part of the model"):
        seunet.load(folder)


def test_weights_of_another_type_are_refused(folder: Path) -> None:
    state = {name: tensor.double() for name, tensor in seunet.create_model("seunet", **OPTIONS).state_dict().items()}
    replace_weights(folder, save(state))
    with pytest.raises(ModelFileError, match=r"torch.float64, not \[3, 3, 2\] torch.float32"):
        seunet.load(folder)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda c: c.pop("format"), "not a seunet model"),
        (lambda c: c.update(version=99), "format version 99; this release reads 1"),
        (lambda c: c.update(model="resnet"), "unknown model 'resnet'"),
        (lambda c: c.pop("options"), "field 'options' is missing"),
        (lambda c: c.update(model=7), "field 'model' is of the wrong type"),
        (lambda c: c.update(factor=True), "field 'factor' is of the wrong type"),
        (lambda c: c["options"].update(colour="red"), "unknown option 'colour'"),
        (lambda c: c["options"].update(widths=[65_535] * 8), r"`in_channels` \(=131070\) must be from 1 to 65536"),
        (lambda c: c["options"].update(widths=[30_000] * 8), r"asks for [\d,]+ parameters; the limit is 1,000,000,000"),
        (lambda c: c["options"].update(classes=10**9), r"`classes` \(=1000000000\): Input should be less"),
        (lambda c: c["options"].update(scales=10**6), r"`scales` \(=1000000\): Input should be less"),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused_before_anything_is_built(
    folder: Path, change: Callable[[dict[str, Any]], object], text: str
) -> None:
    change_config(folder, change)
    with pytest.raises(ModelFileError, match=text) as error:
        seunet.load(folder)
    assert "config.json" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\x00\x01", "null"])
def test_a_config_that_is_not_json_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(ModelFileError, match=r"not JSON|not a seunet model"):
        seunet.load(folder)


def test_a_huge_config_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text(" " * 1_000_001)
    with pytest.raises(ModelFileError, match="larger than 1,000,000 bytes"):
        seunet.load(folder)


def test_a_missing_folder_or_file_says_what_is_missing(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no such model folder; give one that `save_pretrained` wrote"):
        seunet.load(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="Nucleii: no such model folder; did you mean 'nuclei'"):
        seunet.load("Nucleii")
    run = Path(shutil.copytree(folder, tmp_path / "run" / "model")).parent
    with pytest.raises(ModelFileError, match=r"run: is the folder of a run; its model is .*model"):
        seunet.load(run)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"model.safetensors: cannot be read \(No such file"):
        seunet.load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ModelFileError, match=r"config.json: cannot be read \(No such file"):
        seunet.load(folder)


def test_a_model_that_cannot_be_written_says_so_and_leaves_the_old_one(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        StorageError, match=r"cannot be written \(Not a directory\); free space or choose another place"
    ):
        seunet.load(folder).save_pretrained(tmp_path / "file" / "model")
    assert (tmp_path / "file").read_text() == "in the way"


def test_the_model_of_the_package_loads_by_name_and_its_card_says_what_it_is() -> None:
    model = seunet.load("nuclei")
    assert model.config.widths == (60, 120, 240, 480, 960)
    assert sum(parameter.numel() for parameter in model.parameters()) < 367_000
    assert model.card is not None
    assert model.card.class_names == ("background", "nucleus")
    assert model.card.instances
    assert "CC BY-NC-SA 4.0" in model.card.licence
    assert model.card.scaled_filters_range[0] <= 1 <= model.card.scaled_filters_range[1]


@pytest.fixture
def beside_a_model_called_nuclei(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    seunet.create_model("seunet", **OPTIONS).save_pretrained(tmp_path / "nuclei")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("beside_a_model_called_nuclei")
def test_a_name_of_the_package_means_that_model_and_a_folder_of_that_name_is_pointed_to() -> None:
    with pytest.warns(FolderNotUsed) as said:
        assert seunet.load("nuclei").card is not None
    (one,) = said
    assert str(one.message) == ("nuclei: the model of the package is used; for the folder of that name write ./nuclei")


@pytest.mark.usefixtures("beside_a_model_called_nuclei")
@pytest.mark.parametrize("folder", ["./nuclei", "nuclei/", Path("nuclei"), "../{}/nuclei"])
def test_a_folder_with_a_name_of_the_package_is_had_by_its_path(folder: str | Path) -> None:
    given = folder.format(Path.cwd().name) if isinstance(folder, str) else folder
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert seunet.load(given).classes == OPTIONS["classes"]


def test_a_folder_that_holds_no_model_does_not_hide_one_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nuclei").mkdir()
    (tmp_path / "nuclei" / "export.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert seunet.load("nuclei").card is not None


def test_what_tells_the_scale_travels_with_the_model(tmp_path: Path) -> None:
    shipped = seunet.load("nuclei")
    assert shipped.scale_estimator is not None
    shipped.save_pretrained(tmp_path / "copy")
    copied = seunet.load(tmp_path / "copy")
    assert copied.scale_estimator is not None
    assert copied.scale_estimator.sha256() == shipped.scale_estimator.sha256()
    assert copied.scale_estimator.fitted_on == shipped.scale_estimator.fitted_on
    assert (tmp_path / "copy" / "scale.json").read_bytes() == (BUILT_IN / "nuclei" / "scale.json").read_bytes()


def test_a_model_without_one_has_none_and_a_damaged_one_is_refused(folder: Path) -> None:
    assert seunet.load(folder).scale_estimator is None
    (folder / "scale.json").write_text("{}")
    with pytest.raises(ModelFileError, match=r"scale\.json: `format`: Field required"):
        seunet.load(folder)


@pytest.mark.parametrize(
    ("calibration", "text"),
    [
        ({"prior": [0.0, 0.0]}, "for each head"),
        ({"temperatures": [0.0]}, "are positive"),
        ({"sharpness": -1.0}, "greater than or equal"),
    ],
)
def test_a_calibration_that_cannot_be_is_refused(folder: Path, calibration: dict[str, Any], text: str) -> None:
    right = {
        "temperatures": [1.0],
        "prior": [0.0],
        "sharpness": 1.0,
        "prior_at_scale": [0.0],
        "sharpness_at_scale": 1.0,
    }
    change_config(folder, lambda config: config.update(card={"calibration": right}))
    assert seunet.load(folder).card is not None
    change_config(folder, lambda config: config.update(card={"calibration": right | calibration}))
    with pytest.raises(ModelFileError, match=text):
        seunet.load(folder)


# As people expect it


def test_the_trained_models_are_listed() -> None:
    assert seunet.list_models(pretrained=True) == ["nuclei", "nuclei-2"]


def test_another_number_of_classes_gets_a_fresh_head_and_says_so(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="nuclei: the head of 2 classes is replaced by a fresh one of 5; train it"):
        model = seunet.load("nuclei", classes=5)
    assert model.classes == model.config.classes == 5
    assert model(torch.rand(1, 3, 20, 20)).shape == (1, 5, 5, 20, 20)
    assert model.card is not None
    assert (model.card.class_names, model.card.mpp) == ((), 0.252)
    same = seunet.load("nuclei", classes=2)
    assert same.card is not None
    assert same.card.class_names
    model.save_pretrained(tmp_path)
    assert torch.equal(seunet.load(tmp_path).head.convolution.weight, model.head.convolution.weight)


def test_a_head_of_no_classes_is_refused() -> None:
    with pytest.raises(InputError, match=r"classes.*0"):
        seunet.create_model("unet", widths=(4,)).reset_classifier(0)


def test_num_classes_is_classes() -> None:
    assert seunet.create_model("unet", widths=(4,), num_classes=3).classes == 3
    with pytest.raises(InputError, match=r"`classes` \(=2\) and `num_classes` \(=3\) are the same; give one"):
        seunet.create_model("unet", classes=2, num_classes=3)


def test_a_device_is_chosen_when_loading() -> None:
    assert seunet.load("nuclei", device="meta").device.type == "meta"
    assert seunet.load("nuclei", device=torch.device("cpu")).device.type == "cpu"
    with pytest.raises(InputError, match=r"device 'gpu0' cannot be used \(.*\); give 'cpu'"):
        seunet.load("nuclei", device="gpu0")


def test_from_pretrained_is_load_and_knows_its_class(tmp_path: Path) -> None:
    from seunet.models import ScaleUNet, SEUNet

    assert SEUNet.from_pretrained("nuclei").card is not None
    seunet.create_model("unet", widths=(4,)).save_pretrained(tmp_path)
    assert ScaleUNet.from_pretrained(tmp_path).name == "unet"
    with pytest.raises(InputError, match=r"is a unet, which is no SEUNet; use seunet\.load"):
        SEUNet.from_pretrained(tmp_path)


def test_another_model_is_not_overwritten_unasked(tmp_path: Path) -> None:
    first, second = (seunet.create_model("unet", widths=(4,)) for _ in range(2))
    first.save_pretrained(tmp_path)
    before = (tmp_path / "config.json").read_bytes()
    first.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"holds another model \(weights [0-9a-f]{12}\); choose another folder or"):
        second.save_pretrained(tmp_path)
    assert (tmp_path / "config.json").read_bytes() == before
    second.save_pretrained(tmp_path, overwrite=True)
    assert (tmp_path / "config.json").read_bytes() != before


def test_a_folder_of_something_else_is_not_overwritten_unasked(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"holds something else \(config.json\); choose another folder or pass over"):
        seunet.create_model("unet", widths=(4,)).save_pretrained(tmp_path)
    assert (tmp_path / "config.json").read_text() == "{}"
