"""`seunet train` in a process whose address space is limited: `out_of_memory.py CONFIG FOLDER`.

Writes to FOLDER/ran.json exit code and errors of a run with too large a batch, and of one with the remedy that the
first one named.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from pathlib import Path

from tests.support.cli import Ran, seunet

ROOM_BYTES = 160 << 20


def main() -> None:
    config, folder = Path(sys.argv[1]), Path(sys.argv[2])

    def run(name: str, *options: object) -> Ran:
        return seunet("train", config, "-o", folder / name, "--no-progress", *options)

    small = ("--set", "recipe.batch=1", "--set", "recipe.epochs=1")
    ran = [run("warm", *small)]  # code is compiled and loaded, threads are started
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM_BYTES, resource.RLIM_INFINITY))
    ran.append(run("large"))
    remedy = re.search(r"--set (recipe\.accumulate=\d+)", ran[-1].err)
    if remedy is not None:
        ran.append(run("remedied", "--set", remedy[1]))
    (folder / "ran.json").write_text(json.dumps([[result.code, result.err] for result in ran]))


if __name__ == "__main__":
    main()
