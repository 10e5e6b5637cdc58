"""A hub on this machine: the part of the Hugging Face Hub's protocol that its client uses to push and to load models.

Real HTTP on the loopback.  Repositories live in memory: commits, each a tree of files, and branches that name one.
Files of 1,024 bytes and more that are safetensors are "large": their content travels apart from the commit (LFS), and
they are downloaded from another address than the one they are asked for at, as on the real one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Tree = dict[str, bytes]


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def is_large(path: str) -> bool:
    return path.endswith((".safetensors", ".bin"))


@dataclass
class Hub:
    """What is on the hub, and what was asked of it."""

    port: int = 0
    token: str = "hf_of_the_tests"
    commits: dict[str, dict[str, Tree]] = field(default_factory=dict)
    """Of each repository: the files by commit."""
    branches: dict[str, dict[str, str]] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    """Large files by their sha256."""
    altered: dict[str, bytes] = field(default_factory=dict)
    """What is sent for a file in place of its content."""
    requests: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def commit(self, name: str, tree: Tree, branch: str = "main") -> str:
        """A new commit with these files."""
        text = json.dumps(
            [name, len(self.commits.get(name, {})), {path: git_hash(tree[path]) for path in sorted(tree)}]
        )
        commit = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        self.commits.setdefault(name, {})[commit] = dict(tree)
        self.branches.setdefault(name, {})[branch] = commit
        self.objects |= {hashlib.sha256(data).hexdigest(): data for path, data in tree.items() if is_large(path)}
        return commit

    def tree(self, name: str, revision: str = "main") -> Tree:
        return self.commits[name][self.branches[name].get(revision, revision)]

    def downloads(self) -> list[str]:
        """The files that were sent."""
        found = (re.fullmatch(r"GET /[^/]+/[^/]+/resolve/[^/]+/(.+)", request) for request in self.requests)
        return [match[1] for match in found if match]


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{self.command} {path}")
        for pattern, method in (
            (r"/api/models/([^/]+/[^/]+)", self._info),
            (r"/api/models/([^/]+/[^/]+)/revision/(.+)", self._info),
            (r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self._resolve),
            (r"/elsewhere/([0-9a-f]{64})/(.+)", self._large_file),
            (r"/api/validate-yaml", self._validated),
            (r"/api/repos/create", self._created),
            (r"/api/models/([^/]+/[^/]+)/preupload/(.+)", self._upload_modes),
            (r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", self._where_to_upload),
            (r"/uploads/([0-9a-f]{64})", self._uploaded),
            (r"/api/models/([^/]+/[^/]+)/commit/(.+)", self._committed),
        ):
            found = re.fullmatch(pattern, path)
            if found:
                method(*found.groups())
                return
        self._send(404, {"error": "not here"})

    def _send(
        self, status: int, content: Any = b"", headers: dict[str, str] | None = None, size: int | None = None
    ) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data) if size is None else size), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
            if size is not None and size != len(data):
                self.close_connection = True

    def _refused(self, status: int, code: str) -> None:
        self._send(status, {"error": code}, {"X-Error-Code": code})

    def _may_write(self) -> bool:
        may = self.headers.get("Authorization") == f"Bearer {self.hub.token}"
        if not may:
            self._send(401, {"error": "Invalid username or password."})
        return may

    def _commit_of(self, name: str, revision: str) -> str | None:
        """The commit that a revision means; None once it is refused."""
        if name not in self.hub.commits:
            self._refused(404, "RepoNotFound")
            return None
        commit = self.hub.branches[name].get(revision, revision)
        if commit not in self.hub.commits[name]:
            self._refused(404, "RevisionNotFound")
            return None
        return commit

    def _info(self, name: str, revision: str = "main") -> None:
        if (commit := self._commit_of(name, revision)) is None:
            return
        files = []
        for path, data in self.hub.commits[name][commit].items():
            entry: dict[str, Any] = {"rfilename": path, "size": len(data), "blobId": git_hash(data)}
            if is_large(path):
                entry["lfs"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "pointerSize": 134}
            files.append(entry)
        self._send(200, {"id": name, "modelId": name, "sha": commit, "private": False, "tags": [], "siblings": files})

    def _resolve(self, name: str, revision: str, path: str) -> None:
        if (commit := self._commit_of(name, revision)) is None:
            return
        data = self.hub.commits[name][commit].get(path)
        headers = {"X-Repo-Commit": commit}
        if data is None:
            self._send(404, {"error": "no such entry"}, {**headers, "X-Error-Code": "EntryNotFound"})
        elif is_large(path):
            name_of_it = hashlib.sha256(data).hexdigest()
            linked = {"X-Linked-Etag": f'"{name_of_it}"', "X-Linked-Size": str(len(data))}
            self._send(
                302,
                b"",
                {**headers, **linked, "Location": f"http://localhost:{self.hub.port}/elsewhere/{name_of_it}/{path}"},
            )
        else:
            sent = self.hub.altered.get(path, data)
            self._send(200, sent, {**headers, "ETag": f'"{git_hash(data)}"'}, len(data))

    def _large_file(self, name_of_it: str, path: str) -> None:
        data = self.hub.objects[name_of_it]
        self._send(200, self.hub.altered.get(path, data), size=len(data))

    def _validated(self) -> None:
        self._send(200, {"errors": [], "warnings": []})

    def _created(self) -> None:
        if not self._may_write():
            return
        asked = json.loads(self.body)
        name = f"{asked['organization']}/{asked['name']}"
        self.hub.commit(name, {".gitattributes": b"*.safetensors filter=lfs\n"})
        self._send(200, {"url": f"{self.hub.address}/{name}", "name": name})

    def _upload_modes(self, name: str, revision: str) -> None:
        if not self._may_write():
            return
        paths = [file["path"] for file in json.loads(self.body)["files"]]
        tree = self.hub.tree(name, revision)
        modes = [
            {
                "path": path,
                "uploadMode": "lfs" if is_large(path) else "regular",
                "shouldIgnore": False,
                "oid": git_hash(tree[path]) if path in tree else None,
            }
            for path in paths
        ]
        self._send(200, {"files": modes})

    def _where_to_upload(self, name: str) -> None:
        objects = []
        for asked in json.loads(self.body)["objects"]:
            entry = {"oid": asked["oid"], "size": asked["size"]}
            if asked["oid"] not in self.hub.objects:
                entry["actions"] = {"upload": {"href": f"{self.hub.address}/uploads/{asked['oid']}"}}
            objects.append(entry)
        self._send(200, {"transfer": "basic", "objects": objects})

    def _uploaded(self, name_of_it: str) -> None:
        fits = hashlib.sha256(self.body).hexdigest() == name_of_it
        if fits:
            self.hub.objects[name_of_it] = self.body
        self._send(200 if fits else 400)

    def _committed(self, name: str, revision: str) -> None:
        if not self._may_write():
            return
        tree = dict(self.hub.tree(name, revision))
        for line in self.body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                tree[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                tree[value["path"]] = self.hub.objects[value["oid"]]
            elif entry["key"] == "deletedFile":
                del tree[value["path"]]
        commit = self.hub.commit(name, tree, revision)
        self._send(200, {"commitOid": commit, "commitUrl": f"{self.hub.address}/{name}/commit/{commit}"})


@contextmanager
def serving_hub() -> Iterator[Hub]:
    """A hub until the block ends."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Answers", (_Answers,), {"hub": hub}))
    hub.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
