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
from climate.service.hosts import reconcile
from climate.service.leases import repair
from climate.service.leases.reallocation import Case, Outcome, curable, cure, engine, started
from climate.service.transaction import work
from climate.store.hosts import health, quarantine
from climate.store.leases import event_claims, healing_waits, leases

log = structlog.get_logger(__name__)

PORTION = 20
"""Leases that one round tries to heal at most."""

AHEAD = timedelta(minutes=10)
"""How long before its start a lease no longer waits for a host that the one before it does not give back."""

FAILED = "a host of it cannot be used"
AWAITED = "a host of it is not given back by the lease before it"


def heal_all(climate: Climate) -> list[UUID]:
    """Look after leases that suffer, some in each round; the ids of those that got other hosts.

    A lease that cannot be helped waits longer after each try, until something is freed.  Where more are due than
    one round may try, the next round is asked for at once: other rounds come in between.
    """
    found, kept, now = work(climate, lambda conn, patient: _suffering(climate, conn))
    healed = _tried(climate, found, frozenset(), FAILED)
    if not kept:
        return healed
    waiting = work(climate, lambda conn, patient: _waiting(climate, conn, kept, now + AHEAD))
    return healed + _tried(climate, waiting, kept, AWAITED)


def heal(climate: Climate, hosts: Collection[int], start_by: datetime) -> list[UUID]:
    """Give leases that wait for these hosts and are to start by then other ones; the ids of those that got some.

    They are not begun yet.  Where nothing else is free they go on waiting.
    """
    awaited = frozenset(hosts)

    def look(conn: Connection, patient: bool) -> list[UUID]:
        return quarantine.waiting(conn, awaited, start_by, climate.now(conn)) if awaited else []

    waiting = work(climate, look)
    return [lease_id for lease_id in waiting if _healed(climate, lease_id, awaited, AWAITED)]


def _suffering(climate: Climate, conn: Connection) -> tuple[list[UUID], frozenset[int], datetime]:
    """The leases that are tried in this round, and the hosts that were not given back."""
    now, ahead = climate.now(conn), climate.settings.healing_seconds
    suffering = health.suffering(conn, now, now + timedelta(seconds=ahead) if ahead else None)
    return _due(conn, suffering, now), frozenset(quarantine.hosts(conn, now)), now


def _waiting(climate: Climate, conn: Connection, kept: frozenset[int], start_by: datetime) -> list[UUID]:
    now = climate.now(conn)
    return _due(conn, quarantine.waiting(conn, kept, start_by, now), now)


def _due(conn: Connection, found: list[UUID], now: datetime) -> list[UUID]:
    chosen, more = healing_waits.due(conn, found, now, PORTION) if found else ([], False)
    if more:
        event_claims.wake_rounds(conn)
    return chosen


def _tried(climate: Climate, found: list[UUID], awaited: frozenset[int], why: str) -> list[UUID]:
    """Try to heal each of the leases, and note how that went; the ids of those that were healed."""
    outcomes = {lease_id: _healed(climate, lease_id, awaited, why) for lease_id in found}
    healed = [lease_id for lease_id, is_healed in outcomes.items() if is_healed]
    in_vain = [lease_id for lease_id, is_healed in outcomes.items() if not is_healed]
    if healed or in_vain:
        work(climate, lambda conn, patient: healing_waits.note(conn, climate.now(conn), healed, in_vain))
    return healed


def _healed(climate: Climate, lease_id: UUID, awaited: frozenset[int], why: str) -> bool | None:
    """Whether the lease got another host; None where nothing can be done for it just now.

    Its trouble does not keep the next one from being looked after.
    """

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
        if not repair.is_its_own(error):
            raise
        log.exception("a lease could not be healed", lease_id=str(lease_id))
        return False
    if outcome is None:
        return None
    if outcome.replaced or outcome.short:
        told = {"lease_id": str(lease_id), "replaced": outcome.replaced, "missing": outcome.short}
        log.warning("lease healed", reason=why, **told)
    reconcile.ask(climate, outcome.moved)
    return outcome.replaced
