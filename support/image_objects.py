"""What a newcomer has an image in, and tries first: one list, for the tests and for the matrix of trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from seunet.images import encode_png

Pixels = NDArray[np.uint8]


class Given(NamedTuple):
    """An image as somebody gives it, and the pixels that are meant."""

    image: Any
    pixels: Pixels


class Foreign:
    """As of a library that we do not know."""

    def __init__(self, pixels: Pixels) -> None:
        self.pixels = pixels

    def __array__(self, dtype: Any = None, copy: Any = None) -> Pixels:
        return self.pixels


def image_objects(pixels: Pixels, folder: Path) -> dict[str, Given]:
    """The RGB image `pixels`, or its first channel as grey, in everything that people have images in."""
    path = folder / "image.png"
    path.write_bytes(encode_png(pixels))
    channel = pixels[..., 0]
    grey = np.repeat(pixels[..., :1], 3, axis=2)
    opaque, clear = (np.dstack([pixels, np.full_like(channel, alpha)]) for alpha in (255, 0))
    tensor = torch.from_numpy(pixels).permute(2, 0, 1)
    picture = Image.fromarray(channel)
    return {
        "path": Given(str(path), pixels),
        "Path": Given(path, pixels),
        "PIL, RGB": Given(Image.fromarray(pixels), pixels),
        "PIL, grey": Given(picture, grey),
        "PIL, RGBA": Given(Image.fromarray(opaque), pixels),
        "PIL, grey and opacity": Given(picture.convert("LA"), grey),
        "PIL, palette of greys": Given(picture.convert("P"), grey),
        "NumPy, uint8": Given(pixels, pixels),
        "NumPy, not contiguous": Given(np.asfortranarray(pixels), pixels),
        "NumPy, float64": Given(pixels / 255, pixels),
        "NumPy, float32": Given((pixels / 255).astype(np.float32), pixels),
        "NumPy, float16": Given((pixels / 255).astype(np.float16), pixels),
        "NumPy, RGBA": Given(opaque, pixels),
        "NumPy, transparent": Given(clear, np.full_like(pixels, 255)),
        "NumPy, grey": Given(channel, grey),
        "NumPy, grey [.., 1]": Given(pixels[..., :1], grey),
        "NumPy, channels first": Given(pixels.transpose(2, 0, 1), pixels),
        "tensor, uint8": Given(tensor, pixels),
        "tensor, float of a network": Given((tensor[None].float() / 255).requires_grad_(), pixels),
        "tensor, channels last": Given(torch.from_numpy(pixels), pixels),
        "tensor, bfloat16": Given((tensor > 127).bfloat16(), np.where(pixels > 127, 255, 0).astype(np.uint8)),
        "what has __array__": Given(Foreign(pixels), pixels),
    }
