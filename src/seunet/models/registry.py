"""Models by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from torch import Tensor, nn
from torch.nn.functional import conv2d

from seunet.errors import InputError, check_known
from seunet.layers import DiscreteScaleConv2d, ScaleProjection, SteerableConv2d
from seunet.layers.hooks import hooked
from seunet.maths.sesn import GRID_ORDERS, TRUNCATED_ORDERS
from seunet.models.built_in import built_in_models
from seunet.models.config import GaussianConfig, ModelConfig, ScaleListConfig, SteerableConfig, validated
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet


class PlainConv2d(nn.Module):
    """The plain UNet's: a 3×3 convolution with bias on [B, 1, C, H, W]."""

    def __init__(self, in_channels: int, out_channels: int, *, lifting: bool = False) -> None:
        super().__init__()
        self.lifting = lifting
        self.convolution = nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1)

    def forward(self, features: Tensor, affine: Tensor | None = None, relu: bool = False) -> Tensor:
        image = features if self.lifting else features[:, 0]
        if affine is None and hooked(self.convolution):
            return self.convolution(image)[:, None]  # type: ignore[no-any-return]
        weight, bias = self.convolution.weight, self.convolution.bias
        if affine is not None:
            # A frozen norm folds into the weights: the baseline gets what our own layer gets.
            scale, shift = affine[0, 0], affine[1, 0]
            weight, bias = weight * scale[:, None, None, None], bias * scale + shift  # type: ignore[operator]
        result = conv2d(image, weight, bias, padding=1)
        return (result.relu_() if relu else result)[:, None]


def _plain_unet(config: ModelConfig) -> ScaleUNet:
    return ScaleUNet(
        lambda in_channels, out_channels, block, lifting: PlainConv2d(in_channels, out_channels, lifting=lifting),
        config,
        scales=1,
        norm="group",
    )


def _sesn(config: SteerableConfig) -> ScaleUNet:
    orders = {"grid": GRID_ORDERS, "truncated": TRUNCATED_ORDERS}[config.basis]
    return _projected(partial(SteerableConv2d, orders=orders), config)


def _projected(convolution: Callable[..., nn.Module], config: ScaleListConfig) -> ScaleUNet:
    """SESN and DISCO: shared weights and norm over the scales, the maximum over them before the head."""
    return ScaleUNet(
        lambda in_channels, out_channels, block, lifting: convolution(
            in_channels, out_channels, scales=config.scales, lifting=lifting
        ),
        config,
        scales=len(config.scales),
        norm="shared",
        projection=ScaleProjection(),
    )


@dataclass(frozen=True)
class Recipe:
    """How a name becomes a model: the type of its options, what each preset sets, and the builder."""

    config: type[ModelConfig]
    presets: dict[str, dict[str, Any]]
    build: Callable[[Any], ScaleUNet]


_GEOMETRIC: Final = {"schedule": "geometric", "discretisation": "sampled", "truncation": 2.5}
"""Measured by benchmarks/measure/network/equivariance.py; why: docs/decisions/0003-geometric-preset.md."""

_RECIPES: Final[dict[str, Recipe]] = {
    "seunet": Recipe(GaussianConfig, {"paper": {}, "geometric": _GEOMETRIC}, SEUNet),
    "unet": Recipe(ModelConfig, {"paper": {}}, _plain_unet),
    "sesn": Recipe(SteerableConfig, {"paper": {}}, _sesn),
    "disco": Recipe(ScaleListConfig, {"paper": {}}, partial(_projected, DiscreteScaleConv2d)),
    # N-Jet (Pintea et al.): one free σ per layer, no scale axis.
    "njet": Recipe(GaussianConfig, {"paper": {"scales": 1, "sigma": "free_from_one"}}, SEUNet),
    # Gaussian-derivative networks (Lindeberg): second order, σ in fixed geometric steps.
    "gaussder": Recipe(GaussianConfig, {"paper": _GEOMETRIC | {"order": 2, "sigma": "fixed"}}, SEUNet),
}


def list_models(*, pretrained: bool = False) -> list[str]:
    """The names `create_model` knows; with `pretrained`, the trained models of the package, which `load` knows."""
    return built_in_models() if pretrained else sorted(_RECIPES)


def model_config(name: str, preset: str = "paper", **options: Any) -> ModelConfig:
    """The complete, checked options of a model."""
    if name not in _RECIPES and name in built_in_models():
        raise InputError(f"{name!r} is a trained model, not an architecture; get it by seunet.load({name!r})")
    check_known("model", name, _RECIPES)
    recipe = _RECIPES[name]
    check_known(f"preset of {name}", preset, recipe.presets)
    return validated(recipe.config, recipe.presets[preset] | options)


def build_model(name: str, config: ModelConfig) -> ScaleUNet:
    """The model of a checked config."""
    model = _RECIPES[name].build(config)
    model.name = name
    return model


def create_model(name: str, *, preset: str = "paper", num_classes: int | None = None, **options: Any) -> ScaleUNet:
    """A model with fresh weights: `create_model("seunet", classes=5, preset="geometric")`.

    [B, in_channels, H, W] → logits [B, scales, classes, H, W] for any H and W.  `num_classes` is another name for
    `classes`.
    """
    if num_classes is not None:
        if options.get("classes", num_classes) != num_classes:
            raise InputError(
                f"`classes` (={options['classes']}) and `num_classes` (={num_classes}) are the same; give one"
            )
        options["classes"] = num_classes
    return build_model(name, model_config(name, preset, **options))
