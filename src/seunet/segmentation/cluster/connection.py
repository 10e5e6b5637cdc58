"""The way to a scheduler: one of our own, or one that runs somewhere and must answer soon."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from seunet.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

LOCAL: Final = "local"
CONNECT_SECONDS = 8
WORKERS_SECONDS = 60
"""How long the first worker is waited for: those of a job are started after its scheduler."""
SILENCE: Final = "12s"
"""After so long without an answer of the machine it runs on, a scheduler is gone; Dask takes no less than 11."""
RETRIES: Final = 3
"""Workers that a slide may take down before it is given up: one that kills every worker must not stop the cohort."""


@contextmanager
def connected(address: str, workers: int | None) -> Iterator[Client]:
    """A client of the scheduler at `address`, or of one with so many workers that ends with the block."""
    try:
        import distributed
    except ImportError:
        raise InputError("--dask needs Dask distributed; pip install distributed") from None
    import dask

    # A slide is longer than Dask expects a task to be, and each worker has its threads for itself.
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": RETRIES,
            "distributed.admin.tick.limit": "1h",
            "distributed.comm.timeouts.tcp": SILENCE,
            # A slide that waits at a worker would be blamed for its death as well.
            "distributed.scheduler.worker-saturation": 1.0,
            # Where the cores are busy a worker may take long to come back; given up, it is not replaced.
            "distributed.deploy.lost-worker-timeout": "1h",
        }
    )
    if address == LOCAL:
        with (
            distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    with _client_of(address) as client:
        yield client


def _client_of(address: str) -> Client:
    """A client of the scheduler there, within a time limit: another server may accept and then keep silent."""
    import distributed

    outcome: list[Client | Exception] = [TimeoutError()]

    def connect() -> None:
        try:
            outcome[0] = distributed.Client(address, timeout=CONNECT_SECONDS)
        except Exception as error:  # another server answers anything: its web page, read as a length
            outcome[0] = error

    attempt = threading.Thread(target=connect, daemon=True)
    attempt.start()
    attempt.join(CONNECT_SECONDS + 1)
    found = outcome[0]
    if isinstance(found, Exception):
        reason = f"no scheduler answers there ({type(found).__name__})"
        raise InputError(f"--dask {address}: {reason}; start one or correct it")
    return found


def wait_for_worker(client: Client, address: str) -> None:
    """Return when there is somebody to work."""
    try:
        client.wait_for_workers(1, timeout=WORKERS_SECONDS)
    except TimeoutError:
        reason = f"no worker has joined the scheduler within {WORKERS_SECONDS} s"
        raise InputError(f"--dask {address}: {reason}; start workers") from None
