"""The one U that every model of the package is: blocks of two convolutions, four poolings, skips, one head.

What differs between the models is the convolution and how the scales are projected before the head.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from seunet.errors import InputError
from seunet.kernels.resizing import join_upsampled, upsampled
from seunet.layers.scalewise import Pooling, ScaleNorm2d, SharedPointwise
from seunet.maths.fusion import head_weights
from seunet.maths.losses import IGNORE_INDEX, scale_losses, weighted_loss
from seunet.models.card import ModelCard
from seunet.models.config import ModelConfig, validated
from seunet.models.convolution_block import ConvolutionBlock, followed

if TYPE_CHECKING:
    from seunet.scale.estimator import ScaleEstimator


MakeConvolution = Callable[[int, int, int, bool], nn.Module]
"""Builds the convolution of one place: channels in and out per scale, the block it is in, whether it sees the image."""


class ScaleUNet(nn.Module):
    """[B, C, H, W] → logits [B, γ, classes, H, W]; γ = 1 where the scales are projected away or there is but one.

    Args:
        make_convolution: what fills the U.
        config: its `widths` are the channels of all scales together at each level, from the finest.
        scales: γ inside the network.
        projection: applied before the head, e.g. the maximum over scales; None keeps one head per scale.
        trained_head_weights: whether η of the loss is trained (paper eq. 9) or uniform.
    """

    name: str
    config: ModelConfig
    card: ModelCard | None = None
    """What is known of the weights; None for fresh ones."""
    scale_estimator: ScaleEstimator | None = None
    """What tells the scale of an image from its pixels, where the files of the model have one."""
    source: str | None = None
    """Where on the hub it was loaded from, with the commit: `hf-hub:owner/name@commit`."""
    eta: nn.Parameter | None
    factor = 1.0
    """By how much the σ, where there are any, are larger than those the weights were trained with."""
    image_axes: tuple[int, ...] = (4,)
    """How many axes an image may have; with five there is one for each scale."""

    def __init__(
        self,
        make_convolution: MakeConvolution,
        config: ModelConfig,
        *,
        scales: int,
        norm: str,
        projection: nn.Module | None = None,
        trained_head_weights: bool = False,
    ) -> None:
        super().__init__()
        self.config, self.in_channels, self.classes = config, config.in_channels, config.classes
        widths, levels = [width // scales for width in config.widths], len(config.widths) - 1

        def make_block(inputs: int, outputs: int, block: int, lifting: bool = False) -> ConvolutionBlock:
            return ConvolutionBlock(
                [make_convolution(inputs, outputs, block, lifting), make_convolution(outputs, outputs, block, False)],
                [ScaleNorm2d(outputs, scales=scales, kind=norm) for _ in range(2)],
            )

        self.pooling = Pooling(config.pooling)
        self.encoder = nn.ModuleList([make_block(config.in_channels, widths[0], 0, lifting=True)])
        self.encoder.extend(make_block(widths[n], widths[n + 1], n + 1) for n in range(levels))
        going_up = range(levels - 1, -1, -1)
        self.reducers = nn.ModuleList(SharedPointwise(widths[n + 1], widths[n]) for n in going_up)
        self.decoder = nn.ModuleList(
            make_block(2 * widths[n], widths[n], levels + 1 + step) for step, n in enumerate(going_up)
        )
        self.projection = projection
        self.heads = 1 if projection is not None else scales
        self.head = SharedPointwise(widths[0], config.classes)
        if trained_head_weights and self.heads > 1:
            self.eta = nn.Parameter(torch.full((self.heads,), 1 / self.heads))
        else:
            self.register_parameter("eta", None)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of every scale, [B, γ, classes, H, W]."""
        return self._through(images, self.head)

    def features(self, images: Tensor) -> Tensor:
        """What the head sees: [B, γ, C, H, W].  A SEUNet also takes an image for each scale: [B, γ, colours, H, W]."""
        return self._through(images, None)

    def _through(self, images: Tensor, head: nn.Module | None) -> Tensor:
        """`features`, and the head of them if one is given."""
        if images.ndim not in self.image_axes or images.shape[-3] != self.in_channels:
            raise InputError(
                f"`images` of shape {list(images.shape)} must be [batch, {self.in_channels}, height, width]"
            )
        if not images.is_floating_point():
            raise InputError(f"`images` of type {images.dtype} must be floating point, e.g. images.float() / 255")
        *descending, deepest = self.encoder
        features, skips = images, []
        for block in descending:
            skips.append(block(features))
            features = self.pooling(skips[-1])
        join = _side_by_side if self.pooling.kind == "none" else join_upsampled
        # Mixing channels and interpolating pixels commute: the 1×1 convolution is done on the smaller map.
        first, *others = *self.reducers, head if self.projection is None else None
        features = followed(first, deepest, features)
        for block, pointwise in zip(self.decoder, others, strict=True):
            # The skip is not kept under a name: once joined it is let go of, where no gradient needs it.
            if join is join_upsampled and block.reads_two_maps():  # type: ignore[operator]
                features = followed(pointwise, block, skips[-1], upsampled(features, *skips.pop().shape[3:]))
            else:
                features = followed(pointwise, block, join(skips.pop(), features))
        if self.projection is not None:
            features = self.projection(features)
            return features if head is None else head(features)  # type: ignore[no-any-return]
        return features

    @property
    def rim(self) -> int | None:
        """The class that is the rim between touching objects, where the model has one (`ModelCard.rim`)."""
        return None if self.card is None else self.card.rim

    @property
    def told_classes(self) -> int:
        """The classes that labels and scores have: the rim is part of its object."""
        return self.classes - (self.rim is not None)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.head.convolution.weight.device

    def save_pretrained(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write `config.json` and `model.safetensors` into `folder`; `seunet.load(folder)` reads them.

        A folder that holds other weights is refused without `overwrite`.
        """
        from seunet.models.files import check_no_other, save

        if not overwrite:
            check_no_other(self, Path(folder))
        save(self, folder)

    def push_to_hub(
        self,
        repository: str,
        *,
        readme: str | None = None,
        message: str = "A model of seunet",
        private: bool = False,
        token: str | None = None,
    ) -> str:
        """Push what `save_pretrained` writes, and a page, to `owner/name` on the Hugging Face Hub.

        Returns `hf-hub:owner/name@commit`, which `seunet.load` takes.  Needs the extra `seunet[hub]`.

        Args:
            readme: the text of README.md, the page of the repository.  By default one is made from the card where
                there is none yet; a page that is there is left as it is.
            private: whether a repository that is made for it is private.
            token: of one who may write there; by default that of `hf auth login` or HF_TOKEN.
        """
        from seunet.models.to_hub import push_model

        return push_model(self, repository, readme=readme, message=message, private=private, token=token)

    @classmethod
    def from_pretrained(cls, name_or_folder: str | os.PathLike[str], **options: Any) -> Self:
        """`seunet.load` for those who look for it here; the model must be of this class."""
        from seunet.models.files import load

        model = load(name_or_folder, **options)
        if not isinstance(model, cls):
            raise InputError(f"{name_or_folder}: is a {model.name}, which is no {cls.__name__}; use seunet.load")
        return model

    def reset_classifier(self, classes: int) -> None:
        """A fresh head for so many classes; what the card says of classes and heads is forgotten."""
        config = validated(type(self.config), {**self.config.model_dump(), "classes": classes})
        before = self.head.convolution
        with torch.device(before.weight.device):
            self.head = SharedPointwise(before.in_channels, classes).to(before.weight.dtype)
        self.classes, self.config = classes, config
        if self.card is not None:
            forgotten = {"class_names": (), "class_colors": (), "calibration": None, "instances": False, "rim": None}
            self.card = self.card.model_copy(update=forgotten)

    def head_weights(self) -> Tensor:
        """η̃, the weight of each head in the loss: [γ], sum 1."""
        if self.eta is None:
            return self.head.convolution.weight.new_full((self.heads,), 1 / self.heads)
        return head_weights(self.eta)

    def loss(self, logits: Tensor, target: Tensor, ignore_index: int = IGNORE_INDEX) -> Tensor:
        """Σ_k η̃_k · cross-entropy of head k, over the pixels that are not `ignore_index` (paper eq. 8–9).

        Args:
            logits: `model(images)`, [B, γ, classes, H, W].
            target: the class of each pixel, [B, H, W].
            ignore_index: pixels of this class do not count.

        Nothing but this trains η; with a loss of your own create the model with `head_weights="uniform"`.
        """
        return weighted_loss(scale_losses(logits, target, ignore_index), self.head_weights())


def _side_by_side(skip: Tensor, rising: Tensor) -> Tensor:
    """Maps of one size."""
    return torch.cat([skip, rising], dim=2)
