"""Compile what `segment` needs before it is needed: the kernels here, the loops of the results in another process.

Numba compiles one function at a time in a process, so two processes are what two cores need.  Neither loads torch.
What one of them compiles the other waits for (`kernels/compiling/files.py`), so it does not matter who comes first.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from seunet.errors import StorageError
from seunet.kernels.compiling.files import REMEDY, folder_for
from seunet.kernels.compiling.workers import KERNELS as SOURCES
from seunet.kernels.compiling.workers import worker_address, worker_is_kept
from seunet.results.frame import Frame
from seunet.results.label_plane import Plane
from seunet.results.measures import CONFIDENCE, HAEMATOXYLIN, MeasuredPlane
from seunet.results.write import write_results

KERNELS: Final = (("jet", "float32", False), ("pooling", "float32", False))
"""What a network needs that is only used: loops, type, whether gradients."""


def warm_up() -> Path:
    """Compile everything that is not kept yet; the folder of the kernels."""
    folder = folder_for(SOURCES / "jobs.py")
    if folder is None:
        raise StorageError(f"compiled functions cannot be kept: no folder can be written; {REMEDY}")
    child = _start()
    for kernel in KERNELS:
        worker_address(*kernel)
    if child is None or child.wait():
        compile_results()  # here, where what is wrong is told
    return folder


def compile_beside() -> None:
    """Where the kernels were never compiled, compile the loops of the results in another process from now on."""
    if not all(worker_is_kept(*kernel) for kernel in KERNELS):
        child = _start()
        if child is not None:
            atexit.register(_end, child)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()  # what it was to compile is there, or was not needed
    child.wait()


def compile_results() -> None:
    """Write the result of two touching discs: every loop on the way is compiled, and kept."""
    rows, columns = np.mgrid[:48, :48]
    discs = ((rows - 24) ** 2 + (columns % 24 - 12) ** 2 < 13**2).astype(np.uint8)
    frame = Frame(1.0, 0, 0, 0.25, ("background", "nucleus"), ((255, 255, 255), (0, 255, 0)), 0, frozenset(), (48, 48))
    with TemporaryDirectory() as name:
        folder = Path(name)
        with Plane(folder / "labels", 48, 48) as labels, Plane(folder / "rim", 48, 48) as rim:
            labels.write(0, 0, discs)
            rim.write(0, 0, discs & (columns == 24).astype(np.uint8))
            measured = {plane: MeasuredPlane(labels, 255.0) for plane in (HAEMATOXYLIN, CONFIDENCE)}
            picture = np.full((48, 48, 3), 255, dtype=np.uint8)
            write_results(folder / "result", labels, frame, picture, rim=rim, measured=measured)
            write_results(folder / "smooth", labels, frame, picture, smooth=True)


def _start() -> subprocess.Popen[bytes] | None:
    """None where no process can be started: then what is needed is compiled when it is."""
    quiet = subprocess.DEVNULL
    try:
        return subprocess.Popen([sys.executable, "-m", __name__], stdin=quiet, stdout=quiet, stderr=quiet)
    except OSError:
        return None


if __name__ == "__main__":
    compile_results()
