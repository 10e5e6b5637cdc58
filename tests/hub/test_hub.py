"""Models on the hub: pushed, loaded by revision, refused, and taken from the cache; a real client, a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

import seunet
from seunet.errors import InputError, ModelFileError, StorageError
from seunet.models import ModelCard, ScaleUNet, weights_sha256
from support.cli import seunet as command
from tests.support.hub_server import Hub, serving_hub
from tests.support.scale_estimators import trusting_estimator
from tests.support.tissue_model import discs

constants = pytest.importorskip("huggingface_hub.constants")

# The client's own, about how it calls the library below it.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

FILES = {".gitattributes", "README.md", "config.json", "model.safetensors"}
NAME = "somebody/discs"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """An empty hub and an empty cache.  The client reads its environment once, so it is told through its constants."""
    with serving_hub() as found:
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", found.token)
        _answer_at(monkeypatch, found.address)
        yield found


def _answer_at(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def _without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    _answer_at(monkeypatch, "http://127.0.0.1:9")  # "discard": nobody listens there


@pytest.fixture
def model(disc_model: Path) -> ScaleUNet:
    found = seunet.load(disc_model)
    assert found.card is not None
    found.card = found.card.model_copy(update={"licence": "CC BY 4.0 (made)", "trained_on": "dark discs"})
    return found


def _refusal(action: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def _cached(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file() and "blobs" in path.parts)


def test_what_is_pushed_is_loaded_with_the_commit_it_is_of(hub: Hub, model: ScaleUNet) -> None:
    name = model.push_to_hub(NAME)
    assert set(hub.tree(NAME)) == FILES
    loaded = seunet.load(f"hf-hub:{NAME}")
    assert loaded.source == name
    assert name == f"hf-hub:{NAME}@{hub.branches[NAME]['main']}"
    assert (weights_sha256(loaded), loaded.card) == (weights_sha256(model), model.card)


def test_a_revision_is_the_weights_of_then(hub: Hub, model: ScaleUNet) -> None:
    first = model.push_to_hub(NAME)
    before = weights_sha256(model)
    with torch.no_grad():
        next(model.parameters()).add_(1.0)
    second = model.push_to_hub(NAME)
    assert first != second
    hub.branches[NAME]["v1"] = first.partition("@")[2]
    assert weights_sha256(seunet.load(first)) == before
    assert weights_sha256(seunet.load(f"hf-hub:{NAME}@v1")) == before
    assert weights_sha256(seunet.load(f"hf-hub:{NAME}@main")) == weights_sha256(model) != before


def test_a_scale_estimator_goes_with_its_model_and_not_with_another(hub: Hub, model: ScaleUNet) -> None:
    model.scale_estimator = trusting_estimator()
    assert seunet.load(model.push_to_hub(NAME)).scale_estimator is not None
    model.scale_estimator = None
    assert seunet.load(model.push_to_hub(NAME)).scale_estimator is None
    assert set(hub.tree(NAME)) == FILES


def test_the_page_has_what_the_hub_finds_models_by(hub: Hub, model: ScaleUNet) -> None:
    model.push_to_hub(NAME)
    page = hub.tree(NAME)["README.md"].decode()
    assert yaml.safe_load(page.split("---\n")[1]) == {
        "library_name": "seunet",
        "pipeline_tag": "image-segmentation",
        "license": "cc-by-4.0",
        "tags": ["seunet", "histopathology", "h-and-e", "scale-equivariance", "semantic-segmentation", "nucleus"],
    }
    assert f"seunet segment slides/ -o out -m hf-hub:{NAME}" in page
    assert "| trained on | dark discs |" in page
    assert weights_sha256(model) in page


def test_a_page_of_the_owners_is_left_as_it_is_and_one_that_is_given_is_taken(hub: Hub, model: ScaleUNet) -> None:
    model.push_to_hub(NAME)
    hub.commit(NAME, {**hub.tree(NAME), "README.md": b"my own words"})
    model.push_to_hub(NAME)
    assert hub.tree(NAME)["README.md"] == b"my own words"
    model.push_to_hub(NAME, readme="# Discs\n")
    assert hub.tree(NAME)["README.md"].endswith(b"- nucleus\n---\n\n# Discs\n")


def test_a_licence_without_a_short_name_is_other_and_none_is_warned_of(hub: Hub, model: ScaleUNet) -> None:
    model.card = ModelCard(licence="ask Ann")
    model.push_to_hub(NAME)
    assert b"license: other\nlicense_name: ask Ann\n" in hub.tree(NAME)["README.md"]
    model.card = None
    with pytest.warns(UserWarning, match=f"hf-hub:{NAME}: the card states no licence, so others may not use the model"):
        model.push_to_hub(NAME)


def test_only_the_named_files_are_fetched(hub: Hub, model: ScaleUNet) -> None:
    model.push_to_hub(NAME)
    hub.commit(NAME, {**hub.tree(NAME), "train.py": b"import os", "notes/log.json": b"{}"})
    seunet.load(f"hf-hub:{NAME}")
    assert hub.downloads() == ["config.json", "README.md"]
    assert [request for request in hub.requests if "elsewhere" in request and request.endswith("model.safetensors")]
    assert not [request for request in hub.requests if "train.py" in request or "notes" in request]


def test_a_commit_in_the_cache_is_loaded_without_a_question(hub: Hub, model: ScaleUNet) -> None:
    name = model.push_to_hub(NAME)
    seunet.load(name)
    hub.requests.clear()
    seunet.load(name)
    assert hub.requests == []


@pytest.mark.parametrize("offline", [True, False])
def test_without_network_what_was_fetched_before_is_used(
    hub: Hub, model: ScaleUNet, monkeypatch: pytest.MonkeyPatch, offline: bool
) -> None:
    name = model.push_to_hub(NAME)
    seunet.load(f"hf-hub:{NAME}")
    hub.requests.clear()
    if offline:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        loaded = seunet.load(f"hf-hub:{NAME}")
    else:
        _without_network(monkeypatch)
        with pytest.warns(UserWarning, match=rf"no answer from the hub .*; {name} from the cache is used"):
            loaded = seunet.load(f"hf-hub:{NAME}")
    assert (loaded.source, hub.requests) == (name, [])


def test_without_network_and_cache_one_line_says_so_within_seconds(
    hub: Hub, model: ScaleUNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_network(monkeypatch)
    before = time.monotonic()
    line = "hf-hub:somebody/discs: no answer from the hub ([Errno 111] Connection refused); check the network"
    assert _refusal(lambda: seunet.load(f"hf-hub:{NAME}")) == line
    assert _refusal(lambda: model.push_to_hub(NAME)) == line
    assert time.monotonic() - before < 10
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    offline = "hf-hub:somebody/discs: HF_HUB_OFFLINE is set and it was not fetched before; unset it once"
    assert _refusal(lambda: seunet.load(f"hf-hub:{NAME}")) == offline


def test_a_file_that_is_altered_on_the_way_is_refused_and_not_kept(hub: Hub, model: ScaleUNet, tmp_path: Path) -> None:
    name = model.push_to_hub(NAME)
    true = hub.tree(NAME)["model.safetensors"]
    hub.altered["model.safetensors"] = true[:-4] + b"\0\0\0\1"
    line = f"{name}: model.safetensors is not the file that is listed, but altered; fetch it elsewhere"
    assert _refusal(lambda: seunet.load(f"hf-hub:{NAME}")) == line
    hub.altered = {"config.json": hub.tree(NAME)["config.json"].replace(b'"factor": 1.0', b'"factor": 2.0')}
    other = line.replace("model.safetensors", "config.json")
    assert seunet.load(name).factor == 1.0  # the config had come before it was altered
    _empty(tmp_path / "cache")
    assert _refusal(lambda: seunet.load(f"hf-hub:{NAME}")) == other
    hub.altered.clear()
    assert weights_sha256(seunet.load(f"hf-hub:{NAME}")) == weights_sha256(model)


def _empty(folder: Path) -> None:
    for path in _files_below(folder):
        path.unlink()


def _files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() or path.is_symlink()]


def test_a_file_that_is_damaged_in_the_cache_is_fetched_again(hub: Hub, model: ScaleUNet, tmp_path: Path) -> None:
    name = model.push_to_hub(NAME)
    seunet.load(name)
    blob = max(_cached(tmp_path), key=lambda path: path.stat().st_size)
    blob.write_bytes(b"\0" * blob.stat().st_size)
    with pytest.raises(ModelFileError, match="its sha256 is not the config's; the file was altered or damaged"):
        seunet.load(name)
    assert weights_sha256(seunet.load(f"hf-hub:{NAME}")) == weights_sha256(model)


def test_weights_that_the_config_does_not_promise_are_refused(hub: Hub, model: ScaleUNet) -> None:
    model.push_to_hub(NAME)
    weights = hub.tree(NAME)["model.safetensors"]
    hub.commit(NAME, {**hub.tree(NAME), "model.safetensors": weights[:-4] + b"\0\0\0\1"})
    assert "its sha256 is not the config's" in _refusal(lambda: seunet.load(f"hf-hub:{NAME}"))
    hub.commit(NAME, {**hub.tree(NAME), "model.safetensors": weights[:-40]})
    assert f"bytes where the config promises {len(weights)}; truncated?" in _refusal(
        lambda: seunet.load(f"hf-hub:{NAME}")
    )


def test_a_transfer_that_breaks_off_leaves_nothing_that_is_loaded(hub: Hub, model: ScaleUNet) -> None:
    model.push_to_hub(NAME)
    hub.altered["README.md"] = b"short"
    line = _refusal(lambda: seunet.load(f"hf-hub:{NAME}"))
    assert line.startswith(
        f"hf-hub:{NAME}@{hub.branches[NAME]['main']}: no answer from the hub (peer closed connection "
    )
    hub.altered.clear()
    seunet.load(f"hf-hub:{NAME}")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"old/pytorch_model.bin": b"pickle"},
            "holds old/pytorch_model.bin, which runs code when it is loaded; models ",
        ),
        ({"model.PKL": b"pickle"}, "holds model.PKL, which runs code when it is loaded"),
        ({"config.json": b'{"architectures": ["BertModel"]}'}, 'not a seunet model (no "format": "seunet-model")'),
        ({"config.json": b"\x80\x04pickle"}, "not JSON; fetch the model again"),
        ({"config.json": None}, "has no config.json; it is no model of seunet"),
        ({"model.safetensors": None}, "has no model.safetensors; it is no model of seunet"),
    ],
)
def test_a_repository_that_is_not_ours_is_refused_before_its_weights_are_fetched(
    hub: Hub, model: ScaleUNet, change: dict[str, bytes | None], line: str
) -> None:
    model.push_to_hub(NAME)
    files = {**hub.tree(NAME), **change}
    hub.commit(NAME, {path: data for path, data in files.items() if data is not None})
    assert line in _refusal(lambda: seunet.load(f"hf-hub:{NAME}"))
    assert not [request for request in hub.requests if request.startswith("GET /elsewhere")]


def test_names_that_mean_nothing_are_refused(hub: Hub, model: ScaleUNet) -> None:
    model.push_to_hub(NAME)
    how = "is no name of a repository; write hf-hub:owner/name or hf-hub:owner/name@revision"
    for name in ("hf-hub:discs", "hf-hub:a/b/c", "hf-hub:../etc", "hf-hub:a/b@", "hf-hub:a/b@../x", "hf-hub:a/b c"):
        assert _refusal(lambda name=name: seunet.load(name)) == f"{name}: {how}"
    nobody = "hf-hub:somebody/else: no such repository, or a private one; check the name or `hf auth login`"
    assert _refusal(lambda: seunet.load("hf-hub:somebody/else")) == nobody
    no_such = f"hf-hub:{NAME}@v9: has no such revision; see its commits and tags on the hub"
    assert _refusal(lambda: seunet.load(f"hf-hub:{NAME}@v9")) == no_such
    at = f"hf-hub:{NAME}@v1: a push goes to the main branch; leave out @v1"
    assert _refusal(lambda: model.push_to_hub(f"{NAME}@v1")) == at


def test_who_may_not_push_is_told_so_and_nothing_is_there(
    hub: Hub, model: ScaleUNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"hf-hub:{NAME}: you may not (401); `hf auth login`, or check its owner"
    assert _refusal(lambda: model.push_to_hub(NAME, token="hf_another")) == line
    assert hub.commits == {}


def test_a_push_into_a_repository_with_a_pickle_is_refused(hub: Hub, model: ScaleUNet) -> None:
    hub.commit(NAME, {"pytorch_model.bin": b"pickle"})
    assert "holds pytorch_model.bin" in _refusal(lambda: model.push_to_hub(NAME))
    assert list(hub.tree(NAME)) == ["pytorch_model.bin"]


def test_a_cache_that_cannot_be_written_is_said(
    hub: Hub, model: ScaleUNet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = model.push_to_hub(NAME)
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(StorageError) as caught:
        seunet.load(name)
    assert str(caught.value) == f"{name}: cannot be kept (Not a directory); set HF_HOME to a folder that can be written"


def test_without_the_library_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seunet.extras.find_spec", lambda name: None)
    line = "huggingface_hub is not installed; get it by: pip install huggingface_hub"
    assert _refusal(lambda: seunet.load(f"hf-hub:{NAME}")) == line


def test_the_python_of_the_page_runs(
    hub: Hub, model: ScaleUNet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocks = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "hub.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    monkeypatch.chdir(tmp_path)
    model.save_pretrained("runs/lab/model")
    for block in reversed(blocks):  # pushed before it is loaded
        exec(compile(block, "docs/hub.md", "exec"), {})
    assert set(hub.tree(NAME)) == FILES


def test_info_shows_the_commit_and_the_page(hub: Hub, model: ScaleUNet) -> None:
    name = model.push_to_hub(NAME)
    ran = command("info", f"hf-hub:{NAME}", "--full")
    assert (ran.code, ran.out.splitlines()[0]) == (0, name)
    assert "library_name: seunet" in ran.out


def test_segment_names_the_commit_and_goes_on_with_it(
    hub: Hub, model: ScaleUNet, disc_model: Path, tmp_path: Path
) -> None:
    """As a user does it: a process of its own, told of the hub by its environment, with a home that is empty."""
    name = model.push_to_hub(NAME)
    Image.fromarray(discs(96, 96, np.random.default_rng(0))).save(tmp_path / "a.png")
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_XET": "1",
    }
    arguments = ["segment", "a.png", "-o", "out", "--mpp", "0.25", "-m"]

    def ran(model: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "seunet", *arguments, model],
            cwd=tmp_path,
            env={**environment, **more},
            capture_output=True,
            text=True,
        )

    first = ran(f"hf-hub:{NAME}")
    assert (first.returncode, first.stderr.splitlines()[0]) == (0, f"note: model {name}"), first.stderr
    document = json.loads((tmp_path / "out" / "a" / "run.json").read_text())
    assert document["model_source"] == name
    assert document["model"]["sha256"] == weights_sha256(model)
    again = ran(f"hf-hub:{NAME}", HF_HUB_OFFLINE="1")
    assert (again.returncode, again.stdout) == (0, "out/a: 16 nucleus (was there)\n")
