"""Walk through the house as data does, and count the doors.

    python tools/walks.py                 # all five walks, a table
    python tools/walks.py slide --list    # one walk, function by function

Each walk is done twice on small made data, and counted the second time, when what is done once per process (loading the
model, compiling) is done.  Every function of the package counts once, where its thread first calls it, and threads are
read one after the other; in that order, a *switch* is a step from one room into another, and *there and back* is a
switch whose next one returns.
The files beside the rooms (errors, limits, memory, settings, progress) are the ground under all of them: no room.
Children (sandboxed readers) are walked on their parents' side alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

FOUNDATIONS = "(foundations)"
WALKS = ("array", "slide", "training", "forward", "prepare")


class Steps:
    """Functions of the package in the order of their first call, thread by thread: who works beside is read after."""

    def __init__(self, package: Path) -> None:
        self._package, self._seen = str(package), dict[int, dict[CodeType, tuple[str, str]]]()

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        code, seen = frame.f_code, self._seen.setdefault(threading.get_ident(), {})
        if event != "call" or code in seen or not code.co_filename.startswith(self._package):
            return
        if "<" not in code.co_qualname:  # a module, a comprehension, a function within one: read with what is around it
            file = str(Path(code.co_filename).relative_to(self._package))
            seen[code] = (file, code.co_qualname)

    @property
    def functions(self) -> list[tuple[str, str]]:
        every: dict[CodeType, tuple[str, str]] = {}
        for seen in self._seen.values():
            every |= {code: place for code, place in seen.items() if code not in every}
        return list(every.values())


def room(file: str) -> str:
    """The folder below the package; what lies beside the rooms is the ground under them."""
    parts = Path(file).parts
    return parts[0] if len(parts) > 1 else FOUNDATIONS


def switches(functions: list[tuple[str, str]]) -> tuple[int, int]:
    """How often the next function is in another room, and how often the one after that is back."""
    visits = [place for file, _ in functions if (place := room(file)) != FOUNDATIONS]
    stays = [place for number, place in enumerate(visits) if number == 0 or visits[number - 1] != place]
    back = sum(stays[number] == stays[number + 2] for number in range(len(stays) - 2))
    return max(len(stays) - 1, 0), back


def tissue(side: int = 300, seed: int = 0) -> Any:
    """An image with round dark spots on pink."""
    import numpy as np

    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:side, :side]
    image = np.full((side, side, 3), (230, 180, 205), dtype=np.float64) + random.normal(0, 6, (side, side, 3))
    for x, y in random.integers(0, side, (side // 4, 2)):
        image[(rows - y) ** 2 + (columns - x) ** 2 < 81] = (90, 60, 140)
    return np.clip(image, 0, 255).astype(np.uint8)


def array(_folder: Path) -> Callable[[], object]:
    import seunet

    pixels = tissue()
    return lambda: seunet.segment(pixels)


def slide(folder: Path) -> Callable[[], object]:
    import tifffile

    pixels = tissue(512)
    with tifffile.TiffWriter(folder / "slide.tif") as file:
        for step in (1, 2):
            mpp = 0.5 * step
            file.write(pixels[::step, ::step], tile=(128, 128), resolution=(1e4 / mpp, 1e4 / mpp), resolutionunit=3)
    return lambda: _command("segment", folder / "slide.tif", "-o", folder / "out", "--no-progress")


def prepare(folder: Path) -> Callable[[], object]:
    _own_images(folder)
    return lambda: _command("data", "prepare", "folder", folder / "own", folder / "set", *_options(folder))


def training(folder: Path) -> Callable[[], object]:
    _own_images(folder)
    prepared = _command("data", "prepare", "folder", folder / "own", folder / "set", *_options(folder))
    assert prepared == 0
    config = {
        "model": {"name": "seunet", "widths": [5, 10]},
        "data": {"root": str(folder / "set"), "hold_out_every": 2},
        "recipe": {"epochs": 1, "batch": 2},
        "machine": {"tensorboard": False},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    return lambda: _command("train", folder / "config.yaml", "-o", folder / "run", "--no-progress")


def forward(_folder: Path) -> Callable[[], object]:
    import torch

    import seunet

    return lambda: seunet.create_model("seunet", classes=2, widths=[5, 10, 20])(torch.rand(1, 3, 64, 64))


def _own_images(folder: Path) -> None:
    from PIL import Image

    for name in ("images", "masks"):
        (folder / "own" / name).mkdir(parents=True)
    for number in range(4):
        pixels = tissue(128, number)
        Image.fromarray(pixels).save(folder / "own" / "images" / f"{number}.png")
        Image.fromarray((pixels[..., 0] < 150).astype("uint8")).save(folder / "own" / "masks" / f"{number}.png")
    (folder / "own" / "classes.csv").write_text("code,class\n0,background\n1,nucleus\n")


def _options(folder: Path) -> tuple[object, ...]:
    return ("--class-map", folder / "own" / "classes.csv", "--window", 64, "--stride", 64, "--no-progress")


def _command(*words: object) -> int:
    from seunet.cli.main import main

    sys.argv = ["seunet", *map(str, words)]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def walked(name: str) -> list[tuple[str, str]]:
    """The functions of one walk, done a second time in this process."""
    import seunet

    for _ in range(2):
        steps = Steps(Path(seunet.__file__).parent)
        with tempfile.TemporaryDirectory() as place:
            go = globals()[name](Path(place))
            threading.setprofile(steps)
            sys.setprofile(steps)
            try:
                result = go()
            finally:
                sys.setprofile(None)
                threading.setprofile(None)  # type: ignore[arg-type]
        if isinstance(result, int) and result:
            raise SystemExit(f"the walk {name!r} ended with exit code {result}")
    return steps.functions


def main() -> None:
    parser = argparse.ArgumentParser(description="Walk through the house and count the doors.")
    parser.add_argument("walks", nargs="*", default=WALKS, help=", ".join(WALKS))
    parser.add_argument("--list", action="store_true", help="print every function")
    parser.add_argument("--json", action="store_true", help="print the functions as JSON, for one walk")
    given = parser.parse_args()
    if given.json:
        print(json.dumps(walked(given.walks[0])))
        return
    print("| walk | files | functions | switches of room | there and back |\n|---|---|---|---|---|")
    for name in given.walks:
        child = subprocess.run([sys.executable, __file__, name, "--json"], stdout=subprocess.PIPE, check=True)
        functions = [(file, function) for file, function in json.loads(child.stdout.splitlines()[-1])]
        files = {file for file, _ in functions}
        there, back = switches(functions)
        print(f"| {name} | {len(files)} | {len(functions)} | {there} | {back} |", flush=True)
        if given.list:
            before = None
            for file, function in functions:
                if room(file) != before:
                    before = room(file)
                    print(f"\n{before}")
                print(f"    {file}: {function}")


if __name__ == "__main__":
    main()
