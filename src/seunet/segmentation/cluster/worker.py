"""What a worker does: it shows that it is fit, and does a slide.

It is fit with our version and weights, and if it sees the input and OUT, by a file that lies there for as long as the
command runs.  One that is not is named, and its slide goes elsewhere.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, NamedTuple

import seunet
from seunet.errors import InputError, SeunetError, StorageError
from seunet.memory import keep_freed_memory
from seunet.models.files import shared_model
from seunet.segmentation.inputs import Item
from seunet.segmentation.options import Choices
from seunet.segmentation.segment_many import Result, attempt, said, understood


class Passport(NamedTuple):
    """What a worker must agree with."""

    seunet: str
    model: str
    weights_sha256: str
    out: str
    token: str
    """A file in `out`: who sees it has the same folder there."""


class Refusal(NamedTuple):
    """A worker that cannot do a slide, and the line that says why."""

    worker: str
    line: str
    exit_code: int


def item_text(item: Item) -> str:
    """A slide as text, by its whole path: workers are elsewhere."""
    return json.dumps({"path": str(item.path.absolute()), "mpp": item.mpp, "name": item.name})


def work(item: str, passport: str, choices: str) -> str:
    """What a worker does: one slide, if it is fit for it."""
    keep_freed_memory()
    fields = json.loads(item)
    todo = Item(Path(fields["path"]), fields["mpp"], fields["name"])
    wanted = Passport(**json.loads(passport))
    result: Result | Refusal
    if wanted.token in _full:
        result = _refusal(_full[wanted.token], StorageError.exit_code)
    elif (reason := unfit_because(wanted, todo.path)) is not None:
        result = _refusal(reason, InputError.exit_code)
    else:
        try:
            result = attempt(todo, Path(wanted.out), Choices.model_validate_json(choices), wait=True)
        except StorageError as error:
            _full[wanted.token] = " ".join(str(error).split())
            result = _refusal(_full[wanted.token], error.exit_code)
    return said(result)


_full: dict[str, str] = {}
"""Of a worker: the commands for which it could not write, and why; their further slides are left to others at once."""


def unfit_because(wanted: Passport, path: Path) -> str | None:
    """Why this process cannot do the slide at `path`; None if it can."""
    if seunet.__version__ != wanted.seunet:
        return f"has seunet {seunet.__version__}, the command {wanted.seunet}; install the same on all nodes"
    if not Path(wanted.out, wanted.token).is_file():
        return f"does not see {wanted.out} as the command does; share the folder under the same path"
    if not path.is_file():
        return f"does not see {path}; share the folder under the same path"
    try:
        own = shared_model(wanted.model).weights_sha256
    except SeunetError as error:
        return f"cannot load the model ({' '.join(str(error).split())})"
    if own != wanted.weights_sha256:
        return (
            f"has other weights as {wanted.model} (sha256 {own[:12]}, the command {wanted.weights_sha256[:12]}); "
            "copy the model to all nodes"
        )
    return None


def _refusal(reason: str, exit_code: int) -> Refusal:
    from distributed import get_worker

    address = get_worker().address
    return Refusal(address, f"worker {address} on {socket.gethostname()}: {reason}", exit_code)


def understood_answer(text: str) -> Result | Refusal:
    """What a worker said."""
    fields: dict[str, Any] = json.loads(text)
    if fields["kind"] != Refusal.__name__:
        return understood(fields)
    del fields["kind"]
    return Refusal(**fields)
