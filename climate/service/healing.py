"""Leases get other hosts for those that fail them, or are told what they lack, until it is put right.

A lease is healed when it runs, or starts soon (CLIMATE_HEALING_SECONDS), and
holds a host that has failed, was taken away, or is worked on when the lease
needs it.  A host that is only closed to new promises (`reservable`) keeps
those that were made.  Where no other host matches and is free, the lease is
degraded: `missing` says how much it lacks.  It goes on holding the host that
failed, so that nobody else gets it when it comes back.

`missing` is 0 again as soon as the promise is kept.  `resources_changed` says
that a running lease got other hosts than it had, whose servers the owner may
have to make anew: it stays until he changes the lease the next time.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import ClimateError
from climate.service import drift, mending
from climate.service.curing import Case, Outcome, curable, cure, engine, started
from climate.service.unit import work
from climate.store import ailing, leases, quarantine

log = structlog.get_logger(__name__)

AHEAD = timedelta(minutes=10)
"""How long before its start a lease no longer waits for a host that the one before it does not give back."""

FAILED = "a host of it cannot be used"
AWAITED = "a host of it is not given back by the lease before it"


def heal_all(climate: Climate) -> list[UUID]:
    """Look after every lease that suffers; the ids of those that got other hosts.

    Finding them takes a constant number of statements; each is then changed in a transaction of its own.
    """
    found, now = work(climate, lambda conn, patient: _suffering(climate, conn))
    healed = [lease_id for lease_id in found if _healed(climate, lease_id, frozenset(), FAILED)]
    kept = work(climate, lambda conn, patient: quarantine.hosts(conn, now))
    return healed + heal(climate, kept, now + AHEAD) if kept else healed


def heal(climate: Climate, hosts: Collection[int], start_by: datetime) -> list[UUID]:
    """Give leases that wait for these hosts and are to start by then other ones; the ids of those that got some.

    They are not begun yet.  Where nothing else is free they go on waiting.
    """
    awaited = frozenset(hosts)

    def look(conn: Connection, patient: bool) -> list[UUID]:
        return quarantine.waiting(conn, awaited, start_by, climate.now(conn)) if awaited else []

    waiting = work(climate, look)
    return [lease_id for lease_id in waiting if _healed(climate, lease_id, awaited, AWAITED)]


def _suffering(climate: Climate, conn: Connection) -> tuple[list[UUID], datetime]:
    now, ahead = climate.now(conn), climate.settings.healing_seconds
    return ailing.suffering(conn, now, now + timedelta(seconds=ahead) if ahead else None), now


def _healed(climate: Climate, lease_id: UUID, awaited: frozenset[int], why: str) -> bool:
    """Whether the lease got another host.  Its trouble does not keep the next one from being looked after."""

    def act(conn: Connection, patient: bool) -> Outcome | None:
        lease, now = leases.get(conn, lease_id, lock=True), climate.now(conn)
        if not curable(lease, now) or (awaited and started(lease)):
            return None
        return cure(climate, conn, Case(lease, now, engine(lease), why, awaited=awaited))

    try:
        outcome = work(climate, act)
    except ClimateError as error:
        log.warning("a lease could not be healed", lease_id=str(lease_id), reason=str(error))
        return False
    except Exception as error:
        if not mending.is_its_own(error):
            raise
        log.exception("a lease could not be healed", lease_id=str(lease_id))
        return False
    if outcome is None:
        return False
    if outcome.replaced or outcome.short:
        told = {"lease_id": str(lease_id), "replaced": outcome.replaced, "missing": outcome.short}
        log.warning("a lease was looked after", reason=why, **told)
    drift.ask(climate, outcome.moved)
    return outcome.replaced
