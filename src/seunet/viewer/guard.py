"""Who may ask: this machine's browser, with the token, from our own page.  Everything else is refused, in one word."""

from __future__ import annotations

import hmac
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS: Final = ("GET", "HEAD")
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        b"style-src 'self' 'sha256-9xTiqzfwFaL2SGb1rmr8gysEwVVjIvqWAgmZgqFqpEE='; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
)
"""No other page may show, read or run ours, and ours asks nobody else.  The hash: a style of OpenSeadragon."""


class Guard:
    """Lets through what begins with the token and comes from our own address; the rest of the path goes on.

    The Host header is checked because a foreign name can be made to lead to 127.0.0.1 (DNS rebinding), Origin and
    Sec-Fetch-Site because any page on the web may ask 127.0.0.1, the token because any user of this machine may.
    """

    def __init__(self, inner: ASGIApp, token: str, port: int) -> None:
        self._inner, self._token = inner, token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif (status := self._refused(scope)) is not None:
            await _answer(send, status)
        else:
            path = scope["path"][len(self._token) + 1 :]
            await self._inner({**scope, "path": path, "raw_path": path.encode()}, receive, _with_headers(send))

    def _refused(self, scope: Scope) -> int | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 403
        if any(origin != b"http://" + hosts[0] for origin in headers.get(b"origin", [])):
            return 403
        if any(site not in (b"same-origin", b"none") for site in headers.get(b"sec-fetch-site", [])):
            return 403
        first, slash, _ = scope["path"].encode(errors="replace")[1:].partition(b"/")
        if not (hmac.compare_digest(first, self._token) and slash):
            return 403
        return None if scope["method"] in METHODS else 405


async def _answer(send: Send, status: int) -> None:
    start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": list(HEADERS)}
    await send(start)
    await send({"type": "http.response.body", "body": b"refused"})


def _with_headers(send: Send) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *HEADERS]
        await send(message)

    return answer
