"""Healing of leases: other hosts for unusable ones, or a record of the missing ones.

A lease is healed if it runs, or starts soon (CLIMATE_HEALING_SECONDS), and holds an unusable host. A host is
unusable if it has failed, was taken out, or is in maintenance when the lease needs it. A host without
permission for new allocations (`reservable`) keeps existing ones. If no other matching host is free, the
lease is degraded: `missing` is the number that it lacks. It keeps the failed host, so that no other lease
gets it when it returns.

`missing` is 0 again as soon as the promise is kept. `resources_changed` means that a running lease got other
hosts, so the owner may have to recreate servers. It stays set until the owner changes the lease.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.events.event_transitions import started
from climate.domain.lease import Lease
from climate.service.hosts import reconcile
from climate.service.leases.reallocation import Case, Outcome, can_reallocate, engine, reallocate_hosts
from climate.service.preemption import second_try
from climate.service.round_steps import RoundSteps
from climate.service.transaction import run
from climate.store.allocation import preemptible
from climate.store.hosts import health, quarantine
from climate.store.leases import event_claims, healing_waits, leases

log = structlog.get_logger(__name__)

PORTION = 20
"""Maximum number of leases in one round."""

AHEAD = timedelta(minutes=10)
"""Time before its start at which a lease no longer waits for a host that the lease before it has not given back."""

FAILED = "one of its hosts is unusable"
AWAITED = "one of its hosts is not released by the lease before it"


def heal_all(climate: Climate) -> list[UUID]:
    """Heal degraded leases, some in each round; return the ids of those that got other hosts.

    A lease that cannot be healed waits longer after each try, until something is released. If more are due than
    one round may try, the next round is requested at once, so that other rounds run in between.
    """
    result, kept, now = run(climate, _degraded_leases, climate)
    healed = _heal_each(climate, result, frozenset(), FAILED)
    if not kept:
        return healed
    waiting = run(climate, _waiting, climate, kept, now + AHEAD)
    return healed + _heal_each(climate, waiting, kept, AWAITED)


def heal(climate: Climate, hosts: Collection[int], start_by: datetime) -> list[UUID]:
    """Replace these hosts for leases that wait for them and start by then; return the ids of leases that got some.

    They have not begun yet. If no other host is free they go on waiting.
    """
    awaited = frozenset(hosts)
    waiting = run(climate, _affected_leases, climate, start_by, awaited)
    return [lease_id for lease_id in waiting if _healed(climate, lease_id, awaited, AWAITED)]


def _affected_leases(conn: Connection, climate: Climate, start_by: datetime, awaited: frozenset[int]) -> list[UUID]:
    return quarantine.waiting(conn, awaited, start_by, climate.now(conn)) if awaited else []


def _degraded_leases(conn: Connection, climate: Climate) -> tuple[list[UUID], frozenset[int], datetime]:
    """Return the leases for this round, and the hosts that were not given back."""
    now, ahead = climate.now(conn), climate.settings.healing_seconds
    suffering = health.suffering(conn, now, now + timedelta(seconds=ahead) if ahead else None)
    return _due(conn, suffering, now), frozenset(quarantine.hosts(conn, now)), now


def _waiting(conn: Connection, climate: Climate, kept: frozenset[int], start_by: datetime) -> list[UUID]:
    now = climate.now(conn)
    return _due(conn, quarantine.waiting(conn, kept, start_by, now), now)


def _due(conn: Connection, lease_ids: list[UUID], now: datetime) -> list[UUID]:
    chosen, more = healing_waits.due(conn, lease_ids, now, PORTION) if lease_ids else ([], False)
    if more:
        event_claims.wake_rounds(conn)
    return chosen


def _heal_each(climate: Climate, lease_ids: list[UUID], awaited: frozenset[int], why: str) -> list[UUID]:
    """Heal each of the leases, and record the results; return the ids of those that were healed."""
    outcomes = {lease_id: _healed(climate, lease_id, awaited, why) for lease_id in lease_ids}
    healed = [lease_id for lease_id, is_healed in outcomes.items() if is_healed]
    in_vain = [lease_id for lease_id, is_healed in outcomes.items() if not is_healed]
    if healed or in_vain:
        run(climate, _note, climate, healed, in_vain)
    return healed


def _note(conn: Connection, climate: Climate, healed: Sequence[UUID], in_vain: Sequence[UUID]) -> None:
    healing_waits.note(conn, climate.now(conn), healed, in_vain)


def _healed(climate: Climate, lease_id: UUID, awaited: frozenset[int], why: str) -> bool | None:
    """Return whether the lease got another host; None if nothing can be done now.

    An error does not stop the next lease.
    """
    with RoundSteps("lease healing failed").item(lease_id=str(lease_id)):
        outcome = run(climate, _heal_lease, climate, lease_id, awaited, why)
        if outcome is None:
            return None
        if outcome.replaced or outcome.short:
            details = {"lease_id": str(lease_id), "replaced": outcome.replaced, "missing": outcome.short}
            log.warning("lease healed", reason=why, **details)
        reconcile.send_moves(climate, outcome.moved)
        return outcome.replaced
    return False


def _heal_lease(
    conn: Connection, climate: Climate, lease_id: UUID, awaited: frozenset[int], why: str
) -> Outcome | None:
    # Who only waits for a host takes none from a preemptible lease instead.
    losers = () if awaited else _losers(conn, climate, leases.get(conn, lease_id))
    lease, now = leases.get(conn, lease_id, lock=True), climate.now(conn)
    if not can_reallocate(lease, now) or (awaited and started(lease)):
        return None
    return reallocate_hosts(conn, climate, Case(lease, now, engine(lease), why, awaited=awaited, losers=losers))


def _losers(conn: Connection, climate: Climate, lease: Lease) -> tuple[Lease, ...]:
    """Lock the lease and the preemptible leases of which it may get hosts; none if it is preemptible itself."""
    if second_try.gives_way(r.spec for r in lease.reservations):
        return ()
    during = second_try.reach(climate.settings, lease.period.start, lease.period.end)
    return preemptible.lock(conn, during, [lease.id])
