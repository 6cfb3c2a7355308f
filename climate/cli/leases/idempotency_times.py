"""The time of the first use of an idempotency key, kept for repetitions on this machine.

A repetition has the content of the first request only if relative times are reckoned from the same moment.
"""

import hashlib
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from climate.cli.connection.token_cache import folder_of
from climate.cli.dates import read, wire

DAY = 86400.0
"""Seconds for which a time is kept."""


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """Times by their keys in the cache directory of the user; without a folder none is kept."""

    folder: Path | None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "RequestTimes":
        """Return the times of a user."""
        tokens = folder_of(environ)
        return cls(None if tokens is None else tokens.with_name("requests"))

    def first(self, key: str, now: datetime) -> datetime:
        """Return the time of the first use of a key, which is `now` if there was none."""
        if self.folder is None:
            return now
        path = self._path(key)
        with suppress(OSError, ValueError):
            return read(path.read_text(encoding="ascii"))
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._clean(self.folder)
            path.write_text(wire(now), encoding="ascii")
        return now

    def forget(self, key: str) -> None:
        """Delete the time of a key whose request was refused, because a repetition is a new request."""
        if self.folder is not None:
            with suppress(OSError):
                self._path(key).unlink()

    def _path(self, key: str) -> Path:
        return Path(self.folder or ".", hashlib.sha256(key.encode()).hexdigest()[:32])

    @staticmethod
    def _clean(folder: Path) -> None:
        for path in folder.iterdir():
            if path.stat().st_mtime < time.time() - DAY:
                path.unlink()
