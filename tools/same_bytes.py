"""Whether two versions of the code make the same files, byte for byte.

    python tools/same_bytes.py make before.json --slides A.svs B.tiff --monuseg downloads
    git checkout …
    python tools/same_bytes.py make after.json --slides A.svs B.tiff --monuseg downloads
    python tools/same_bytes.py compare before.json after.json

`make` segments each slide, prepares the MoNuSeg set and trains on it for a few steps, killed once by SIGTERM and
resumed; then it writes the SHA-256 of every file.  Other code than that of this checkout: PYTHONPATH=CHECKOUT/src.
Times are left out (`clock` of run.json, the clock and the TensorBoard events of a training).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRAINING = (
    *("model.widths=[5,10]", "data.augmentation.crop_px=64", "recipe.epochs=1", "recipe.batch=64"),
    *("machine.checkpoint_seconds=0", "machine.tensorboard=false"),
)
LEFT_OUT = ("clock.jsonl", ".lock")


def made(folder: Path, slides: list[Path], monuseg: Path, config: Path) -> dict[str, str]:
    """What the three commands write, by name."""
    for slide in slides:
        command("segment", slide, "-o", folder / "segment", "--no-progress")
    command("data", "prepare", "monuseg", monuseg, folder / "monuseg", "--no-progress")
    changes = [word for change in (*TRAINING, f"data.root={folder / 'monuseg'}") for word in ("--set", change)]
    train = ("train", config, "-o", folder / "run", "--no-progress", *changes)
    interrupted(train, folder / "run" / "last.safetensors")
    command(*train, "--resume")
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and file.name not in LEFT_OUT)
    return {str(file.relative_to(folder)): digest(file, folder) for file in files}


def digest(file: Path, folder: Path) -> str:
    """The SHA-256 of a file, whatever folder it was made in and however long that took."""
    data = file.read_bytes()
    if file.name == "run.json":
        data = json.dumps({key: value for key, value in json.loads(data).items() if key != "clock"}).encode()
    return hashlib.sha256(data.replace(str(folder).encode(), b"FOLDER")).hexdigest()


def command(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "seunet", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def interrupted(train: tuple[object, ...], sign: Path) -> None:
    """Start a training and terminate it after its first checkpoint."""
    process = subprocess.Popen([sys.executable, "-m", "seunet", *map(str, train)], stdout=subprocess.DEVNULL)
    while not sign.is_file() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    if process.wait() != 143:
        raise SystemExit(f"the training was to be terminated (143) and ended with {process.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether two versions of the code make the same files.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    make = verbs.add_parser("make")
    make.add_argument("out", type=Path)
    make.add_argument("--slides", type=Path, nargs="+", required=True)
    make.add_argument("--monuseg", type=Path, required=True)
    make.add_argument("--config", type=Path, default=Path("configs/monuseg-cpu.yaml"))
    compare = verbs.add_parser("compare")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.verb == "make":
        with tempfile.TemporaryDirectory() as place:
            hashes = made(Path(place), given.slides, given.monuseg, given.config)
        given.out.write_text(json.dumps(hashes, indent=1) + "\n")
        print(f"{len(hashes)} files")
        return
    before, after = (json.loads(path.read_text()) for path in (given.before, given.after))
    differ = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    print(*(f"differs: {name}" for name in differ), f"{len(after) - len(differ)} of {len(after)} files equal", sep="\n")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
