"""Requests, counted in files that all processes of the web server share."""

import os
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Any, cast

from flask import Flask
from prometheus_client import mmap_dict, multiprocess
from prometheus_client.metrics_core import Metric

TALLY = "climate.tally"
REQUESTS = "climate_requests_total"
SECONDS = "climate_request_seconds"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, float("inf"))
LIMITS = tuple("+Inf" if limit == float("inf") else str(limit) for limit in BUCKETS)
MmapedDict: Any = mmap_dict.MmapedDict
Collector: Any = multiprocess.MultiProcessCollector
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


class Tally:
    """Each process writes to files of its own; a scrape of any process reads and adds up all of them.

    The library's own multi-process mode is switched on by an environment
    variable at import, for the whole program; this writes the same files
    without it.  A process that is replaced leaves its file behind, so that
    no counter ever goes back; when none of the writers lives any more, the
    next to come begins anew.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._pid = 0
        self._files: dict[str, Any] = {}

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """One more request, answered after so many seconds."""
        names, values = ["route", "method"], [route, method if method in METHODS else "OTHER"]
        bucket = LIMITS[bisect_left(BUCKETS, seconds)]
        requests = mmap_dict.mmap_key(
            "climate_requests", REQUESTS, [*names, "status"], [*values, str(status)], "Requests answered."
        )
        help_text = "Seconds from request to answer."
        with self._lock:
            self._open()
            self._add("counter", requests, 1)
            self._add("histogram", mmap_dict.mmap_key(SECONDS, f"{SECONDS}_sum", names, values, help_text), seconds)
            for le in LIMITS:
                key = mmap_dict.mmap_key(SECONDS, f"{SECONDS}_bucket", [*names, "le"], [*values, le], help_text)
                self._add("histogram", key, 1 if le == bucket else 0)

    def collect(self) -> Iterable[Metric]:
        """The sums over all processes."""
        self._folder.mkdir(parents=True, exist_ok=True)
        found: Iterable[Metric] = Collector(None, path=str(self._folder)).collect()
        return found

    def _add(self, kind: str, key: str, amount: float) -> None:
        file = self._files[kind]
        value, _ = file.read_value(key)
        if amount:
            file.write_value(key, value + amount, 0.0)

    def _open(self) -> None:
        """A process that was forked off must not write into its parent's files."""
        pid = os.getpid()
        if self._pid == pid:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        _forget_the_dead(self._folder)
        self._files = {
            kind: MmapedDict(str(self._folder / f"{kind}_{token_hex(4)}_{pid}.db")) for kind in ("counter", "histogram")
        }
        self._pid = pid


def install(app: Flask, folder: Path) -> None:
    """Let `app` count its requests in `folder`."""
    app.extensions[TALLY] = Tally(folder)


def tally(app: Flask) -> Tally:
    """The tally of `app`."""
    return cast(Tally, app.extensions[TALLY])


def _forget_the_dead(folder: Path) -> None:
    files = list(folder.glob("*.db"))
    if not any(_lives(int(file.stem.rpartition("_")[2])) for file in files):
        for file in files:
            file.unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
