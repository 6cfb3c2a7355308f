"""Permission of new allocations on a host, and the history of a host."""

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import InvalidInput, NotFound
from climate.domain.facts import HostOpened
from climate.domain.hosts.pools import HostPlace
from climate.domain.policy import Caller, require
from climate.service.hosts.inventory import number
from climate.service.transaction import run
from climate.store.hosts import pool_membership
from climate.store.journal import journal
from climate.store.journal.journal import Entry
from climate.store.leases import row_consistency

LONGEST_REASON = 255


def open_to_promises(
    climate: Climate, caller: Caller, host_id: str, reservable: bool, reason: str = "", *, dry_run: bool = False
) -> HostPlace:
    """Permit or forbid new allocations on the host; existing ones are kept.

    Does nothing if it is so already.
    """
    require(caller, "oshosts:put")
    if len(reason) > LONGEST_REASON:
        raise InvalidInput(f"reason must be a text of {LONGEST_REASON} characters at most")
    return run(climate, _record, climate, caller, host_id, reservable, reason, keep=not dry_run)


def _record(
    conn: Connection, climate: Climate, caller: Caller, host_id: str, reservable: bool, reason: str
) -> HostPlace:
    place = pool_membership.get(conn, number(host_id), lock=True)
    if place.reservable == reservable:
        return place
    row_consistency.refuse_places(conn, [place])
    said = HostOpened(climate.now(conn), reservable, reason)
    return pool_membership.record(conn, caller, [(place, [said])])[0]


def history(climate: Climate, caller: Caller, host_id: str) -> list[Entry]:
    """Return the facts of a host, also of one that is no longer registered."""
    require(caller, "oshosts:get")
    return run(climate, _read_history, host_id)


def _read_history(conn: Connection, host_id: str) -> list[Entry]:
    known = pool_membership.of(conn, [number(host_id)])
    if not known:
        raise NotFound(f"Object with {{'host_id': '{host_id}'}} not found")
    return journal.read(conn, known[number(host_id)].stream)
