"""`seunet warm-up`: afterwards nothing is left to be compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seunet.errors import StorageError
from seunet.segmentation import warm_up as module


def seunet(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seunet", *map(str, arguments)],
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def kept(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.nbc")}


def test_after_a_warm_up_segment_compiles_nothing(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    ran = seunet("warm-up", NUMBA_CACHE_DIR=cache)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"compiled functions are in {cache}/seunet/kernels (")
    before = kept(tmp_path)
    rows, columns = np.mgrid[:96, :96]
    discs = (rows % 24 - 12) ** 2 + (columns % 20 - 10) ** 2 < 90
    pixels = np.where(discs[..., None], (90, 60, 140), (235, 205, 225)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "discs.png")
    for model in ("nuclei", "nuclei-2"):
        out = tmp_path / model
        ran = seunet("segment", tmp_path / "discs.png", "-o", out, "-m", model, "--mpp", "0.25", NUMBA_CACHE_DIR=cache)
        assert ran.returncode == 0, ran.stderr
        assert "no objects" not in ran.stdout
    assert kept(tmp_path) == before


def test_where_nothing_can_be_kept_a_warm_up_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "folder_for", lambda source: None)
    line = "compiled functions cannot be kept: no folder can be written; set NUMBA_CACHE_DIR to a folder that can be "
    with pytest.raises(StorageError, match=line):
        module.warm_up()
