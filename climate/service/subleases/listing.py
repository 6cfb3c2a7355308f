"""Sub-leases of a lease, for its owners."""

from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.policy import Caller, require
from climate.domain.sharing.sharing import Access, refusal
from climate.service.sharing import access
from climate.service.transaction import run
from climate.store.allocation import due_subleases
from climate.store.leases import leases
from climate.store.leases.leases import ReadLease


def of_parent(climate: Climate, caller: Caller, lease_id: UUID) -> list[ReadLease]:
    """Return the sub-leases of a lease that are not deleted, oldest first, with the error of an unreadable one.

    Raise NotFound for a lease of another project, and Forbidden if it is shared with the caller.
    """
    require(caller, "leases:get")
    return run(climate, _read, caller, lease_id)


def _read(conn: Connection, caller: Caller, lease_id: UUID) -> list[ReadLease]:
    parent = access.get(conn, caller, lease_id)
    if (relation := access.relation(caller, parent)) is not Access.OWNER:
        raise refusal(relation)
    ids = due_subleases.of_parent(conn, lease_id)
    rows = leases.read_many(conn, ids)
    known = leases.readable(rows.values())
    return [access.visible(caller, known[one]) if one in known else rows[one] for one in ids]
