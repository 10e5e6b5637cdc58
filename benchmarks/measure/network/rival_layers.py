"""What one SESN or DISCO layer costs beside a plain 3×3 convolution of the same total width.

    python -m benchmarks.measure.network.rival_layers

At each level of the U a plain convolution has 5·C channels, the scale layers five scales of C.  A round runs
every way of computing every layer once, so that a busy spell spoils a few rounds and not one layer; the
figure is the median over rounds, with the fastest round beside it.  Far apart, they say that the machine was
busy.  `padded` is the published form of both layers: one grouped convolution with 11×11 filters.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.declare import Benchmark
from benchmarks.record import write_results
from benchmarks.timing import interleaved
from seunet.layers import DiscreteScaleConv2d, SteerableConv2d
from seunet.layers import sesn_conv as steerable
from support.scale_bases import discrete_bases, steerable_basis

BENCHMARK = Benchmark(
    "measure.network.rival_layers",
    ("results/benchmarks/rival_layers.json",),
    5,
)

SCALES = (1, 2, 3, 4, 5)
FRACTIONAL_SCALES = (1, 2**0.5, 2, 2**1.5, 4)
LEVELS = ((256, 12), (128, 24), (64, 48), (32, 96), (16, 192))
BATCH, ROUNDS, THREADS = 1, 11, 2
PLAIN = "plain 3×3"
Key = tuple[int, int, str]
"""Size in pixels, channels per scale, way of computing the layer."""

Layers = dict[Key, Callable[[], Tensor]]


class PaddedScaleConv2d(nn.Module):
    """Any basis [9, S, 11, 11], every scale with filters of the largest support, the scales as groups."""

    def __init__(self, channels: int, basis: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, channels, 9) / (3 * channels**0.5))
        self.register_buffer("basis", basis.float(), persistent=False)

    def forward(self, maps: Tensor) -> Tensor:
        basis = self.get_buffer("basis")
        filters = torch.einsum("ock,ksij->socij", self.weight, basis).flatten(0, 1)
        padding = basis.shape[-1] // 2
        return F.conv2d(maps.flatten(1, 2), filters, padding=padding, groups=maps.shape[1]).view_as(maps)


class PolyphaseScaleConv2d(DiscreteScaleConv2d):
    """A convolution dilated by d as an ordinary one on each of the d×d phases of the map."""

    def convolve(self, image: Tensor, index: int) -> Tensor:
        d = int(self.scales[index])
        height, width = image.shape[2:]
        rows, columns = -(-height // d), -(-width // d)
        padded = F.pad(image, (0, columns * d - width, 0, rows * d - height))
        split = padded.view(-1, self.in_channels, rows, d, columns, d).permute(0, 3, 5, 1, 2, 4)
        filters = self.weight.view(*self.weight.shape[:2], 3, 3)
        out = F.conv2d(split.reshape(-1, self.in_channels, rows, columns), filters, self.bias, padding=1)
        out = out.view(-1, d, d, self.out_channels, rows, columns).permute(0, 3, 4, 1, 5, 2)
        return out.reshape(-1, self.out_channels, rows * d, columns * d)[..., :height, :width]


def candidates(channels: int, size_px: int) -> dict[str, Callable[[], Tensor]]:
    """Each way of computing the layer, as a call that returns its output."""
    maps = torch.randn(BATCH, len(SCALES), channels, size_px, size_px, requires_grad=True)
    total = len(SCALES) * channels
    plain = nn.Conv2d(total, total, 3, padding=1)
    flat = maps.detach().flatten(1, 2).requires_grad_()
    sesn, disco = SteerableConv2d(channels, channels), DiscreteScaleConv2d(channels, channels)
    sesn_padded = PaddedScaleConv2d(channels, steerable_basis(SCALES))
    disco_padded = PaddedScaleConv2d(channels, discrete_bases(SCALES))
    disco_polyphase = PolyphaseScaleConv2d(channels, channels)
    disco_fractional = DiscreteScaleConv2d(channels, channels, scales=FRACTIONAL_SCALES)

    def sesn_up_to(widest_dense_filter: int) -> Tensor:
        with mock.patch.object(steerable, "WIDEST_DENSE_FILTER", widest_dense_filter):
            return sesn.forward(maps)

    return {
        PLAIN: lambda: plain(flat),
        "sesn": lambda: sesn(maps),
        "sesn, all dense": lambda: sesn_up_to(99),
        "sesn, all separable": lambda: sesn_up_to(0),
        "sesn, padded": lambda: sesn_padded(maps),
        "disco": lambda: disco(maps),
        "disco, polyphase": lambda: disco_polyphase(maps),
        "disco, scales √2 apart": lambda: disco_fractional(maps),
        "disco, padded": lambda: disco_padded(maps),
    }


def forward_only(layer: Callable[[], Tensor]) -> None:
    with torch.no_grad():
        layer()


def forward_and_backward(layer: Callable[[], Tensor]) -> None:
    torch.autograd.backward(layer().sum())


def timed(layers: Layers, run: Callable[[Callable[[], Tensor]], None]) -> dict[Key, list[float]]:
    """Milliseconds of each layer in rounds in which every layer runs once."""
    times = interleaved({str(key): partial(run, layer) for key, layer in layers.items()}, ROUNDS)
    return {key: times[str(key)] for key in layers}


def figures(what: str, times: dict[Key, list[float]], key: Key) -> dict[str, float]:
    """Median, its ratio to the plain convolution's, and the same of the fastest round."""
    plain = times[key[0], key[1], PLAIN]
    median, fastest = statistics.median(times[key]), min(times[key])
    return {
        f"{what}_ms": round(median, 2),
        f"{what}_ratio": round(median / statistics.median(plain), 2),
        f"{what}_fastest_ms": round(fastest, 2),
        f"{what}_fastest_ratio": round(fastest / min(plain), 2),
    }


def measure() -> list[dict[str, Any]]:
    layers: Layers = {}
    for size_px, channels in LEVELS:
        for name, layer in candidates(channels, size_px).items():
            layers[size_px, channels, name] = layer
    forward, step = timed(layers, forward_only), timed(layers, forward_and_backward)
    rows = []
    for key in layers:
        level = {"size_px": key[0], "channels_per_scale": key[1], "layer": key[2]}
        rows.append(level | figures("forward", forward, key) | figures("step", step, key))
        print_row(rows[-1])
    return rows


def print_row(row: dict[str, Any]) -> None:
    level = f"{row['size_px']:>4}² × {len(SCALES)}·{row['channels_per_scale']:<4} {row['layer']:<23}"
    for what, title in (("forward", "forward"), ("step", "forward + backward")):
        median = f"{row[f'{what}_ms']:8.2f} ms = {row[f'{what}_ratio']:5.2f} ×"
        level += f" {title} {median} (fastest {row[f'{what}_fastest_ratio']:5.2f} ×)  "
    print(level.rstrip(), flush=True)


def main() -> None:
    BENCHMARK.parser(__doc__).parse_args()
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    settings = {"torch": torch.__version__, "threads": THREADS, "batch": BATCH, "rounds": ROUNDS}
    write_results(BENCHMARK, settings | {"rows": measure()})


if __name__ == "__main__":
    main()
