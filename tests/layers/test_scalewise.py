"""Norm, pooling, upsampling and the shared 1×1 convolution."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import conv2d

from seunet.errors import InputError
from seunet.layers import Pooling, ScaleNorm2d, SharedPointwise
from seunet.maths import upsample_to


def test_the_group_norm_normalises_each_scale_by_itself() -> None:
    features = torch.randn(4, 3, 2, 8, 8) * torch.tensor([1.0, 10.0, 100.0]).view(1, 3, 1, 1, 1)
    result = ScaleNorm2d(2, scales=3)(features)
    torch.testing.assert_close(result.std((0, 3, 4)), torch.ones(3, 2), rtol=1e-2, atol=1e-2)


def test_the_shared_norm_treats_all_scales_alike() -> None:
    features = torch.randn(4, 3, 2, 8, 8)
    norm = ScaleNorm2d(2, scales=3, kind="shared")
    assert norm.norm.weight.shape == (2,)
    torch.testing.assert_close(norm(features.flip(1)), norm(features).flip(1))


@pytest.mark.parametrize("kind", ["group", "shared"])
def test_a_frozen_norm_folds_into_an_affine_map(kind: str) -> None:
    norm = ScaleNorm2d(4, scales=3, kind=kind)
    with torch.no_grad():
        for tensor in (norm.norm.weight, norm.norm.bias, norm.norm.running_mean, norm.norm.running_var):
            assert tensor is not None
            tensor.uniform_(0.5, 2)
    assert norm.folded() is None  # statistics are still being learnt
    norm.eval()
    features, folded = torch.randn(2, 3, 4, 5, 5), norm.folded()
    assert folded is not None
    torch.testing.assert_close(folded[0, ..., None, None] * features + folded[1, ..., None, None], norm(features))


def test_the_shared_pointwise_is_a_1x1_convolution_of_each_scale() -> None:
    layer, features = SharedPointwise(6, 4), torch.randn(2, 3, 6, 5, 7)
    result = layer(features)
    for scale in range(3):
        expected = conv2d(features[:, scale], layer.convolution.weight, layer.convolution.bias)
        torch.testing.assert_close(result[:, scale], expected)


@pytest.mark.parametrize(("size", "pooled"), [((8, 6), (4, 3)), ((9, 7), (4, 3)), ((1, 5), (1, 2)), ((1, 1), (1, 1))])
def test_pooling_halves_rounding_down_but_never_below_one(size: tuple[int, int], pooled: tuple[int, int]) -> None:
    for kind in ("max", "average"):
        assert Pooling(kind)(torch.randn(1, 2, 3, *size)).shape == (1, 2, 3, *pooled)


def test_no_pooling_changes_nothing() -> None:
    features = torch.randn(1, 2, 3, 5, 5)
    assert Pooling("none")(features) is features
    assert upsample_to(features, 5, 5) is features


@pytest.mark.parametrize("size", [(8, 6), (9, 7), (1, 2), (1, 1), (9, 6)])
def test_upsampling_reaches_the_size_of_the_skip(size: tuple[int, int]) -> None:
    features = torch.randn(1, 2, 3, max(1, size[0] // 2), max(1, size[1] // 2))
    assert upsample_to(features, *size).shape[3:] == size


def test_an_upsampled_pixel_does_not_depend_on_the_size_of_the_map() -> None:
    features = torch.randn(1, 1, 1, 16, 16)
    part, whole = upsample_to(features[..., :8, :8], 16, 16), upsample_to(features, 32, 32)
    torch.testing.assert_close(part[..., :15, :15], whole[..., :15, :15])


def test_upsampling_to_a_foreign_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"features of size \[4, 4\] do not belong to a 20×20 map"):
        upsample_to(torch.zeros(1, 1, 1, 4, 4), 20, 20)


def test_unknown_norms_and_poolings_are_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="unknown norm 'groups'; did you mean 'group'"):
        ScaleNorm2d(2, scales=2, kind="groups")
    with pytest.raises(InputError, match="unknown pooling 'maxx'; did you mean 'max'"):
        Pooling("maxx")
