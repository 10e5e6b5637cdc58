"""`seunet view`: parse, call, print."""

from __future__ import annotations

import sys

import typer

from seunet.cli.stopping import Interrupted

INPUTS = typer.Argument(..., metavar="OUT|FILE...", help="Folders of results, images, slides, or folders of them.")
PORT = typer.Option(8420, "--port", metavar="N", help="Port on this machine; the next free one if it is in use.")
BROWSER = typer.Option(True, "--browser/--no-browser", help="Open a browser, or only print the address.")


def view(inputs: list[str] = INPUTS, port: int = PORT, browser: bool = BROWSER) -> None:
    """Look at results and slides in a browser on this machine. Nothing leaves it; nothing is changed.

    Example: seunet view out
    """
    from seunet.viewer.finding import find_shown
    from seunet.viewer.serve import free_port, serve_viewer

    found = find_shown(inputs)
    for line in (*found.faults, *(f"{one.name}: {note}" for one in found.shown for note in one.notes)):
        print(f"note: {line}", file=sys.stderr)
    with free_port(port) as listening:
        taken = listening.getsockname()[1]
        if port not in (0, taken):
            print(f"note: port {port} is in use; {taken} is taken instead", file=sys.stderr)
        try:
            serve_viewer(found.shown, listening, lambda line: print(line, flush=True), browser)
        except (Interrupted, KeyboardInterrupt):
            print("ended", file=sys.stderr)
