"""What people do to a network with torch's own tools: trace it, export it, hook it, differentiate it again, build it
on the meta device, train it in several processes."""

from __future__ import annotations

import copy
import io
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.modules.module import register_module_forward_hook

import seunet
from seunet.errors import InputError
from seunet.layers import GaussianConv2d
from seunet.models.files import weights_sha256
from seunet.models.unet_skeleton import ScaleUNet
from support.training import environment

SMALL = {"widths": (10, 20, 40), "classes": 3}


def small_model(name: str = "seunet", **options: Any) -> ScaleUNet:
    """A network with weights, norms and running statistics that are not those of the start."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = seunet.create_model(name, **SMALL | options)
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias, std=0.1)
        with torch.no_grad():
            model(torch.rand(2, 3, 48, 40))
    return model.eval()


def images(seed: int, count: int = 1) -> Tensor:
    return torch.rand(count, 3, 32, 40, generator=torch.Generator().manual_seed(seed))


def assert_nearly(found: Tensor, expected: Tensor, share: float = 1e-5) -> None:
    """Equal but for this share of the largest value."""
    largest = float(expected.detach().abs().max())
    torch.testing.assert_close(found, expected, rtol=0, atol=share * largest)


# Tracing


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("name", seunet.list_models())
def test_a_traced_network_says_of_other_images_of_that_size_what_the_network_says(name: str, gradients: bool) -> None:
    model = small_model(name)
    with torch.set_grad_enabled(gradients):
        traced = torch.jit.trace(model, images(1))
        expected = model(images(2))
        assert_nearly(traced(images(2)), expected)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_network_in_training_is_traced_too() -> None:
    model = small_model().train()
    traced = torch.jit.trace(copy.deepcopy(model), images(1, 2), check_trace=False)
    expected = model(images(2, 2))
    assert_nearly(traced(images(2, 2)), expected, 1e-4)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_the_old_exporter_of_onnx_sees_the_input() -> None:
    pytest.importorskip("onnx")
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(small_model(), (images(1),), file, input_names=["images"], dynamo=False)
    import onnx

    assert [value.name for value in onnx.load_from_string(file.getvalue()).graph.input] == ["images"]


def test_an_exported_program_says_what_the_network_says() -> None:
    model = small_model()
    program = torch.export.export(model, (images(1),))
    expected = model(images(2))
    assert_nearly(program.module()(images(2)), expected)


SIZES = [(1, 41, 64), (2, 33, 35), (3, 16, 17)]


def of_size(batch: int, height: int, width: int) -> Tensor:
    return torch.rand(batch, 3, height, width, generator=torch.Generator().manual_seed(height))


def test_an_exported_program_is_right_for_other_sizes() -> None:
    model = small_model(widths=(10, 20))
    dynamic = torch.export.Dim.DYNAMIC
    with torch.no_grad():
        program = torch.export.export(
            model, (of_size(2, 37, 50),), dynamic_shapes=({0: dynamic, 2: dynamic, 3: dynamic},)
        )
        exported = program.module()
        for size in SIZES:
            assert_nearly(exported(of_size(*size)), model(of_size(*size)))


def test_a_compiled_network_is_right_for_other_sizes_without_compiling_again() -> None:
    model = small_model(widths=(10, 20))
    graphs = []

    def count(graph: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(model, dynamic=True, fullgraph=True, backend=count)
    with torch.no_grad():
        for size in [(2, 37, 50), *SIZES[1:]]:
            assert_nearly(compiled(of_size(*size)), model(of_size(*size)))
    assert len(graphs) == 1


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("pooling", ["max", "average", "none"])
def test_a_traced_network_is_right_for_other_sizes(pooling: str) -> None:
    model = small_model(widths=(10, 20), pooling=pooling)
    with torch.no_grad():
        traced = torch.jit.trace(model, of_size(1, 37, 50))
        for size in [*SIZES, (1, 1, 5)]:
            assert_nearly(traced(of_size(*size)), model(of_size(*size)))


# The meta device

MADE = [
    *[("seunet", {"sigma": sigma}) for sigma in ("constrained", "fixed", "free", "free_from_one")],
    ("seunet", {"preset": "geometric"}),
    ("sesn", {}),
    ("disco", {}),
    ("disco", {"scales": (1, 1.5, 2, 2.5, 3)}),
    ("unet", {}),
]


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize(("name", "options"), MADE)
def test_a_network_made_on_the_meta_device_is_whole_once_it_has_weights(
    name: str, options: dict[str, Any], assign: bool
) -> None:
    model = small_model(name, **options)
    with torch.device("meta"):
        other = seunet.create_model(name, **SMALL | options)
    if not assign:
        other.to_empty(device="cpu")
        for buffer in other.buffers():
            buffer.fill_(7)
    other.load_state_dict(model.state_dict(), assign=assign)
    assert torch.equal(other.eval()(images(1)), model(images(1)))
    assert weights_sha256(other) == weights_sha256(model)


def test_at_another_scale_as_well() -> None:
    model = small_model().at_scale(1.5)  # type: ignore[operator]
    with torch.device("meta"):
        other = seunet.create_model("seunet", **SMALL).at_scale(1.5)  # type: ignore[operator]
    other.to_empty(device="cpu").load_state_dict(model.state_dict())
    assert torch.equal(other.eval()(images(1)), model(images(1)))
    assert other.factor == 1.5


@pytest.mark.parametrize("name", ["seunet", "sesn"])
def test_emptied_and_reset_is_as_good_as_new(name: str) -> None:
    with torch.device("meta"):
        model = seunet.create_model(name, **SMALL)
    model.to_empty(device="cpu")
    for buffer in model.buffers():
        buffer.fill_(7)
    torch.manual_seed(0)
    for module in model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    torch.manual_seed(0)
    fresh = seunet.create_model(name, **SMALL)
    ours, theirs = model.encoder[0].convolutions[0], fresh.encoder[0].convolutions[0]
    for name, buffer in theirs.named_buffers():
        assert torch.equal(ours.get_buffer(name), buffer)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_bounds_keep_their_type_and_digits_when_weights_are_read(dtype: torch.dtype) -> None:
    layer = GaussianConv2d(5, 5).to(dtype)
    before = [buffer.clone() for buffer in layer.buffers()]
    layer.load_state_dict(layer.state_dict())
    assert [buffer.dtype for buffer in layer.buffers()] == [dtype] * 2
    assert all(torch.equal(one, other) for one, other in zip(layer.buffers(), before, strict=True))


def test_a_network_that_shares_weights_reads_them_for_both() -> None:
    model = small_model()
    other = model.at_scale(2.0)  # type: ignore[operator]
    state = {name: value.clone() for name, value in model.state_dict().items()}
    expected = model(images(1)), other(images(1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    other.load_state_dict(state)
    assert torch.equal(model(images(1)), expected[0])
    assert torch.equal(other(images(1)), expected[1])


# Hooks


def seen_by_hook(model: ScaleUNet, module: nn.Module) -> Tensor:
    seen = []
    handle = module.register_forward_hook(lambda module, given, output: seen.append(output.clone()))
    with torch.no_grad():
        model(images(1))
    handle.remove()
    (output,) = seen
    return output


@pytest.mark.parametrize("name", ["seunet", "unet", "sesn"])
def test_a_hook_on_a_convolution_sees_the_convolution_alone(name: str) -> None:
    model = small_model(name)
    with torch.no_grad():
        expected = model.encoder[0].convolutions[0](images(1))
    assert float(expected.min()) < 0
    assert torch.equal(seen_by_hook(model, model.encoder[0].convolutions[0]), expected)


def test_a_hook_on_a_norm_sees_what_the_relu_has_not_cut() -> None:
    model = small_model()
    block = model.encoder[0]
    with torch.no_grad():
        expected = block.norms[0](block.convolutions[0](images(1)))
    assert float(expected.min()) < 0
    assert torch.equal(seen_by_hook(model, block.norms[0]), expected)
    assert torch.equal(seen_by_hook(model, block.norms[0].norm), expected.flatten(1, 2))


def test_hooks_on_torchs_own_convolutions_are_called() -> None:
    model = small_model("unet")
    first = model.encoder[0].convolutions[0].convolution
    with torch.no_grad():
        assert torch.equal(seen_by_hook(model, first), first(images(1)))
        features = model.features(images(1))
        found = seen_by_hook(model, model.head.convolution)
        torch.testing.assert_close(found, model.head(features)[:, 0])


def test_a_hook_before_a_convolution_changes_what_it_reads() -> None:
    model = small_model()
    model.encoder[0].convolutions[0].register_forward_pre_hook(lambda module, given: (0 * given[0],))
    with torch.no_grad():
        assert torch.equal(model(images(1)), model(images(2)))


def test_a_hook_on_all_modules_sees_every_convolution_and_norm() -> None:
    model, seen = small_model(), []
    handle = register_module_forward_hook(lambda module, given, output: seen.append(module))
    try:
        with torch.no_grad():
            model(images(1))
    finally:
        handle.remove()
    never = {type(module).__name__ for module in model.modules() if not any(module is one for one in seen)}
    assert never <= {"ModuleList"}


def test_hooked_or_not_the_result_is_the_same() -> None:
    model = small_model()
    with torch.no_grad():
        expected = model(images(1))
        for module in model.modules():
            module.register_forward_hook(lambda module, given, output: None)
        assert_nearly(model(images(1)), expected)


# Derivatives of derivatives


def second_derivative(model: ScaleUNet) -> Tensor:
    """∂/∂α of a penalty on ∂L/∂x."""
    given = images(1).requires_grad_()
    (slope,) = torch.autograd.grad(model(given).sum(), given, create_graph=True)
    layer = model.encoder[0].convolutions[0]
    return torch.autograd.grad(slope.square().sum(), layer.coefficients)[0]


def mapped(model: ScaleUNet) -> Tensor:
    return torch.func.vmap(lambda image: model(image[None])[0])(images(1, 2))


def forward_slope(model: ScaleUNet) -> Tensor:
    return torch.func.jvp(model, (images(1),), (images(2),))[1]


def dual_slope(model: ScaleUNet) -> Tensor:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(model(forward_ad.make_dual(images(1), images(2)))).tangent


def dual_slope_of_weights(model: ScaleUNet) -> Tensor:
    layer = model.encoder[0].convolutions[0]
    weights = layer.coefficients.detach()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(weights, torch.ones_like(weights))
        found = torch.func.functional_call(layer, {"coefficients": dual}, images(1))
        return forward_ad.unpack_dual(found).tangent


TRANSFORMS = [mapped, forward_slope, dual_slope, dual_slope_of_weights]


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("derive", TRANSFORMS)
def test_the_compiled_kernels_name_the_ones_that_can(derive: Callable[[ScaleUNet], Tensor], gradients: bool) -> None:
    with torch.set_grad_enabled(gradients), pytest.raises(InputError, match=r'seunet\.kernel_backend\("torch"\)'):
        derive(small_model())


@pytest.mark.parametrize("training", [True, False])
def test_a_second_derivative_is_refused_and_never_left_out(training: bool) -> None:
    model = small_model().train(training)
    with pytest.raises(InputError, match=r'no second derivative; .*seunet\.kernel_backend\("torch"\)'):
        second_derivative(model)
    # The first one may be had with a graph that nobody follows.
    given = images(1).requires_grad_()
    (slope,) = torch.autograd.grad(model(given).square().sum(), given, create_graph=True)
    (expected,) = torch.autograd.grad(model(given).square().sum(), given)
    torch.testing.assert_close(slope.detach(), expected)


def test_with_the_kernels_of_torch_they_are_right() -> None:
    model = small_model().double().eval()
    layer = model.encoder[0].convolutions[0]
    with seunet.kernel_backend("torch"):
        torch.testing.assert_close(mapped(small_model()), small_model()(images(1, 2)), rtol=1e-4, atol=1e-5)
        image, direction, step = images(1).double(), images(2).double(), 1e-6
        slope = torch.func.jvp(layer, (image,), (direction,))[1]
        torch.testing.assert_close(slope, (layer(image + step * direction) - layer(image)) / step, rtol=1e-5, atol=1e-6)

        def slope_in_image(coefficients: Tensor) -> Tensor:
            given = image.clone().requires_grad_()
            made = torch.func.functional_call(layer, {"coefficients": coefficients}, given)
            return torch.autograd.grad(made.square().sum(), given, create_graph=True)[0]

        weights = layer.coefficients.detach().clone().requires_grad_()
        assert torch.autograd.gradcheck(slope_in_image, (weights,), fast_mode=True)
        assert torch.isfinite(second_derivative(small_model())).all()
        assert torch.isfinite(forward_slope(small_model())).all()
        assert torch.isfinite(dual_slope(small_model())).all()


# Names and processes


def test_the_name_of_a_trained_model_is_sent_to_load() -> None:
    with pytest.raises(InputError, match=r"'nuclei' is a trained model, not an architecture.*seunet\.load\('nuclei'\)"):
        seunet.create_model("nuclei")


DDP_SCRIPT = """
import os, sys, torch, seunet
from torch import distributed
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
distributed.init_process_group("gloo")
torch.manual_seed(distributed.get_rank())
model = seunet.create_model("seunet", widths=(10, 20), head_weights=sys.argv[1])
if sys.argv[2] == "frozen":
    model.eta.requires_grad_(False)
