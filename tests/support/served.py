"""A viewer's server in a thread of this process, and what it answers."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn

from seunet.viewer import Shown, free_port, viewer_app

TOKEN = "a-token-of-our-own"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served(NamedTuple):
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/{TOKEN}/"

    def ask(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answer:
        """Below the token; a path that begins with / is taken as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            where = path if path.startswith("/") else f"/{TOKEN}/{path}"
            connection.request(method, where, headers=dict(headers or {}))
            reply = connection.getresponse()
            return Answer(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
        finally:
            connection.close()


@contextmanager
def serving(shown: Sequence[Shown]) -> Iterator[Served]:
    """A server until the block ends."""
    with free_port(0) as listening:
        port = listening.getsockname()[1]
        app = viewer_app(shown, TOKEN, port)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, log_level="critical", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Served(port)
        finally:
            server.should_exit = True
            thread.join()
