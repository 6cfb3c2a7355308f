"""Leases whose rows are broken: set aside by the pollers, mended from their journals."""

from uuid import UUID

import structlog
from sqlalchemy import Connection, exc, select, text

from climate.connections import reading
from climate.context import Climate
from climate.domain import shares
from climate.domain.errors import NotFound, Unavailable
from climate.domain.lease import Event, Lease, fold
from climate.domain.status import EventStatus
from climate.service.event_shares import queue_of
from climate.store import claims, failures, journal, lease_rows, locks, set_aside
from climate.store.claims import Message
from climate.store.set_aside import SetAside
from climate.store.tables import leases

log = structlog.get_logger(__name__)

MENDER = "mend"


def is_its_own(error: Exception) -> bool:
    """Whether an error may come from what the rows of one lease say, not from the database or the way to it."""
    if isinstance(error, failures.ERRORS):
        return isinstance(error, exc.IntegrityError | exc.DataError)
    return not isinstance(error, Unavailable | OSError)


def put_aside(climate: Climate, lease_id: UUID, error: Exception) -> None:
    """Let no poller look at a lease any more until it is mended."""
    reason = f"{type(error).__name__}: {getattr(error, 'orig', None) or error}"
    with climate.engine.begin() as conn:
        set_aside.put(conn, lease_id, climate.now(conn), " ".join(reason.split()))
    log.error("lease set aside: `climate event mend` makes its rows anew", lease_id=str(lease_id), reason=reason[:300])


def listed(climate: Climate) -> list[SetAside]:
    """Return the leases that are set aside."""
    with reading(climate.engine) as conn:
        return set_aside.listed(conn)


def mend(climate: Climate, lease_id: UUID, queue: str) -> Lease:
    """Write all rows of a lease anew from its journal, and let its events run again.

    What is claimed stays so: a claim that is missing is opened again, under the token of
    the journal and for `queue`, and one that the journal does not know is closed.  NotFound for a lease
    without journal; whatever its fold raises where this release cannot read it.
    """
    with climate.engine.begin() as conn:
        conn.execute(locks.ordered(select(leases.c.id).where(leases.c.id == lease_id), leases.c.id))
        entries = journal.read(conn, lease_id)
        if not entries:
            raise NotFound(f"Object with {{'lease_id': '{lease_id}'}} not found")
        lease = fold(journal.of_lease(entries))
        known = {"lease_id": lease_id, "known": [event.id for event in lease.events]}
        for statement in _CLEARED:
            conn.execute(statement, known)
        lease_rows.save(conn, [(None, lease)])
        _mend_claims(climate, conn, lease, queue)
        set_aside.take_back(conn, lease_id)
        claims.wake_poller(conn)
    return lease


def _mend_claims(climate: Climate, conn: Connection, lease: Lease, queue: str) -> None:
    wanted = [message for event in lease.events for message in _claimed(lease, event, queue)]
    known = {"lease_id": lease.id, "events": [one.event_id for one in wanted], "tokens": [one.token for one in wanted]}
    conn.execute(_UNCLAIMED, known)
    present = {(row.event_id, row.token) for row in conn.execute(_CLAIMED, {"lease_id": lease.id})}
    opened = [one for one in wanted if (one.event_id, one.token) not in present]
    claims.open_many(conn, opened, MENDER, climate.now(conn))


def _claimed(lease: Lease, event: Event, queue: str) -> list[Message]:
    """The claims that an event has by the journal: one of each share that is under way, or one of the whole event."""
    if event.status is not EventStatus.IN_PROGRESS:
        return []
    types = shares.wanted(lease, event)
    under_way = [one for one in event.shares if one.resource_type in types]
    if not under_way:
        return [Message(event.id, event.token, queue)]
    return [Message(event.id, one.token, queue_of(one.resource_type)) for one in under_way]


_STRANGE = "SELECT id FROM events WHERE lease_id = :lease_id AND id <> ALL (CAST(:known AS uuid[]))"
_OWN = "SELECT id FROM reservations WHERE lease_id = :lease_id"
_CLEARED = tuple(
    text(statement)
    for statement in (
        f"DELETE FROM claims WHERE event_id IN ({_STRANGE})",  # noqa: S608
        f"DELETE FROM actions WHERE event_id IN ({_STRANGE})",  # noqa: S608
        f"DELETE FROM events WHERE id IN ({_STRANGE})",  # noqa: S608
        f"DELETE FROM allocations WHERE kind = 'lease' AND reservation_id IN ({_OWN})",  # noqa: S608
        f"DELETE FROM floating_allocations WHERE reservation_id IN ({_OWN})",  # noqa: S608
        f"DELETE FROM inventory_allocations WHERE reservation_id IN ({_OWN})",  # noqa: S608
    )
)
_UNCLAIMED = text("""
    DELETE FROM claims c USING events e WHERE c.event_id = e.id AND e.lease_id = :lease_id
    AND (c.event_id, c.token) NOT IN (SELECT * FROM unnest(CAST(:events AS uuid[]), CAST(:tokens AS bigint[])))
""")
_CLAIMED = text("""
    SELECT c.event_id, c.token FROM claims c JOIN events e ON e.id = c.event_id WHERE e.lease_id = :lease_id
""")
