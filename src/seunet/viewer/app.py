"""The server: what is shown, for those who know the token."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from seunet.errors import SeunetError
from seunet.viewer.answers import FRESH, Viewer
from seunet.viewer.finding import Shown
from seunet.viewer.guard import Guard


def viewer_app(shown: Sequence[Shown], token: str, port: int) -> ASGIApp:
    """The server of what is shown, for those who know the token."""
    viewer = Viewer(shown)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        viewer.prepare()
        yield
        viewer.close()

    handlers: Any = {SeunetError: _fault, Exception: _bug}
    app = Starlette(routes=viewer.routes(), lifespan=life, exception_handlers=handlers)
    app.router.redirect_slashes = False  # a redirect would lead past the token
    return Guard(app, token, port)


def _fault(_: Request, error: Exception) -> Response:
    """What is wrong with a file, in its one line."""
    return JSONResponse({"error": " ".join(str(error).split())}, status_code=422, headers=FRESH)


def _bug(_: Request, error: Exception) -> Response:
    return JSONResponse(
        {"error": f"our bug ({type(error).__name__}); please report it"}, status_code=500, headers=FRESH
    )
