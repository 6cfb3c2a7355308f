"""The time, and what is no longer believed, both at most a second old and without a statement per request."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from time import monotonic

from sqlalchemy import Engine

from climate import connections
from climate.domain.errors import NotAuthenticated
from climate.identity.store import revocations
from climate.identity.store.revocations import CREDENTIAL, PROJECT, TOKEN, USER, Key, Reading, Revocation
from climate.identity.tokens import Grant

FRESH = 0.9
"""Seconds for which what was read is used: with the reading itself, a revocation is seen within a second."""

TIDY = 60.0
"""Seconds after which those that have expired are left out."""


@dataclass(frozen=True, slots=True)
class View:
    """What one look at the database said."""

    looked: float
    reading: Reading
    revoked: Mapping[Key, Revocation]
    tidied: float
    """When those that are not needed any more were last left out."""
    asked: object
    """The call of `forget` that it came after."""

    @property
    def now(self) -> datetime:
        return self.reading.now


class Watch:
    """One per process; its clock is the database's, carried on by the process's own between two looks."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._lock = Lock()
        self._view: View | None = None
        self._asked = object()

    def now(self) -> float:
        """Seconds of the epoch, by the database's clock."""
        view = self._look()
        return view.now.timestamp() + self._clock() - view.looked

    def check(self, grant: Grant) -> None:
        """NotAuthenticated when the grant, or whom or what it names, was revoked after it was issued."""
        revoked = self._look().revoked
        if not revoked:
            return
        if any((TOKEN, audit) in revoked for audit in grant.audit_ids):
            raise NotAuthenticated()
        for kind, subject in ((USER, grant.user_id), (PROJECT, grant.project_id), (CREDENTIAL, grant.credential_id)):
            before = revoked.get((kind, subject))
            if before is not None and grant.issued_at <= before.issued_before.timestamp():
                raise NotAuthenticated()

    def forget(self) -> None:
        """Look again at the next question: what was revoked before this call is seen by it."""
        self._asked = object()

    def _look(self) -> View:
        view = self._view
        if view is not None and self._is_fresh(view):
            return view
        with self._lock:
            view = self._view
            if view is None or not self._is_fresh(view):
                self._view = view = self._read(view)
            return view

    def _is_fresh(self, view: View) -> bool:
        return view.asked is self._asked and self._clock() - view.looked < FRESH

    def _read(self, last: View | None) -> View:
        """What is so now; only what was written since the last look is read."""
        looked, asked = self._clock(), self._asked
        with connections.reading(self._engine) as conn:
            reading = revocations.read(conn, last.reading.seen if last else None)
            if last is not None and reading.xmin < last.reading.xmin:  # another database, or an older copy of it
                last, reading = None, revocations.read(conn)
        if last is None:
            return View(looked, reading, _merged({}, reading.found), looked, asked)
        revoked = _merged(last.revoked, reading.found) if reading.found else last.revoked
        if looked - last.tidied < TIDY:
            return View(looked, reading, revoked, last.tidied, asked)
        return View(looked, reading, _tidied(revoked, reading.now), looked, asked)


def _merged(revoked: Mapping[Key, Revocation], found: Iterable[Revocation]) -> dict[Key, Revocation]:
    """Both; of two of one subject the later."""
    merged = dict(revoked)
    for one in found:
        known = merged.get(one.key)
        if known is None or known.issued_before < one.issued_before:
            merged[one.key] = one
    return merged


def _tidied(revoked: Mapping[Key, Revocation], now: datetime) -> dict[Key, Revocation]:
    """Those that are in force and say more than what was revoked of their owner since."""

    def needed(one: Revocation) -> bool:
        owners = revoked.get((USER, one.owner)) if one.owner else None
        return one.expires_at > now and (owners is None or owners.issued_before < one.issued_before)

    return {key: one for key, one in revoked.items() if needed(one)}
