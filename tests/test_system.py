"""What not every operating system has."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

import seunet
from seunet import system
from seunet.system import lock_file, private_folder
from support.datasets import he_pixels


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_private_folder_is_found_again(temporary: Path) -> None:
    folder = private_folder("ours")
    assert folder == temporary / f"ours-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert private_folder("ours") == folder


def test_a_folder_that_others_may_read_or_write_is_not_private(temporary: Path) -> None:
    folder = private_folder("ours")
    assert folder is not None
    for mode in (0o750, 0o707):
        folder.chmod(mode)
        assert private_folder("ours") is None


def test_a_link_is_not_followed(temporary: Path) -> None:
    (temporary / "elsewhere").mkdir(mode=0o700)
    (temporary / f"ours-{os.getuid()}").symlink_to(temporary / "elsewhere")
    assert private_folder("ours") is None


def test_a_folder_of_another_user_is_not_ours(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = private_folder("ours")
    assert folder is not None
    folder.rename(temporary / "ours-12345")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert private_folder("ours") is None


def test_where_others_could_put_their_own_in_its_place_there_is_none(temporary: Path) -> None:
    temporary.chmod(0o777)
    assert private_folder("ours") is None
    temporary.chmod(0o1777)
    assert private_folder("ours") is not None


def test_where_nothing_can_be_made_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/none")
    assert private_folder("ours") is None


COMMAND = "from seunet.cli import main; main.called = lambda: __import__('matplotlib'); main.main()"
OVERLAY = "from seunet.results.pictures.legend import _font; _font()"
SHADES = "from seunet.results.pictures.legend import shades; shades(2)"


@pytest.mark.parametrize(
    ("home", "program"), [("/proc/none", COMMAND), (".", COMMAND), ("/proc/none", OVERLAY), ("/proc/none", SHADES)]
)
def test_without_a_home_matplotlib_has_a_folder_and_says_nothing(home: str, program: str, tmp_path: Path) -> None:
    environment = os.environ | {"HOME": home, "TMPDIR": str(tmp_path)}
    environment.pop("MPLCONFIGDIR", None)
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert (tmp_path / f"seunet-matplotlib-{os.getuid()}").is_dir() is (home != ".")


CAPPED = """
import resource, sys
from seunet.system import cap_memory
before = tuple(int(limit) for limit in sys.argv[1:3])
resource.setrlimit(resource.RLIMIT_AS, before)
cap_memory(4 << 30)
print(*resource.getrlimit(resource.RLIMIT_AS))
"""


@pytest.mark.parametrize(
    ("before", "after"), [((-1, -1), (4 << 30, 4 << 30)), ((3 << 30, 5 << 30), (3 << 30, 4 << 30))]
)
def test_a_cap_lowers_a_limit_and_never_raises_one(before: tuple[int, int], after: tuple[int, int]) -> None:
    command = [sys.executable, "-c", CAPPED, *map(str, before)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert tuple(map(int, found.split())) == after


def test_without_fcntl_files_are_locked_by_msvcrt(monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[int] = []

    def locking(file: int, how: int, count: int) -> None:
        if locked:
            raise PermissionError(13, "Permission denied")
        locked.append(file)

    windows: Any = SimpleNamespace(locking=locking, LK_NBLCK=2)
    monkeypatch.setattr(system, "fcntl", None)
    monkeypatch.setattr(system, "msvcrt", windows)
    lock_file(7)
    assert locked == [7]
    with pytest.raises(BlockingIOError):
        lock_file(8)


WITHOUT_LINUX = """
import os, signal, sys
import cv2, numba, torch, zarr  # they look which system this is; what we use of it ourselves is hidden from here on
sys.modules["fcntl"] = sys.modules["resource"] = None  # an import of them fails, as on Windows
for name in ("fork", "register_at_fork", "memfd_create", "getuid"):
    delattr(os, name)
del signal.setitimer
from seunet.cli.main import main
sys.argv = ["seunet", *sys.argv[1:]]
main()
"""


def test_segment_and_info_need_nothing_that_only_linux_has(tmp_path: Path) -> None:
    seunet.create_model("unet", widths=(4, 8)).save_pretrained(tmp_path / "model")
    Image.fromarray(he_pixels(96, 0)).save(tmp_path / "a.png")
    for arguments in (["info", "a.png"], ["segment", "a.png", "-o", "out", "-m", "model", "--no-progress"]):
        ran = subprocess.run(
            [sys.executable, "-c", WITHOUT_LINUX, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
        assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "out" / "a" / "labels.tif").is_file()
