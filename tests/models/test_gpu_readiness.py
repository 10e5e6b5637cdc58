"""What a graphics card needs of the `torch` kernels, shown without one: nothing waits for the processor, nothing is
looped over channels, autocast and one compiled graph.  The meta device holds no values, so none can be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import seunet
from seunet.layers import GaussianConv2d
from seunet.models.unet_skeleton import ScaleUNet
from support.host_sync import Seen, watched

SMALL = {"widths": (10, 20)}


def network(name: str = "seunet", device: str = "meta", **options: Any) -> ScaleUNet:
    with torch.random.fork_rng(), torch.device(device):
        torch.manual_seed(0)
        return seunet.create_model(name, **SMALL | options)


def batch(device: str = "meta", height: int = 21, width: int = 26) -> tuple[Tensor, Tensor]:
    images = torch.rand(2, 3, height, width, generator=torch.Generator().manual_seed(1))
    return images.to(device), (images[:, 0] > 0.5).long().to(device)


def training_step(model: ScaleUNet, device: str = "meta") -> Seen:
    images, target = batch(device)
    with watched() as seen:
        torch.autograd.backward(model.loss(model(images), target))
    return seen


# The watch itself

VALUES = torch.tensor([0.0, 2.0, 3.0])
READS: dict[str, Callable[[Tensor], Any]] = {
    "item": lambda values: values.sum().item(),
    "float": lambda values: float(values.sum()),
    "if": lambda values: bool(values.any()),
    "tolist": lambda values: values.tolist(),
    "nonzero": lambda values: values.nonzero(),
    "cpu": lambda values: values.cpu(),
    "to": lambda values: values.to("cpu"),
    "to device": lambda values: values.to(device=torch.device("cpu")),
    "mask": lambda values: values[values > 1],
    "masked_select": lambda values: torch.masked_select(values, values > 1),
    "equal": lambda values: torch.equal(values, values),
    "tensor": lambda values: values + torch.tensor([1.0, 2.0, 3.0], device=values.device),
    "new_tensor": lambda values: values.new_tensor([1.0]),
}


@pytest.mark.parametrize("name", READS)
def test_whatever_waits_is_noticed(name: str) -> None:
    with watched() as seen:
        READS[name](VALUES)
    assert seen.waits


class _Reads(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return values.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * gradient.sum().item()


def test_what_waits_in_a_backward_pass_is_noticed() -> None:
    values = VALUES.clone().requires_grad_()
    with watched() as seen:
        result = _Reads.apply(values).sum()
    assert not seen.waits
    with watched() as seen:
        result.backward()
    assert "_local_scalar_dense" in seen.waits


def test_what_does_not_wait_is_not_accused() -> None:
    with watched() as seen:
        (VALUES.double().relu() * torch.arange(3) + torch.full((3,), 2.0)).sum().to(torch.float16)
    assert not seen.waits
    assert seen.operations


# Waiting

WITHOUT_WAITING = [
    *[("seunet", {"sigma": sigma, "order": order}) for sigma in ("constrained", "fixed") for order in (1, 2)],
    *[("seunet", {"discretisation": kind}) for kind in ("integrated", "discrete")],
    ("seunet", {"norm": "shared", "pooling": "average"}),
    *[(name, {}) for name in seunet.list_models() if name != "njet"],
]


@pytest.mark.parametrize(("name", "options"), WITHOUT_WAITING)
def test_no_step_of_training_waits_for_the_processor(name: str, options: dict[str, Any]) -> None:
    assert training_step(network(name, **options)).waits == []


@pytest.mark.parametrize(("name", "options"), WITHOUT_WAITING)
def test_no_prediction_waits_for_the_processor(name: str, options: dict[str, Any]) -> None:
    model = network(name, **options).eval()
    images, _ = batch()
    with watched() as seen, torch.no_grad():
        logits = model(images)
        seunet.fuse(logits.softmax(2), "p_ens")
    assert seen.waits == []


def test_a_free_sigma_is_read_once_per_layer_because_it_sets_the_size_of_its_filter() -> None:
    model = network("njet", device="cpu")
    images, _ = batch("cpu")
    with seunet.kernel_backend("torch"), watched() as seen:
        model(images)
    assert seen.waits == ["torch.Tensor.tolist"] * len(model.gaussian_layers())  # type: ignore[operator]


def test_each_step_is_the_same_operations_in_the_same_order_as_the_one_before() -> None:
    """What a CUDA graph holds: nothing is kept from the first step for the second."""
    model = network()
    first = training_step(model)
    model.zero_grad(set_to_none=True)
    assert training_step(model).operations == first.operations


def test_the_number_of_operations_does_not_depend_on_the_number_of_channels() -> None:
    narrow, wide = (training_step(network(widths=widths)) for widths in ((10, 20), (40, 160)))
    assert narrow.operations == wide.operations


# Autocast

SCALE = 4096
"""As a gradient scaler does: the gradients of single pixels are too small for half precision."""


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_it_trains_and_predicts_nearly_the_same(dtype: torch.dtype) -> None:
    model = network(device="cpu")
    images, target = batch("cpu")
    results = []
    with seunet.kernel_backend("torch"):
        for enabled in (False, True):
            model.zero_grad()
            with torch.autocast("cpu", dtype=dtype, enabled=enabled):
                logits = model(images)
                loss = model.loss(logits, target)
            torch.autograd.backward(loss * SCALE)
            results.append((logits.detach(), [parameter.grad for parameter in model.parameters()]))
    (exact, exact_slopes), (rough, rough_slopes) = results
    assert rough.dtype == dtype
    assert float((rough - exact).abs().max() / exact.abs().max()) < 0.05
    for slope in rough_slopes:
        assert slope is not None
        assert slope.dtype == torch.float32
        assert torch.isfinite(slope).all()
    both = [torch.cat([one.flatten() for one in slopes if one is not None]) for slopes in (rough_slopes, exact_slopes)]
    assert float(torch.cosine_similarity(*both, dim=0)) > 0.99


# Memory


def test_a_layer_computed_again_in_the_backward_pass_has_the_same_gradients() -> None:
    layer, (images, _) = GaussianConv2d(3, 10, lifting=True), batch("cpu")
    with seunet.kernel_backend("torch"):
        layer(images).square().sum().backward()
        expected = [parameter.grad for parameter in layer.parameters()]
        layer.zero_grad()
        checkpoint(layer, images, use_reentrant=False).square().sum().backward()
    for parameter, slope in zip(layer.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, slope)


# Compiled


def test_forward_and_loss_of_training_compile_to_one_graph_without_breaks() -> None:
    model = network(device="cpu", widths=(10, 20))

    def loss(images: Tensor, target: Tensor) -> Tensor:
        return model.loss(model(images), target)

    found = torch._dynamo.explain(loss)(*batch("cpu"))
    assert (found.graph_count, found.graph_break_count) == (1, 0), found.break_reasons


def test_a_compiled_layer_has_the_gradients_of_the_layer() -> None:
    slopes = []
    for compiled in (False, True):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            layer = GaussianConv2d(3, 10, lifting=True)
        run = torch.compile(layer, backend="aot_eager", fullgraph=True) if compiled else layer
        with seunet.kernel_backend("torch"):
            run(batch("cpu")[0]).square().sum().backward()
        slopes.append(torch.cat([parameter.grad.flatten() for parameter in layer.parameters()]))  # type: ignore[union-attr]
    torch.testing.assert_close(slopes[1], slopes[0], rtol=1e-4, atol=1e-4)
