"""What not every operating system has: locks on files, limits of memory, owners of folders.

Linux is tested.  macOS has the same calls and is not tested.  Windows has no `fcntl` and no `resource`: files are
locked by `msvcrt`, memory is not capped, and images are read in this process (`CAN_CONFINE`); this is not tested
there, only on Linux with those modules hidden.
"""

from __future__ import annotations

import importlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl, resource, msvcrt = _module("fcntl"), _module("resource"), _module("msvcrt")

CAN_CONFINE: Final = resource is not None
"""Whether a process can be kept from taking all memory, and share a file without a name with its parent."""


def lock_file(descriptor: int) -> None:
    """Hold an open file for this process until it is closed; a BlockingIOError if another process holds it.

    The lock is the system's and dies with the process.
    """
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt is not None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, error.strerror) from None


def cap_memory(limit_bytes: int) -> None:
    """Cap the address space of this process; a cap that is lower already (`ulimit -v`) stays."""
    if resource is None:
        return
    soft, hard = (min(limit_bytes, limit) if limit >= 0 else limit_bytes for limit in _address_space())
    with suppress(ValueError, OSError):  # macOS refuses some values
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def address_space_bytes() -> int | None:
    """What `ulimit -v` allows this process; None where nothing limits it."""
    if resource is None:
        return None
    soft = _address_space()[0]
    return soft if soft >= 0 else None


def _address_space() -> tuple[int, int]:
    """Soft and hard limit; no limit is a negative number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    return (-1 if soft == resource.RLIM_INFINITY else soft), (-1 if hard == resource.RLIM_INFINITY else hard)


def peak_resident() -> int:
    """The most memory this process held, in the unit of its system; 0 where it is not counted."""
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) if resource is not None else 0


def memory_bytes() -> int:
    """The memory of this machine that nobody uses, or all of it where that is not told; one GiB where nothing is."""
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 2**30


def settle_without_home() -> None:
    """Where there is no home that can be written, give Matplotlib the folder that it would complain of in two lines."""
    if not os.access(os.path.expanduser("~"), os.W_OK):
        folder = private_folder("seunet-matplotlib")
        if folder is not None:
            os.environ.setdefault("MPLCONFIGDIR", str(folder))


def private_folder(name: str) -> Path | None:
    """A folder in the temporary folder that this user alone can read and write; None where there can be none.

    Its name can be foretold, so that the next process finds it.  Somebody else may have made it, or a link of that
    name: what we do not own, or others may write to, is not used.
    """
    user = os.getuid() if hasattr(os, "getuid") else None  # Windows: the temporary folder is the user's own
    try:
        place = Path(tempfile.gettempdir()) / (name if user is None else f"{name}-{user}")
        place.mkdir(mode=0o700, exist_ok=True)
        parent, found = place.parent.stat(), place.lstat()
    except OSError:
        return None
    others_may_replace = parent.st_mode & 0o022 and not parent.st_mode & stat.S_ISVTX
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077
    return place if user is None or (ours and not others_may_replace) else None
