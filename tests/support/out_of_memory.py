"""`seunet train CONFIG -o RUN OPTIONS…` in a process with little room: `out_of_memory.py RESULT CONFIG RUN OPTIONS…`.

Writes exit code and errors to RESULT.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from support.cli import seunet

ROOM_BYTES = 160 << 20


def main() -> None:
    result, config, run, *options = sys.argv[1:]
    small = ("--set", "recipe.batch=1", "--set", "recipe.epochs=1")
    warm = seunet("train", config, "-o", f"{run}-warm", "--no-progress", *small)  # code is loaded, threads are started
    # What comes after is asked for, not the refusal before it.
    sys.modules["seunet.cli.main"].LEAST_ADDRESS_SPACE_BYTES = 0  # type: ignore[attr-defined]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM_BYTES, resource.RLIM_INFINITY))
    limited = seunet("train", config, "-o", run, "--no-progress", *options)
    Path(result).write_text(json.dumps([warm.code, limited.code, limited.err]))


if __name__ == "__main__":
    main()
