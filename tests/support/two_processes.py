"""What two processes that train together come to: started by torchrun, `two_processes.py DATA FOLDER`.

The lead writes gradients and scores to FOLDER; runs are folders below it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from seunet.data import epoch_order
from seunet.errors import SeunetError
from seunet.layers import ScaleNorm2d
from seunet.training import (
    Batch,
    Processes,
    RecipeSection,
    Sources,
    Trainer,
    TrainingConfig,
    collate,
    ious_of,
    joined,
    make_model,
    make_optimizer,
    train,
    validation_counts,
)
from support.training import poisoned, stop_after, tiny_config

BATCH = 8
CHANGES: dict[str, Any] = {"model__widths": [10, 20]}
"""Two channels a scale: the gradient of a norm after one would be nothing but rounding."""

LAST_WINDOW = epoch_order(16, 0, 0)[3]
"""Of the first batch of four: the second process works on it."""

CASES = {
    "whole": (torch.float64, 1, True),
    "single precision": (torch.float32, 1, True),
    "in two parts": (torch.float64, 2, True),
    "frozen norms in two parts": (torch.float64, 2, False),
}
"""Precision, parts of a share, whether the norms learn."""


def whole_batch(sources: Sources) -> Batch:
    """Eight windows; far fewer pixels of the second half have a label."""
    batch = collate([sources.training[0, index] for index in range(BATCH)])
    batch.masks[BATCH // 2 :, :20] = 255
    return batch


def gradients(
    case: str, config: TrainingConfig, sources: Sources, processes: Processes, batch: Batch
) -> dict[str, Tensor]:
    """Of every parameter, and the loss of each head."""
    dtype, accumulate, learning = CASES[case]
    model = make_model(config, sources.manifest).to(dtype).train()
    for module in model.modules():
        if isinstance(module, ScaleNorm2d) and not learning:
            module.eval()
    trainer = Trainer(model, make_optimizer(model, 0.0), processes, RecipeSection(accumulate=accumulate))
    _, losses = trainer.gradient(batch._replace(images=batch.images.to(dtype)))
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}
    running = {name: buffer.clone() for name, buffer in model.named_buffers() if name.endswith(("_mean", "_var"))}
    return found | running | {"head losses": losses}


def main() -> None:
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    config = tiny_config(data, **CHANGES)
    with joined("cpu") as processes:
        sources = Sources(config.data, config.seed)
        batch, share = whole_batch(sources), BATCH // processes.size
        mine = slice(processes.rank * share, (processes.rank + 1) * share)
        found = {
            case: gradients(case, config, sources, processes, Batch(*(part[mine] for part in batch))) for case in CASES
        }
        model = make_model(config, sources.manifest)
        model.load_state_dict(load_file(folder / "weights.safetensors"))
        scores = ious_of(validation_counts(model, sources.validation, processes))
        train(config, folder / "unbroken", processes)
        # Only the second is asked to stop; both must.
        train(config, folder / "cut", processes, stop_wanted=stop_after(6 if processes.rank else 10**9))
        train(config, folder / "cut", processes, resume=True)
        train(config, folder / "begun alone", processes, resume=True)
        train(tiny_config(data, recipe__sync_norm=False, **CHANGES), folder / "apart", processes)
        refused = [
            refusal(lambda: train(config, folder / "cut", processes)),
            refusal(lambda: train(tiny_config(data, recipe__batch=5, **CHANGES), folder / "odd", processes)),
        ]
        with poisoned(0, LAST_WINDOW):
            refused.append(refusal(lambda: train(config, folder / "poisoned", processes)))
        if processes.lead:
            tensors = {f"{case}/{name}": value for case, values in found.items() for name, value in values.items()}
            save_file(tensors, folder / "found.safetensors")
            (folder / "scores.json").write_text(json.dumps(scores))
        (folder / f"refused{processes.rank}.json").write_text(json.dumps(refused))
        processes.wait()
    left = sorted((task / "comm").read_text().strip() for task in Path("/proc/self/task").glob("*"))
    (folder / f"threads{processes.rank}.json").write_text(json.dumps(left))


def refusal(attempt: Callable[[], object]) -> str:
    """The line with which it is refused, in every process: one that waited for the other would wait for ever."""
    try:
        attempt()
    except SeunetError as error:
        return str(error)
    return "not refused"


if __name__ == "__main__":
    main()
