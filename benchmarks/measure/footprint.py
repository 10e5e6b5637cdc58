"""What comes with the package, beside peers: size of the wheel, packages that are installed, time of the import.

    python -m benchmarks.measure.footprint

Each is installed into a fresh environment of its own, with the torch of constraints.txt; needs a package index.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.declare import Benchmark
from benchmarks.record import ROOT, write_results

BENCHMARK = Benchmark("measure.footprint", ("results/benchmarks/footprint.json",), 10)
PACKAGES: Final = {
    "seunet": "seunet",
    "monai": "monai",
    "segmentation-models-pytorch": "segmentation_models_pytorch",
    "cellpose": "cellpose",
}
"""Names in the index, and what is imported."""
ROUNDS: Final = 5
IMPORT_TIME: Final = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"


def footprint(package: str, module: str, folder: Path) -> dict[str, Any]:
    """Of one package; `reason` where it cannot be installed."""
    torch = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))
    (folder / "torch.txt").write_text(f"{torch}\n")
    python = folder / "venv" / "bin" / "python"
    try:
        if package == "seunet":
            _run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", ROOT, "-w", folder)
        else:
            _run(
                sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", package, "-d", folder
            )
        (wheel,) = folder.glob("*.whl")
        _run(sys.executable, "-m", "venv", folder / "venv")
        _run(python, "-m", "pip", "install", "-q", "-c", folder / "torch.txt", wheel)
        listed = json.loads(_run(python, "-m", "pip", "list", "--format=json"))
        times = [float(_run(python, "-c", IMPORT_TIME.format(module)).split()[-1]) for _ in range(ROUNDS)]
    except subprocess.CalledProcessError as error:
        return {"reason": (error.stderr.strip().splitlines() or ["no message"])[-1][:160]}
    others = sorted(one["name"] for one in listed if one["name"].lower() not in ("pip", "setuptools", package))
    return {
        "version": next(one["version"] for one in listed if one["name"].lower() == package),
        "wheel_mb": round(wheel.stat().st_size / 1e6, 2),
        "dependencies": len(others),
        "import_seconds": round(min(times), 2),
        "installed": others,
    }


def _run(*command: object) -> str:
    asked = [str(word) for word in command]
    return subprocess.run(asked, capture_output=True, text=True, check=True, cwd=tempfile.gettempdir()).stdout


if __name__ == "__main__":
    BENCHMARK.parser(__doc__).parse_args()
    figures = {}
    for package, module in PACKAGES.items():
        with tempfile.TemporaryDirectory() as name:
            figures[package] = footprint(package, module, Path(name))
    print(write_results(BENCHMARK, {"packages": figures}))
