"""`seunet segment` on addresses: an S3 server on this machine, and a web server."""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsspec.registry import _registry
from PIL import Image

from seunet.errors import StorageError
from seunet.segmentation import stores
from support.cli import seunet
from tests.cli.test_segment import FILES, result_bytes
from tests.support.tissue_model import discs

SECRET = "very-secret-word"
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pytest.importorskip("s3fs")
    moto = pytest.importorskip("moto.server")
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    yield "http://{}:{}".format(*running.get_host_and_port())
    running.stop()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Servers write addresses to their logs; this is not ours."""


class Bucket:
    """A bucket of its own for each test, and the same images in a folder."""

    def __init__(self, name: str, folder: Path, files: Any) -> None:
        self.name, self.folder, self.files = name, folder, files
        self.url = f"s3://{name}"

    def names(self, below: str = "") -> list[str]:
        found = self.files.find(f"{self.name}/{below}")
        return sorted(name.removeprefix(f"{self.name}/{below}").lstrip("/") for name in found)

    def bring(self, below: str, to: Path) -> Path:
        self.files.get(f"{self.name}/{below}", str(to), recursive=True)
        return to


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    import s3fs

    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setenv("SEUNET_CACHE", str(tmp_path / "cache"))
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem(endpoint_url=server, use_listings_cache=False)
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    files.mkdir(name)
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    random = np.random.default_rng(3)
    for image in ("a.png", "b.png", "sub/c.png"):
        Image.fromarray(discs(50, 40, random)).save(folder / image)
        files.put_file(str(folder / image), f"{name}/in/{image}")
    return Bucket(name, folder, files)


def segment(*arguments: object) -> tuple[int, str, str]:
    ran = seunet("segment", *arguments, "--no-progress")
    assert SECRET not in ran.out + ran.err
    return ran


def test_from_store_to_store_the_bytes_are_those_of_folders_and_a_second_command_keeps_them(
    bucket: Bucket, disc_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = segment(f"{bucket.url}/in", "-o", f"{bucket.url}/out/", "-m", disc_model)
    assert (first.code, first.err) == (0, "")
    assert [line.split(":")[0] + ":" + line.split(":")[1] for line in first.out.splitlines()[:2]] == [
        f"{bucket.url}/out/a",
        f"{bucket.url}/out/b",
    ]
    assert segment(bucket.folder, "-o", tmp_path / "local", "-m", disc_model).code == 0
    got = bucket.bring("out", tmp_path / "got")
    for name in ("a", "b"):
        assert result_bytes(got / name) == result_bytes(tmp_path / "local" / name)
    assert (got / "summary.csv").read_bytes() == (tmp_path / "local" / "summary.csv").read_bytes()
    assert sorted({name.split("/")[0] for name in bucket.names("out")}) == ["a", "b", "summary.csv"]
    assert f'"source": "{bucket.url}/in/a.png"' in (got / "a" / "run.json").read_text()
    assert not list((tmp_path / "cache").glob("in-*")), "the copies are gone"
    assert {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()} == {"run.json", "summary.csv"}

    brought: list[str] = []
    fetch = stores.fetch
    monkeypatch.setattr(stores, "fetch", lambda remote, path: (brought.append(remote.url), fetch(remote, path)))
    shutil.rmtree(tmp_path / "cache")  # another machine
    second = segment(f"{bucket.url}/in", "-o", f"{bucket.url}/out", "-m", disc_model)
    assert second.code == 0
    assert second.out.count("(was there)") == 2
    assert {url.rpartition("/")[2] for url in brought} == {"run.json"}, "no slide was copied again"

    bucket.files.put_file(str(bucket.folder / "sub" / "c.png"), f"{bucket.name}/in/a.png")
    third = segment(f"{bucket.url}/in", "-o", f"{bucket.url}/out", "-m", disc_model)
    assert third.code == 5
    assert "holds a result of another image" in third.err
    fourth = segment(f"{bucket.url}/in/a.png", "-o", f"{bucket.url}/out", "-m", disc_model, "--overwrite")
    assert fourth.code == 0
    assert (
        result_bytes(bucket.bring("out/a", tmp_path / "again"))["objects.geojson"]
        != result_bytes(got / "a")["objects.geojson"]
    )


def test_a_result_is_seen_as_whole_only_when_it_is_and_the_repeated_command_ends_it(
    bucket: Bucket, disc_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, sent = stores.send, []

    def break_down(path: Path, url: str) -> None:
        if len(sent) == 3:
            raise StorageError(f"{url}: the store cannot be used (SomeError); check the network")
        sent.append(url)
        send(path, url)

    monkeypatch.setattr(stores, "send", break_down)
    command = (f"{bucket.url}/in/a.png", "-o", f"{bucket.url}/out", "-m", disc_model)
    assert segment(*command).code == 3
    assert len(bucket.names("out")) == 3
    assert not [name for name in bucket.names("out") if name.endswith("run.json")]
    monkeypatch.setattr(stores, "send", lambda path, url: (sent.append(url), send(path, url)))
    sent.clear()
    assert segment(*command).code == 0
    assert sent[-2:] == [f"{bucket.url}/out/a/run.json", f"{bucket.url}/out/summary.csv"]
    assert {*FILES, "run.json"} <= set(bucket.names("out/a"))


def test_recursive_patterns_and_tables_of_addresses(bucket: Bucket, disc_model: Path, tmp_path: Path) -> None:
    ran = segment(f"{bucket.url}/in", "--recursive", "-o", tmp_path / "out", "-m", disc_model)
    assert ran.code == 0
    assert sorted(
        path.parent.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("run.json")
    ) == [
        "a",
        "b",
        "sub/c",
    ]
    (tmp_path / "t.csv").write_text(f"path,mpp\n{bucket.url}/in/b.png,0.25\n{bucket.url}/in/none.png,\n")
    ran = segment(tmp_path / "t.csv", f"{bucket.url}/in/s*/*.png", "-o", tmp_path / "two", "-m", disc_model)
    assert ran.code == 5
    assert "2 done, 1 failed" in ran.out
    assert f"{bucket.url}/in/none.png: no such file, folder or bucket; check the address" in ran.err


BAD = {
    "s3://no-such-bucket/a.png": "s3://no-such-bucket/a.png: no such file, folder or bucket; check the address",
    "ftp://somewhere/a.png": "ftp://somewhere/a.png: ftp:// is not among s3://, gs://, gcs://, http://, https://; use",
    "http://127.0.0.1:9/a.png?key=very-secret-word": "http://127.0.0.1:9/a.png: the store cannot be used (",
}


@pytest.mark.parametrize("url", BAD)
def test_a_bad_address_is_one_line(url: str, bucket: Bucket, disc_model: Path, tmp_path: Path) -> None:
    ran = segment(url, "-o", tmp_path / "out", "-m", disc_model)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith(f"seunet: {BAD[url]}")


def test_an_out_that_cannot_be_written_to_and_a_cluster_are_refused(
    bucket: Bucket, disc_model: Path, tmp_path: Path
) -> None:
    image = bucket.folder / "a.png"
    ran = segment(image, "-o", "https://example.org/out", "-m", disc_model)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "https:// is not among s3://, gs://, gcs://" in ran.err
    ran = segment(image, "-o", f"{bucket.url}/out", "-m", disc_model, "--workers", "2")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "take folders, no addresses of stores" in ran.err


def test_a_store_that_does_not_answer_is_one_line_within_fifteen_seconds(
    bucket: Bucket, disc_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for arguments in ((f"{bucket.url}/in", "-o", tmp_path / "out"), (bucket.folder, "-o", f"{bucket.url}/out")):
        began = time.monotonic()
        ran = segment(*arguments, "-m", disc_model)
        assert time.monotonic() - began < 15
        assert ran.code == 2
        assert len(ran.err.splitlines()) == 1
        assert "the store cannot be used (" in ran.err


def test_missing_credentials_are_named(
    bucket: Bucket, disc_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    ran = segment(f"{bucket.url}/in", "-o", tmp_path / "out", "-m", disc_model)
    assert ran.code == 2
    assert ran.err.splitlines() == [
        f"seunet: {bucket.url}/in: no credentials for this store; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
        "or AWS_PROFILE"
    ]


def test_without_the_extra_its_name_is_said(disc_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("s3fs", "aiohttp"):
        monkeypatch.setitem(sys.modules, module, None)
    for kind in ("s3", "https"):
        monkeypatch.delitem(_registry, kind, raising=False)
    for url in ("s3://somewhere/a.png", "https://example.org/a.png"):
        ran = segment(url, "-o", tmp_path / "out", "-m", disc_model)
        assert ran.code == 2
        assert ran.err == f"seunet: {url}: needs packages for object stores; pip install 'seunet[cloud]'\n"


def test_a_slide_of_a_web_server_is_read_and_a_signed_address_is_kept_secret(
    disc_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("SEUNET_CACHE", str(tmp_path / "cache"))
    (tmp_path / "www").mkdir()
    Image.fromarray(discs(50, 40, np.random.default_rng(3))).save(tmp_path / "www" / "a.png")
    handler = functools.partial(QuietHandler, directory=str(tmp_path / "www"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/a.png?X-Amz-Signature={SECRET}"
        ran = segment(url, "-o", tmp_path / "out", "-m", disc_model)
        missing = segment(url.replace("a.png", "b.png"), "-o", tmp_path / "out", "-m", disc_model)
        server.shutdown()
    assert ran.code == 0
    assert missing.code == 2
    assert "b.png: no such file, folder or bucket; check the address" in missing.err
    assert segment(tmp_path / "www" / "a.png", "-o", tmp_path / "local", "-m", disc_model).code == 0
    assert result_bytes(tmp_path / "out" / "a") == result_bytes(tmp_path / "local" / "a")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]
