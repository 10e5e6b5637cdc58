"""One step of training: loss and gradient of a batch, however many parts and processes it is spread over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_, get_total_norm
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from seunet.data.windows import Window
from seunet.errors import ResourceError
from seunet.layers.scalewise import ScaleNorm2d
from seunet.maths.fusion import fuse
from seunet.maths.losses import labelled_pixels, overlap_loss_sums, scale_loss_sums, weighted_loss
from seunet.maths.rim import undecided_shares
from seunet.models.unet_skeleton import ScaleUNet
from seunet.training.config import RecipeSection
from seunet.training.distributed import Processes

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Batch(NamedTuple):
    """This process's share of a batch: images [B, 3, H, W], masks [B, H, W], the numbers of the windows, and by how
    many octaves each is outside what its head fits."""

    images: Tensor
    masks: Tensor
    numbers: Tensor
    misfits: Tensor


class LossOf(nn.Module):
    """A model with its loss: what DistributedDataParallel wraps, so that η is used inside it as well."""

    class_weights: Tensor | None
    undecided: Tensor | None

    def __init__(self, model: ScaleUNet, recipe: RecipeSection) -> None:
        super().__init__()
        self.model, self.recipe = model, recipe
        weights = None if recipe.class_weights is None else torch.tensor(recipe.class_weights)
        self.register_buffer("class_weights", weights, persistent=False)
        shares = None if model.rim is None else torch.tensor(undecided_shares(model.classes, model.rim))
        self.register_buffer("undecided", shares, persistent=False)

    def forward(self, images: Tensor, masks: Tensor, misfits: Tensor, labelled: Tensor) -> tuple[Tensor, Tensor]:
        """L = (1 − f) Σ_k η̃_k l_k + f · l(P_Ens), then L and every l_k for the log.

        l is Σ over the pixels / `labelled`, which counts those of the whole batch; a share of l_k is that of overlap.
        """
        doubt, share = None, self.recipe.fused_share
        if self.recipe.first_head_scale is not None:
            # Window n is for head n mod γ alone: the network runs γ windows where it would run one.
            heads = self.model.heads
            images, masks = (part.view(-1, heads, *part.shape[1:]) for part in (images, masks))
            labelled = labelled / heads
            if self.recipe.unsure_octaves is not None:
                doubt = (misfits / self.recipe.unsure_octaves).clamp(max=1).to(images.dtype).view(-1, heads)
        logits = self.model(images)
        # Half precision is not enough to sum over pixels; double is kept.
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        sums = scale_loss_sums(logits, masks, class_weights=self.class_weights, doubt=doubt, undecided=self.undecided)
        if overlap := self.recipe.overlap_share:
            sums = torch.lerp(sums, overlap_loss_sums(logits, masks, rim=self.model.rim, doubt=doubt), overlap)
        head_losses = sums / labelled
        loss = weighted_loss(head_losses, self.model.head_weights())
        if share:
            fused = fuse(logits.softmax(2), "p_ens").clamp(min=torch.finfo(logits.dtype).eps).log()
            fused_loss = scale_loss_sums(fused[:, None], masks, class_weights=self.class_weights)[0] / labelled
            loss = (1 - share) * loss + share * fused_loss
        return loss, torch.cat([loss[None], head_losses]).detach()


class Trainer:
    """Model, optimiser and the way a batch becomes a gradient."""

    def __init__(
        self, model: ScaleUNet, optimizer: torch.optim.Optimizer, processes: Processes, recipe: RecipeSection
    ) -> None:
        self.model, self.optimizer, self.processes, self.recipe = model, optimizer, processes, recipe
        self.accumulate, self._dtype = recipe.accumulate, _DTYPES[recipe.precision]
        self.scaler = torch.amp.GradScaler(processes.device.type, enabled=recipe.precision == "float16")
        self.averaged = None
        if recipe.average is not None:
            # w̄ ← β·w̄ + (1 − β)·w of all weights and running statistics, beginning with the first weights that come.
            rule = get_ema_multi_avg_fn(recipe.average)  # type: ignore[no-untyped-call]
            self.averaged = AveragedModel(model, multi_avg_fn=rule, use_buffers=True)
        loss_of: nn.Module = LossOf(model, recipe).to(processes.device)
        self._loss_of = DistributedDataParallel(loss_of) if processes.size > 1 else loss_of

    def begin_step(self) -> ScaleUNet:
        """The model, ready to learn."""
        self.model.train()
        if self.recipe.frozen_norms:
            for module in self.model.modules():
                if isinstance(module, ScaleNorm2d):
                    module.eval()
        return self.model

    def gradient(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Set every parameter's gradient to that of the loss over the batch of all processes; it and each head's.

        The mean is over the labelled pixels of the whole batch, so its parts may hold different numbers of them.
        """
        self.optimizer.zero_grad(set_to_none=True)
        labelled = self.processes.total(labelled_pixels(batch.masks)).clamp(min=1)
        losses = torch.zeros(1 + self.model.heads, device=batch.images.device)
        for last, part in _parts(batch, self.accumulate):
            with self._exchange(last), self._precision():
                loss, parts = self._loss_of(part.images, part.masks, part.misfits, labelled)
            # DistributedDataParallel averages the gradients; the sum is wanted.
            with self._exchange(last):
                self.scaler.scale(loss * self.processes.size).backward()
            losses += parts
        losses = self.processes.total(losses)
        return losses[0], losses[1:]

    def too_large(self, batch: Batch, attempts: bool) -> ResourceError:
        """Say what would fit: alone, it is tried; other processes would wait for this one for ever."""
        windows, side = len(batch.images), batch.images.shape[-1]
        at_once, fits = -(-windows // self.accumulate), 0
        self.accumulate = 1
        if attempts and self.processes.size == 1:
            # With a quarter to spare: where memory is that short, what just fits once need not fit again.
            with_spare = {count: count + -(-count // 4) if count > 1 else 1 for count in range(1, at_once + 1)}
            fits = largest_that_fits(
                at_once, lambda count: self.gradient(Batch(*(part[: with_spare[count]] for part in batch)))
            )
        remedy = (
            f"{fits} at a time fit: --set recipe.accumulate={-(-windows // fits)}"
            if fits
            else "raise `recipe.accumulate`, or use smaller crops (`data.augmentation.crop_px`) or widths"
        )
        return ResourceError(f"out of memory with {at_once} windows of {side}×{side} at once; {remedy}")

    def finite_gradient(self) -> bool:
        """Whether the gradient can be followed; where the loss is scaled, the scaler leaves out steps that overflow."""
        if self.scaler.is_enabled():
            return True
        found = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        return bool(get_total_norm(found).isfinite())

    def update(self) -> None:
        """Move the parameters along the gradient."""
        if self.recipe.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            clip_grad_norm_(self.model.parameters(), self.recipe.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.averaged is not None:
            self.averaged.update_parameters(self.model)

    @property
    def judged(self) -> ScaleUNet:
        """The model that is validated and kept: the running mean of the weights, where there is one."""
        return self.model if self.averaged is None else self.averaged.module  # type: ignore[return-value]

    def _precision(self) -> AbstractContextManager[object]:
        if self._dtype == torch.float32:
            return nullcontext()
        return torch.autocast(self.processes.device.type, dtype=self._dtype)

    def _exchange(self, last: bool) -> AbstractContextManager[object]:
        """Gradients travel between processes once per batch, with its last part."""
        if isinstance(self._loss_of, DistributedDataParallel) and not last:
            return self._loss_of.no_sync()
        return nullcontext()


def _parts(batch: Batch, count: int) -> Iterator[tuple[bool, Batch]]:
    size = -(-len(batch.images) // count)
    for start in range(0, len(batch.images), size):
        stop = start + size
        yield stop >= len(batch.images), Batch(*(part[start:stop] for part in batch))


def collate(windows: Sequence[Window]) -> Batch:
    """Windows side by side; a function of the module so that worker processes can find it."""
    images, masks, numbers, misfits = zip(*windows, strict=True)
    return Batch(torch.stack(images), torch.stack(masks), torch.tensor(numbers), torch.tensor(misfits))


def out_of_memory(error: BaseException) -> bool:
    """Whether this is torch or Python saying that memory is used up."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "allocate memory" in str(error)
    )


def largest_that_fits(windows: int, attempt: Callable[[int], object]) -> int:
    """The largest power-of-two share of `windows` that `attempt` gets through; 0 if not even one."""
    while windows > 1:
        windows = -(-windows // 2)
        try:
            attempt(windows)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
        else:
            return windows
    return 0
