"""Random images without fine detail."""

from __future__ import annotations

import torch
from torch import Tensor


def band_limited(count: int, size: int, seed: int = 0, cutoff: float = 0.05, channels: int = 3) -> Tensor:
    """Smooth random images of variance 1: white noise with frequencies above ~`cutoff` cycles a pixel damped away."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, channels, size, size, generator=generator, dtype=torch.float64)
    rows, columns = torch.fft.fftfreq(size)[:, None], torch.fft.rfftfreq(size)[None]
    damping = torch.exp(-(rows.square() + columns.square()) / cutoff**2)
    images: Tensor = torch.fft.irfft2(torch.fft.rfft2(noise) * damping, s=(size, size))
    return (images / images.std()).float()
