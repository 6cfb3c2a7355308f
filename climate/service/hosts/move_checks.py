"""Preconditions for moving hosts between pools: leases, events in progress, maintenance, concurrent moves."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from climate.domain.errors import Busy, Conflict, LeasesInTheWay
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.policy import Caller
from climate.domain.status import EventStatus
from climate.power import OFF
from climate.store.hosts import cleaning, drift, maintenance, pools, power
from climate.store.hosts.pools import Promise

MOST_LISTED = 20

CLEANED_BEFORE = frozenset({Pool.RESERVATION, Pool.MULTI_TENANT, Pool.LENT, Pool.DRAINING})
"""Pools that no host enters while the cleaning hook may run on it."""


@dataclass(frozen=True, slots=True)
class RequestedMove:
    """Request to move hosts, given by number or name, to a pool.

    `force`: also away from a lease, which then gets another host if there is one. `source`: the pool in which all
    of them must be.
    """

    hosts: Sequence[str]
    to: Pool
    reason: str = ""
    force: bool = False
    source: Pool | None = None


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """Request, its author, and the fencing token under which it is carried out."""

    order: RequestedMove
    caller: Caller
    token: int
    seen: tuple[HostPlace, ...]
    """Memberships of the hosts when the request came: a concurrent move of one of them wins."""

    @property
    def moving(self) -> tuple[HostPlace, ...]:
        return tuple(place for place in self.seen if place.pool is not self.order.to)

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(place.host for place in self.moving)


def lost_by(conn: Connection, request: MoveRequest, present: Mapping[int, HostPlace] | None = None) -> list[Promise]:
    """Return the allocations that leases would lose; a move to the reservation pool only costs lent hosts."""
    held = pools.allocations_on(conn, request.numbers)
    if request.order.to is not Pool.RESERVATION:
        return held
    there = present or {place.host: place for place in request.moving}
    lent = {place.host: place.reservation_id for place in there.values() if place.pool is Pool.LENT}
    return [one for one in held if one.reservation_id == lent.get(one.host)]


def refuse(request: MoveRequest, lost: Sequence[Promise]) -> None:
    """Raise LeasesInTheWay, unless nothing is lost or the request is forced."""
    if not lost or request.order.force:
        return
    names = {place.host: place.name for place in request.seen}
    shown = [
        f"lease {one.lease_id} ({one.lease_name}, project {one.project_id}, from {one.start_date:%Y-%m-%d %H:%M:%S}"
        f" to {one.end_date:%Y-%m-%d %H:%M:%S} UTC) would lose host {names[one.host]}"
        for one in lost[:MOST_LISTED]
    ]
    more = f", and {len(lost) - MOST_LISTED} others" if len(lost) > MOST_LISTED else ""
    message = f"{'; '.join(shown)}{more}; with force they get other hosts, where there are any"
    raise LeasesInTheWay(message, {"leases": [_detail(one, names[one.host]) for one in lost]})


def precheck(conn: Connection, request: MoveRequest) -> None:
    """Refuse a move that is impossible already, before the cloud is asked."""
    refuse(request, lost_by(conn, request))
    refuse_busy(conn, request.numbers)
    refuse_maintained(conn, request)
    refuse_cleaned(conn, request)
    if request.order.to is Pool.MULTI_TENANT:
        refuse_asleep(conn, request.moving)


def _detail(lost: Promise, host: str) -> dict[str, str]:
    return {
        "host": host,
        "lease_id": str(lost.lease_id),
        "lease_name": str(lost.lease_name),
        "project_id": str(lost.project_id),
    }


def clash(hosts: Sequence[HostPlace]) -> Conflict:
    message = ", ".join(f"{place.name} ({place.pool})" for place in hosts[:MOST_LISTED])
    return Conflict(f"A host was moved concurrently: {message}; check its present pool")


def refuse_moved(expected: Collection[HostPlace], present: Mapping[int, HostPlace]) -> None:
    """Raise Conflict if somebody has moved a host since it was read."""
    clashes = [present[place.host] for place in expected if present[place.host].version != place.version]
    if clashes:
        raise clash(clashes)


def refuse_busy(conn: Connection, numbers: Collection[int]) -> None:
    """Raise Busy while an event is working with one of the hosts."""
    if any(one.status == EventStatus.IN_PROGRESS for one in drift.begun(conn, numbers)):
        raise Busy("The lease of a host is being started or ended right now; try again shortly")


def refuse_maintained(conn: Connection, request: MoveRequest) -> None:
    """Raise Conflict for a host in maintenance: it leaves when that is over, or when it fails."""
    worked_on = maintenance.active_on(conn, request.numbers) if request.order.to is not Pool.FAILED else frozenset()
    if worked_on:
        message = ", ".join(place.name for place in request.moving if place.host in worked_on)
        raise Conflict(
            f"Hosts are in maintenance: {message}; end their maintenance windows, and they return automatically"
        )


def refuse_cleaned(conn: Connection, request: MoveRequest) -> None:
    """Raise Conflict if the cleaning hook may run on a host that others will use."""
    suspects = [place.host for place in request.moving if place.pool not in CLEANED_BEFORE]
    if request.order.to not in (Pool.RESERVATION, Pool.MULTI_TENANT) or not suspects:
        return
    runs = cleaning.alive(conn, suspects)
    result = [
        f"{place.name} (process {runs[place.host].pid} on {runs[place.host].worker})"
        for place in request.moving
        if place.host in runs
    ]
    if result:
        raise Conflict(
            f"The cleaning hook runs for hosts: {', '.join(result[:MOST_LISTED])}; move them when it has ended,"
            f" or into the pool {Pool.MAINTENANCE}"
        )


def asleep(conn: Connection, hosts: Sequence[HostPlace]) -> list[HostPlace]:
    """Return those of the hosts that are switched off, or about to be."""
    known = power.of(conn, [place.host for place in hosts])
    return [p for p in hosts if p.host in known and not (p.on and known[p.host].wanted != OFF)]


def refuse_asleep(conn: Connection, leaving: Sequence[HostPlace]) -> None:
    """Raise Conflict if a host is off, or about to be, and goes to a pool in which nothing switches it on."""
    result = asleep(conn, leaving)
    if result:
        message = ", ".join(place.name for place in result[:MOST_LISTED])
        raise Conflict(
            f"Hosts are switched off, or are about to be: {message}; switch them on first,"
            " or have them switched by climate no more (climate host power clear --force)"
        )
