"""Pooling, upsampling and norm with ReLU in whole vectors equal torch, in value and gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import batch_norm, max_pool2d

import seunet
from seunet.kernels.dispatch import batch_norm_relu
from seunet.kernels.resizing import join_upsampled, max_pool
from seunet.layers import ScaleNorm2d
from seunet.maths import upsample_to

sizes = st.tuples(st.integers(1, 70), st.integers(1, 70))
dtypes = st.sampled_from([torch.float32, torch.float64])


def gradients(output: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1), dtype=output.dtype)
    return list(torch.autograd.grad((output * weights).sum(), inputs))


@given(size=sizes, dtype=dtypes)
def test_max_pooling_equals_torch_to_the_bit_with_ties_going_to_the_first(
    size: tuple[int, int], dtype: torch.dtype
) -> None:
    features = torch.randn(2, 2, 3, *size, dtype=dtype).relu().requires_grad_()  # half of the pixels are tied at zero
    window = min(2, size[0]), min(2, size[1])
    pooled = max_pool(features)
    expected = max_pool2d(features.flatten(0, 1), window).view(pooled.shape)
    assert torch.equal(pooled, expected)
    assert torch.equal(gradients(pooled, [features])[0], gradients(expected, [features])[0])


@given(size=sizes, dtype=dtypes)
def test_joining_equals_upsampling_and_concatenating(size: tuple[int, int], dtype: torch.dtype) -> None:
    skip = torch.randn(2, 2, 3, *size, dtype=dtype, requires_grad=True)
    small = max(1, size[0] // 2), max(1, size[1] // 2)
    rising = torch.randn(2, 2, 2, *small, dtype=dtype, requires_grad=True)
    joined = join_upsampled(skip, rising)
    expected = torch.cat([skip, upsample_to(rising, *size)], dim=2)
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(joined, expected, **tolerance)
    for ours, theirs in zip(gradients(joined, [skip, rising]), gradients(expected, [skip, rising]), strict=True):
        torch.testing.assert_close(ours, theirs, **tolerance)


@given(size=sizes, batch=st.integers(1, 3), dtype=dtypes)
def test_norm_with_relu_equals_torch(size: tuple[int, int], batch: int, dtype: torch.dtype) -> None:
    maps = (3 * torch.randn(batch, 4, *size, dtype=dtype) + 7).requires_grad_()
    weight, bias = torch.randn(4, dtype=dtype, requires_grad=True), torch.randn(4, dtype=dtype, requires_grad=True)
    if batch * size[0] * size[1] == 1:
        return  # a variance of one value: torch refuses, and the layer leaves it to torch
    result, mean, variance = batch_norm_relu(maps, weight, bias, 1e-5)
    expected = batch_norm(maps, None, None, weight, bias, training=True, eps=1e-5).relu()
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 1e-8, "atol": 1e-8}
    torch.testing.assert_close(result, expected, **tolerance)
    torch.testing.assert_close(mean, maps.detach().mean((0, 2, 3)), **tolerance)
    torch.testing.assert_close(variance, maps.detach().var((0, 2, 3), unbiased=False), **tolerance)
    inputs = [maps, weight, bias]
    for ours, theirs in zip(gradients(result, inputs), gradients(expected, inputs), strict=True):
        torch.testing.assert_close(ours, theirs, **tolerance)


def test_gradients_of_all_three_pass_gradcheck() -> None:
    features = torch.randn(1, 2, 2, 5, 6, dtype=torch.float64, requires_grad=True)
    rising = torch.randn(1, 2, 1, 2, 3, dtype=torch.float64, requires_grad=True)
    weight, bias = (torch.randn(4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(max_pool, (features,))
    assert torch.autograd.gradcheck(join_upsampled, (features, rising))
    assert torch.autograd.gradcheck(
        lambda m, w, b: batch_norm_relu(m.flatten(1, 2), w, b, 1e-5)[0], (features, weight, bias)
    )


@pytest.mark.parametrize("kind", ["group", "shared"])
def test_a_training_norm_keeps_the_running_statistics_of_torch(kind: str) -> None:
    ours, theirs = ScaleNorm2d(3, scales=2, kind=kind), ScaleNorm2d(3, scales=2, kind=kind)
    for _ in range(3):
        features = 2 * torch.randn(4, 2, 3, 9, 9) + 1
        result = ours(features, relu=True)
        with seunet.kernel_backend("torch"):
            expected = theirs(features, relu=True)
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, rtol=1e-4, atol=1e-5)


def test_a_norm_over_a_single_value_is_refused_as_torch_refuses_it() -> None:
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        ScaleNorm2d(3, scales=1)(torch.zeros(1, 1, 3, 1, 1), relu=True)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_gives_the_same_bits(threads: int) -> None:
    generator = torch.Generator().manual_seed(2)
    skip = torch.randn(2, 3, 4, 33, 47, generator=generator)
    rising = torch.randn(2, 3, 2, 16, 23, generator=generator)
    results = []
    for count in (1, threads):
        torch.set_num_threads(count)
        norm = ScaleNorm2d(4, scales=3)
        results.append([max_pool(skip), join_upsampled(skip, rising), norm(skip, relu=True)])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
