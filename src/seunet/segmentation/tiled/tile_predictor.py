"""A network's heads one after the other on a tile, and what they say together."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seunet.errors import InputError, unknown_name
from seunet.images.image import RgbArray
from seunet.layers.hooks import hooked
from seunet.maths.fusion import CALIBRATED, FUSIONS, Fusion
from seunet.maths.prediction import Prediction, fuse_rows
from seunet.memory import give_back_freed_memory, own_pages
from seunet.models.files import weights_sha256
from seunet.models.heads_to_use import fusion_of, only_head
from seunet.models.seunet import SEUNet
from seunet.models.unet_skeleton import ScaleUNet
from seunet.segmentation.tiled.receptive_field import Span, filter_radii, receptive_radius, seen_by_network
from seunet.segmentation.tiled.streaming import predict_block
from seunet.segmentation.tiled.tile_pixels import Area, RasterPart, WorkingRaster
from seunet.segmentation.tiled.tiling import Tile, checked_tile_px, default_tile, limited, tiles

Advance = Callable[[float], None]
Ready = Callable[[Prediction, Span], None]
"""Told which rows, from the first of a tile on, are said for good."""

MAX_LABELS: Final = 255

NATIVE: Final = "native"
"""The runtime that this package brings."""

WHOLE_TILE: Final = (1024, 1024)
"""Rows and columns of a tile that is computed at once, in the memory of a device."""

LARGE_PX: Final = 1 << 20
"""Of a tile: from here on the memory of one head is given back before the next, whose blocks have other sizes."""

LARGE_FOR_ONE_PX: Final = 1 << 22
"""The same for a single head: the next image may use its memory again, and need not wait for fresh pages."""


class TileInput(NamedTuple):
    """A tile and the pixels that it is predicted from: the part `held` of the raster."""

    tile: Tile
    held: Area
    part: RasterPart

    @property
    def own_pixels(self) -> RgbArray:
        """Those of the tile alone."""
        rows, columns = self.held
        return self.part.pixels[self.tile.rows.within(rows), self.tile.columns.within(columns)]


class HeadwiseNetwork:
    """A model with frozen weights that predicts parts of an image as if it had seen the whole.

    The heads of a SEUNet meet nowhere before the fusion: each is run as a network of its own, in a fraction of the
    memory and with only the surroundings that it looks at.  Other models run whole.
    """

    def __init__(
        self,
        model: ScaleUNet,
        fusion: Fusion = "p_ens",
        overlap_px: int | None = None,
        only_head: int | None = None,
        device: str = "cpu",
        runtime: str = NATIVE,
    ) -> None:
        """`only_head` (from 0) leaves the others out: the network of one head, at a γ-th of the work.

        `runtime`: who computes, our own kernels ("native") or those of `seunet.export.runtimes`.
        """
        if isinstance(fusion, str) and fusion not in FUSIONS:
            raise unknown_name("fusion", fusion, FUSIONS)
        if overlap_px is not None and (isinstance(overlap_px, bool) or overlap_px < 0):
            raise InputError(f"`overlap_px` (={overlap_px!r}) must be a whole number of pixels, 0 or more")
        if model.classes > MAX_LABELS:
            raise InputError(f"{model.name} has {model.classes} classes; labels are bytes and 255 is not analysed")
        model = copy.deepcopy(model).eval().to(device)
        self.device = torch.device(device)
        # Streaming is written for the CPU and fuses steps: hooks see what they expect in a plain forward alone.
        self._streams = self.device.type == "cpu" and runtime == NATIVE and not hooked(*model.modules())
        self.name, self.classes, self.rim, self.fusion = model.name, model.told_classes, model.rim, fusion
        self._outputs, self._rim_odds = model.classes, 1.0 if model.card is None else model.card.rim_odds
        self.overlap_px, self.only_head = overlap_px, only_head
        headwise = isinstance(model, SEUNet) and model.heads > 1
        wanted = range(model.heads) if only_head is None else [only_head]
        self._parts = [model.only_scale(k) for k in wanted] if headwise else [model]  # type: ignore[operator]
        self.runtime = runtime
        self._runs = [self._runner(part) for part in self._parts]
        self.heads = sum(part.heads for part in self._parts)
        self._radii = [filter_radii(part) for part in self._parts]
        self._weights = weights_sha256(model)
        self.sigmas_px = _sigmas_by_head(model, None if only_head is None else [only_head])
        self._factor = model.factor
        channels = model.config.widths[0] // (model.heads if headwise else 1)
        fitting = default_tile(self.heads * self._outputs, channels, max(self.reach_px))
        self.default_tile = fitting if self._streams else WHOLE_TILE

    def identity(self) -> dict[str, Any]:
        """What decides the prediction, as plain values."""
        return {
            "model": self.name,
            "weights_sha256": self._weights,
            "factor": self._factor,
            **self._fusion_facts(),
            **({} if self.rim is None else {"rim_odds": self._rim_odds}),
            "overlap_px": self.overlap_px,
            # Other devices round otherwise.
            **({} if self.device.type == "cpu" else {"device": self.device.type}),
            **({} if self.runtime == NATIVE else {"runtime": self.runtime}),
        }

    def _runner(self, part: ScaleUNet) -> Callable[[Tensor], Tensor]:
        """RGB in 0 … 1 → logits, of one part on the chosen device or by the chosen runtime."""
        if self.runtime == NATIVE:
            return lambda images: part(images.to(self.device))
        from seunet.export.runtimes import run_by

        run = run_by(self.runtime, part, torch.get_num_threads())
        return lambda images: torch.from_numpy(run(images.numpy()))

    def _fusion_facts(self) -> dict[str, Any]:
        if self.only_head is not None:
            return {"fusion": f"head {self.only_head + 1}"}
        if isinstance(self.fusion, str):
            return {"fusion": self.fusion}
        numbers = {
            name: list(value) if isinstance(value, tuple) else value for name, value in self.fusion._asdict().items()
        }
        return {"fusion": CALIBRATED, "calibration": numbers}

    @property
    def large_px(self) -> int:
        """Of a tile or an image: from here on memory is given back when it is done."""
        return LARGE_PX if len(self._parts) > 1 else LARGE_FOR_ONE_PX

    @property
    def reach_px(self) -> list[int]:
        """How far each head looks."""
        return [receptive_radius(radii) for radii in self._radii]

    def tile_size(self, tile_px: int | None) -> tuple[int, int]:
        """Rows and columns of a tile: square of the user's size, or what suits the network."""
        return self.default_tile if tile_px is None else checked_tile_px(tile_px)

    def tiles(self, size: tuple[int, int], tile_px: int | None = None) -> list[Tile]:
        """The tiles of an image of `size` (height, width)."""
        return tiles(size, self.tile_size(tile_px))

    def read(self, raster: WorkingRaster, tile: Tile) -> TileInput:
        """What `tile` is predicted from."""
        held = self.seen((tile.rows, tile.columns), raster.size)
        return TileInput(tile, held, raster.read(*held))

    def predict_tile(
        self,
        given: TileInput,
        size: tuple[int, int],
        advance: Advance | None = None,
        ready: Ready | None = None,
        probabilities: bool = True,
    ) -> Prediction:
        """The prediction for a tile of a raster of `size` (height, width)."""
        core = given.tile.rows, given.tile.columns
        return self.predict(given.part.pixels, given.held, core, size, advance, ready, probabilities)

    def seen(self, core: Area, size: tuple[int, int]) -> Area:
        """The rows and columns of an image of `size` (height, width) that `core` is predicted from."""
        return _union([self._seen(number, core, size) for number in range(len(self._parts))])

    def _seen(self, number: int, core: Area, size: tuple[int, int]) -> Area:
        spans = []
        for span, length in zip(core, size, strict=True):
            seen = seen_by_network(self._radii[number], span, length)
            if self.overlap_px is not None or not self._streams:
                overlap_px = length if self.overlap_px is None else self.overlap_px
                seen = limited(seen, span, overlap_px, self._radii[number].stride_px, length)
            spans.append(seen)
        return spans[0], spans[1]

    def predict(
        self,
        pixels: RgbArray,
        held: Area,
        core: Area,
        size: tuple[int, int],
        advance: Advance | None = None,
        ready: Ready | None = None,
        probabilities: bool = True,
    ) -> Prediction:
        """The prediction for `core`; `pixels` [rows, columns, 3] hold the part `held` of an image of `size`.

        `advance` is told how much of it is done, from 0 to 1; `ready` which rows are.  Without `probabilities` those
        of the heads together are not kept.
        """
        source = torch.from_numpy(pixels if pixels.flags.writeable else pixels.copy()).permute(2, 0, 1)
        height, width = core[0].length, core[1].length
        with torch.inference_mode():
            said, last = self._nothing_said(height, width, probabilities), len(self._parts) - 1
            # What the last part says of some rows is fused at once: of a single head nothing is held.
            waiting = torch.from_numpy(
                own_pages((self.heads - self._parts[-1].heads, self._outputs, height, width), np.float32)
            )
            done = 0
            for number, part in enumerate(self._parts):
                seen = self._seen(number, core, size)
                mine = source[:, seen[0].within(held[0]), seen[1].within(held[1])]
                for rows, found in self._pieces(number, mine, seen, core, size):
                    if number < last:
                        waiting[done : done + part.heads, :, slice(*rows)] = found
                    else:
                        every = torch.cat([waiting[:, :, slice(*rows)], found]) if last else found
                        fuse_rows(every, said, rows.start, self.fusion, self.rim, self._rim_odds)
                        if ready is not None:
                            ready(said, rows)
                    if advance is not None:
                        advance((number + rows.stop / height) / len(self._parts))
                done += part.heads
                if height * width > self.large_px:
                    give_back_freed_memory()
            return said

    def _pieces(
        self, number: int, pixels: Tensor, seen: Area, core: Area, size: tuple[int, int]
    ) -> Iterator[tuple[Span, Tensor]]:
        """The probabilities of one part for `core`, row after row, from what it sees of the image."""
        inner = core[0].counted_from(seen[0].start), core[1].counted_from(seen[1].start)
        if not self._streams:
            logits = self._runs[number](pixels[None].float() / 255)[0]
            yield Span(0, core[0].length), logits[..., slice(*inner[0]), slice(*inner[1])].softmax(1).cpu()
            return
        if self.overlap_px is not None:
            # What was cut off counts as the world's end.
            size, core = (seen[0].length, seen[1].length), inner
            seen = Span(0, size[0]), Span(0, size[1])
        yield from predict_block(self._parts[number], self._radii[number], pixels, seen, size, core)

    def _nothing_said(self, height: int, width: int, probabilities: bool) -> Prediction:
        """Room for what will be said of so many pixels."""
        labels, heads = (np.empty((height, width), dtype=np.uint8) for _ in range(2))
        rim = None if self.rim is None else np.empty((height, width), dtype=np.bool_)
        chances = own_pages((self.classes, height, width), np.float32) if probabilities else None
        return Prediction(labels, chances, heads, np.empty((height, width), dtype=np.float32), rim)


