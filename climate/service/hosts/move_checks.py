"""What stands against moving hosts: leases that would lose one, events at work, maintenance, other admins."""

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

MOST_TOLD = 20

CLEANED_BEFORE = frozenset({Pool.RESERVATION, Pool.MULTI_TENANT, Pool.LENT, Pool.DRAINING})
"""Pools that no host enters while the cleaning hook may run on it."""


@dataclass(frozen=True, slots=True)
class Order:
    """Hosts, by number or name, that are to go to a pool.

    `force`: also from under a lease, which then gets another host where there
    is one.  `source`: the pool in which all of them are thought to be.
    """

    hosts: Sequence[str]
    to: Pool
    reason: str = ""
    force: bool = False
    source: Pool | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """An order, who gave it, and the token under which it is carried out."""

    order: Order
    caller: Caller
    token: int
    seen: tuple[HostPlace, ...]
    """The hosts as they were when the request came: whoever moves one of them meanwhile wins."""

    @property
    def moving(self) -> tuple[HostPlace, ...]:
        return tuple(place for place in self.seen if place.pool is not self.order.to)

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(place.host for place in self.moving)


def lost_by(conn: Connection, asked: Asked, present: Mapping[int, HostPlace] | None = None) -> list[Promise]:
    """What leases hold of the hosts that they cannot have there; into the reservation pool only a lent one is lost."""
    held = pools.held(conn, asked.numbers)
    if asked.order.to is not Pool.RESERVATION:
        return held
    there = present or {place.host: place for place in asked.moving}
    lent = {place.host: place.reservation_id for place in there.values() if place.pool is Pool.LENT}
    return [one for one in held if one.reservation_id == lent.get(one.host)]


def refuse(asked: Asked, lost: Sequence[Promise]) -> None:
    """LeasesInTheWay, unless nothing is lost or it is meant."""
    if not lost or asked.order.force:
        return
    names = {place.host: place.name for place in asked.seen}
    shown = [
        f"lease {one.lease_id} ({one.lease_name}, project {one.project_id}, from {one.start_date:%Y-%m-%d %H:%M:%S}"
        f" to {one.end_date:%Y-%m-%d %H:%M:%S} UTC) would lose host {names[one.host]}"
        for one in lost[:MOST_TOLD]
    ]
    more = f", and {len(lost) - MOST_TOLD} others" if len(lost) > MOST_TOLD else ""
    message = f"{'; '.join(shown)}{more}; with force they get other hosts, where there are any"
    raise LeasesInTheWay(message, {"leases": [_told(one, names[one.host]) for one in lost]})


def refuse_plainly(conn: Connection, asked: Asked) -> None:
    """What stands against the move already, before the cloud is asked for anything."""
    refuse(asked, lost_by(conn, asked))
    refuse_busy(conn, asked.numbers)
    refuse_maintained(conn, asked)
    refuse_cleaned(conn, asked)
    if asked.order.to is Pool.MULTI_TENANT:
        refuse_asleep(conn, asked.moving)


def _told(lost: Promise, host: str) -> dict[str, str]:
    return {
        "host": host,
        "lease_id": str(lost.lease_id),
        "lease_name": str(lost.lease_name),
        "project_id": str(lost.project_id),
    }


def clash(found: Sequence[HostPlace]) -> Conflict:
    told = ", ".join(f"{place.name} ({place.pool})" for place in found[:MOST_TOLD])
    return Conflict(f"Someone else moved a host at the same moment: {told}; look where it is now")


def refuse_moved(expected: Collection[HostPlace], present: Mapping[int, HostPlace]) -> None:
    """Conflict where somebody has moved a host since it was looked at."""
    clashes = [present[place.host] for place in expected if present[place.host].version != place.version]
    if clashes:
        raise clash(clashes)


def refuse_busy(conn: Connection, numbers: Collection[int]) -> None:
    """Busy while an event has one of the hosts in its hands."""
    if any(one.status == EventStatus.IN_PROGRESS for one in drift.begun(conn, numbers)):
        raise Busy("The lease of a host is being started or ended right now; try again shortly")


def refuse_maintained(conn: Connection, asked: Asked) -> None:
    """Conflict where a host is worked on: it leaves when that is over, or when it fails."""
    worked_on = maintenance.active_on(conn, asked.numbers) if asked.order.to is not Pool.FAILED else frozenset()
    if worked_on:
        told = ", ".join(place.name for place in asked.moving if place.host in worked_on)
        raise Conflict(f"Hosts are worked on: {told}; end their maintenance, and they come back by themselves")


def refuse_cleaned(conn: Connection, asked: Asked) -> None:
    """Conflict where the cleaning hook may run on a host that is to be used by others."""
    suspects = [place.host for place in asked.moving if place.pool not in CLEANED_BEFORE]
    if asked.order.to not in (Pool.RESERVATION, Pool.MULTI_TENANT) or not suspects:
        return
    runs = cleaning.alive(conn, suspects)
    found = [
        f"{place.name} (process {runs[place.host].pid} on {runs[place.host].worker})"
        for place in asked.moving
        if place.host in runs
    ]
    if found:
        raise Conflict(
            f"The cleaning hook runs for hosts: {', '.join(found[:MOST_TOLD])}; move them when it has ended,"
            f" or into the pool {Pool.MAINTENANCE}"
        )


def asleep(conn: Connection, found: Sequence[HostPlace]) -> list[HostPlace]:
    """Those of the hosts that are switched off, or are about to be."""
    known = power.of(conn, [place.host for place in found])
    return [p for p in found if p.host in known and not (p.on and known[p.host].wanted != OFF)]


def refuse_asleep(conn: Connection, leaving: Sequence[HostPlace]) -> None:
    """Conflict where a host is off, or on its way, and goes to where nobody switches it on for who needs it."""
    found = asleep(conn, leaving)
    if found:
        told = ", ".join(place.name for place in found[:MOST_TOLD])
        raise Conflict(
            f"Hosts are switched off, or are about to be: {told}; switch them on first,"
            " or have them switched by climate no more (climate host power clear --force)"
        )
