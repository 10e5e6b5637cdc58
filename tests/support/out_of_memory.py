"""`seunet train CONFIG -o RUN OPTIONS…` in a process with little room: `out_of_memory.py RESULT CONFIG RUN OPTIONS…`.

Writes exit code and errors to RESULT.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import seunet.cli.main
from support.cli import seunet as run_seunet

ROOM_BYTES = 160 << 20


def main() -> None:
    result, config, run, *options = sys.argv[1:]
    small = ("--set", "recipe.batch=1", "--set", "recipe.epochs=1")
    warm = run_seunet(
        "train", config, "-o", f"{run}-warm", "--no-progress", *small
    )  # code is loaded, threads are started
    seunet.cli.main.LEAST_ADDRESS_SPACE_BYTES = 0  # what comes after is asked for, not the refusal before it
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM_BYTES, resource.RLIM_INFINITY))
    limited = run_seunet("train", config, "-o", run, "--no-progress", *options)
    Path(result).write_text(json.dumps([warm.code, limited.code, limited.err]))


if __name__ == "__main__":
    main()
