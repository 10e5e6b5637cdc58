"""`torch` and `numba` equal `reference`, in value and in all three gradients."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import seunet
from seunet.errors import InputError
from seunet.kernels.dispatch import Pointwise, chosen_backend, jet_convolution, mixed_pixels
from seunet.layers import GaussianConv2d
from seunet.maths import filter_radius, jet_size


@cache
def default_layers() -> list[GaussianConv2d]:
    """The 18 layers of the default model, with the weights of one seed."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return seunet.create_model("seunet").gaussian_layers()  # type: ignore[attr-defined]


def relative_error(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).abs().max() / expected.abs().max().clamp(min=1e-30))


def value_and_gradients(layer: GaussianConv2d, image: Tensor, backend: str) -> list[Tensor]:
    """The output y, and the gradients of ½‖y‖² in the image, α and σ's position.

    (With random weights in place of y the gradient of σ would be a sum of millions of terms that cancel, and its last
    digits a matter of their order.)
    """
    assert layer.sigma_position is not None
    image = image.clone().requires_grad_()
    with seunet.kernel_backend(backend):
        output = layer(image)
    gradients = torch.autograd.grad(output.square().sum() / 2, [image, layer.coefficients, layer.sigma_position])
    return [output.detach(), *gradients]


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("index", range(18))
def test_every_layer_of_the_default_model_equals_the_reference_in_value_and_gradients(index: int, backend: str) -> None:
    layer = default_layers()[index]
    leading = (2, 3) if layer.lifting else (2, 5, layer.in_channels)
    image = torch.randn(*leading, 20, 33)
    expected = value_and_gradients(layer, image, "reference")
    actual = value_and_gradients(layer, image, backend)
    for name, ours, theirs in zip(("output", "image", "coefficients", "sigma"), actual, expected, strict=True):
        assert relative_error(ours, theirs) < 1e-5, name


@pytest.mark.parametrize("backend", ["reference", "torch", "numba"])
@pytest.mark.parametrize("discretisation", ["sampled", "integrated", "discrete"])
@pytest.mark.parametrize(("order", "lifting"), [(0, False), (1, True), (1, False), (2, False), (3, True)])
def test_gradients_pass_gradcheck_in_float64(backend: str, discretisation: str, order: int, lifting: bool) -> None:
    sigma = torch.tensor([0.6, 1.1], dtype=torch.float64, requires_grad=True)
    radii = [2, 3]
    image = torch.randn(1, 1 if lifting else 2, 2, 4, 3, dtype=torch.float64, requires_grad=True)
    coefficients = torch.randn(jet_size(order), 2, 3, dtype=torch.float64, requires_grad=True)

    def function(image: Tensor, coefficients: Tensor, sigma: Tensor) -> Tensor:
        with seunet.kernel_backend(backend):
            return jet_convolution(image, coefficients, sigma, radii, discretisation)

    # Plain torch needs no more than the quick check of autograd's own formulas; ours get every element checked.
    assert torch.autograd.gradcheck(function, (image, coefficients, sigma), fast_mode=backend != "numba")


def test_a_hand_computed_value() -> None:
    """One pixel of 1, σ = 1, R = 1: g = (e^-½, 1, e^-½)/Z; α picks the derivative in x: y(±1, 0) = ∓e^-½·g(0)/Z …"""
    image = torch.zeros(1, 1, 1, 3, 3, dtype=torch.float64)
    image[..., 1, 1] = 1
    coefficients = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64).view(3, 1, 1)
    side = 2.718281828459045**-0.5
    total = 1 + 2 * side
    for backend in ("reference", "torch", "numba"):
        with seunet.kernel_backend(backend):
            result = jet_convolution(image, coefficients, torch.ones(1, dtype=torch.float64), [1])[0, 0, 0]
        # σ ∂G/∂x = −(x/σ) g(x): positive left of the impulse, negative right of it.
        expected = [side / total * 1 / total, 0.0, -side / total * 1 / total]
        assert result[1].tolist() == pytest.approx(expected), backend
        assert result[0].tolist() == pytest.approx([value * side for value in expected]), backend


def test_a_ramp_of_slope_one_answers_plus_sigma_in_its_own_direction() -> None:
    ramp = torch.arange(64.0).expand(1, 1, 1, 64, 64)
    coefficients = torch.eye(3).view(3, 1, 3)
    for backend in ("reference", "torch", "numba"):
        with seunet.kernel_backend(backend):
            smooth, along_y, along_x = jet_convolution(ramp, coefficients, torch.tensor([3.0]), [18])[0, 0]
        assert float(smooth[32, 32]) == pytest.approx(32, rel=1e-5)
        assert float(along_x[32, 32]) == pytest.approx(3.0, rel=1e-3)
        assert float(along_y[32, 32]) == pytest.approx(0.0, abs=1e-4)


shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 4), st.integers(1, 40), st.integers(1, 40))


@given(
    shape=shapes,
    outputs=st.integers(1, 5),
    order=st.integers(0, 3),
    largest=st.floats(0.1, 7),
    lifting=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    backend=st.sampled_from(["torch", "numba"]),
    discretisation=st.sampled_from(["sampled", "integrated", "discrete"]),
)
def test_any_shape_order_sigma_and_type_gives_the_reference_without_nan(
    shape: tuple[int, ...],
    outputs: int,
    order: int,
    largest: float,
    lifting: bool,
    dtype: torch.dtype,
    backend: str,
    discretisation: str,
) -> None:
    batch, scales, channels, height, width = shape
    sigma = torch.linspace(0.1, max(largest, 0.1), scales, dtype=dtype)
    radii = [filter_radius(value) for value in sigma.tolist()]
    image = torch.randn(batch, 1 if lifting else scales, channels, height, width, dtype=dtype)
    coefficients = torch.randn(jet_size(order), channels, outputs, dtype=dtype)
    with seunet.kernel_backend(backend):
        result = jet_convolution(image, coefficients, sigma, radii, discretisation)
    with seunet.kernel_backend("reference"):
        expected = jet_convolution(image, coefficients, sigma, radii, discretisation)
    assert result.shape == (batch, scales, outputs, height, width)
    assert bool(result.isfinite().all())
    assert relative_error(result, expected) < (2e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("width", [64, 150, 300])
@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
def test_maps_of_many_vectors_and_several_blocks_give_the_reference(order: int, width: int) -> None:
    sigma, radii = torch.tensor([0.7, 4.0]), [2, 8]
    image, coefficients = torch.randn(1, 2, 3, 19, width), torch.randn(jet_size(order), 3, 5)
    found = []
    for backend in ("reference", "numba"):
        pixels = image.clone().requires_grad_()
        with seunet.kernel_backend(backend):
            result = jet_convolution(pixels, coefficients, sigma, radii)
        found.append((result.detach(), *torch.autograd.grad(result.square().sum() / 2, pixels)))
    for theirs, ours in zip(*found, strict=True):
        assert relative_error(ours, theirs) < 2e-5


@pytest.mark.parametrize("backend", ["reference", "torch", "numba"])
def test_an_affine_map_and_relu_follow_the_convolution(backend: str) -> None:
    image, coefficients = torch.randn(2, 3, 4, 9, 21), torch.randn(3, 4, 5)
    affine = torch.randn(2, 3, 5)
    arguments = (image, coefficients, torch.tensor([0.5, 1.0, 1.5]), [1, 2, 3])
    with seunet.kernel_backend(backend):
        plain, folded = jet_convolution(*arguments), jet_convolution(*arguments, affine=affine, relu=True)
    expected = (affine[0, ..., None, None] * plain + affine[1, ..., None, None]).relu()
    torch.testing.assert_close(folded, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["reference", "torch", "numba"])
@pytest.mark.parametrize("width", [16, 21, 300])
def test_two_maps_beside_each_other_give_what_they_give_when_joined(backend: str, width: int) -> None:
    image, beside = torch.randn(2, 3, 4, 19, width), torch.randn(2, 3, 2, 23, width)[..., 2:21, :]
    arguments = torch.randn(3, 6, 5), torch.tensor([0.5, 1.0, 1.5]), [1, 2, 3]
    with seunet.kernel_backend(backend), torch.no_grad():
        joined = jet_convolution(torch.cat([image, beside], 2), *arguments, rows=slice(3, 11))
        assert torch.equal(jet_convolution(image, *arguments, rows=slice(3, 11), beside=beside), joined)


@pytest.mark.parametrize("outputs", [2, 12])
def test_mixed_pixels_are_a_1x1_convolution_whose_pixels_do_not_know_where_they_lie(outputs: int) -> None:
    features, weight, bias = torch.randn(2, 3, 5, 9, 37), torch.randn(outputs, 5), torch.randn(outputs)
    mixed = mixed_pixels(features, weight, bias)
    expected = torch.einsum("oc,bschw->bsohw", weight.double(), features.double()) + bias.double()[:, None, None]
    torch.testing.assert_close(mixed.double(), expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(mixed_pixels(features[..., 4:8, 3:20], weight, bias), mixed[..., 4:8, 3:20])


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("outputs", [2, 40])
@pytest.mark.parametrize("size", [(9, 7), (40, 50), (12, 300)])
def test_a_1x1_convolution_that_follows_at_once_gives_the_bits_of_two_steps(
    size: tuple[int, int], outputs: int, order: int
) -> None:
    image, affine = torch.randn(1, 2, 3, *size), torch.randn(2, 2, 6)
    given = image, torch.randn(jet_size(order), 3, 6), torch.tensor([0.7, 2.0]), [2, 4], "sampled", affine, True
    then = Pointwise(torch.randn(outputs, 6), torch.randn(outputs))
    with torch.no_grad():
        between = jet_convolution(*given)
        found = jet_convolution(*given, then=then)
        assert torch.equal(found, mixed_pixels(between, then.weight, then.bias))
        assert torch.equal(jet_convolution(*given, slice(2, 8), then=then), found[..., 2:8, :])
        with seunet.kernel_backend("torch"):
            torch.testing.assert_close(jet_convolution(*given, then=then), found, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(jet_convolution(*given, then=then), found, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", ["reference", "torch", "numba"])
def test_strided_channels_last_and_expanded_images_give_the_same_result(backend: str) -> None:
    layer = GaussianConv2d(10, 10)
    image = torch.randn(2, 5, 2, 18, 22)
    views = {
        "channels last": image.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3),
        "strided": torch.randn(2, 5, 2, 36, 44)[..., ::2, ::2].copy_(image),
        "transposed": image.transpose(3, 4).contiguous().transpose(3, 4),
    }
    with seunet.kernel_backend(backend):
        expected = layer(image)
        for name, view in views.items():
            assert not view.is_contiguous(), name
            torch.testing.assert_close(layer(view), expected)
        single = image[:1].expand(4, -1, -1, -1, -1)
        torch.testing.assert_close(layer(single)[3], layer(image[:1])[0])


@pytest.mark.parametrize("backend", ["reference", "torch", "numba"])
def test_an_empty_batch_gives_an_empty_batch_and_zero_gradients(backend: str) -> None:
    layer = GaussianConv2d(3, 10, lifting=True)
    with seunet.kernel_backend(backend):
        result = layer(torch.zeros(0, 3, 8, 8))
        result.sum().backward()
    assert result.shape == (0, 5, 2, 8, 8)
    assert layer.coefficients.grad is not None
    assert float(layer.coefficients.grad.abs().sum()) == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_comes_back_in_half_precision(dtype: torch.dtype) -> None:
    layer, image = GaussianConv2d(3, 10, lifting=True), torch.rand(1, 3, 16, 16)
    with torch.no_grad():
        result = layer(image.to(dtype))
        expected = layer(image)
    assert result.dtype == dtype
    torch.testing.assert_close(result.float(), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # bfloat16 on processors that announce AMX and withhold it
def test_the_torch_backend_works_under_autocast() -> None:
    layer, image = GaussianConv2d(3, 10, lifting=True), torch.rand(1, 3, 16, 16)
    with seunet.kernel_backend("torch"), torch.autocast("cpu", dtype=torch.bfloat16):
        result = layer(image)
        result.float().sum().backward()
    with torch.no_grad():
        torch.testing.assert_close(result.float(), layer(image), rtol=5e-2, atol=5e-2)


def test_the_default_model_trains_under_autocast() -> None:
    model = seunet.create_model("seunet", widths=(10, 20))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model.loss(model(torch.rand(1, 3, 16, 16)), torch.zeros(1, 16, 16, dtype=torch.long))
    loss.backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())


def test_the_layer_compiles_to_the_same_result_in_one_graph() -> None:
    layer, image = GaussianConv2d(3, 10, lifting=True), torch.rand(1, 3, 16, 16)
    # The "eager" compiler traces the whole graph without needing a C++ toolchain on the machine.
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(image), layer(image), rtol=1e-4, atol=1e-5)


def test_the_cpu_gets_numba_and_other_devices_and_the_compiler_get_torch() -> None:
    assert chosen_backend(torch.zeros(1)) == "numba"
    assert chosen_backend(torch.zeros(1, device="meta")) == "torch"
    with seunet.kernel_backend("reference"):
        assert chosen_backend(torch.zeros(1)) == "reference"
    assert chosen_backend(torch.zeros(1)) == "numba"


def test_numba_is_refused_where_it_cannot_run() -> None:
    with (
        seunet.kernel_backend("numba"),
        pytest.raises(InputError, match="kernel backend 'numba' runs on the CPU; the image is on meta: use 'torch'"),
    ):
        chosen_backend(torch.zeros(1, device="meta"))


def test_an_unknown_backend_is_refused_with_the_nearest_name() -> None:
    with (
        pytest.raises(InputError, match="unknown kernel backend 'nunba'; did you mean 'numba'"),
        seunet.kernel_backend("nunba"),
    ):
        pass
