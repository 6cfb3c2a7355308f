"""Whether a host may be chosen for new promises, and all that ever happened to it."""

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import InvalidInput, NotFound
from climate.domain.facts import HostOpened
from climate.domain.hosts.pools import HostPlace
from climate.domain.policy import Caller, require
from climate.service.hosts.inventory import number
from climate.service.transaction import work
from climate.store.hosts import pool_membership
from climate.store.journal import journal
from climate.store.journal.journal import Entry
from climate.store.leases import tampering

LONGEST_REASON = 255


def open_to_promises(
    climate: Climate, caller: Caller, host_id: str, reservable: bool, reason: str = "", *, dry_run: bool = False
) -> HostPlace:
    """Say whether the host may be chosen for new promises; those that were made are kept.

    Nothing happens where it is said already.
    """
    require(caller, "oshosts:put")
    if len(reason) > LONGEST_REASON:
        raise InvalidInput(f"reason must be a text of {LONGEST_REASON} characters at most")

    def act(conn: Connection, patient: bool) -> HostPlace:
        place = pool_membership.get(conn, number(host_id), lock=True)
        if place.reservable == reservable:
            return place
        tampering.refuse_places(conn, [place])
        said = HostOpened(climate.now(conn), reservable, reason)
        return pool_membership.record(conn, caller, [(place, [said])])[0]

    return work(climate, act, keep=not dry_run)


def history(climate: Climate, caller: Caller, host_id: str) -> list[Entry]:
    """All that ever happened to a host, also to one that is no longer registered."""
    require(caller, "oshosts:get")

    def act(conn: Connection, patient: bool) -> list[Entry]:
        known = pool_membership.of(conn, [number(host_id)])
        if not known:
            raise NotFound(f"Object with {{'host_id': '{host_id}'}} not found")
        return journal.read(conn, known[number(host_id)].stream)

    return work(climate, act)