def predictor_for(
    model: ScaleUNet,
    factor: float,
    scale_known: bool,
    fusion: str = "auto",
    overlap_px: int | None = None,
    device: str = "cpu",
    runtime: str = NATIVE,
) -> HeadwiseNetwork:
    """`model` with every σ × `factor` and its heads fused as its card and the user say."""
    if factor != 1:
        if not isinstance(model, SEUNet):
            raise InputError(f"{model.name} has no σ to be multiplied; resample its images instead")
        model = model.at_scale(factor)
    how = fusion_of(model, fusion, scale_known)
    return HeadwiseNetwork(model, how, overlap_px, only_head(model, fusion, scale_known), device, runtime)


shared_predictor_for = lru_cache(maxsize=1)(predictor_for)
"""The same for a model that nobody changes: images in a row mostly ask for one predictor."""


def _sigmas_by_head(model: ScaleUNet, heads: list[int] | None) -> tuple[tuple[float, float], ...] | None:
    """The smallest and the largest σ of each head's filters in pixels, each on its own level; None without σ."""
    if not isinstance(model, SEUNet):
        return None
    sigmas = model.sigmas().detach() if heads is None else model.sigmas().detach()[:, heads]
    return tuple((float(one.min()), float(one.max())) for one in sigmas.unbind(1))


def _union(areas: list[Area]) -> Area:
    rows, columns = zip(*areas, strict=True)
    return (
        Span(min(span.start for span in rows), max(span.stop for span in rows)),
        Span(min(span.start for span in columns), max(span.stop for span in columns)),
    )
