"""Confirmation of held leases.

A held lease is created by `climate.service.leases.leases.create` with `Order.hold` and deleted by
`climate.service.leases.leases.delete`. Its event `expire_hold` ends it unless it is confirmed in time.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Conflict, NotFound
from climate.domain.facts import HoldConfirmed, HoldExpired
from climate.domain.lease import Lease, fold
from climate.domain.planning import holds
from climate.domain.policy import Caller, require
from climate.service.leases import leases, reservation_aggregates
from climate.service.notifications import delivery, lease_events
from climate.service.transaction import run
from climate.store.journal import journal
from climate.store.journal.journal import Entry
from climate.store.leases import leases as stored


def confirm(climate: Climate, caller: Caller, lease_id: UUID, key: str = "") -> Lease:
    """Confirm a held lease; it starts at once if its start has come.

    A repeated `key` returns the lease as it was after the first confirmation, whatever has changed since. Raises
    Conflict if the hold has expired, was confirmed under another key, or the lease was never held.
    """
    require(caller, "leases:confirm")

    return reservation_aggregates.announce(climate, run(climate, _confirm, climate, caller, lease_id, key))


def _confirm(conn: Connection, climate: Climate, caller: Caller, lease_id: UUID, key: str) -> Lease:
    try:
        lease = stored.get(conn, lease_id, project_id=leases.scope(caller), lock=True)
    except NotFound:
        return confirmed_before(leases.story(conn, climate, caller, lease_id), key)
    if not lease.held:
        return confirmed_before(leases.story(conn, climate, caller, lease_id), key)
    now = climate.now(conn)
    after = stored.record(conn, caller, lease, holds.confirm(lease, key, now))
    delivery.notify(conn, now, *lease_events.of(climate.settings, lease, after))
    leases.wake_if_soon(conn, climate, after, now)
    return after


def confirmed_before(story: Sequence[Entry], key: str) -> Lease:
    """Return the lease after its confirmation under this key; otherwise raise the reason of the refusal."""
    lease = fold(journal.of_lease(story))
    for entry in story:
        if isinstance(entry.fact, HoldConfirmed):
            if entry.fact.key != key:
                raise Conflict(f"The lease {lease.id} was confirmed before, under another key")
            return fold(journal.of_lease(one for one in story if one.version <= entry.version))
        if isinstance(entry.fact, HoldExpired):
            raise holds.expired(lease)
    if lease.gone:
        raise NotFound(f"Object with {{'lease_id': '{lease.id}'}} not found")
    raise Conflict(f"The lease {lease.id} was never held: there is nothing to confirm")
