"""Next leases of hosts, which determine how recycling hosts are treated."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Connection, func, literal, select, true

from climate.domain.reservation_spec import Spec
from climate.store.tables.leases import allocations, in_force, leases, reservations


def starts(
    conn: Connection, hosts: Collection[int], apart_from: Collection[UUID] = (), *, owed: bool = False
) -> dict[int, datetime]:
    """Return the start of the next lease of each host; hosts without one are missing.

    Reservations `apart_from` do not count. Sub-leases that are over and return their hosts count only with `owed`: the
    parent gets these hosts.
    """
    if not hosts:
        return {}
    a, is_open = allocations, true() if owed else reservations.c.status != "deleted"
    wanted = func.unnest(literal(sorted(hosts), ARRAY(BigInteger))).table_valued("host").render_derived()
    # The first in an index of each host: a host may have thousands of leases.
    start = func.lower(a.c.during)
    first = (
        select(start.label("start"))
        .join(reservations, reservations.c.id == a.c.reservation_id)
        .where(is_open)
        .where(a.c.host == wanted.c.host, a.c.kind == "lease", in_force(a))
        .where(a.c.reservation_id.not_in(list(apart_from)))
        .order_by(start)
        .limit(1)
        .lateral()
    )
    query = select(wanted.c.host, first.c.start).join(first, true())
    return {row.host: row.start for row in conn.execute(query)}


@dataclass(frozen=True, slots=True)
class LastReservation:
    """The reservation after which a host recycles or is cleaned, and its lease."""

    lease_id: UUID
    name: str
    project_id: str
    user_id: str
    spec: Spec
    over: bool
    """True if the lease has ended."""


def last_reservations(conn: Connection, numbers: Collection[UUID]) -> dict[UUID, LastReservation]:
    """Return reservations by id, including those of deleted leases."""
    if not numbers:
        return {}
    r, one = reservations, leases
    query = (
        select(r.c.id, r.c.lease_id, one.c.name, one.c.project_id, one.c.user_id, r.c.spec, r.c.status == "deleted")
        .join(one, one.c.id == r.c.lease_id)
        .where(r.c.id.in_(list(numbers)))
    )
    return {number: LastReservation(*result) for number, *result in conn.execute(query)}
