"""How good the weights are on images held out from training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from seunet.data.windows import WindowDataset
from seunet.maths.confusion import confusion_matrices, headline_iou
from seunet.maths.fusion import FUSIONS, predicted_classes
from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.distributed import Processes
from seunet.training.trainer import collate


def validate(model: ScaleUNet, windows: WindowDataset, processes: Processes, batch: int = 1) -> dict[str, Any]:
    """IoU of every head and fusion over all windows, from one confusion matrix each, whoever counted them.

    Each process takes every size-th window; counts are added, so the result does not depend on how many there are.
    """
    mine = Subset(windows, range(processes.rank, len(windows), processes.size))
    counts = torch.zeros(model.heads + len(FUSIONS), model.classes, model.classes, dtype=torch.int64)
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            for images, masks, *_ in DataLoader(mine, batch, collate_fn=collate, generator=torch.Generator()):
                probabilities = model(images.to(processes.device)).softmax(2)
                counts += _counts(probabilities, masks.to(processes.device)).cpu()
    finally:
        model.train(was_training)
    counts = processes.total(counts.to(processes.device)).cpu()
    heads = [headline_iou(confusion) for confusion in counts[: model.heads]]
    fused = {name: headline_iou(counts[model.heads + place]) for place, name in enumerate(FUSIONS)}
    return {"heads": [round(iou, 6) for iou in heads], **{name: round(iou, 6) for name, iou in fused.items()}}


def _counts(probabilities: Tensor, masks: Tensor) -> Tensor:
    """Confusion matrices of [head 1, …, head γ, mean, p_dist, p_ens]."""
    return confusion_matrices(predicted_classes(probabilities), masks, probabilities.shape[2])
