"""Request counters in files that all web processes share."""

import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Any, cast
from weakref import finalize

import structlog
from flask import Flask
from prometheus_client import mmap_dict, multiprocess
from prometheus_client.metrics_core import Metric

TALLY = "climate.tally"
REQUESTS = "climate_requests_total"
SECONDS = "climate_request_seconds"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, float("inf"))
LIMITS = tuple("+Inf" if limit == float("inf") else str(limit) for limit in BUCKETS)
HELP = {"climate_requests": "Requests answered.", SECONDS: "Seconds from request to answer."}
Labels = tuple[str, str]
"""Route and method."""

MmapedDict: Any = mmap_dict.MmapedDict
Collector: Any = multiprocess.MultiProcessCollector
PAUSE = 30.0
"""Seconds without counting after the disk was full."""

_SIZE = 1 << 16
"""Size of a new metrics file in bytes."""
_AROUND_KEY = 32
"""Bytes that an entry has beside its key, at most."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})

log = structlog.get_logger(__name__)


class Tally:
    """Counters of requests: each process writes its own files, and a scrape of any process adds up all files.

    An environment variable would switch on the library's multi-process mode
    for the whole program at import.  This class writes the same files without
    it.  The file of a replaced process stays, so that no counter decreases.
    If no writer lives any more, the next process starts with empty files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._pid = 0
        self._again = 0.0
        """Time of the next attempt to write after the disk was full."""
        self._files: dict[str, Any] = {}
        self._begun: set[Sequence[str]] = set()
        finalize(self, _close, self._files)

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one request with its duration in seconds; a full disk loses metrics, not answers."""
        if time.monotonic() < self._again:
            return
        labels = (route, method if method in METHODS else "OTHER")
        try:
            with self._lock:
                self._open()
                self._add("counter", _requests(labels, status), 1)
                self._add("histogram", _sum(labels), seconds)
                self._observe(_buckets(labels), seconds)
        except OSError as error:
            self._again = time.monotonic() + PAUSE
            log.warning("request counters paused", seconds=PAUSE, reason=error.strerror)

    def _observe(self, buckets: Sequence[str], seconds: float) -> None:
        """Raise one bucket, because a scrape adds up the buckets; the others must exist, with 0."""
        if buckets not in self._begun:
            for key in buckets:
                self._add("histogram", key, 0)
            self._begun.add(buckets)
        self._add("histogram", buckets[bisect_left(BUCKETS, seconds)], 1)

    def collect(self) -> Iterable[Metric]:
        """Yield the sums over all processes."""
        self._folder.mkdir(parents=True, exist_ok=True)
        result: Iterable[Metric] = Collector(None, path=str(self._folder)).collect()
        return result

    def _add(self, kind: str, key: str, amount: float) -> None:
        file = self._files[kind]
        value, _ = file.read_value(key)
        file.write_value(key, value + amount, 0.0)

    def _open(self) -> None:
        """Open files of this process, because a forked process must not write into its parent's files."""
        pid = os.getpid()
        if self._pid == pid:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        _forget_the_dead(self._folder)
        made: dict[str, object] = {}
        try:
            for kind in ("counter", "histogram"):
                made[kind] = _create_file(self._folder / f"{kind}_{token_hex(4)}_{pid}.db")
        except OSError:
            _discard(made)
            raise
        self._files.update(made)
        self._begun = set()
        self._pid = pid


class ReservedDict(MmapedDict):  # type: ignore[misc]
    """Metrics file of the library with all blocks allocated before they are written to.

    If a full disk has no block for a page of a mapped file, SIGBUS ends the process.
    """

    def _init_value(self, key: str) -> None:
        size, needed = self._capacity, self._used + len(key.encode()) + _AROUND_KEY
        while needed > size:
            size *= 2
        if size > self._capacity:
            _reserve(self._f.fileno(), size)
        super()._init_value(key)


def _create_file(path: Path) -> ReservedDict:
    """Return a new metrics file; on OSError for a full disk no file remains."""
    try:
        with path.open("xb") as file:
            _reserve(file.fileno(), _SIZE)
        return ReservedDict(str(path))
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _reserve(file: int, size: int) -> None:
    os.posix_fallocate(file, 0, size)


def _discard(files: Mapping[str, Any]) -> None:
    for file in files.values():
        file.close()
        Path(file._fname).unlink(missing_ok=True)


def install(app: Flask, folder: Path) -> None:
    """Install the counters of `app` in `folder`."""
    app.extensions[TALLY] = Tally(folder)


def tally(app: Flask) -> Tally:
    """Return the counters of `app`."""
    return cast(Tally, app.extensions[TALLY])


@cache
def _requests(labels: Labels, status: int) -> str:
    return _key("climate_requests", REQUESTS, labels, status=str(status))


@cache
def _sum(labels: Labels) -> str:
    return _key(SECONDS, f"{SECONDS}_sum", labels)


@cache
def _buckets(labels: Labels) -> tuple[str, ...]:
    return tuple(_key(SECONDS, f"{SECONDS}_bucket", labels, le=le) for le in LIMITS)


def _key(metric: str, name: str, labels: Labels, **more: str) -> str:
    result = {"route": labels[0], "method": labels[1], **more}
    return mmap_dict.mmap_key(metric, name, list(result), list(result.values()), HELP[metric])


def _close(files: dict[str, Any]) -> None:
    for file in files.values():
        file.close()


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
