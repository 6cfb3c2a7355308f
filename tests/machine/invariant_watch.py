"""What must hold at the moment at which the engine deletes a server, switches a host off or has started a lease."""

from datetime import timedelta

from climate.cloud import CloudServer
from climate.domain.hosts import pools
from climate.domain.hosts.pools import HostPlace, OnEnd, Pool
from climate.domain.lease import Lease, Reservation
from climate.domain.status import DONE, IN_PROGRESS, EventKind
from tests.machine.deployment import Site


def watch(site: Site) -> None:
    """Note every such moment at which a promise is broken, in `site.broken`."""
    site.cloud.on_deletion = lambda server: _note(site, _untimely(site, server))
    site.supply.on_off = lambda host: _note(site, _needed(site, host))
    site.on_start = lambda lease: _note(site, _unready(site, lease))


def _note(site: Site, said: str) -> None:
    if said:
        site.broken.append(said)


def _untimely(site: Site, server: CloudServer) -> str:
    """Nobody's server is deleted while its lease goes on, or sooner than was agreed."""
    told, now = f"server {server.id} on {server.host} is deleted", site.clock.time
    if server.id not in site.booted:
        return f"{told}: it is in no lease"
    number = site.booted[server.id]
    lease = site.by_reservation()[number]
    end = lease.event(EventKind.END)
    if pools.on_end(lease.reservation(number)) is OnEnd.TERMINATE:
        begun = lease.gone or lease.deleting or end.status in (DONE, IN_PROGRESS)
        if begun or end.due_at <= now:
            return ""
    place = site.place_of(server.host or "")
    lead = timedelta(seconds=site.settings.recycle_lead + site.settings.cleaning_time)
    soon = [t for t in site.taken() if t.host == place.host and t.reservation_id not in (None, number)]
    if place.pool is Pool.RECYCLING and any(t.start - lead <= now for t in soon):
        return ""
    return f"{told} at {now}: its host is {place}, its lease {lease}, others {soon}"


def _needed(site: Site, host: str) -> str:
    """No host goes off that is in use, or needed soon."""
    place, now = site.place_of(host), site.clock.time
    lead = timedelta(seconds=site.settings.power_on_lead)
    needs = [t for t in site.taken() if t.host == place.host and t.kind != "maintenance" and t.start <= now + lead]
    if place.pool not in (Pool.RESERVATION, Pool.MULTI_TENANT, Pool.MAINTENANCE, Pool.FAILED) or needs:
        return f"host {host} is switched off at {now}: it is {place}, needed for {needs}"
    return ""


def _unready(site: Site, lease: Lease) -> str:
    """What is not handed over at the start is missing, and is said to be."""
    there = site.places()
    for r in lease.reservations:
        lacks = sum(hold.slots or 1 for hold in r.holds if not _is_ready(site, r, there[hold.host], hold.slots))
        if lacks > r.missing:
            return f"lease {lease} has started, and does not say what it lacks: {there}"
    return ""


def _is_ready(site: Site, r: Reservation, place: HostPlace, slots: int) -> bool:
    """As far as the engine can know: a host that was switched by others a moment ago may be off."""
    up = site.is_up(place.name) or place.name in site.tampered
    if slots:
        granted = site.cloud.granted.get(str(r.id))
        return up and place.pool is Pool.RESERVATION and granted is not None and granted.slots[place.name] == slots
    return up and place.on and place.pool is Pool.LENT and place.reservation_id == r.id
