"""What holds for SESN's and DISCO's layers alike: shapes, weights, gradients, refusals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from seunet.errors import InputError
from seunet.layers import ScaleProjection
from seunet.layers.disco_conv import DiscreteScaleConv2d
from seunet.layers.sesn_conv import SteerableConv2d
from seunet.layers.shared_weight_conv import ScaleConvolution
from support.scale_bases import discrete_bases, steerable_basis

SCALES = (1, 1.41, 2, 3, 4.5)
LAYERS = pytest.mark.parametrize("layer", [SteerableConv2d, DiscreteScaleConv2d])
DTYPES = pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
SIZES = pytest.mark.parametrize("size", [(1, 1), (1, 9), (5, 2), (13, 17), (32, 24)])

Layer = type[SteerableConv2d] | type[DiscreteScaleConv2d]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Thousands of tiny convolutions: threads would mostly wait for each other, longest on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def noise(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(0))


def directly(layer: ScaleConvolution, maps: Tensor) -> Tensor:
    """The definition, without a convolution: each tap moves and weighs the zero-padded map."""
    bases = steerable_basis if isinstance(layer, SteerableConv2d) else discrete_bases
    filters = torch.einsum("ock,ksij->socij", layer.weight.detach().double(), bases(layer.scales))
    radius, (height, width) = filters.shape[-1] // 2, maps.shape[-2:]
    padded = torch.nn.functional.pad(maps.double(), [radius] * 4)
    out = torch.zeros(*maps.shape[:2], layer.out_channels, height, width, dtype=torch.float64)
    for i in range(2 * radius + 1):
        for j in range(2 * radius + 1):
            moved = padded[..., i : i + height, j : j + width]
            out += torch.einsum("soc,bschw->bsohw", filters[..., i, j], moved)
    return out if layer.bias is None else out + layer.bias.detach().double()[:, None, None]


@LAYERS
@DTYPES
@SIZES
def test_a_hidden_layer_is_its_definition_at_any_size(
    layer: Layer, dtype: torch.dtype, tolerance: float, size: tuple[int, int]
) -> None:
    convolution = layer(3, 4, scales=SCALES, dtype=dtype)
    torch.nn.init.normal_(convolution.bias)
    maps = noise(2, 5, 3, *size, dtype=dtype)
    out = convolution(maps)
    assert out.shape == (2, 5, 4, *size)
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), directly(convolution, maps), atol=tolerance, rtol=0)


@LAYERS
@pytest.mark.parametrize("size", [(1, 1), (7, 10)])
def test_a_lifting_layer_reads_one_image_at_every_scale(layer: Layer, size: tuple[int, int]) -> None:
    convolution = layer(3, 4, scales=SCALES, lifting=True, dtype=torch.float64)
    image = noise(2, 3, *size)
    out = convolution(image)
    assert out.shape == (2, 5, 4, *size)
    assert torch.equal(out, convolution(image[:, None]))
    torch.testing.assert_close(out, directly(convolution, image[:, None].expand(-1, 5, -1, -1, -1)))


@LAYERS
def test_one_scale_may_be_lifted_and_kept(layer: Layer) -> None:
    assert layer(3, 4, scales=[2], lifting=True)(noise(1, 3, 8, 8).float()).shape == (1, 1, 4, 8, 8)
    assert layer(3, 4, scales=[2])(noise(1, 1, 3, 8, 8).float()).shape == (1, 1, 4, 8, 8)


@LAYERS
def test_no_scale_sees_another(layer: Layer) -> None:
    convolution = layer(2, 2, scales=SCALES, dtype=torch.float64)
    maps = noise(1, 5, 2, 9, 9)
    other = maps.clone()
    other[:, 3] = 0
    changed = (convolution(maps) != convolution(other)).flatten(2).any(2)[0]
    assert changed.tolist() == [False, False, False, True, False]


@LAYERS
@pytest.mark.parametrize("lifting", [False, True])
def test_gradients_are_those_of_finite_differences(layer: Layer, lifting: bool) -> None:
    convolution = layer(2, 2, scales=(1, 1.5, 3), lifting=lifting, dtype=torch.float64)
    maps = noise(1, 1 if lifting else 3, 2, 3, 4).requires_grad_()
    names = list(dict(convolution.named_parameters()))

    def run(maps: Tensor, *parameters: Tensor) -> Tensor:
        out = torch.func.functional_call(convolution, dict(zip(names, parameters, strict=True)), (maps,))
        assert isinstance(out, Tensor)
        return out

    assert torch.autograd.gradcheck(run, (maps, *convolution.parameters()))


@LAYERS
def test_only_parameters_are_stored_and_their_shapes_do_not_depend_on_the_scales(layer: Layer) -> None:
    for scales in ([1], SCALES):
        state = layer(3, 4, scales=scales).state_dict()
        assert {name: tuple(value.shape) for name, value in state.items()} == {
            "weight": (4, 3, 9),
            "bias": (4,),
        }
    assert list(layer(3, 4, bias=False).state_dict()) == ["weight"]


@LAYERS
def test_weights_of_one_list_of_scales_load_into_another(layer: Layer) -> None:
    first, second = layer(2, 2, scales=[1, 2]), layer(2, 2, scales=[2, 4.5])
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.weight, second.weight)


@LAYERS
def test_white_noise_keeps_its_variance_at_the_smallest_scale(layer: Layer) -> None:
    torch.manual_seed(0)
    out = layer(32, 64)(torch.randn(1, 5, 32, 48, 48))
    assert out[:, 0].var().item() == pytest.approx(1, abs=0.1)
    if layer is DiscreteScaleConv2d:  # deltas are unit vectors at every scale; the border sees padding
        assert [out[:, s, :, 5:-5, 5:-5].var().item() for s in range(5)] == pytest.approx([1] * 5, abs=0.1)


@LAYERS
def test_the_layer_tells_what_it_is(layer: Layer) -> None:
    assert layer(3, 4, scales=(1, 1.5)).extra_repr() == "3, 4, scales=(1, 1.5), hidden, bias=True"
    assert layer(3, 4, scales=(1,), lifting=True, bias=False).extra_repr() == "3, 4, scales=(1), lifting, bias=False"


@LAYERS
@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ([], "`scales` (=[]) must hold at least one positive number"),
        ((), "`scales` (=[]) must hold at least one positive number"),
        ("12", "`scales` (='12') must hold at least one positive number"),
        (3, "`scales` (=3) must hold at least one positive number"),
        ([1] * 65, "`scales` (of 65 numbers) must hold at most 64"),
        ([1, 0], "`scales` (=[1, 0]) must hold numbers from 0.5 to 512"),
        ((-1, 2), "`scales` (=[-1, 2]) must hold numbers from 0.5 to 512"),
        ([float("nan")], "`scales` (=[nan]) must hold numbers from 0.5 to 512"),
        ([float("inf")], "`scales` (=[inf]) must hold numbers from 0.5 to 512"),
        ([513], "`scales` (=[513]) must hold numbers from 0.5 to 512"),
        ([True], "`scales` (=[True]) must hold numbers from 0.5 to 512"),
        (["2"], "`scales` (=['2']) must hold numbers from 0.5 to 512"),
    ],
)
def test_scales_no_filter_can_have_are_refused(layer: Layer, scales: list[float], message: str) -> None:
    with pytest.raises(InputError) as refusal:
        layer(3, 4, scales=scales)
    assert str(refusal.value) == message


@LAYERS
@pytest.mark.parametrize("count", [0, -3, 65_537, 2.0, True, "3"])
def test_channels_that_are_no_count_are_refused(layer: Layer, count: int) -> None:
    for name, arguments in (("in_channels", (count, 4)), ("out_channels", (3, count))):
        with pytest.raises(InputError) as refusal:
            layer(*arguments)
        assert str(refusal.value) == f"`{name}` (={count!r}) must be a whole number from 1 to 65536"


@LAYERS
@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (2, 4, 3, 8, 8), (2, 5, 2, 8, 8), (2, 5, 3, 0, 8), (3,)])
def test_maps_of_another_shape_are_refused_by_a_hidden_layer(layer: Layer, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as refusal:
        layer(3, 4)(torch.zeros(shape))
    assert str(refusal.value) == f"`images` (of shape {list(shape)}) must be [B, 5, 3, H, W] with H, W ≥ 1"


@LAYERS
@pytest.mark.parametrize("shape", [(2, 5, 3, 8, 8), (2, 4, 8, 8), (3, 8, 8), (2, 1, 4, 8, 8), (2, 3, 8, 0)])
def test_images_of_another_shape_are_refused_by_a_lifting_layer(layer: Layer, shape: tuple[int, ...]) -> None:
    wanted = "[B, 3, H, W] or [B, 1, 3, H, W] with H, W ≥ 1"
    with pytest.raises(InputError) as refusal:
        layer(3, 4, lifting=True)(torch.zeros(shape))
    assert str(refusal.value) == f"`images` (of shape {list(shape)}) must be {wanted}"


def test_the_projection_is_the_maximum_over_scales() -> None:
    maps = noise(2, 5, 3, 4, 6)
    projected = ScaleProjection()(maps)
    assert projected.shape == (2, 1, 3, 4, 6)
    assert torch.equal(projected[:, 0], maps.max(1).values)
    assert torch.equal(ScaleProjection()(maps[:, :1]), maps[:, :1])


def test_the_projection_ignores_the_order_of_the_scales() -> None:
    maps = noise(2, 5, 3, 4, 6)
    assert torch.equal(ScaleProjection()(maps), ScaleProjection()(maps.roll(2, dims=1)))


@pytest.mark.parametrize("shape", [(2, 3, 4, 6), (2, 0, 3, 4, 6)])
def test_maps_without_scales_are_refused_by_the_projection(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as refusal:
        ScaleProjection()(torch.zeros(shape))
    assert str(refusal.value) == f"`maps` (of shape {list(shape)}) must be [B, scales, C, H, W] with scales ≥ 1"
