"""Whether what is computed is computed only, or becomes a graph."""

from __future__ import annotations

import torch


def is_tracing() -> bool:
    """Whether `torch.jit.trace`, or an exporter by way of it, records what is computed."""
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


def is_recording() -> bool:
    """Whether what is computed becomes a graph, which shall be right for other sizes too."""
    return torch.compiler.is_compiling() or is_tracing()
