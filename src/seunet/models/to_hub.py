"""A model as a repository on the hub: its files, and the page that strangers read first."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any, Final

import yaml

from seunet.hub.push import push_files
from seunet.hub.repository import PREFIX, Repository, parsed
from seunet.models.card import ModelCard
from seunet.models.files import save, weights_sha256
from seunet.models.places import CARD_NAME, ESTIMATOR_NAMES
from seunet.models.unet_skeleton import ScaleUNet

TAGS: Final = ("seunet", "histopathology", "h-and-e", "scale-equivariance", "semantic-segmentation")


def push_model(
    model: ScaleUNet, repository: str, *, readme: str | None, message: str, private: bool, token: str | None
) -> str:
    """Push the files that `save` writes and a page in one commit; the name of the model at that commit."""
    place = parsed(repository)
    if readme is None and (model.card is None or not model.card.licence):
        warnings.warn(
            f"{place}: the card states no licence, so others may not use the model; set `model.card` first",
            stacklevel=3,
        )
    page = model_page(model, place) if readme is None else with_metadata(readme, model.card)
    with tempfile.TemporaryDirectory() as folder:
        save(model, folder)
        files = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    pushed = push_files(
        place,
        {**files, CARD_NAME: page.encode()},
        # An estimator of the model that was there before knows nothing of this one.
        instead_of=ESTIMATOR_NAMES,
        unless_there=(CARD_NAME,) if readme is None else (),
        message=message,
        private=private,
        token=token,
    )
    return str(pushed)


def metadata(card: ModelCard | None) -> dict[str, Any]:
    """What the hub finds and filters models by."""
    licence: dict[str, Any] = {}
    if card is not None and card.licence:
        licence = {"license": card.spdx.lower()} if card.spdx else {"license": "other", "license_name": card.licence}
    classes = [] if card is None else [name for name in card.told_names[1:] if name not in TAGS]
    return {"library_name": "seunet", "pipeline_tag": "image-segmentation", **licence, "tags": [*TAGS, *classes]}


def with_metadata(text: str, card: ModelCard | None) -> str:
    """A page with the metadata on top; one that begins with its own keeps it."""
    if text.startswith("---\n"):
        return text
    return f"---\n{yaml.safe_dump(metadata(card), sort_keys=False, allow_unicode=True)}---\n\n{text}"


def model_page(model: ScaleUNet, repository: Repository) -> str:
    """A page from the card: what it finds, how to use it, what it learnt from, what it may be used for."""
    card = ModelCard() if model.card is None else model.card
    parameters = sum(parameter.numel() for parameter in model.parameters())
    rows = [
        ("architecture", f"{model.name}, {parameters:,} parameters, {model.heads} heads"),
        ("classes", ", ".join(card.told_names) or str(model.classes)),
        ("µm per pixel it learnt at", "not stated" if card.mpp is None else f"{card.mpp:g}"),
        ("tells the magnification from pixels", "no" if model.scale_estimator is None else "yes"),
        ("trained on", card.trained_on or "not stated"),
        ("licence of the data", card.licence or "not stated: ask its owner before you use it"),
        ("sha256 of the weights", f"`{weights_sha256(model)}`"),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    text = f"""# {repository.name.partition("/")[2]}

A model of seunet, the [scale-equivariant UNet](https://arxiv.org/abs/2304.04595): it segments H&E histopathology
images at any magnification, whether or not it is known. For research, not for diagnosis.

With `seunet` and `huggingface_hub` installed:

```sh
seunet segment slides/ -o out -m {PREFIX}{repository.name}
```

```python
import seunet

found = seunet.segment("slide.png", model="{PREFIX}{repository.name}")  # add @ and a commit to pin the weights
```

|  |  |
|---|---|
{table}

The files are safetensors and JSON: loading them runs no code.
"""
    return with_metadata(text, model.card)
