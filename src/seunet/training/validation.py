"""How good the weights are on images held out from training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from seunet.data.joined_windows import JoinedWindows
from seunet.data.windows import WindowDataset
from seunet.maths.confusion import confusion_matrices, headline_iou
from seunet.maths.fusion import FUSIONS, predicted_classes
from seunet.maths.rim import without_rim
from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.config import TrainingConfig
from seunet.training.distributed import Processes
from seunet.training.trainer import collate


def validation_counts(
    model: ScaleUNet,
    windows: WindowDataset | JoinedWindows,
    processes: Processes,
    batch: int = 1,
    at_most: int | None = None,
) -> Tensor:
    """Confusion matrices of [head 1, …, head γ, mean, p_dist, p_ens] over all windows, or the first `at_most`.

    Each process takes every size-th window; counts are added, so the result does not depend on how many there are.
    """
    mine = Subset(windows, range(processes.rank, min(len(windows), at_most or len(windows)), processes.size))
    counts = torch.zeros(model.heads + len(FUSIONS), model.told_classes, model.told_classes, dtype=torch.int64)
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            for images, masks, *_ in DataLoader(mine, batch, collate_fn=collate, generator=torch.Generator()):
                probabilities = without_rim(model(images.to(processes.device)).softmax(2), model.rim)
                said, true = predicted_classes(probabilities), masks.to(processes.device)
                counts += confusion_matrices(said, true, model.told_classes).cpu()
    finally:
        model.train(was_training)
    return processes.total(counts.to(processes.device)).cpu()


def ious_of(counts: Tensor) -> dict[str, Any]:
    """{"heads": [IoU of each], fusion: its IoU, …} of what `validation_counts` counted."""
    heads = [headline_iou(confusion) for confusion in counts[: -len(FUSIONS)]]
    fused = {name: headline_iou(counts[place - len(FUSIONS)]) for place, name in enumerate(FUSIONS)}
    return {"heads": [round(iou, 6) for iou in heads], **{name: round(iou, 6) for name, iou in fused.items()}}


def only_class(counts: Tensor, fusion: str) -> int | None:
    """The one class that is predicted everywhere, though there are others; None where the model tells them apart."""
    confusion = counts[FUSIONS.index(fusion) - len(FUSIONS)]
    predicted, true = confusion.sum(0).nonzero().flatten(), confusion.sum(1).nonzero().flatten()
    return int(predicted[0]) if len(predicted) == 1 and len(true) > 1 else None


def what_to_look_at(config: TrainingConfig, class_shares: str, steps: int) -> str:
    """Where a model that calls everything one class may come from: it has an IoU too, and looks finished."""
    recipe = config.recipe
    weights = "" if recipe.class_weights is None else f" (={list(recipe.class_weights)})"
    return (
        f"the model tells nothing apart. Look at the masks in {config.data.all_sets()[0].root / 'masks'} (learnt from: "
        f"{class_shares}); train for more than {steps} steps (`recipe.steps`), weigh rare classes more "
        f"(`recipe.class_weights`{weights}), lower `recipe.learning_rate` (={recipe.learning_rate:g}), or begin with a "
        "trained model (--set start=nuclei)"
    )
