"""Cache of the database's clock and of revocations, at most one second old, without SQL per request.

The processes of one web server share a random stamp, which each revocation replaces. A process whose cache has another
stamp reads again, so that a revocation holds in all of them at once. Other web servers see it within a second.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from secrets import randbits
from threading import Lock
from time import monotonic
from typing import Protocol

from sqlalchemy import Engine

from climate.database import connections
from climate.domain.errors import NotAuthenticated
from climate.identity.authentication.tokens import Grant
from climate.identity.store import revocations
from climate.identity.store.revocations import (
    CREDENTIAL,
    PROJECT,
    ROLE,
    TOKEN,
    USER,
    Key,
    Reading,
    Revocation,
    role_subject,
)

FRESH = 0.9
"""Lifetime of the cache in seconds; including the read itself, a revocation applies within a second."""

TIDY = 60.0
"""Seconds after which expired revocations are dropped."""


class Number(Protocol):
    """A number that may be in memory which other processes share."""

    value: int


@dataclass(slots=True)
class OwnNumber:
    """Number of a process that shares it with no other."""

    value: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """Result of one read of the database."""

    looked: float
    reading: Reading
    revoked: Mapping[Key, Revocation]
    tidied: float
    """Time at which unneeded revocations were last dropped."""
    asked: object
    """Number of the call of `forget` that preceded it."""
    last: int
    """Stamp of the last revocation that any process of the web server announced before the read."""

    @property
    def now(self) -> datetime:
        return self.reading.now


class Watch:
    """Revocation cache of a process; between two reads, the process's own clock extrapolates the database's clock."""

    def __init__(
        self, engine: Engine, clock: Callable[[], float] = monotonic, last_revocation: Number | None = None
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._last = last_revocation or OwnNumber()
        self._lock = Lock()
        self._view: View | None = None
        self._asked = object()

    def now(self) -> float:
        """Return seconds of the epoch, by the database's clock."""
        view = self._current_view()
        return view.now.timestamp() + self._clock() - view.looked

    def check(self, grant: Grant) -> None:
        """Raise NotAuthenticated when the grant, or a subject that it names, was revoked after it was issued."""
        revoked = self._current_view().revoked
        if not revoked:
            return
        if any((TOKEN, audit) in revoked for audit in grant.audit_ids):
            raise NotAuthenticated()
        for key in _subjects(grant):
            before = revoked.get(key)
            if before is not None and grant.issued_at <= before.issued_before.timestamp():
                raise NotAuthenticated()

    def forget(self) -> None:
        """Read again at the next check, so that it sees all revocations before this call."""
        self._asked = object()

    def announce(self) -> None:
        """Let all processes of this web server read again before their next check.

        A revocation calls it after its commit. The number is random and not counted up: processes that announce at the
        same moment cannot write a number that another process has seen already.
        """
        self._last.value = randbits(64)

    def _current_view(self) -> View:
        view = self._view
        if view is not None and self._is_fresh(view):
            return view
        with self._lock:
            view = self._view
            if view is None or not self._is_fresh(view):
                self._view = view = self._read(view)
            return view

    def _is_fresh(self, view: View) -> bool:
        is_last = view.asked is self._asked and view.last == self._last.value
        return is_last and self._clock() - view.looked < FRESH

    def _read(self, last: View | None) -> View:
        """Return the present state; read only what was written since the last read."""
        looked, asked, number = self._clock(), self._asked, self._last.value
        with connections.reading(self._engine) as conn:
            reading = revocations.read(conn, last.reading.seen if last else None)
            if last is not None and reading.xmin < last.reading.xmin:  # another database, or an older copy of it
                last, reading = None, revocations.read(conn)
        if last is None:
            return View(looked, reading, _merged({}, reading.revocations), looked, asked, number)
        revoked = _merged(last.revoked, reading.revocations) if reading.revocations else last.revoked
        if looked - last.tidied < TIDY:
            return View(looked, reading, revoked, last.tidied, asked, number)
        return View(looked, reading, _tidied(revoked, reading.now), looked, asked, number)


def _subjects(grant: Grant) -> tuple[Key, ...]:
    """Return the subjects whose revocation covers tokens with this grant."""
    role = role_subject(grant.user_id, None if grant.is_system else grant.project_id)
    return (USER, grant.user_id), (PROJECT, grant.project_id), (CREDENTIAL, grant.credential_id), (ROLE, role)


def _merged(revoked: Mapping[Key, Revocation], new: Iterable[Revocation]) -> dict[Key, Revocation]:
    """Merge both; keep the later of two entries of one subject."""
    merged = dict(revoked)
    for one in new:
        known = merged.get(one.key)
        if known is None or known.issued_before < one.issued_before:
            merged[one.key] = one
    return merged


def _tidied(revoked: Mapping[Key, Revocation], now: datetime) -> dict[Key, Revocation]:
    """Return the entries that are in force and not covered by a later revocation of their owner."""

    def needed(one: Revocation) -> bool:
        owners = revoked.get((USER, one.owner)) if one.owner else None
        return one.expires_at > now and (owners is None or owners.issued_before < one.issued_before)

    return {key: one for key, one in revoked.items() if needed(one)}
