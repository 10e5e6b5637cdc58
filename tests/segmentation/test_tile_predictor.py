"""A prediction in tiles is that of the whole image."""

import numpy as np
import pytest
import torch

import seunet
from seunet.device import usable_device
from seunet.errors import InputError
from seunet.kernels import join_upsampled
from seunet.layers import GaussianConv2d
from seunet.maths import Prediction, confidence, first_largest, softmax_in_order
from seunet.segmentation.options import Choices
from seunet.segmentation.tiled.tile_predictor import HeadwiseNetwork
from seunet.segmentation.tiled.tiling import tiles
from tests.support.networks import calm_model, picture

SIZES = [(61, 87), (96, 64), (48, 160), (201, 33), (77, 150)]


def in_tiles(network: HeadwiseNetwork, pixels: np.ndarray, tile: tuple[int, int]) -> Prediction:
    size = pixels.shape[:2]
    parts = {
        "labels": np.zeros(size, np.uint8),
        "probabilities": np.zeros((network.classes, *size), np.float32),
        "heads": np.zeros(size, np.uint8),
        "confidence": np.zeros(size, np.float32),
    }
    for one in tiles(size, tile):
        core = one.rows, one.columns
        held = network.seen(core, size)
        found = network.predict(pixels[slice(*held[0]), slice(*held[1])], held, core, size)
        for name, whole in parts.items():
            whole[..., slice(*one.rows), slice(*one.columns)] = getattr(found, name)
    return Prediction(**parts)


def same(one: Prediction, other: Prediction) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("labels", "probabilities", "heads", "confidence")
    )


@pytest.mark.parametrize(
    ("name", "options", "fusion", "exact"),
    [
        ("seunet", {"widths": (10, 20, 20)}, "p_ens", True),
        ("seunet", {"widths": (10, 10, 10), "classes": 3, "pooling": "average"}, "p_dist", True),
        ("seunet", {"widths": (5, 5), "pooling": "none"}, "mean", True),
        ("njet", {"widths": (6, 6, 6)}, "p_ens", True),
        ("unet", {"widths": (6, 8, 10)}, "p_ens", False),
        ("disco", {"widths": (5, 10)}, "p_ens", False),
        ("sesn", {"widths": (5, 10)}, "p_ens", False),
    ],
)
def test_tiled_equals_whole(name: str, options: dict, fusion: str, exact: bool) -> None:
    model = calm_model(name, **options)
    pixels = picture(201, 167)
    with torch.inference_mode():
        heads = model(torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255).softmax(2)
        whole = seunet.fuse(heads, fusion)[0]
    network = HeadwiseNetwork(model, fusion)
    first = in_tiles(network, pixels, (201, 167))
    assert np.abs(first.probabilities - whole.numpy()).max() <= 1e-6
    assert np.array_equal(first.labels, first_largest(whole, dim=0).numpy())
    assert np.array_equal(first.heads, first_largest(confidence(heads)[0], dim=0).numpy())
    assert np.allclose(first.confidence, confidence(heads)[0].amax(0).numpy(), atol=1e-6)
    assert 0 < first.labels.mean() < options.get("classes", 2) - 1  # not one class everywhere
    for tile in SIZES if exact else SIZES[:2]:
        found = in_tiles(network, pixels, tile)
        assert np.array_equal(found.labels, first.labels)
        if exact:
            assert same(found, first)
        assert np.abs(found.probabilities - first.probabilities).max() <= 1e-5


