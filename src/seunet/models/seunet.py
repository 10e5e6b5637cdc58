"""SEUNet: the U filled with groups of Gaussian-derivative filters."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from seunet.layers.gaussian_conv import GaussianConv2d
from seunet.layers.scalewise import ScaleNorm2d
from seunet.maths.sigma import SigmaRange, geometric_range, paper_schedule
from seunet.models.config import GaussianConfig
from seunet.models.unet_skeleton import ScaleUNet


def sigma_schedule(config: GaussianConfig) -> list[SigmaRange]:
    """The σ range of every block: encoder from the finest level down, then the decoder up."""
    levels = len(config.widths) - 1
    if config.schedule == "paper":
        return paper_schedule(config.scales, levels)
    # One constant ratio between neighbouring scales at every block: what equivariance through depth asks for.
    return [geometric_range(config.sigma_base, config.sigma_ratio, config.scales)] * (2 * levels + 1)


class SEUNet(ScaleUNet):
    """The scale-equivariant UNet (and, by its options, N-Jet and Gaussian-derivative networks)."""

    image_axes = (4, 5)

    def __init__(self, config: GaussianConfig) -> None:
        schedule, scales = sigma_schedule(config), config.scales

        def make_convolution(in_channels: int, out_channels: int, block: int, lifting: bool) -> nn.Module:
            return GaussianConv2d(
                in_channels if lifting else in_channels * scales,
                out_channels * scales,
                scales=scales,
                order=config.order,
                sigma=config.sigma,
                sigma_range=schedule[block],
                lifting=lifting,
                discretisation=config.discretisation,
                truncation=config.truncation,
            )

        super().__init__(
            make_convolution,
            config,
            scales=scales,
            norm=config.norm,
            trained_head_weights=config.head_weights == "trained",
        )

    def gaussian_layers(self) -> list[GaussianConv2d]:
        """The scale convolutions from the image to the head: 18 in the paper's network."""
        return [module for module in self.modules() if isinstance(module, GaussianConv2d)]

    def sigmas(self) -> Tensor:
        """σ of every layer and scale: [layers, γ]."""
        return torch.stack([layer.sigmas() for layer in self.gaussian_layers()])

    def at_scale(self, factor: float) -> SEUNet:
        """The same weights for structures `factor` times as large: every σ and its bounds × factor.

        α does not know the scale (paper eq. 4), so this is the trained network for images at another magnification.
        Parameters and running statistics are shared with this model, not copied.
        """
        other = self._sharing()
        for layer in other.gaussian_layers():
            layer.rescale_sigma(factor)
        other.factor *= factor
        return other

    def only_scale(self, number: int) -> SEUNet:
        """The network of one scale: [B, C, H, W] → [B, 1, classes, H, W], `self(images)[:, number : number + 1]`.

        The scales meet nowhere before the fusion, so they can be run one after the other in a γ-th of the memory.
        Weights are shared, not copied.  It is for running: its `config` is still that of the whole.
        """
        other = self._sharing()
        for module in other.modules():
            if isinstance(module, GaussianConv2d | ScaleNorm2d):
                module.keep_scale(number)
        other.heads, other.eta = 1, None
        return other

    def _sharing(self) -> SEUNet:
        """Another network of the same parameters and running statistics."""
        return copy.deepcopy(self, {id(tensor): tensor for tensor in (*self.parameters(), *self.buffers())})
