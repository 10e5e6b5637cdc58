"""Work handed from thread to thread through short queues: reading, computing and writing at the same time.

An error in one thread is raised in the one that called; nobody waits for somebody who has left.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class _StoppedError(Exception):
    """The other side has given up."""


class _Passage(Generic[Item]):
    """A short queue between two threads that both can leave at any time."""

    def __init__(self, room: int) -> None:
        self._queue: queue.Queue[Item] = queue.Queue(room)
        self._closed = threading.Event()

    def put(self, item: Item) -> None:
        while not self._closed.is_set():
            try:
                return self._queue.put(item, timeout=0.1)
            except queue.Full:
                continue
        raise _StoppedError

    def take(self) -> Item:
        while True:
            try:
                return self._queue.get(timeout=0.1)
            except queue.Empty:
                if self._closed.is_set():
                    raise _StoppedError from None

    def close(self) -> None:
        self._closed.set()


@contextmanager
def made_by_thread(
    name: str, make: Callable[[Item], Made], items: Iterator[Item], ahead: int
) -> Iterator[Iterator[Made]]:
    """What `make` makes of each item, made by a thread of its own, at most `ahead` of them before they are wanted."""
    passage: _Passage[tuple[Made | None, BaseException | None]] = _Passage(max(1, ahead))
    tickets: _Passage[None] = _Passage(max(1, ahead))

    def work() -> None:
        try:
            for item in items:
                tickets.put(None)
                passage.put((make(item), None))
            tickets.put(None)
            passage.put((None, None))
        except _StoppedError:
            pass
        except BaseException as error:
            # Raised again where the results are taken.
            with suppress(_StoppedError):
                passage.put((None, error))

    def results() -> Iterator[Made]:
        while True:
            made, error = passage.take()
            tickets.take()
            if error is not None:
                raise error
            if made is None:
                return
            yield made

    thread = threading.Thread(target=work, name=f"seunet-{name}", daemon=True)
    thread.start()
    try:
        yield results()
    finally:
        passage.close()
        tickets.close()
        thread.join()


@contextmanager
def used_by_thread(name: str, use: Callable[[Item], None]) -> Iterator[Callable[[Item], None]]:
    """A function that hands an item to a thread of its own; at the end all are done, or the first error is raised."""
    passage: _Passage[Item | None] = _Passage(1)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while (item := passage.take()) is not None:
                use(item)
        except _StoppedError:
            pass
        except BaseException as error:
            errors.append(error)
            passage.close()

    def hand_over(item: Item) -> None:
        try:
            passage.put(item)
        except _StoppedError:
            raise errors[0] from None

    thread = threading.Thread(target=work, name=f"seunet-{name}", daemon=True)
    thread.start()
    try:
        yield hand_over
        hand_over(None)  # type: ignore[arg-type]
    except BaseException:
        # What is on its way is still written: it is whole.
        passage.close()
        raise
    finally:
        thread.join()
    if errors:
        raise errors[0]