both = DistributedDataParallel(model)
optimizer = torch.optim.SGD(both.parameters(), 0.1)
for step in range(3):
    logits = both(torch.rand(2, 3, 16, 16))
    target = torch.randint(0, 2, (2, 16, 16))
    loss = sum(cross_entropy(head, target) for head in logits.unbind(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
found = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
other = found.clone()
distributed.broadcast(other, src=0)
assert torch.equal(found, other) and torch.isfinite(found).all()
distributed.barrier()  # gloo aborts where one of two leaves while the other still speaks
distributed.destroy_process_group()
os._exit(0)  # and now and then on the usual way out: "terminate called without an active exception"
"""


def in_two_processes(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = folder / "own_loss.py"
    script.write_text(DDP_SCRIPT)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [sys.executable, *launcher, str(script), *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("way", [("uniform", "trained"), ("trained", "frozen")])
def test_two_processes_train_with_a_loss_of_the_users_own(way: tuple[str, str], tmp_path: Path) -> None:
    done = in_two_processes(tmp_path, *way)
    assert done.returncode == 0, done.stderr


def test_uniform_head_weights_leave_no_parameter_that_only_our_loss_trains() -> None:
    model = small_model(head_weights="uniform")
    assert model.eta is None
    loss = model(images(1)).square().mean()
    assert all(gradient is not None for gradient in torch.autograd.grad(loss, list(model.parameters())))
