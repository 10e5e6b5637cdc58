"""A package as bioimage.io describes it: TorchScript weights, test tensors, a page and a description."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
import yaml

from seunet.errors import InputError
from seunet.export.choice import CITATION, Chosen
from seunet.export.write import checked, script_of
from seunet.extras import needed
from seunet.storage.files import sha256

TEST_PX: Final = (96, 128)
RDF_NAME: Final = "rdf.yaml"


def write_package(chosen: Chosen, folder: Path) -> dict[str, Any]:
    """weights.pt, test_input.npy, test_output.npy, README.md and rdf.yaml."""
    needed("bioimageio")
    scripted = script_of(chosen.network())
    torch.jit.save(scripted, folder / "weights.pt")
    random = np.random.default_rng(0)
    given = random.integers(0, 256, (1, chosen.model.in_channels, *TEST_PX)).astype(np.float32)
    np.save(folder / "test_input.npy", given)
    np.save(folder / "test_output.npy", scripted(torch.from_numpy(given) / 255).numpy())
    (folder / "README.md").write_text(_page(chosen))
    (folder / RDF_NAME).write_text(yaml.safe_dump(_description(chosen, folder), sort_keys=False, allow_unicode=True))
    _validate(folder / RDF_NAME)
    return {"file": RDF_NAME, **checked(chosen, lambda images: scripted(torch.from_numpy(images)).numpy())}


def _validate(path: Path) -> None:
    from bioimageio.spec import load_description
    from bioimageio.spec.common import InvalidDescr

    found = load_description(path, format_version="discover", perform_io_checks=False)
    if isinstance(found, InvalidDescr):
        faults = [f"{fault.loc}: {fault.msg}" for one in found.validation_summary.details for fault in one.errors]
        raise InputError(f"the package does not validate ({'; '.join(faults)[:300]}); nothing is written")


def _description(chosen: Chosen, folder: Path) -> dict[str, Any]:
    def file(name: str) -> dict[str, str]:
        return {"source": name, "sha256": sha256((folder / name).read_bytes())}

    space = {} if chosen.mpp is None else {"unit": "micrometer", "scale": chosen.mpp}
    sides = [{"type": "space", "id": side, "size": {"min": 16, "step": 1}, **space} for side in "yx"]
    same = [{"type": "space", "id": side, "size": {"tensor_id": "image", "axis_id": side}, **space} for side in "yx"]
    colours = ["red", "green", "blue"] if chosen.model.in_channels == 3 else _numbered(chosen.model.in_channels)
    names = [name.replace(" ", "_") for name in chosen.class_names]
    return {
        "format_version": "0.5.4",
        "type": "model",
        "name": f"seunet {chosen.name}",
        "description": f"{', '.join(chosen.class_names)} in H&E histopathology images",
        "authors": [{"name": "seunet"}],
        "cite": [CITATION],
        **chosen.licence,
        "documentation": "README.md",
        "tags": ["segmentation", "histopathology", "nuclei"],
        "inputs": [
            {
                "id": "image",
                "axes": [{"type": "batch"}, {"type": "channel", "channel_names": colours}, *sides],
                "data": {"type": "float32", "range": [0.0, 255.0]},
                "test_tensor": file("test_input.npy"),
                "preprocessing": [{"id": "scale_linear", "kwargs": {"gain": 1 / 255, "offset": 0.0}}],
            }
        ],
        "outputs": [
            {
                "id": "probabilities",
                "axes": [{"type": "batch"}, {"type": "channel", "channel_names": names}, *same],
                "data": {"type": "float32", "range": [0.0, 1.0]},
                "test_tensor": file("test_output.npy"),
            }
        ],
        "weights": {"torchscript": {**file("weights.pt"), "pytorch_version": torch.__version__.split("+")[0]}},
    }


def _numbered(count: int) -> list[str]:
    return [f"channel_{number}" for number in range(count)]


def _page(chosen: Chosen) -> str:
    card = chosen.model.card
    rows = [
        f"# seunet {chosen.name}",
        f"Probabilities of {', '.join(chosen.class_names)} for every pixel of an H&E image, any height and width.",
    ]
    if chosen.mpp is not None:
        rows.append(f"Made for {chosen.mpp:g} µm per pixel.")
    if card is not None:
        rows += [f"Trained on {card.trained_on}.", f"Licence of the weights: {card.licence}."]
    rows.append(
        "## Validation\n\nThe test tensors are what the network gives; `export.json` has the largest difference."
    )
    return "\n\n".join(rows) + "\n"