def test_tiled_equals_whole_for_twenty_tile_sizes_at_the_paper_s_depth() -> None:
    model = calm_model(widths=(5, 5, 5, 5, 5))
    pixels = picture(61, 131)
    network = HeadwiseNetwork(model)
    with torch.inference_mode():
        logits = model(torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255)
        whole = seunet.fuse(logits.softmax(2))[0].numpy()
    first = in_tiles(network, pixels, (61, 131))
    assert np.abs(first.probabilities - whole).max() <= 1e-5
    assert np.array_equal(first.labels, whole.argmax(0))
    random = np.random.default_rng(0)
    for _ in range(20):
        assert same(in_tiles(network, pixels, (int(random.integers(28, 62)), int(random.integers(60, 132)))), first)


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (40, 3), (7, 7)])
def test_an_image_smaller_than_the_filters_is_predicted(size: tuple[int, int]) -> None:
    model = calm_model(widths=(5, 5, 5))
    pixels = picture(*size)
    with torch.inference_mode():
        whole = seunet.fuse(model(torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255).softmax(2))[0].numpy()
    assert np.abs(in_tiles(HeadwiseNetwork(model), pixels, (16, 16)).probabilities - whole).max() <= 1e-6


def test_the_number_of_threads_changes_nothing() -> None:
    network, pixels = HeadwiseNetwork(calm_model(widths=(10, 20, 20))), picture(190, 261)
    torch.set_num_threads(1)
    one = in_tiles(network, pixels, (128, 128))
    torch.set_num_threads(2)
    assert same(in_tiles(network, pixels, (128, 128)), one)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_of_eight_has_the_bytes_of_each_alone(threads: int) -> None:
    model = calm_model(widths=(10, 20, 20)).eval()
    torch.set_num_threads(threads)
    images = (
        torch.stack([torch.from_numpy(picture(61, 83 + k)[:, :83]).permute(2, 0, 1) for k in range(8)]).float() / 255
    )
    with torch.inference_mode():
        assert torch.equal(model(images), torch.cat([model(image[None]) for image in images]))


def test_scaled_filters_are_tiled_alike() -> None:
    model = calm_model(widths=(5, 5, 5)).at_scale(1.7)  # type: ignore[operator]
    network, pixels = HeadwiseNetwork(model), picture(150, 170)
    assert same(in_tiles(network, pixels, (64, 75)), in_tiles(network, pixels, (150, 170)))
    assert network.identity()["factor"] == 1.7


def test_of_equally_probable_classes_the_lower_is_the_label() -> None:
    model = calm_model(widths=(5, 5))
    with torch.no_grad():
        model.head.convolution.weight.zero_()
        model.head.convolution.bias.zero_()
    found = in_tiles(HeadwiseNetwork(model), picture(20, 20), (16, 16))
    assert (found.labels == 0).all()
    assert (found.heads == 0).all()
    assert (found.confidence == 0).all()


def test_a_forced_overlap_reads_no_more_and_is_the_whole_where_it_suffices() -> None:
    model, pixels = calm_model(widths=(5, 5, 5)), picture(160, 160)
    exact = HeadwiseNetwork(model)
    forced = HeadwiseNetwork(model, overlap_px=16)
    core = tiles((160, 160), (64, 64))[4]
    rows, columns = forced.seen((core.rows, core.columns), (160, 160))
    assert (rows, columns) == ((48, 144), (48, 144))
    assert max(exact.reach_px) > 16
    near = in_tiles(forced, pixels, (64, 64))
    assert not np.array_equal(near.probabilities, in_tiles(exact, pixels, (64, 64)).probabilities)
    wide = HeadwiseNetwork(model, overlap_px=max(exact.reach_px) + 4)
    assert (
        np.abs(in_tiles(wide, pixels, (64, 64)).probabilities - in_tiles(exact, pixels, (160, 160)).probabilities).max()
        <= 1e-6
    )


def test_the_model_that_was_given_is_left_as_it_was() -> None:
    model = seunet.create_model("seunet", widths=(5, 5))
    HeadwiseNetwork(model)
    assert model.training


def test_what_cannot_be_is_refused() -> None:
    model = seunet.create_model("seunet", widths=(5, 5))
    with pytest.raises(InputError, match="unknown fusion 'best'"):
        HeadwiseNetwork(model, "best")
    with pytest.raises(InputError, match="has 256 classes; labels are bytes"):
        HeadwiseNetwork(seunet.create_model("seunet", widths=(5, 5), classes=256))
    with pytest.raises(InputError, match="must be a whole number of pixels, 0 or more"):
        HeadwiseNetwork(model, overlap_px=-1)


