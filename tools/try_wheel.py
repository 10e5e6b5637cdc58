"""Install the wheel, without constraints, into a clean environment of each Python, and use it as a stranger does.

    python tools/try_wheel.py python3.11 python3.12 python3.13 python3.14

Each environment has the wheel, made of the files that the Dockerfile copies, and what it asks for; nothing else of this
checkout.  The steps run without a home folder and with a NUMBA_CACHE_DIR that cannot be written: at most one line of
warning is allowed.  The last one is the last step of the Dockerfile.  Exit code 1 if a step fails.
`--keep FOLDER` keeps the environments.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DOCKERFILE: Final = (ROOT / "Dockerfile").read_text().replace("\\\n", "").splitlines()
IMAGE: Final = ROOT / "tests" / "fixtures" / "first_edition" / "slide.png"
STEPS: Final = {
    "import": ["python", "-c", "import seunet; print(seunet.list_models())"],
    "licence": [
        "python",
        "-c",
        "from importlib.metadata import metadata; print(metadata('seunet')['License-Expression'])",
    ],
    "info": ["seunet", "info", "nuclei"],
    "segment": ["seunet", "segment", str(IMAGE), "-o", "out", "--no-progress"],
    "again": ["seunet", "segment", str(IMAGE), "-o", "again", "--no-progress"],
    "layer": [
        "python",
        "-c",
        "import torch; from seunet.layers import GaussianConv2d as G; print(G(5, 5)(torch.rand(1, 5, 1, 9, 9)).shape)",
    ],
    "docker": ["sh", "-c", next(line[4:] for line in reversed(DOCKERFILE) if line.startswith("RUN "))],
}


def copy_sources(place: Path) -> None:
    """Copy what the first stage of the Dockerfile copies."""
    lines = (line.split()[1:] for line in DOCKERFILE if line.startswith("COPY ") and "--from" not in line)
    for *names, target in lines:
        for name in names:
            source, goal = ROOT / name, place / target
            shutil.copytree(source, goal) if source.is_dir() else shutil.copy(source, goal)


def environment_of(scratch: Path, binaries: Path) -> dict[str, str]:
    """Of a user who has no home and a cache folder that is not theirs."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "XDG_", "NUMBA"))}
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    return kept | {"HOME": "/proc/none", "NUMBA_CACHE_DIR": "/proc/none/cache", "TMPDIR": str(scratch), "PATH": path}


def try_python(python: str, wheel: Path, place: Path) -> list[str]:
    """The steps that failed."""
    print(f"== {python}", flush=True)
    subprocess.run([python, "-m", "venv", place / "venv"], check=True)
    binaries = place / "venv" / "bin"
    installed = subprocess.run([binaries / "python", "-m", "pip", "install", "--quiet", wheel], text=True, stderr=-1)
    if installed.returncode:
        print("\n".join(installed.stderr.splitlines()[-3:]))
        return ["install"]
    (scratch := place / "scratch").mkdir()
    environment = environment_of(scratch, binaries)
    return [name for name, step in STEPS.items() if not passes(name, step, scratch, environment)]


def passes(name: str, command: Sequence[str], scratch: Path, environment: dict[str, str]) -> bool:
    """Run one step and print what its user sees."""
    ran = subprocess.run(["/usr/bin/env", *command], cwd=scratch, env=environment, capture_output=True, text=True)
    print(f"-- {name}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}", flush=True)
    return ran.returncode == 0 and "Traceback" not in ran.stderr and ran.stderr.count("cannot be kept") <= 1


def main() -> None:
    """Build the wheel, try each Python."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = (asked.keep or Path(temporary)).absolute()  # steps run in folders of their own
        copy_sources(_empty(place / "source"))
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", place / "source"]
        subprocess.run([*build, "-w", _empty(place / "wheel")], check=True)
        (wheel,) = (place / "wheel").glob("seunet-*.whl")
        usable = [python for python in asked.pythons if answers(python)]
        found = {python: try_python(python, wheel, _empty(place / Path(python).name)) for python in usable}
    for python, failed in found.items():
        print(f"{python}: {'failed: ' + ', '.join(failed) if failed else 'all steps passed'}")
    for python in set(asked.pythons) - set(usable):
        print(f"{python}: not found, not tried")
    sys.exit(any(found.values()) or not found)


def answers(python: str) -> bool:
    """Whether there is such a Python; a launcher of that name may be there without one."""
    found = shutil.which(python)
    return found is not None and subprocess.run([found, "--version"], capture_output=True).returncode == 0


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    main()
