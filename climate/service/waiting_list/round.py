"""The round that gives resources to leases of the waiting list when some were released.

Marks say what was released. They are deleted after the leases that they concern were tried, each in a transaction of
its own. So a round that dies is repeated, and what it gave stays given.
"""

import time
from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import ClimateError, NotFound, NoVerdict, Unavailable
from climate.domain.period import Period
from climate.domain.planning import waiting_list as waiting
from climate.domain.planning.waiting_list import Entry, Rule
from climate.service.round_steps import is_its_own
from climate.service.transaction import run
from climate.service.waiting_list import entries
from climate.service.waiting_list.free_times import FreeTimes
from climate.store.hosts import hosts
from climate.store.leases import event_claims, waiting_list
from climate.store.leases.waiting_list import Marks

log = structlog.get_logger(__name__)

T = TypeVar("T")

PUT_OFF = timedelta(seconds=60)
"""Time until the next try of a lease that a limit or the approval service refused."""

ROUND_SECONDS = 20.0
"""Maximum length of a round; the next one follows at once."""


@dataclass
class _Resources:
    """Resources of the deployment, as `waiting.FreeResources` asks for them."""

    climate: Climate
    times: FreeTimes

    def fits(self, entry: Entry, period: Period, kept: Set[int]) -> bool:
        return self._unless_broken(entry, False, lambda: self.times.fits(entry, period, kept))

    def free(self, entry: Entry, period: Period) -> frozenset[int]:
        return self._unless_broken(entry, frozenset[int](), lambda: self.times.free(entry, period))

    def first(self, entry: Entry, now: datetime, kept: Set[int]) -> Period | None:
        return self._unless_broken(entry, None, lambda: self.times.first(entry, now, entry.reach, kept))

    def grant(self, entry: Entry, period: Period, kept: Set[int]) -> bool:
        """Give the entry its resources; whatever comes of it, the free times are read again."""
        self.times.forget()
        return self._unless_broken(entry, False, lambda: self._granted(entry, period, kept))

    def _unless_broken(self, entry: Entry, otherwise: T, ask: Callable[[], T]) -> T:
        """Return the answer, or `otherwise` for a lease with broken rows, which keeps no other waiting."""
        try:
            return ask()
        except Exception as error:
            if isinstance(error, ClimateError) or not is_its_own(error):
                raise
            log.exception("lease of the waiting list failed", lease_id=str(entry.lease_id))
            if not entry.is_passed_over:
                run(self.climate, _postpone, self.climate, entry.lease_id)
            return otherwise

    def _granted(self, entry: Entry, period: Period, kept: Set[int]) -> bool:
        try:
            is_granted = entries.attempt(self.climate, entry.lease_id, period, kept)
        except NotFound:
            return False
        except NoVerdict:  # the round ends, because each further question may take as long as the time-out
            run(self.climate, _postpone, self.climate, entry.lease_id)
            raise
        except Unavailable:
            raise
        except ClimateError as refusal:
            log.info("lease of the waiting list refused", lease_id=str(entry.lease_id), reason=str(refusal))
            run(self.climate, _postpone, self.climate, entry.lease_id)
            return False
        if is_granted:
            log.info("lease of the waiting list granted", lease_id=str(entry.lease_id))
        return is_granted


def _postpone(conn: Connection, climate: Climate, lease_id: UUID) -> None:
    waiting_list.mark_lease(conn, lease_id, climate.now(conn) + PUT_OFF)


def run_round(climate: Climate) -> list[UUID]:
    """Try the leases that the due marks concern, in the order of the list; return those that got their resources."""
    with reading(climate.engine) as conn:
        now = climate.now(conn)
        marks = waiting_list.due(conn, now)
        if not marks.ids:
            return []
        is_same_for_all = not hosts.any_is_restricted(conn)
        rule = _rule(climate, waiting_list.promised(conn, now))
        found = waiting_list.entries(conn, marks, now, climate.settings.waiting_share_days, rule.patience)
    granted: list[UUID] = []
    if found:
        world = _Resources(climate, FreeTimes(climate, max(entry.reach for entry in found), is_same_for_all))
        begun = time.monotonic()
        for lease_id in waiting.serve(found, world, now, rule):
            granted.append(lease_id)
            if time.monotonic() - begun > ROUND_SECONDS:
                run(climate, event_claims.wake_rounds)
                return granted
    run(climate, _settle, climate, marks)
    return granted


def _rule(climate: Climate, promised: int) -> Rule:
    settings = climate.settings
    patience = None if settings.waiting_patience < 0 else timedelta(seconds=settings.waiting_patience)
    return Rule(patience, settings.waiting_promises - promised)


def _settle(conn: Connection, climate: Climate, marks: Marks) -> None:
    waiting_list.settle(conn, marks, climate.now(conn))