def test_a_layer_computes_the_rows_it_is_asked_for() -> None:
    layer = GaussianConv2d(10, 15, scales=5)
    images, affine = torch.randn(2, 5, 2, 40, 33), torch.rand(2, 5, 3)
    for backend in seunet.kernels.dispatch.BACKENDS:
        with torch.no_grad(), seunet.kernel_backend(backend):
            whole = layer(images, affine=affine, relu=True)
            for rows in (slice(0, 40), slice(3, 29), slice(39, 40)):
                assert torch.equal(layer(images, affine=affine, relu=True, rows=rows), whole[..., rows, :])


def test_an_upsampled_pixel_does_not_depend_on_its_column_in_memory() -> None:
    skip, rising = torch.randn(1, 2, 3, 36, 70), torch.randn(1, 2, 3, 18, 35)
    whole = join_upsampled(skip, rising)
    for start in range(30):
        part = join_upsampled(skip[..., 2 * start :].contiguous(), rising[..., start:].contiguous())
        assert torch.equal(part[..., 1:], whole[..., 2 * start + 1 :])


def test_softmax_in_order_is_softmax() -> None:
    values = torch.randn(2, 5, 7, 11, dtype=torch.float64) * 30
    assert torch.allclose(softmax_in_order(values, 1), values.softmax(1), atol=1e-15)


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize(("name", "widths"), [("seunet", (10, 20, 20)), ("unet", (6, 8, 10)), ("sesn", (5, 10))])
def test_a_plain_forward_per_tile_as_on_other_devices_gives_the_labels_of_the_stream(
    name: str, widths: tuple[int, ...], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pixels = calm_model(name, widths=widths), picture(201, 167)
    streamed = in_tiles(HeadwiseNetwork(model), pixels, (201, 167))
    network = HeadwiseNetwork(model)
    monkeypatch.setattr(network, "_streams", False)
    with seunet.kernel_backend(backend):
        for tile in SIZES[:3]:
            found = in_tiles(network, pixels, tile)
            assert np.abs(found.probabilities - streamed.probabilities).max() <= 1e-5
            assert (found.labels == streamed.labels).mean() >= 0.999


def test_hooks_on_a_model_see_whole_convolutions_of_each_tile() -> None:
    model, pixels, seen = calm_model("seunet", widths=(10, 20)), picture(64, 64), []
    streamed = in_tiles(HeadwiseNetwork(model), pixels, (64, 64))
    model.encoder[0].convolutions[0].register_forward_hook(lambda module, given, output: seen.append(output))
    found = in_tiles(HeadwiseNetwork(model), pixels, (64, 64))
    assert len(seen) == model.heads
    assert min(float(output.min()) for output in seen) < 0
    assert np.abs(found.probabilities - streamed.probabilities).max() <= 1e-5


def test_the_device_is_part_of_what_decides_a_prediction_except_for_the_cpu() -> None:
    network = HeadwiseNetwork(calm_model("unet", widths=(6, 8)))
    assert "device" not in network.identity()
    network.device = torch.device("cuda")
    assert network.identity()["device"] == "cuda"
    assert "device" not in Choices().deciding()
    assert Choices(device="cuda").deciding() == Choices().deciding() | {"device": "cuda"}


def test_on_the_meta_device_a_network_gives_the_shapes_of_its_prediction() -> None:
    model = calm_model("seunet", widths=(10, 20)).to("meta")
    assert model.device.type == "meta"
    assert model(torch.empty(1, 3, 40, 24, device="meta")).shape == (1, 5, 2, 40, 24)


def test_auto_is_the_best_device_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert usable_device("auto") == "cpu"
    with pytest.raises(InputError, match="--device cuda: this machine has no usable cuda device; use auto or cpu"):
        usable_device("cuda")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert usable_device("auto") == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert usable_device("auto") == "cuda"
