"""What comes with the package, beside peers: size of the wheel, packages that are installed, time of the import.

    python -m benchmarks.measure.footprint

Each is installed into a fresh environment of its own, with the torch of constraints.txt; needs a package index.
An import may put work off until a name is used, so a network is also made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.declare import Benchmark
from benchmarks.record import ROOT, write_results

BENCHMARK = Benchmark("measure.footprint", ("results/benchmarks/footprint.json",), 10)
PACKAGES: Final = {
    "seunet": ("import seunet", "seunet.create_model('unet')"),
    "monai": ("import monai", "monai.networks.nets.UNet(2, 3, 2, (16, 32, 64), (2, 2))"),
    "segmentation-models-pytorch": (
        "import segmentation_models_pytorch as peer",
        "peer.Unet('resnet18', encoder_weights=None)",
    ),
    "cellpose": ("import cellpose", "import cellpose.models"),
}
"""Names in the index, what is imported, and how a network is made; cellpose's is fetched: its code is loaded."""
ROUNDS: Final = 5
TIMES: Final = """
import time
begun = time.process_time()
{}
imported = time.process_time()
{}
print(imported - begun, time.process_time() - begun)
"""


def footprint(package: str, statements: tuple[str, str], folder: Path) -> dict[str, Any]:
    """Of one package; `reason` where it cannot be installed or imported."""
    torch = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))
    (folder / "torch.txt").write_text(f"{torch}\n")
    python = folder / "venv" / "bin" / "python"
    fetch = ["wheel", ROOT, "-w"] if package == "seunet" else ["download", "--only-binary=:all:", package, "-d"]
    facts: dict[str, Any] = {}
    try:
        _run(sys.executable, "-m", "pip", *fetch, folder, "-q", "--no-deps")
        (wheel,) = folder.glob("*.whl")
        facts["wheel_mb"] = round(wheel.stat().st_size / 1e6, 2)
        _run(sys.executable, "-m", "venv", folder / "venv")
        _run(python, "-m", "pip", "install", "-q", "--no-compile", "-c", folder / "torch.txt", wheel)
        found = json.loads(_run(python, "-m", "pip", "list", "--format=json"))
        listed = {one["name"].lower().replace("_", "-"): one["version"] for one in found}
        facts["version"] = listed.pop(package)
        facts["installed"] = sorted(listed.keys() - {"pip", "setuptools"})
        facts["dependencies"] = len(facts["installed"])
        runs = [_run(python, "-c", TIMES.format(*statements)).split()[-2:] for _ in range(ROUNDS)]
    except subprocess.CalledProcessError as error:
        return facts | {"reason": _reason(error.stderr)}
    return facts | {
        "import_seconds": round(min(float(imported) for imported, _ in runs), 2),
        "network_seconds": round(min(float(made) for _, made in runs), 2),
    }


def _reason(errors: str) -> str:
    """The line that says what went wrong: pip adds notes below it."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()] or ["no message"]
    return next((line for line in lines if line.startswith("ERROR")), lines[-1])[:160]


def _run(*command: object) -> str:
    asked = [str(word) for word in command]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    ran = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=tempfile.gettempdir(), env=clean)
    return ran.stdout


if __name__ == "__main__":
    BENCHMARK.parser(__doc__).parse_args()
    figures = {}
    for package, statements in PACKAGES.items():
        with tempfile.TemporaryDirectory() as name:
            figures[package] = footprint(package, statements, Path(name))
    print(write_results(BENCHMARK, {"packages": figures}))
