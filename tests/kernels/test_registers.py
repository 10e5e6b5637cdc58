"""How many sums are kept in registers depends on the processor; what is computed does not."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

DIGEST = """
import hashlib, torch
from seunet.kernels.dispatch import jet_convolution
from seunet.kernels.vectors.code import filtered_at_once
torch.manual_seed(0)
image, coefficients = torch.randn(1, 2, 6, 20, 90), torch.randn(6, 6, 7)
result = jet_convolution(image, coefficients, torch.tensor([0.7, 2.0]), [2, 4])
print(filtered_at_once(2), hashlib.sha256(result.numpy().tobytes()).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names features of x86")
def test_narrower_registers_give_the_same_bits(tmp_path: Path) -> None:
    narrow = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+sse4.2,+popcnt"}
    found = []
    for settings in ({}, narrow):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)} | settings
        ran = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        found.append(ran.stdout.split())
    assert found[1][0] == "2"
    assert found[0][1] == found[1][1]
