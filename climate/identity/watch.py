"""The time, and what is no longer believed, both at most a second old and without a statement per request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from time import monotonic

from sqlalchemy import Engine

from climate.connections import reading
from climate.domain.errors import NotAuthenticated
from climate.identity.store import revocations
from climate.identity.store.revocations import CREDENTIAL, PROJECT, TOKEN, USER, Key
from climate.identity.tokens import Grant

FRESH = 0.9
"""Seconds for which what was read is used: with the reading itself, a revocation is seen within a second."""


@dataclass(frozen=True, slots=True)
class View:
    """What one look at the database said."""

    looked: float
    now: datetime
    revoked: Mapping[Key, datetime]


class Watch:
    """One per process; its clock is the database's, carried on by the process's own between two looks."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._lock = Lock()
        self._view: View | None = None

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
            if before is not None and grant.issued_at <= before.timestamp():
                raise NotAuthenticated()

    def forget(self) -> None:
        """Look again at the next question: something was revoked by this process."""
        self._view = None

    def _look(self) -> View:
        view = self._view
        if view is not None and self._clock() - view.looked < FRESH:
            return view
        with self._lock:
            view = self._view
            if view is None or self._clock() - view.looked >= FRESH:
                self._view = view = self._read()
            return view

    def _read(self) -> View:
        looked = self._clock()
        with reading(self._engine) as conn:
            now, revoked = revocations.in_force(conn)
        return View(looked, now, revoked)
