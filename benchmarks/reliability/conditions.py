"""Each Python under the conditions of a shared computer: a part of `benchmarks.reliability.matrix`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image

from benchmarks.record import ROOT

SAMPLE: Final = ROOT / "src" / "seunet" / "samples" / "OS-1-detail.ome.tif"
OTHER_PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
NOBODY: Final = 65534
NOWHERE: Final = "/proc/none"
"""A folder that nobody can make, root neither."""
OK: Final = "ok"


def sample_pixels(size_px: int = 384) -> NDArray[np.uint8]:
    """A part of the H&E image that ships with the package."""
    pixels: NDArray[np.uint8] = tifffile.imread(SAMPLE)[:size_px, :size_px, :3]
    return np.ascontiguousarray(pixels)


def tried(action: Callable[[], str]) -> str:
    """What a trial says, or the first line of its error."""
    try:
        return action()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"


def conditions(folder: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """What a command is begun with, and in which environment."""
    locked = folder / "read-only-home"
    locked.mkdir()
    locked.chmod(0o555)
    only_reads = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    # Folders of the interpreter may be closed to others; reading is granted, writing is not.
    only_reads += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return {
        "as it is": ([], {}),
        "no home": ([], {"HOME": NOWHERE}),
        "read-only home": ([], {"HOME": str(locked)}),
        "NUMBA_CACHE_DIR that cannot be written": ([], {"NUMBA_CACHE_DIR": f"{NOWHERE}/cache"}),
        "another user, who owns nothing": (only_reads, {"HOME": NOWHERE}),
    }


def python_rows(folder: Path, environments: Path | None) -> dict[str, dict[str, str]]:
    """Each Python by each condition: `seunet segment` of one image, exit 0 and at most one line of warning."""
    pythons = {"{}.{}, of this checkout".format(*sys.version_info): sys.executable}
    for version in OTHER_PYTHONS if environments else ():
        python = environments.absolute() / f"python{version}" / "venv" / "bin" / "python"  # type: ignore[union-attr]
        if python.exists():
            pythons[f"{version}, from the wheel, with torch {torch_of(str(python))}"] = str(python)
    image = folder / "small.png"
    Image.fromarray(sample_pixels(128)).save(image)
    image.chmod(0o644)
    folder.chmod(0o755)
    started = conditions(folder)
    rows = {
        name: {title: tried(lambda: in_process(python, image, *how)) for title, how in started.items()}  # noqa: B023
        for name, python in pythons.items()
    }
    for version in OTHER_PYTHONS:
        if not any(name.startswith(version) for name in rows):
            rows[version] = dict.fromkeys(started, "not tried: no environment with the wheel was given")
    return dict(sorted(rows.items()))


def torch_of(python: str) -> str:
    """The version of torch that the wheel brought; none of ours is asked for."""
    asked = [python, "-c", "from importlib.metadata import version; print(version('torch'))"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def in_process(python: str, image: Path, before: list[str], environment: dict[str, str]) -> str:
    """Segment as a user of that kind; what they see."""
    if before and (os.geteuid() != 0 or shutil.which(before[0]) is None):
        return "not tried: needs root and setpriv"
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o1777)  # as /tmp is
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "NUMBA"))}
        if python != sys.executable:
            kept.pop("PYTHONPATH", None)
        asked = [*before, python, "-m", "seunet", "segment", str(image), "-o", "out", "--mpp", "0.25", "--no-progress"]
        ran = subprocess.run(
            asked,
            cwd=scratch,
            env=kept | {"TMPDIR": scratch} | environment,
            capture_output=True,
            text=True,
            timeout=1200,
        )
        done = (Path(scratch) / "out" / "small" / "objects.geojson").is_file()
    usual = ("note: licence", f"note: {image.name}: scale")
    lines = [line for line in ran.stderr.splitlines() if not line.startswith(usual)]
    if ran.returncode or not done:
        return f"exit {ran.returncode}: {(lines or ['nothing written'])[-1][:100]}"
    return OK if len(lines) <= 1 else f"{len(lines)} lines of warning: {lines[0][:80]}"
