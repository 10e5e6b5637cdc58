"""Who may ask: other origins, other hosts, paths outside, a missing token and broken requests are refused."""

from __future__ import annotations

import asyncio
import hashlib
import random
import socket
from pathlib import Path

import pytest

from seunet.viewer import find_shown, viewer_app
from tests.support.served import TOKEN, Served
from tests.viewer.conftest import Made

ROOT = Path(__file__).parents[2]
VENDORED = ROOT / "src" / "seunet" / "viewer" / "static" / "openseadragon"


def test_the_page_and_a_tile_are_served_to_who_has_the_token(served: Served) -> None:
    assert b"seunet view" in served.ask("").body
    tile = served.ask("tiles/0/slide/0/0/0")
    assert (tile.status, tile.headers["content-type"]) == (200, "image/jpeg")


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/api/shown", {}),
        (f"/{TOKEN}", {}),
        (f"/{TOKEN[:-1]}/api/shown", {}),
        (f"/{TOKEN}x/api/shown", {}),
        ("api/shown", {"Host": "evil.example"}),
        ("api/shown", {"Host": "127.0.0.1"}),
        ("api/shown", {"Origin": "http://evil.example"}),
        ("api/shown", {"Origin": "null"}),
        ("api/shown", {"Sec-Fetch-Site": "cross-site"}),
        ("api/shown", {"Sec-Fetch-Site": "same-site"}),
    ],
)
def test_a_missing_token_another_host_and_another_origin_are_refused(
    served: Served, path: str, headers: dict[str, str]
) -> None:
    answer = served.ask(path, headers)
    assert (answer.status, answer.body) == (403, b"refused")


def test_our_own_page_may_ask_by_either_name_of_this_machine(served: Served) -> None:
    for name in ("127.0.0.1", "localhost"):
        own = f"{name}:{served.port}"
        headers = {"Host": own, "Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"}
        assert served.ask("api/shown", headers).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(served: Served, method: str) -> None:
    assert served.ask("api/shown", method=method).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "static/../app.py",
        "static/../../../etc/passwd",
        "static/%2e%2e/app.py",
        "static/..%2fapp.py",
        "static//etc/passwd",
        "static/app.py",
        "static/",
        "../../etc/passwd",
        "tiles/0/../../slide/0/0/0",
        "api/export/0/..%2f..%2frun.json",
        "api/export/0/run.json",
        "out/first/run.json",
    ],
)
def test_no_path_leads_to_another_file(served: Served, path: str) -> None:
    assert served.ask(path).status == 404


def test_every_answer_forbids_others_to_show_read_or_run_it(served: Served) -> None:
    for path in ("", "api/shown", "tiles/0/slide/0/0/0", "nowhere", "/no-token/"):
        headers = served.ask(path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


def test_ten_thousand_malformed_requests_are_refused_and_the_server_stays_up(made: Made) -> None:
    """Straight into the application, which is what a hostile page with a stolen token could reach."""
    app = viewer_app(find_shown([str(made.out)]).shown, TOKEN, 1)
    dice = random.Random(0)
    parts = ["-1", "9" * 20, "1e9", "0x1", "..", "%00", "\x00", "slide", "labels", "", "½", "nan", "7"]

    async def status(path: str, query: bytes = b"") -> int:
        found: list[int] = []

        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                found.append(message["status"])  # type: ignore[arg-type]

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": b"", "more_body": False}

        scope = {
            "type": "http",
            "method": "GET",
            "path": f"/{TOKEN}/{path}",
            "raw_path": path.encode(),
            "query_string": query,
            "headers": [(b"host", b"127.0.0.1:1")],
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
        }
        await app(scope, receive, send)  # type: ignore[arg-type]
        return found[0]

    async def all_of_them() -> set[int]:
        seen = set()
        for number in range(10_000):
            place = "/".join(dice.choice(parts) for _ in range(dice.randint(3, 6)))
            head = dice.choice(["tiles/0/", "tiles/", "cells/0/", "cells/", "api/object/0/", "api/item/", "static/"])
            seen.add(await status(f"{head}{place}", b"range=0:1" if number % 7 == 0 else b""))
        return seen

    assert asyncio.run(all_of_them()) == {404}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("tiles/0/slide/0/99/0", 404),
        ("tiles/0/slide/40/0/0", 404),
        ("tiles/7/slide/0/0/0", 404),
        ("tiles/0/nothing/0/0/0", 404),
        ("api/at/0?x=nan-sense&y=1", 400),
        ("api/objects/0?from=-1", 400),
        ("api/objects/0?sort=99", 400),
        ("api/objects/0?range=0:x:1", 422),
        ("api/objects/0?range=99:0:1", 422),
        ("api/objects/0?range=0:nan:1", 422),
        ("api/histogram/0?column=99", 404),
        ("api/object/0/99999999", 404),
        ("api/compare/0/9", 404),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_said_so(served: Served, path: str, status: int) -> None:
    assert served.ask(path).status == status


def test_bytes_that_are_no_http_end_their_own_connection_only(served: Served) -> None:
    for data in (b"\x16\x03\x01\x02", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"A" * 200_000):
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
            try:  # the server may have hung up before all is sent
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                reply = connection.recv(64)
            except OSError:
                reply = b""
            assert not reply or b" 400 " in reply or b" 403 " in reply
    assert served.ask("api/shown").status == 200


def test_openseadragon_is_the_one_we_looked_at() -> None:
    for line in (VENDORED / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((VENDORED / name).read_bytes()).hexdigest() == digest
    assert {path.name for path in VENDORED.iterdir()} == {"SHA256SUMS", "LICENSE.txt", "openseadragon.min.js"}


def test_no_page_of_ours_asks_anybody_else() -> None:
    static = VENDORED.parent
    for path in static.glob("*.*"):
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not [mark for mark in ("http://", "https://", "//cdn") if mark in text]
