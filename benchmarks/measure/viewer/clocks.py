"""Memory and processor time of a server with its processes, and of a page."""

from __future__ import annotations

import threading

import psutil
from playwright.sync_api import Page


class Watched:
    """The memory of a process and of its children, looked at again and again."""

    def __init__(self, pid: int) -> None:
        self._process, self._stop = psutil.Process(pid), threading.Event()
        self.peak_server, self.peak_all = 0, 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            try:
                own = self._process.memory_full_info().pss
                children = [child.memory_full_info().pss for child in self._process.children(recursive=True)]
            except psutil.Error:
                continue
            self.peak_server, self.peak_all = max(self.peak_server, own), max(self.peak_all, own + sum(children))

    def cpu_seconds(self) -> float:
        """Of the server and its processes, those that have ended too."""
        own = self._process.cpu_times()
        children = [child.cpu_times() for child in self._process.children(recursive=True)]
        ended: float = own.children_user + own.children_system
        return ended + sum(float(one.user + one.system) for one in (own, *children))

    def stop(self) -> None:
        self._stop.set()


class PageClock:
    """The processor time of the thread that runs a page."""

    def __init__(self, page: Page) -> None:
        self._devtools = page.context.new_cdp_session(page)
        self._devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds(self) -> float:
        metrics = self._devtools.send("Performance.getMetrics")["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))
