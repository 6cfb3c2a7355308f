"""Leases with broken rows: set aside by the pollers, and repaired from their journals."""

from collections.abc import Sequence
from uuid import UUID

import structlog
from sqlalchemy import Connection, Uuid, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import NotFound, UnreadableLease
from climate.domain.lease import Lease, fold
from climate.service.events.event_shares import queue_of
from climate.service.transaction import run
from climate.store.journal import journal, row_differences, row_repair
from climate.store.journal.journal import Entry
from climate.store.journal.projections import LEASE, claims_of
from climate.store.leases import event_claims, set_aside
from climate.store.leases import rows as lease_rows
from climate.store.leases.event_claims import Message
from climate.store.leases.set_aside import SetAside

log = structlog.get_logger(__name__)

MENDER = "mend"


def exclude(climate: Climate, lease_id: UUID, error: Exception) -> None:
    """Exclude a lease from polling until it is repaired."""
    cause = error.__cause__ if isinstance(error, UnreadableLease) and error.__cause__ else error
    reason = f"{type(cause).__name__}: {getattr(cause, 'orig', None) or cause}"
    with climate.engine.begin() as conn:
        set_aside.set_aside(conn, lease_id, climate.now(conn), " ".join(reason.split()))
    log.error("lease set aside; `climate event mend` repairs its rows", lease_id=str(lease_id), reason=reason[:300])


def listed(climate: Climate) -> list[SetAside]:
    """Return the leases that are set aside."""
    with reading(climate.engine) as conn:
        return set_aside.listed(conn)


def repair_lease(climate: Climate, lease_id: UUID, queue: str) -> Lease:
    """Rewrite the rows of a lease from its journal, and let its events run again.

    Claims remain. A missing claim is created again, under the token of the journal and for `queue`, and one that the
    journal does not have is deleted. Raises NotFound for a lease without journal, and the error of the fold if this
    release cannot read the journal.
    """
    return run(climate, repair_leases, climate, [lease_id], queue)[0]


def repair_leases(conn: Connection, climate: Climate, lease_ids: Sequence[UUID], queue: str) -> list[Lease]:
    """Repair leases together, whose rows may conflict; the journal is read once their rows are locked."""
    row_repair.lock(conn, LEASE, lease_ids)
    known = _folded(conn, lease_ids)
    rows = row_differences.compare(conn, lease_ids).rows
    row_repair.lock_held(conn, rows)
    row_repair.clear(conn, LEASE, rows)
    row_repair.stop_running(conn, rows)
    damaged = {row.stream for row in rows}
    lease_rows.save(conn, [(None, lease) for lease in known if lease.id in damaged])
    _repair_claims(conn, climate, known, queue)
    set_aside.take_back(conn, lease_ids)
    event_claims.wake_poller(conn)
    return known


def _folded(conn: Connection, lease_ids: Sequence[UUID]) -> list[Lease]:
    """Return the leases folded from their journals, by id; raise NotFound if one has no journal."""
    entries: dict[UUID, list[Entry]] = {}
    for entry in journal.read_many(conn, lease_ids):
        entries.setdefault(entry.stream, []).append(entry)
    if missing := sorted(set(lease_ids) - set(entries)):
        raise NotFound(f"Object with {{'lease_id': '{missing[0]}'}} not found")
    return [fold(journal.of_lease(entries[lease_id])) for lease_id in sorted(lease_ids)]


def _repair_claims(conn: Connection, climate: Climate, known: Sequence[Lease], queue: str) -> None:
    wanted = [
        Message(event.id, token, queue_of(resource_type) if resource_type else queue)
        for lease in known
        for event, token, resource_type in claims_of(lease)
    ]
    if not wanted:
        return
    present = {(row.event_id, row.token) for row in conn.execute(_CLAIMED, {"ids": [one.event_id for one in wanted]})}
    opened = [one for one in wanted if (one.event_id, one.token) not in present]
    event_claims.open_many(conn, opened, MENDER, climate.now(conn))


_CLAIMED = text("SELECT event_id, token FROM claims WHERE event_id = ANY (:ids)").bindparams(
    bindparam("ids", type_=ARRAY(Uuid))
)
