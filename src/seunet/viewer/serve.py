"""The server's socket, its life, and the browser."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from typing import Final

from seunet.errors import InputError, ResourceError
from seunet.viewer.finding import Shown

HOST: Final = "127.0.0.1"
PORT: Final = 8420
TRIES: Final = 50


def free_port(wanted: int) -> socket.socket:
    """A socket on the loopback address: at `wanted`, or the next port that is free."""
    if not 0 <= wanted <= 65_535:
        raise InputError(f"--port {wanted}: must be a number from 0 to 65535")
    for port in range(wanted, min(wanted + TRIES, 65_536)) if wanted else (0,):
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, port))
            made.listen(128)
            return made
        except OSError:
            made.close()
    raise ResourceError(f"--port {wanted}: it and the {TRIES - 1} after it are in use; give another")


def serve_viewer(shown: Sequence[Shown], listening: socket.socket, say: Callable[[str], None], browser: bool) -> None:
    """Serve until interrupted.  `say` gets the address, and what became of the browser."""
    try:
        import uvicorn

        from seunet.viewer.app import viewer_app
    except ImportError:
        raise InputError("seunet view needs Starlette and uvicorn; pip install starlette uvicorn") from None
    token, port = secrets.token_urlsafe(24), listening.getsockname()[1]
    address = f"http://{HOST}:{port}/{token}/"
    app = viewer_app(shown, token, port)
    # Logging is the caller's: uvicorn would set it up anew, and end the handlers that are there.
    settings = uvicorn.Config(
        app, log_config=None, log_level="critical", access_log=False, server_header=False, ws="none"
    )
    say(f"{address}\nCtrl-C ends it.")
    if browser:
        threading.Thread(target=_open_browser, args=(address, say), daemon=True).start()
    uvicorn.Server(settings).run(sockets=[listening])


def _open_browser(address: str, say: Callable[[str], None]) -> None:
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        say("no browser could be opened; open the address above in one on this machine")
